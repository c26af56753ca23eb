//! Nodes that hear each other over a bus in memory: who is there, what is obeyed, what surveys find.
//! In: messages in any order, garbage, time → out: tasks, peers, answers.
//! Uses: a bus that records. Never: threads, clocks.
//! Changed here: tests of `lib.rs`; `tests/it/cluster.rs` of `node` tests nodes with sessions.

mod selectors;
mod silence;

use std::sync::atomic::{AtomicBool, AtomicUsize};

use fanwire_auth::Overrides;
use fanwire_broker::{BrokerError, Renewal};
use fanwire_protocol::StreamPosition;
use proptest::prelude::*;

use super::*;
use crate::{ConnectionSelector, ServerSubscription};

#[derive(Default)]
pub(crate) struct Wire {
    sent: Mutex<Vec<(Option<String>, Bytes)>>,
    is_cut: AtomicBool,
    /// Nodes that hear it.
    pub(crate) ears: AtomicUsize,
}

impl Bus for Wire {
    fn send(&self, to: Option<&str>, message: Bytes) -> Answer<usize> {
        if self.is_cut.load(Relaxed) {
            return Answer::now(Err(BrokerError::Unavailable));
        }
        self.sent.lock().push((to.map(str::to_owned), message));
        Answer::now(Ok(self.ears.load(Relaxed)))
    }
}

impl Wire {
    pub(crate) fn take(&self) -> Vec<(Option<String>, Bytes)> {
        std::mem::take(&mut self.sent.lock())
    }
}

/// A node that knows the other nodes, and is the only one that hears its wire.
pub(crate) fn node(uid: &str) -> (Cluster, Arc<Wire>) {
    let (cluster, wire) = new_node(uid);
    let start = Instant::now();
    cluster.introduce(start, || state(uid));
    cluster.handle_message(&wire.take()[0].1, start);
    cluster.tick(start + COMPLETE_AFTER);
    wire.ears.store(1, Relaxed);
    (cluster, wire)
}

/// Periodic work in each second, and at the end.
fn tick_until(cluster: &Cluster, from: Instant, to: Instant) {
    let seconds = (0..).map(|second| from + Duration::from_secs(second));
    seconds.take_while(|now| *now < to).chain([to]).for_each(|now| {
        cluster.tick(now);
    });
}

fn new_node(uid: &str) -> (Cluster, Arc<Wire>) {
    let cluster = Cluster::new(uid.into());
    let wire = Arc::new(Wire::default());
    cluster.join(Arc::clone(&wire) as _);
    (cluster, wire)
}

fn state(uid: &str) -> NodeState {
    NodeState { uid: uid.into(), name: uid.into(), connections: 3, ..NodeState::default() }
}

/// A question whose answers are added up.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct CountQuestion {
    #[prost(string, tag = "2")]
    pattern: String,
}

/// Numbers by name.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Counts {
    #[prost(btree_map = "string, uint32", tag = "2")]
    counts: BTreeMap<String, u32>,
    /// Milliseconds of the longest round trip.
    #[prost(uint64, tag = "3")]
    longest_ms: u64,
}

impl Question for CountQuestion {
    type Answer = Counts;
    const TAG: u32 = 6;
    const KIND: SurveyKind = SurveyKind::Channels;

    fn merge(&self, all: &mut Counts, one: Counts, round_trip: Duration) {
        for (name, count) in one.counts {
            *all.counts.entry(name).or_default() += count;
        }
        all.longest_ms = all.longest_ms.max(round_trip.as_millis() as u64);
    }
}

fn counts(counts: &[(&str, u32)]) -> Counts {
    let counts = counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    Counts { counts, longest_ms: 0 }
}

/// Asks the other nodes; `a` itself has `found`.
pub(crate) fn ask(
    a: &Cluster,
    found: &[(&str, u32)],
    now: Instant,
) -> Answer<Surveyed<Counts>, ErrorCode> {
    a.ask(CountQuestion::default(), None, Answer::now(Ok(counts(found))), now)
}

fn all_of(found: &[(&str, u32)]) -> Surveyed<Counts> {
    Surveyed::of_all(counts(found))
}

pub(crate) fn without(found: &[(&str, u32)], name: &str) -> Surveyed<Counts> {
    Surveyed { found: counts(found), missing: vec![name.to_owned()] }
}

/// The message with which the node `uid` answers a question, and its receiver.
pub(crate) fn answer(
    uid: &str,
    question: &[u8],
    found: &[(&str, u32)],
    now: Instant,
) -> (Option<String>, Bytes) {
    let (other, out) = node(uid);
    let Task::Answer(received) = other.handle_message(question, now) else { panic!("a question") };
    let question = received.decoded::<CountQuestion>().expect("that question");
    assert_eq!(question.pattern, "");
    other.answer(&received, &counts(found));
    out.take().remove(0)
}

/// `a` hears that `uid` is there.
pub(crate) fn introduce(a: &Cluster, uid: &str, now: Instant) -> Task {
    let (other, wire) = node(uid);
    drop(other.publish_state(None, || state(uid)));
    a.handle_message(&wire.take()[0].1, now)
}

#[test]
fn a_node_alone_says_nothing_and_answers_at_once() {
    let now = Instant::now();
    let alone = Cluster::new("a".into());
    let command = ControlCommand::disconnect(
        &ConnectionSelector::default(),
        &fanwire_protocol::Disconnect::SHUTDOWN,
    );
    assert_eq!(alone.command(command).ready().expect("nobody to wait for"), Ok(()));
    assert_eq!(ask(&alone, &[("news", 2)], now).wait(), Ok(all_of(&[("news", 2)])));
    assert_eq!(alone.peers(), []);
}

#[test]
fn a_node_that_leaves_is_gone_at_once() {
    let (a, _) = node("a");
    let (b, wire) = node("b");
    let now = Instant::now();
    introduce(&a, "b", now);
    b.leave();
    a.handle_message(&wire.take()[0].1, now);
    assert_eq!(a.peers(), []);
}

#[test]
fn a_node_that_has_left_tells_nobody_that_it_is_there() {
    let (b, wire) = node("b");
    let now = Instant::now();
    b.introduce(now, || state("b"));
    drop(b.publish_state(Some("a"), || state("b")));
    assert_eq!(wire.take().len(), 2);
    b.leave();
    assert_eq!(wire.take().len(), 1, "that it goes");
    assert_eq!(introduce(&b, "c", now), Task::Introduce("c".into()), "a node that is new");
    drop(b.publish_state(Some("c"), || state("b")));
    b.introduce(now, || state("b"));
    assert_eq!(wire.take(), []);
}

#[test]
fn a_node_that_leaves_while_it_counts_keeps_that_to_itself() {
    let (b, wire) = node("b");
    let leaving = || {
        b.leave();
        state("b")
    };
    drop(b.publish_state(None, leaving));
    assert_eq!(wire.take().len(), 1, "that it goes");
}

#[test]
fn the_state_is_told_every_three_seconds() {
    let (a, wire) = new_node("a");
    let now = Instant::now();
    assert!(!a.tick(now), "not before it wants_join_leave the others");
    let told: Vec<_> = (0..8_u64)
        .filter(|&second| {
            let now = now + Duration::from_secs(second);
            let is_due = second == 0 || a.tick(now);
            is_due.then(|| a.introduce(now, || state("a"))).is_some()
        })
        .collect();
    assert_eq!(told, [0, 3, 6]);
    assert_eq!(wire.take().len(), 3);
}

#[test]
fn an_order_to_subscribe_or_refresh_arrives_with_all_it_says() {
    let (a, wire) = node("a");
    let (b, _) = node("b");
    let now = Instant::now();
    let target = ConnectionSelector {
        user: "42".into(),
        client: "c".into(),
        session: "s".into(),
        whitelist: vec!["d".into()],
        ..ConnectionSelector::default()
    };
    let subscription = ServerSubscription {
        channel: "news".into(),
        info: "1".into(),
        data: "2".into(),
        expire_at: Some(3),
        overrides: Overrides {
            presence: Some(true),
            join_leave: Some(false),
            force_recovery: None,
            force_positioning: Some(true),
            force_push_join_leave: Some(false),
        },
        recover_since: Some(StreamPosition { offset: 4, epoch: "e".into() }),
    };
    let renewal = Renewal { expire_at: Some(5), info: "6".into() };
    let carried = |command| {
        assert_eq!(a.command(command).wait(), Ok(()));
        b.handle_message(&wire.take()[0].1, now)
    };
    let Task::Execute(ControlCommand::Subscribe(command)) =
        carried(ControlCommand::subscribe(&target, &subscription))
    else {
        panic!("an command")
    };
    assert_eq!(command.into_parts(), (target.clone(), subscription));
    let Task::Execute(ControlCommand::Refresh(command)) =
        carried(ControlCommand::refresh(&target, &renewal))
    else {
        panic!("an command")
    };
    assert_eq!(command.into_parts(), (target, renewal));
}

#[test]
fn a_survey_adds_up_what_all_nodes_have() {
    let (a, wire) = node("a");
    let mut now = Instant::now();
    wire.ears.store(3, Relaxed);
    introduce(&a, "b", now);
    introduce(&a, "c", now);
    let found = ask(&a, &[("news", 2), ("a", 1)], now).ready().expect_err("others are asked");
    let sent = wire.take();
    assert_eq!(sent.len(), 1, "one message for all");
    for (uid, counts) in [("b", [("news", 3)]), ("c", [("c", 1)])] {
        let (to, reply) = answer(uid, &sent[0].1, &counts, now);
        assert_eq!(to.as_deref(), Some("a"), "for the one that asked");
        now += Duration::from_millis(35);
        a.handle_message(&reply, now);
        a.handle_message(&reply, now); // told twice, counted once
    }
    let mut expected = all_of(&[("a", 1), ("c", 1), ("news", 5)]);
    expected.found.longest_ms = 70;
    assert_eq!(found.wait(), Ok(expected));
    let kinds = SurveyKind::ALL.map(|kind| a.times().surveys[kind as usize].snapshot());
    let counts = kinds.map(|(buckets, sum_ns)| (buckets.iter().sum::<u64>(), sum_ns));
    assert_eq!(counts, [(1, 70_000_000), (0, 0), (0, 0), (0, 0)]);
}

#[test]
fn a_node_whose_answer_is_garbage_is_missing() {
    let (a, wire) = node("a");
    let now = Instant::now();
    wire.ears.store(2, Relaxed);
    introduce(&a, "b", now);
    let found = ask(&a, &[("news", 2)], now);
    let (b, out) = node("b");
    let Task::Answer(received) = b.handle_message(&wire.take()[0].1, now) else {
        panic!("a question")
    };
    b.answer(&received, &CountQuestion { pattern: "no counts".into() });
    a.handle_message(&out.take()[0].1, now);
    assert_eq!(found.wait(), Ok(without(&[("news", 2)], "b")));
}

#[test]
fn a_survey_does_without_a_node_that_goes_and_names_one_that_vanishes() {
    let (a, wire) = node("a");
    let now = Instant::now();
    wire.ears.store(2, Relaxed);
    introduce(&a, "b", now);
    let (b, out) = node("b");
    let answer = ask(&a, &[], now);
    b.leave();
    a.handle_message(&out.take()[0].1, now);
    assert_eq!(answer.wait(), Ok(all_of(&[])));
    introduce(&a, "b", now);
    let answer = ask(&a, &[], now + SILENCE_MAX / 2);
    tick_until(&a, now, now + SILENCE_MAX);
    let without_b = without(&[], "b");
    assert_eq!(answer.wait(), Ok(without_b.clone()), "what it had is not known");
    assert_eq!(without_b.complete(), Err(ErrorCode::INTERNAL));
    assert_eq!(
        ask(&a, &[("news", 2)], now + SILENCE_MAX).wait(),
        Ok(all_of(&[("news", 2)])),
        "no other node is left"
    );
    assert_eq!(wire.take().len(), 3, "each asks");
}

#[test]
fn a_survey_that_cannot_be_sent_names_all_others_at_once() {
    let (a, wire) = node("a");
    let now = Instant::now();
    wire.is_cut.store(true, Relaxed);
    let own = &[("news", 2)];
    let alone = ask(&a, own, now).ready().expect("at once");
    assert_eq!(alone, Ok(all_of(own)), "no other node is known");
    introduce(&a, "b", now);
    let answer = ask(&a, own, now).ready().expect("at once");
    assert_eq!(answer, Ok(without(own, "b")));
    assert!(a.table.lock().surveys.is_empty());
}

#[test]
fn surveys_are_bounded() {
    let (a, wire) = node("a");
    let now = Instant::now();
    wire.ears.store(2, Relaxed);
    introduce(&a, "b", now);
    let answers: Vec<_> = (0..SURVEYS_MAX).map(|_| ask(&a, &[], now)).collect();
    let one_more = ask(&a, &[], now);
    assert_eq!(one_more.wait(), Err(ErrorCode::TOO_MANY_REQUESTS));
    drop(answers);
}

#[test]
fn orders_arrive_as_they_were_given() {
    let target = ConnectionSelector {
        user: "42".into(),
        client: "c".into(),
        session: "s".into(),
        whitelist: vec!["w".into()],
        ..ConnectionSelector::default()
    };
    let disconnect = fanwire_protocol::Disconnect { code: 4_321, reason: "enough".into() };
    let (a, wire) = node("a");
    let (b, _) = node("b");
    let now = Instant::now();
    drop(a.command(ControlCommand::disconnect(&target, &disconnect)));
    drop(a.command(ControlCommand::unsubscribe(&target, Some("news"))));
    drop(a.command(ControlCommand::unsubscribe(&target, None)));
    let mut received = wire.take().into_iter().map(|(to, message)| {
        assert_eq!(to, None);
        b.handle_message(&message, now)
    });
    let Some(Task::Execute(ControlCommand::Disconnect(command))) = received.next() else {
        panic!("a disconnect")
    };
    assert_eq!(command.into_parts(), Some((target.clone(), disconnect)));
    for channel in [Some("news".to_owned()), None] {
        let Some(Task::Execute(ControlCommand::Unsubscribe(command))) = received.next() else {
            panic!("an unsubscribe")
        };
        assert_eq!(command.into_parts(), (target.clone(), channel));
    }
}

#[test]
fn an_order_that_a_node_missed_is_given_again_and_obeyed_once_by_each() {
    let (a, wire) = node("a");
    let (b, _) = node("b");
    let (c, _) = node("c");
    let now = Instant::now();
    for (one, other) in [(&a, "b"), (&a, "c"), (&c, "a")] {
        introduce(one, other, now); // b does not know a yet
    }
    wire.ears.store(2, Relaxed); // c hears nothing
    let answer = a.command(ControlCommand::unsubscribe(&ConnectionSelector::default(), None));
    let answer = answer.ready().expect_err("c did not hear it");
    let (_, first) = wire.take().remove(0);
    assert!(matches!(b.handle_message(&first, now), Task::Execute(_)));
    wire.ears.store(3, Relaxed);
    a.tick(now + Duration::from_secs(1));
    let (to, again) = wire.take().remove(0);
    assert_eq!(to, None);
    assert_eq!(b.handle_message(&again, now), Task::Nothing, "it has it");
    assert!(matches!(c.handle_message(&again, now), Task::Execute(_)));
    assert_eq!(answer.wait(), Ok(()));
    a.tick(now + Duration::from_secs(2));
    assert_eq!(wire.take(), []);
}

/// Another node may be there whose subscription is down, too: it tells that it is there in each interval.
#[test]
fn a_node_believes_that_it_is_alone_when_it_has_listened_for_an_interval() {
    let (a, wire) = new_node("a");
    let start = Instant::now();
    let after = |millis| start + Duration::from_millis(millis);
    wire.ears.store(1, Relaxed);
    let command = || a.command(ControlCommand::unsubscribe(&ConnectionSelector::default(), None));
    a.tick(after(9_000));
    let early = command().ready().expect_err("it has not heard itself");
    a.introduce(after(9_500), NodeState::default);
    let (_, state) = wire.take().remove(1);
    a.handle_message(&state, after(9_600));
    a.tick(after(12_600));
    let early = early.ready().expect_err("others may not have told that they are there");
    a.tick(after(13_600));
    assert_eq!(early.wait(), Ok(()), "it was given again");
    assert_eq!(command().ready().expect("at once"), Ok(()));
}

/// A node misses the states that others send while its subscription is down, also if that is less than an interval.
#[test]
fn the_time_in_which_a_node_heard_nothing_does_not_count() {
    let (a, wire) = new_node("a");
    let start = Instant::now();
    let after = |millis| start + Duration::from_millis(millis);
    let knows_others = || a.table.lock().knows_others;
    let tell = |millis, is_heard: bool| {
        a.introduce(after(millis), NodeState::default);
        let (_, state) = wire.take().remove(0);
        if is_heard {
            a.handle_message(&state, after(millis + 1));
        }
    };
    tell(0, true);
    tell(3000, false);
    a.tick(after(4500));
    assert!(!knows_others(), "it does not receive its own state");
    tell(6000, false);
    tell(6500, true); // the subscription works again
    a.tick(after(10_400));
    assert!(!knows_others(), "an interval has not passed since then");
    tell(10_450, true);
    tell(11_000, true); // it was made again between two states
    a.tick(after(14_900));
    assert!(!knows_others());
    a.tick(after(15_100));
    assert!(knows_others());
}

#[test]
fn an_order_fails_that_a_living_node_never_heard_and_does_without_one_that_died() {
    for (is_alive, expect) in [(true, Err(ErrorCode::INTERNAL)), (false, Ok(()))] {
        let (a, wire) = node("a");
        let now = Instant::now();
        introduce(&a, "b", now);
        wire.ears.store(1, Relaxed);
        let mut answer =
            a.command(ControlCommand::unsubscribe(&ConnectionSelector::default(), None));
        for second in 1..=7 {
            let now = now + Duration::from_secs(second);
            answer = answer.ready().expect_err("it is given again");
            if is_alive && second == 4 {
                introduce(&a, "b", now);
            }
            a.tick(now);
        }
        assert_eq!(answer.ready().expect("in bounded time"), expect, "alive: {is_alive}");
    }
}

/// A node whose own subscription is down cannot tell dead nodes from silent ones, nor whether they received a command.
#[test]
fn an_order_that_nobody_heard_fails_while_the_node_that_gave_it_is_deaf() {
    for (deaf_for, introduced_at) in [(8, 0), (8, 2), (5, 1)] {
        let (a, wire) = node("a");
        let start = Instant::now();
        introduce(&a, "b", start);
        let mut answer =
            a.command(ControlCommand::unsubscribe(&ConnectionSelector::default(), None));
        for second in 1..=7 {
            let now = start + Duration::from_secs(second);
            answer = answer.ready().expect_err("it is given again");
            a.tick(now);
            wire.take();
            if second % 3 == introduced_at {
                a.introduce(now, NodeState::default);
                let (_, state) = wire.take().remove(0);
                if second > deaf_for {
                    a.handle_message(&state, now);
                }
            }
        }
        let answer = answer.ready().expect("in bounded time");
        assert_eq!(answer, Err(ErrorCode::INTERNAL), "{deaf_for} s, {introduced_at}");
    }
}

#[test]
fn an_order_that_was_given_fails_when_the_bus_is_cut() {
    let (a, wire) = node("a");
    let now = Instant::now();
    introduce(&a, "b", now);
    let answer = a.command(ControlCommand::unsubscribe(&ConnectionSelector::default(), None));
    wire.is_cut.store(true, Relaxed);
    a.tick(now);
    assert_eq!(answer.wait(), Err(ErrorCode::INTERNAL));
}

#[test]
fn another_version_and_an_unknown_order_are_counted_and_ignored() {
    let (a, wire) = node("a");
    let (b, _) = node("b");
    let now = Instant::now();
    a.leave();
    let (_, message) = wire.take().remove(0);
    let mut newer = message.to_vec();
    newer[0] += 1;
    assert_eq!(b.handle_message(&newer, now), Task::Refuse);
    let unknown = NodeMessage { from: "a".into(), command: None, number: 0 }.encoded();
    assert_eq!(b.handle_message(&unknown, now), Task::Refuse);
    assert_eq!(b.handle_message(&[], now), Task::Refuse);
    assert_eq!(b.refused(), 3);
}

proptest! {
    #[test]
    fn any_bytes_are_heard_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let (a, _) = node("a");
        let now = Instant::now();
        let mut versioned = vec![1];
        versioned.extend(&bytes);
        a.handle_message(&bytes, now);
        a.handle_message(&versioned, now);
    }
}
