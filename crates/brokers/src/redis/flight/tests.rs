//! Tests of who shares a read: on the board alone, and with reads that a test answers when it likes.
//! In: questions, answers in every order → out: panics.
//! Uses proptest. Never: a Redis, threads.
//! A change that fails here gives somebody an answer from before the question, or none.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[test]
fn who_is_alone_waits_for_nobody_and_leaves_nothing_behind() {
    let mut board = Board::new(9);
    for round in 0..3 {
        assert_eq!(board.board(&"a", round, "ada"), Boarded::First(round));
        assert_eq!(board.land(&"a"), (vec!["ada"], None));
        assert_eq!((board.flights.len(), board.waiters), (0, 0));
    }
    assert_eq!(board.land(&"a"), (vec![], None), "nobody asked");
}

#[test]
fn whoever_comes_while_one_is_on_its_way_shares_the_next() {
    let mut board = Board::new(9);
    assert_eq!(board.board(&"a", 0, 0), Boarded::First(0));
    for number in 1..=5 {
        assert_eq!(board.board(&"a", number, number), Boarded::Shares);
    }
    assert_eq!(board.board(&"b", 6, 6), Boarded::First(6), "another read");
    assert_eq!(board.land(&"a"), (vec![0], Some(5)), "with what the last one gave");
    assert_eq!(board.board(&"a", 7, 7), Boarded::Shares, "not in what was sent");
    assert_eq!(board.land(&"a"), (vec![1, 2, 3, 4, 5], Some(7)));
    assert_eq!(board.land(&"b"), (vec![6], None));
    assert_eq!(board.land(&"a"), (vec![7], None));
    assert_eq!((board.flights.len(), board.waiters), (0, 0));
}

#[test]
fn more_than_may_wait_are_sent_away() {
    let mut board = Board::new(2);
    assert_eq!(board.board(&"a", (), 1), Boarded::First(()));
    assert_eq!(board.board(&"a", (), 2), Boarded::Shares);
    assert_eq!(board.board(&"a", (), 3), Boarded::Full(3));
    assert_eq!(board.board(&"b", (), 4), Boarded::Full(4), "of all reads together");
    assert_eq!(board.land(&"a"), (vec![1], Some(())));
    assert_eq!(board.board(&"b", (), 5), Boarded::First(()));
    assert_eq!(board.land(&"a"), (vec![2], None));
    assert_eq!(board.land(&"b"), (vec![5], None));
}

#[test]
fn room_for_many_reads_is_given_back() {
    let mut board = Board::new(WAITERS_MAX);
    for number in 0..100_000 {
        board.board(&number, (), ());
    }
    for number in 0..100_000 {
        board.land(&number);
    }
    assert!(board.flights.capacity() <= 2 * SPARE, "{}", board.flights.capacity());
}

/// What is on its way to a Redis, in its order.
#[derive(Default)]
struct World {
    sent: Mutex<VecDeque<(&'static str, Waiter<usize>)>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Question(&'static str);

impl Read for Question {
    type Means = Arc<World>;
    type Found = usize;

    fn send(&self, world: Arc<World>, done: impl FnOnce(Result<usize, Failure>) + Send + 'static) {
        world.sent.lock().push_back((self.0, Box::new(done)));
    }
}

impl World {
    fn next(&self) -> Option<(&'static str, Waiter<usize>)> {
        self.sent.lock().pop_front()
    }
}

#[test]
fn a_read_that_is_lost_is_a_failure_to_all_who_share_it_and_the_next_one_is_sent() {
    let (world, health) = (Arc::<World>::default(), Arc::<Health>::default());
    let flights = Flights::new(Arc::clone(&health));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ask = |number: u32| {
        let heard = Arc::clone(&heard);
        let done = move |found| heard.lock().push((number, found));
        flights.ask(Question("a"), Arc::clone(&world), done);
    };
    let take = || std::mem::take(&mut *heard.lock());
    (0..3).for_each(ask);
    drop(world.next());
    assert_eq!(take(), [(0, Err(Failure::Unavailable))]);
    (3..5).for_each(ask);
    drop(world.next());
    assert_eq!(take(), [1, 2].map(|number| (number, Err(Failure::Unavailable))));
    let (_, answer) = world.next().expect("the third read");
    answer(Ok(7));
    assert_eq!(take(), [(3, Ok(7)), (4, Ok(7))]);
    assert!(world.next().is_none(), "nobody wants another");
    assert_eq!(health.merged_count(), 2);
}

/// While it is sent somebody else asks the same, and it fails at once.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Hopeless;

impl Read for Hopeless {
    type Means = (Arc<Flights<Hopeless>>, Arc<Mutex<u32>>);
    type Found = ();

    fn send(
        &self,
        (flights, left): Self::Means,
        done: impl FnOnce(Result<(), Failure>) + Send + 'static,
    ) {
        let is_last = {
            let mut left = left.lock();
            *left -= 1;
            *left == 0
        };
        if !is_last {
            flights.clone().ask(Self, (flights, left), drop);
        }
        done(Err(Failure::Unavailable));
    }
}

#[test]
fn reads_that_fail_at_once_do_not_pile_up() {
    let flights = Arc::new(Flights::new(Arc::default()));
    let left = Arc::new(Mutex::new(300_000));
    flights.ask(Hopeless, (Arc::clone(&flights), Arc::clone(&left)), drop);
    assert_eq!(*left.lock(), 0);
    assert_eq!(flights.shared.board.lock().waiters, 0);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask(&'static str),
    /// Something is published, which is one more.
    Publish,
    /// The Redis does the oldest command that it has not done.
    Do,
    /// The oldest answer arrives.
    Arrive,
    /// The connection is gone, with all that is on its way.
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
    /// Else it would lack what was published before the question.
    #[test]
    fn nobody_gets_an_answer_from_before_the_question(steps in steps()) {
        let world = Arc::<World>::default();
        let flights = Flights::new(Arc::default());
        let mut done = VecDeque::new();
        let (mut published, mut asked) = (0, 0);
        let answers = Arc::new(Mutex::new(Vec::new()));
        let end = [Step::Do, Step::Do, Step::Arrive, Step::Arrive].repeat(2);
        for step in steps.into_iter().chain(end) {
            match step {
                Step::Ask(name) => {
                    asked += 1;
                    let (answers, before) = (Arc::clone(&answers), published);
                    flights.ask(Question(name), Arc::clone(&world), move |found| {
                        answers.lock().push((before, found));
                    });
                }
                Step::Publish => published += 1,
                Step::Do => done.extend(world.next().map(|(name, answer)| (name, answer, published))),
                Step::Arrive => {
                    if let Some((_, answer, found)) = done.pop_front() {
                        answer(Ok(found));
                    }
                }
                Step::Lose => {
                    let sent = std::mem::take(&mut *world.sent.lock());
                    drop((std::mem::take(&mut done), sent));
                }
            }
            for name in ["a", "b"] {
                let sent = world.sent.lock();
                let waiting = sent.iter().filter(|(other, _)| *other == name).count();
                let on_its_way = waiting + done.iter().filter(|(other, ..)| *other == name).count();
                prop_assert!(on_its_way <= 1, "{} of {}", on_its_way, name);
            }
        }
        let answers = answers.lock();
        prop_assert_eq!(answers.len(), asked, "each is answered");
        for (before, found) in answers.iter() {
            prop_assert!(found.is_err() || found.is_ok_and(|found| found >= *before), "{:?}", found);
        }
    }
}
