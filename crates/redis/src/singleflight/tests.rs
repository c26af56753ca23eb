//! Tests of sharing a read: the table alone, and with reads that a test answers in any order.
//! In: questions, answers → out: panics.
//! Uses proptest. Never: a Redis, threads.
//! A change that fails here gives a caller an answer from before its question, or none.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[test]
fn a_single_caller_does_not_wait_and_leaves_nothing_behind() {
    let mut table = InFlightTable::new(9);
    for round in 0..3 {
        assert_eq!(table.join(&"a", round, "ada"), Joined::SendNow(round));
        assert_eq!(table.complete(&"a"), (vec!["ada"], None));
        assert_eq!((table.reads.len(), table.waiters), (0, 0));
    }
    assert_eq!(table.complete(&"a"), (vec![], None), "no caller");
}

#[test]
fn callers_during_a_read_share_the_next() {
    let mut table = InFlightTable::new(9);
    assert_eq!(table.join(&"a", 0, 0), Joined::SendNow(0));
    for number in 1..=5 {
        assert_eq!(table.join(&"a", number, number), Joined::WaitsForNext);
    }
    assert_eq!(table.join(&"b", 6, 6), Joined::SendNow(6), "another read");
    assert_eq!(table.complete(&"a"), (vec![0], Some(5)), "with what the last one gave");
    assert_eq!(table.join(&"a", 7, 7), Joined::WaitsForNext, "not in what was sent");
    assert_eq!(table.complete(&"a"), (vec![1, 2, 3, 4, 5], Some(7)));
    assert_eq!(table.complete(&"b"), (vec![6], None));
    assert_eq!(table.complete(&"a"), (vec![7], None));
    assert_eq!((table.reads.len(), table.waiters), (0, 0));
}

#[test]
fn callers_beyond_the_limit_fail() {
    let mut table = InFlightTable::new(2);
    assert_eq!(table.join(&"a", (), 1), Joined::SendNow(()));
    assert_eq!(table.join(&"a", (), 2), Joined::WaitsForNext);
    assert_eq!(table.join(&"a", (), 3), Joined::TableFull(3));
    assert_eq!(table.join(&"b", (), 4), Joined::TableFull(4), "of all reads together");
    assert_eq!(table.complete(&"a"), (vec![1], Some(())));
    assert_eq!(table.join(&"b", (), 5), Joined::SendNow(()));
    assert_eq!(table.complete(&"a"), (vec![2], None));
    assert_eq!(table.complete(&"b"), (vec![5], None));
}

#[test]
fn room_for_many_reads_is_given_back() {
    let mut table = InFlightTable::new(WAITERS_MAX);
    for number in 0..100_000 {
        table.join(&number, (), ());
    }
    for number in 0..100_000 {
        table.complete(&number);
    }
    assert!(table.reads.capacity() <= 2 * SPARE, "{}", table.reads.capacity());
}

/// Reads in flight, in their order.
#[derive(Default)]
struct FakeServer {
    sent: Mutex<VecDeque<(&'static str, Waiter<usize>)>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Question(&'static str);

impl SharedRead for Question {
    type Context = Arc<FakeServer>;
    type Output = usize;

    fn send(
        &self,
        server: Arc<FakeServer>,
        done: impl FnOnce(Result<usize, Failure>) + Send + 'static,
    ) {
        server.sent.lock().push_back((self.0, Box::new(done)));
    }
}

impl FakeServer {
    fn next(&self) -> Option<(&'static str, Waiter<usize>)> {
        self.sent.lock().pop_front()
    }
}

#[test]
fn a_read_that_is_lost_is_a_failure_to_all_who_share_it_and_the_next_one_is_sent() {
    let server = Arc::<FakeServer>::default();
    let health = Arc::<Health>::default();
    let singleflight = Singleflight::new(Arc::clone(&health));
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let ask = |number: u32| {
        let outcomes = Arc::clone(&outcomes);
        let done = move |output| outcomes.lock().push((number, output));
        singleflight.ask(Question("a"), Arc::clone(&server), done);
    };
    let take = || std::mem::take(&mut *outcomes.lock());
    (0..3).for_each(ask);
    drop(server.next());
    assert_eq!(take(), [(0, Err(Failure::Unavailable))]);
    (3..5).for_each(ask);
    drop(server.next());
    assert_eq!(take(), [1, 2].map(|number| (number, Err(Failure::Unavailable))));
    let (_, answer) = server.next().expect("the third read");
    answer(Ok(7));
    assert_eq!(take(), [(3, Ok(7)), (4, Ok(7))]);
    assert!(server.next().is_none(), "no other caller");
    assert_eq!(health.merged_count(), 2);
}

/// While it is sent, another caller asks the same, and it fails at once.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FailingRead;

impl SharedRead for FailingRead {
    type Context = (Arc<Singleflight<FailingRead>>, Arc<Mutex<u32>>);
    type Output = ();

    fn send(
        &self,
        (singleflight, left): Self::Context,
        done: impl FnOnce(Result<(), Failure>) + Send + 'static,
    ) {
        let is_last = {
            let mut left = left.lock();
            *left -= 1;
            *left == 0
        };
        if !is_last {
            singleflight.clone().ask(Self, (singleflight, left), drop);
        }
        done(Err(Failure::Unavailable));
    }
}

#[test]
fn reads_that_fail_at_once_do_not_pile_up() {
    let singleflight = Arc::new(Singleflight::new(Arc::default()));
    let left = Arc::new(Mutex::new(300_000));
    singleflight.ask(FailingRead, (Arc::clone(&singleflight), Arc::clone(&left)), drop);
    assert_eq!(*left.lock(), 0);
    assert_eq!(singleflight.shared.table.lock().waiters, 0);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask(&'static str),
    /// A publication, which adds one.
    Publish,
    /// The Redis executes the oldest command that is not executed.
    Do,
    /// The oldest answer arrives.
    Arrive,
    /// The connection is lost, with all reads in flight.
    Lose,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => prop_oneof![Just("a"), Just("b")].prop_map(Step::Ask),
        4 => Just(Step::Publish),
        4 => Just(Step::Do),
        4 => Just(Step::Arrive),
        1 => Just(Step::Lose),
    ];
    vec(step, 0..200)
}

proptest! {
    /// An older answer would lack publications from before the question.
    #[test]
    fn no_answer_is_older_than_its_question(steps in steps()) {
        let server = Arc::<FakeServer>::default();
        let singleflight = Singleflight::new(Arc::default());
        let mut done = VecDeque::new();
        let mut read_published = 0;
        let mut asked = 0;
        let answers = Arc::new(Mutex::new(Vec::new()));
        let end = [Step::Do, Step::Do, Step::Arrive, Step::Arrive].repeat(2);
        for step in steps.into_iter().chain(end) {
            match step {
                Step::Ask(name) => {
                    asked += 1;
                    let answers = Arc::clone(&answers);
                    let before = read_published;
                    singleflight.ask(Question(name), Arc::clone(&server), move |output| {
                        answers.lock().push((before, output));
                    });
                }
                Step::Publish => read_published += 1,
                Step::Do => done.extend(server.next().map(|(name, answer)| (name, answer, read_published))),
                Step::Arrive => {
                    if let Some((_, answer, output)) = done.pop_front() {
                        answer(Ok(output));
                    }
                }
                Step::Lose => {
                    let sent = std::mem::take(&mut *server.sent.lock());
                    drop((std::mem::take(&mut done), sent));
                }
            }
            for name in ["a", "b"] {
                let sent = server.sent.lock();
                let waiting = sent.iter().filter(|(other, _)| *other == name).count();
                let on_its_way = waiting + done.iter().filter(|(other, ..)| *other == name).count();
                prop_assert!(on_its_way <= 1, "{} of {}", on_its_way, name);
            }
        }
        let answers = answers.lock();
        prop_assert_eq!(answers.len(), asked, "each is answered");
        for (before, output) in answers.iter() {
            prop_assert!(output.is_err() || output.is_ok_and(|output| output >= *before), "{:?}", output);
        }
    }
}
