//! Tests of the session_table: its tables agree after any operation.
//! In: random opens, joins and ends → out: the invariants of the type, entry by entry; what each end returns.
//! Uses: the table alone; never a node, never commands.
//! What clients may do is tested in `tests/it`.

use fanwire_policy::filter::{Filter, SubscriptionFilter};
use fanwire_protocol::{Encoding, FilterNode};
use proptest::prelude::*;

use super::*;
use crate::session::CommandSource;

impl SessionTable {
    /// The invariants of the type, checked entry by entry.
    fn check(&self) {
        let mut subscriptions = 0;
        for (index, session) in self.sessions.iter().enumerate() {
            let Some(session) = session else { continue };
            for (own, subscription) in (0..).map(SubscriptionIndex).zip(&session.subscriptions) {
                let list = &self.subscribers.channel_subscribers(subscription.channel).list;
                let entry = list[subscription.subscriber.0 as usize];
                assert_eq!((entry.connection, entry.subscription()), (index as u32, own));
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
                    session.subscription(one.subscription()).positioned
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
        last_event_id: None,
        headers: Vec::new(),
    }
}

fn key(index: u32) -> ConnectionKey {
    ConnectionKey { index, generation: 1 }
}

pub(super) fn opened(session_table: &mut SessionTable, index: u32) {
    let encoding = Encoding::ALL[index as usize % 2];
    session_table.open(key(index), hello(encoding), false, Moment(10_000));
}

fn connected(session_table: &mut SessionTable, index: u32) {
    opened(session_table, index);
    session_table.admit(index, (index % 3).to_string().into());
}

pub(super) fn join(
    session_table: &mut SessionTable,
    (index, channel): (u32, &str),
    terms: Option<Box<SubscriptionGrant>>,
) -> SubscriptionIndex {
    let subscription = NewSubscription { server_side: false, is_tile: false, terms };
    session_table.add_subscription(index, &channel.into(), subscription)
}

fn filter() -> Arc<SubscriptionFilter> {
    let node = FilterNode { key: "k".into(), cmp: "ex".into(), ..FilterNode::default() };
    let of_client = Some(Filter::new(&node).expect("a good filter"));
    Arc::new(SubscriptionFilter { of_server: None, of_client })
}

#[test]
fn a_session_is_found_by_its_own_key_only() {
    let mut session_table = SessionTable::new(ShardId(0));
    opened(&mut session_table, 4);
    let later = ConnectionKey { index: 4, generation: 2 };
    assert!(session_table.session(key(4)).is_some());
    assert!(session_table.session(key(3)).is_none());
    assert!(session_table.session(later).is_none());
    assert!(session_table.end_session(later).is_none());
    assert!(session_table.end_session(key(4)).is_some());
    assert!(session_table.end_session(key(4)).is_none());
}

#[test]
fn a_new_session_is_due_when_it_becomes_stale() {
    let mut session_table = SessionTable::new(ShardId(0));
    opened(&mut session_table, 0);
    assert!(session_table.timers.next_deadline().expect("set").0 <= 10_016);
    assert_eq!(session_table.timers.sessions.pop(Moment(9_900)), None);
    assert_eq!(session_table.timers.sessions.pop(Moment(10_032)), Some(0));
}

#[test]
fn a_session_that_ends_returns_what_the_node_must_learn() {
    let mut session_table = SessionTable::new(ShardId(0));
    connected(&mut session_table, 0);
    join(&mut session_table, (0, "a"), None);
    let own = join(&mut session_table, (0, "b"), None);
    let (channel, client) = session_table.announce(0, own);
    assert_eq!((&*channel, &*client.user), ("b", "0"));
    session_table.appeared(0, own, || Moment(20_000));
    let present: Vec<_> = session_table.presences(0).map(|(channel, _)| &**channel).collect();
    assert_eq!(present, ["b"]);
    let EndedSession { session, subscriptions, pending } =
        session_table.end_session(key(0)).expect("it is there");
    assert_eq!((&*session.user, pending.len()), ("0", 0));
    let row = |ended: &EndedSubscription| {
        let EndedSubscription { channel, subscription, .. } = ended;
        (channel.to_string(), subscription.present, subscription.announced)
    };
    let rows: Vec<_> = subscriptions.iter().map(row).collect();
    assert_eq!(rows, [("b".to_owned(), true, true), ("a".to_owned(), false, false)], "last first");
    assert_eq!(session_table.timers.renewals.pop(Moment(30_000)), None);
}

#[test]
fn the_last_subscription_moves_to_the_index_of_one_that_ends() {
    let mut session_table = SessionTable::new(ShardId(0));
    connected(&mut session_table, 0);
    let [first, _, last] = ["a", "b", "c"].map(|it| join(&mut session_table, (0, it), None));
    let moved = session_table.end_subscription(0, first).moved;
    assert_eq!(moved, MovedSubscription { to: first, from: last });
    assert_eq!(session_table.subscription_to(0, "c"), Some(first));
    let moved = session_table.end_subscription(0, SubscriptionIndex(1)).moved;
    assert_eq!(moved.to, moved.from, "none moved");
    session_table.check();
}

proptest! {
    #[test]
    fn the_tables_agree_after_every_operation(
        steps in prop::collection::vec((0..6u32, 0..5u8, 0..4u8), 1..200),
    ) {
        let mut session_table = SessionTable::new(ShardId(0));
        for (index, channel, what) in steps {
            let channel = channel.to_string();
            let is_here = session_table.session(key(index)).is_some();
            match (what, session_table.subscription_to(index, &channel)) {
                (0, _) if is_here => prop_assert!(session_table.end_session(key(index)).is_some()),
                _ if !is_here => connected(&mut session_table, index),
                (_, Some(own)) => {
                    let ended = session_table.end_subscription(index, own);
                    prop_assert_eq!(&*ended.channel, &*channel);
                    prop_assert_eq!(session_table.subscription_to(index, &channel), None);
                }
                (_, None) => {
                    let filter = (index % 2 == 1).then(filter);
                    let terms = SubscriptionGrant::filtering(None, filter);
                    let own = join(&mut session_table, (index, &channel), terms);
                    if index > 3 {
                        session_table.want_join_leave(index, own);
                    }
                    if what > 1 {
                        let position = Position { offset: u64::from(index), ..Position::default() };
                        let first =
                            FirstPosition { position, now: Moment(1), check_at: Moment(2) };
                        session_table.track_position(index, own, first);
                    }
                    prop_assert!(session_table.subscription_to(index, &channel).is_some());
                }
            }
            session_table.check();
        }
    }
}
