//! Tests of answers: each result arrives once, in every order of promise and receiver.
//! In: promises that are kept, dropped and awaited → out: the results that arrived.
//! Uses a waker that counts. Never: an executor.
//! Changed here: tests of `answer.rs`.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::task::Wake;

use super::*;

type NumberAnswer = Answer<u32, BrokerError>;

#[test]
fn a_ready_answer_is_taken_at_once() {
    let taken = take(NumberAnswer::now(Ok(7)));
    assert_eq!(taken.try_recv(), Ok(Ok(7)));
    assert_eq!(NumberAnswer::now(Ok(7)).ready().expect("ready"), Ok(7));
}

#[test]
fn a_result_arrives_once_in_every_order_of_promise_and_receiver() {
    let (promise, answer) = NumberAnswer::later();
    let answer = answer.ready().expect_err("still pending");
    let taken = take(answer);
    assert!(taken.try_recv().is_err());
    promise.keep(Ok(1));
    assert_eq!(taken.try_recv(), Ok(Ok(1)));
    assert!(taken.try_recv().is_err(), "once");

    let (promise, answer) = NumberAnswer::later();
    promise.keep(Ok(2));
    assert_eq!(take(answer).try_recv(), Ok(Ok(2)));

    let (promise, answer) = NumberAnswer::later();
    promise.keep(Ok(3));
    assert_eq!(answer.ready().expect("ready"), Ok(3));
}

#[test]
fn a_dropped_promise_is_an_error() {
    let (promise, answer) = NumberAnswer::later();
    let taken = take(answer);
    drop(promise);
    assert_eq!(taken.try_recv(), Ok(Err(BrokerError::Unavailable)));

    let (promise, answer) = NumberAnswer::later();
    drop(promise);
    assert_eq!(answer.ready().expect("ready"), Err(BrokerError::Unavailable));
}

#[test]
fn a_mapped_answer_converts_when_the_result_is_there() {
    let text = |result: Result<u32, _>| result.map(|number| number.to_string());
    assert_eq!(NumberAnswer::now(Ok(7)).map(text).ready().expect("ready"), Ok("7".to_owned()));

    let (promise, answer) = NumberAnswer::later();
    let answer = answer.map(text).ready().expect_err("still pending");
    promise.keep(Ok(8));
    assert_eq!(answer.ready().expect("ready"), Ok("8".to_owned()));
}

#[test]
fn an_answer_with_another_error_is_the_same_answer() {
    let refused = |answer: NumberAnswer| answer.map_err(|_| ErrorCode::BAD_REQUEST);
    assert_eq!(refused(NumberAnswer::now(Ok(7))).ready().expect("ready"), Ok(7));

    let (promise, answer) = NumberAnswer::later();
    let answer = refused(answer).ready().expect_err("still pending");
    promise.keep(Ok(8));
    assert_eq!(answer.ready().expect("ready"), Ok(8));

    let (promise, answer) = NumberAnswer::later();
    let (sender, taken) = mpsc::channel();
    refused(answer).then(move |result| sender.send(result).expect("it is received"));
    drop(promise);
    assert_eq!(taken.try_recv(), Ok(Err(ErrorCode::BAD_REQUEST)));

    let (promise, answer) = NumberAnswer::later();
    let mut answer = pin!(refused(answer));
    let mut context = Context::from_waker(Waker::noop());
    assert!(answer.as_mut().poll(&mut context).is_pending());
    promise.keep(Err(BrokerError::Unavailable));
    assert_eq!(answer.poll(&mut context), Poll::Ready(Err(ErrorCode::BAD_REQUEST)));
}

#[test]
fn an_awaited_answer_wakes_its_task_once() {
    let wakes = Arc::new(WakeCounter::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let (promise, answer) = NumberAnswer::later();
    let mut answer = pin!(answer);
    let mut context = Context::from_waker(&waker);
    assert!(answer.as_mut().poll(&mut context).is_pending());
    assert!(answer.as_mut().poll(&mut context).is_pending());
    promise.keep(Ok(9));
    assert_eq!(wakes.0.load(Relaxed), 1);
    assert_eq!(answer.as_mut().poll(&mut context), Poll::Ready(Ok(9)));
}

#[test]
fn promises_kept_by_other_threads_all_arrive() {
    let (sender, receiver) = mpsc::channel();
    let (promises, answers): (Vec<_>, Vec<_>) = (0..100).map(|_| NumberAnswer::later()).unzip();
    let sender_thread = std::thread::spawn(move || {
        for (number, promise) in promises.into_iter().enumerate() {
            promise.keep(Ok(number as u32));
        }
    });
    for answer in answers {
        let sender = sender.clone();
        answer.then(move |result| sender.send(result).expect("the receiver lives"));
    }
    sender_thread.join().expect("sends all of them");
    drop(sender);
    let mut arrived: Vec<_> = receiver.iter().map(|result| result.expect("kept")).collect();
    arrived.sort_unstable();
    assert_eq!(arrived, (0..100).collect::<Vec<_>>());
}

fn take(answer: NumberAnswer) -> mpsc::Receiver<Result<u32, BrokerError>> {
    let (sender, receiver) = mpsc::channel();
    answer.then(move |result| sender.send(result).expect("the receiver lives"));
    receiver
}

#[derive(Default)]
struct WakeCounter(AtomicUsize);

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}
