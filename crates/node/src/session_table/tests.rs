//! Tests of the session_table: its tables agree after any operation.
//! In: random opens, joins, leaves and forgets → out: the invariants of the type, entry by entry.
//! Uses: a node for its registry; never commands.
//! What clients may do is tested in `tests/it`.

use std::time::Duration;

use fanwire_protocol::{Encoding, FilterNode};
use proptest::prelude::*;

use super::*;
use crate::filter::Filter;
use crate::options::Options;
use crate::session::CommandSource;

impl SessionTable {
    /// The invariants of the type, checked entry by entry.
    fn check(&self) {
        let mut subscriptions = 0;
        for (index, session) in self.sessions.iter().enumerate() {
            let Some(session) = session else { continue };
            for (place, subscription) in session.subscriptions.iter().enumerate() {
                let list = &self.subscribers.channel_subscribers(subscription.channel).list;
                let entry = list[subscription.place as usize];
                assert_eq!((entry.connection, entry.place()), (index as u32, place as u32));
                assert_eq!(entry.has_filter(), subscription.filter().is_some());
                assert_eq!(entry.wants_join_leave(), subscription.wants_join_leave);
                subscriptions += 1;
            }
            let in_list = self.users.of(&session.user).any(|other| other == index as u32);
            assert_eq!(in_list, session.phase == Phase::Connected);
        }
        assert_eq!(self.counters.subscriptions.value(), subscriptions);
        self.check_watches();
        let sessions = self.sessions.iter().flatten().count() as u64;
        assert_eq!(self.counters.sessions.value(), sessions);
    }
}

impl SessionTable {
    /// A channel has a position_tracker exactly while it has positioned subscribers, and counts them.
    fn check_watches(&self) {
        for session in self.sessions.iter().flatten() {
            for subscription in &session.subscriptions {
                let channel_subscribers =
                    self.subscribers.channel_subscribers(subscription.channel);
                let positioned = channel_subscribers.list.iter().filter(|one| {
                    let session = self.at(one.connection).expect("subscribers have sessions");
                    session.subscriptions[one.place() as usize].positioned
                });
                let watched = channel_subscribers
                    .position_tracker
                    .as_ref()
                    .map_or(0, |position_tracker| position_tracker.count());
                assert_eq!(watched, positioned.count());
            }
        }
    }
}

fn hello(encoding: Encoding) -> ConnectionInfo {
    ConnectionInfo {
        encoding,
        frame_ping: false,
        transport: "websocket",
        command_source: CommandSource::Connection,
        user: None,
        headers: Vec::new(),
    }
}

fn key(index: u32) -> ConnectionKey {
    ConnectionKey { index, generation: 1 }
}

fn connected(node: &Node, session_table: &mut SessionTable, index: u32) {
    let encoding = Encoding::ALL[index as usize % 2];
    session_table.open(node, key(index), hello(encoding), Instant::now());
    let user = node.registry().enter(&(index % 3).to_string(), 0).expect("no limit");
    session_table.admit(index, user);
}

fn join(
    node: &Node,
    session_table: &mut SessionTable,
    (index, channel): (u32, &str),
    terms: Option<Box<SubscriptionGrant>>,
) -> usize {
    let channel = node.channels().join(channel, session_table.shard());
    session_table.add_subscription(
        index,
        &channel,
        NewSubscription { server_side: false, is_tile: false, terms },
    )
}

fn filter() -> Box<Filter> {
    let node = FilterNode { key: "k".into(), cmp: "ex".into(), ..FilterNode::default() };
    Box::new(Filter::new(&node).expect("a good filter"))
}

#[test]
fn a_session_is_found_by_its_own_key_only() {
    let node = Node::new(Options::default()).expect("defaults are good");
    let mut session_table = SessionTable::new(ShardId(0));
    session_table.open(&node, key(4), hello(Encoding::Json), Instant::now());
    assert!(session_table.session(key(4)).is_some());
    assert!(session_table.session(key(3)).is_none());
    assert!(session_table.session(ConnectionKey { index: 4, generation: 2 }).is_none());
    assert!(!session_table.forget(
        &node,
        ConnectionKey { index: 4, generation: 2 },
        &Disconnect::STALE
    ));
    assert!(session_table.forget(&node, key(4), &Disconnect::STALE));
    assert!(!session_table.forget(&node, key(4), &Disconnect::STALE));
}

#[test]
fn a_timer_follows_the_earliest_deadline() {
    let now = Instant::now();
    let node = Node::starting_at(Options::default(), now, 1_000_000).expect("defaults are good");
    let mut session_table = SessionTable::new(ShardId(0));
    session_table.open(&node, key(0), hello(Encoding::Json), now);
    let deadline = |session_table: &SessionTable| session_table.next_deadline().expect("set").0;
    assert!(deadline(&session_table) <= 10_016, "stale after 10 s");
    let user = node.registry().enter("42", 0).expect("no limit");
    session_table.admit(0, user);
    session_table.session_mut(key(0)).expect("open").beat_at = Moment(20_000);
    let terms = SubscriptionGrant::boxed(Default::default(), Some(1_000));
    join(&node, &mut session_table, (0, "a"), terms);
    session_table.schedule(&node, 0);
    assert_eq!(session_table.pop_due(Moment(19_900)), None);
    assert_eq!(
        session_table.pop_due(node.clock().moment(now + Duration::from_millis(20_032))),
        Some(0)
    );
}

proptest! {
    #[test]
    fn the_tables_agree_after_every_operation(
        steps in prop::collection::vec((0..6u32, 0..5u8, 0..4u8), 1..200),
    ) {
        let node = Node::new(Options::default()).expect("defaults are good");
        let mut session_table = SessionTable::new(ShardId(0));
        for (index, channel, what) in steps {
            let channel = channel.to_string();
            let is_here = session_table.session(key(index)).is_some();
            match (what, session_table.place_of(index, &channel)) {
                (0, _) if is_here => {
                    session_table.forget(&node, key(index), &Disconnect::STALE);
                }
                _ if !is_here => connected(&node, &mut session_table, index),
                (_, Some(place)) => {
                    session_table.leave(&node, index, place);
                    prop_assert_eq!(session_table.place_of(index, &channel), None);
                }
                (_, None) => {
                    let filter = (index % 2 == 1).then(filter);
                    let terms = SubscriptionGrant::filtering(None, filter);
                    let place = join(&node, &mut session_table, (index, &channel), terms);
                    if index > 3 {
                        session_table.want_join_leave(index, place);
                    }
                    if what > 1 {
                        let position = Position { offset: u64::from(index), ..Position::default() };
                        session_table.position_tracker(&node, index, place, position, Instant::now());
                    }
                    prop_assert!(session_table.place_of(index, &channel).is_some());
                }
            }
            session_table.check();
            let subscriptions = node.counts().subscriptions as u64;
            prop_assert_eq!(subscriptions, session_table.counters.subscriptions.value());
        }
    }
}
