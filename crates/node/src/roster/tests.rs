//! Tests of the roster: its tables agree after any operation.
//! In: random opens, joins, leaves and forgets → out: the invariants of the type, entry by entry.
//! Uses: a node for its registry; never commands.
//! What clients may do is tested in `tests/it`.

use std::time::Duration;

use fanwire_protocol::{Encoding, FilterNode};
use proptest::prelude::*;

use super::*;
use crate::filter::Filter;
use crate::options::Options;

impl Roster {
    /// The invariants of the type, checked entry by entry.
    fn check(&self) {
        let mut subscriptions = 0;
        for (index, session) in self.sessions.iter().enumerate() {
            let Some(session) = session else { continue };
            for (place, subscription) in session.subscriptions.iter().enumerate() {
                let list = &self.subscribers.audience(subscription.channel).list;
                let entry = list[subscription.place as usize];
                assert_eq!((entry.connection, entry.place()), (index as u32, place as u32));
                assert_eq!(entry.has_filter(), subscription.filter().is_some());
                assert_eq!(entry.hears(), subscription.hears);
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

impl Roster {
    /// A channel has a watch exactly while it has positioned subscribers, and counts them.
    fn check_watches(&self) {
        for session in self.sessions.iter().flatten() {
            for subscription in &session.subscriptions {
                let audience = self.subscribers.audience(subscription.channel);
                let positioned = audience.list.iter().filter(|one| {
                    let session = self.at(one.connection).expect("subscribers have sessions");
                    session.subscriptions[one.place() as usize].positioned
                });
                let watched = audience.watch.as_ref().map_or(0, |watch| watch.count());
                assert_eq!(watched, positioned.count());
            }
        }
    }
}

fn hello(encoding: Encoding) -> Hello {
    Hello { encoding, frame_ping: false, transport: "websocket", user: None }
}

fn key(index: u32) -> ConnectionKey {
    ConnectionKey { index, generation: 1 }
}

fn connected(node: &Node, roster: &mut Roster, index: u32) {
    let encoding = Encoding::ALL[index as usize % 2];
    roster.open(node, key(index), hello(encoding), Instant::now());
    let user = node.enter(&(index % 3).to_string()).expect("no limit");
    roster.admit(index, user);
}

fn join(
    node: &Node,
    roster: &mut Roster,
    (index, channel): (u32, &str),
    terms: Option<Box<Terms>>,
) -> usize {
    let channel = node.join(channel, roster.shard());
    roster.sit_down(index, &channel, Seat { server_side: false, terms })
}

fn filter() -> Box<Filter> {
    let node = FilterNode { key: "k".into(), cmp: "ex".into(), ..FilterNode::default() };
    Box::new(Filter::new(&node).expect("a good filter"))
}

#[test]
fn a_session_is_found_by_its_own_key_only() {
    let node = Node::new(Options::default()).expect("defaults are good");
    let mut roster = Roster::new(ShardId(0));
    roster.open(&node, key(4), hello(Encoding::Json), Instant::now());
    assert!(roster.session(key(4)).is_some());
    assert!(roster.session(key(3)).is_none());
    assert!(roster.session(ConnectionKey { index: 4, generation: 2 }).is_none());
    assert!(!roster.forget(&node, ConnectionKey { index: 4, generation: 2 }));
    assert!(roster.forget(&node, key(4)));
    assert!(!roster.forget(&node, key(4)));
}

#[test]
fn a_timer_follows_the_earliest_deadline() {
    let now = Instant::now();
    let node = Node::starting_at(Options::default(), now, 1_000_000).expect("defaults are good");
    let mut roster = Roster::new(ShardId(0));
    roster.open(&node, key(0), hello(Encoding::Json), now);
    let deadline = |roster: &Roster| roster.next_deadline().expect("set").0;
    assert!(deadline(&roster) <= 10_016, "stale after 10 s");
    let user = node.enter("42").expect("no limit");
    roster.admit(0, user);
    roster.session_mut(key(0)).expect("open").beat_at = Moment(20_000);
    let terms = Terms::boxed(Default::default(), Some(1_000));
    join(&node, &mut roster, (0, "a"), terms);
    roster.schedule(&node, 0);
    assert_eq!(roster.pop_due(Moment(19_900)), None);
    assert_eq!(roster.pop_due(node.clock().moment(now + Duration::from_millis(20_032))), Some(0));
}

proptest! {
    #[test]
    fn the_tables_agree_after_every_operation(
        steps in prop::collection::vec((0..6u32, 0..5u8, 0..4u8), 1..200),
    ) {
        let node = Node::new(Options::default()).expect("defaults are good");
        let mut roster = Roster::new(ShardId(0));
        for (index, channel, what) in steps {
            let channel = channel.to_string();
            let is_here = roster.session(key(index)).is_some();
            match (what, roster.place_of(index, &channel)) {
                (0, _) if is_here => {
                    roster.forget(&node, key(index));
                }
                _ if !is_here => connected(&node, &mut roster, index),
                (_, Some(place)) => {
                    roster.leave(&node, index, place);
                    prop_assert_eq!(roster.place_of(index, &channel), None);
                }
                (_, None) => {
                    let filter = (index % 2 == 1).then(filter);
                    let terms = Terms::filtering(None, filter);
                    let place = join(&node, &mut roster, (index, &channel), terms);
                    if index > 3 {
                        roster.hear(index, place);
                    }
                    if what > 1 {
                        let position = Position { offset: u64::from(index), ..Position::default() };
                        roster.watch(&node, index, place, position, Instant::now());
                    }
                    prop_assert!(roster.place_of(index, &channel).is_some());
                }
            }
            roster.check();
            let subscriptions = node.counts().subscriptions as u64;
            prop_assert_eq!(subscriptions, roster.counters.subscriptions.value());
        }
    }
}
