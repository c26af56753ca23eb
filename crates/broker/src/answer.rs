//! The result type of all ports: a value that is ready, or one that another thread sends later (a one-shot channel).
//! In: results of brokers, presence stores and key sets → out: the same result to one receiver, exactly once.
//! Uses: one small lock per pending answer, none per ready one. Never: blocks, except in `wait`.
//! Changed here: how a result is waited for. Sessions that wait are kept in `pending.rs` of `node`; the server API awaits answers as futures.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::vec::IntoIter;

use fanwire_protocol::ErrorCode;
use parking_lot::Mutex;

use crate::BrokerError;

/// Either a ready result or a pending one. A ready result costs no allocation and no lock.
///
/// An answer is also a future. Poll it from one task; polling again after `Ready` panics.
#[must_use = "an answer that is dropped may hide an error"]
pub struct Answer<T, E = BrokerError>(AnswerState<T, E>);

enum AnswerState<T, E> {
    Ready(Result<T, E>),
    Pending(Arc<Slot<T, E>>),
    /// A pending answer of a broker, with the conversion of its error. Saves a second slot.
    PendingBroker(Arc<Slot<T, BrokerError>>, fn(BrokerError) -> E),
    Taken,
}

/// The sending end of a pending [`Answer`]. Dropping it without a result sends [`Abandoned::abandoned`].
pub struct Promise<T, E: Abandoned = BrokerError>(Option<Arc<Slot<T, E>>>);

/// An error type with a value for a promise that was dropped without a result.
pub trait Abandoned {
    /// The error that the answer then returns.
    fn abandoned() -> Self;
}

type Slot<T, E> = Mutex<SlotState<T, E>>;

enum SlotState<T, E> {
    /// No result yet, and no receiver waits.
    Empty,
    /// A task waits for the result.
    Waker(Waker),
    /// A function is called with the result.
    Callback(Box<dyn FnOnce(Result<T, E>) + Send>),
    Filled(Result<T, E>),
    Taken,
}

impl<T, E> Answer<T, E> {
    /// A ready answer.
    pub fn now(result: Result<T, E>) -> Self {
        Self(AnswerState::Ready(result))
    }

    /// Returns the result if it is ready.
    ///
    /// # Errors
    /// The answer itself while it is pending.
    pub fn ready(self) -> Result<Result<T, E>, Self> {
        match self.0 {
            AnswerState::Ready(result) => Ok(result),
            AnswerState::Pending(slot) => {
                take_result(&slot).ok_or(Self(AnswerState::Pending(slot)))
            }
            AnswerState::PendingBroker(slot, convert) => match take_result(&slot) {
                Some(result) => Ok(result.map_err(convert)),
                None => Err(Self(AnswerState::PendingBroker(slot, convert))),
            },
            AnswerState::Taken => unreachable!("{TAKEN}"),
        }
    }

    /// Calls `callback` with the result: at once if it is ready, otherwise later on the thread that sends it.
    ///
    /// `callback` must be short, and must not take a lock that callers of the port hold.
    pub fn then(self, callback: impl FnOnce(Result<T, E>) + Send + 'static)
    where
        E: 'static,
    {
        match self.0 {
            AnswerState::Ready(result) => callback(result),
            AnswerState::Pending(slot) => set_callback(&slot, callback),
            AnswerState::PendingBroker(slot, convert) => {
                set_callback(&slot, move |result| callback(result.map_err(convert)))
            }
            AnswerState::Taken => unreachable!("{TAKEN}"),
        }
    }
}

impl<T: Send + 'static, E: Abandoned + Send + 'static> Answer<T, E> {
    /// Blocks this thread until the result is ready. Never call it on a shard or in an async task.
    ///
    /// # Errors
    /// The error of the answer.
    pub fn wait(self) -> Result<T, E> {
        match self.ready() {
            Ok(result) => result,
            Err(pending) => {
                let (sender, receiver) = mpsc::sync_channel(1);
                pending.then(move |result| drop(sender.send(result)));
                receiver.recv().unwrap_or_else(|_| Err(E::abandoned()))
            }
        }
    }

    /// A pending answer and the promise that completes it.
    pub fn later() -> (Promise<T, E>, Self) {
        let slot = Arc::new(Mutex::new(SlotState::Empty));
        (Promise(Some(Arc::clone(&slot))), Self(AnswerState::Pending(slot)))
    }

    /// Converts the result with `convert`, at once if it is ready, otherwise on the thread that sends it.
    pub fn map<U: Send + 'static, F: Abandoned + Send + 'static>(
        self,
        convert: impl FnOnce(Result<T, E>) -> Result<U, F> + Send + 'static,
    ) -> Answer<U, F> {
        match self.ready() {
            Ok(result) => Answer::now(convert(result)),
            Err(pending) => {
                let (promise, answer) = Answer::later();
                pending.then(move |result| promise.keep(convert(result)));
                answer
            }
        }
    }
}

impl<T: Send + 'static, E: Abandoned + Send + 'static> Answer<T, E> {
    /// The results of all answers in their order, or the first error.
    pub fn all(answers: Vec<Self>) -> Answer<Vec<T>, E> {
        let (promise, answer) = Answer::later();
        let found = Vec::with_capacity(answers.len());
        Self::collect(answers.into_iter(), found, promise);
        answer
    }

    fn collect(mut rest: IntoIter<Self>, mut found: Vec<T>, promise: Promise<Vec<T>, E>) {
        while let Some(answer) = rest.next() {
            match answer.ready() {
                Ok(Ok(one)) => found.push(one),
                Ok(Err(error)) => return promise.keep(Err(error)),
                Err(pending) => {
                    return pending.then(move |one| match one {
                        Ok(one) => {
                            found.push(one);
                            Self::collect(rest, found, promise);
                        }
                        Err(error) => promise.keep(Err(error)),
                    });
                }
            }
        }
        promise.keep(Ok(found));
    }
}

impl<E: Abandoned + Send + 'static> Answer<(), E> {
    /// The result of `next` once this answer succeeded; the error of this answer otherwise.
    pub fn and<U: Send + 'static>(self, next: Answer<U, E>) -> Answer<U, E> {
        match self.ready() {
            Ok(Ok(())) => next,
            Ok(Err(error)) => Answer::now(Err(error)),
            Err(pending) => {
                let (promise, answer) = Answer::later();
                pending.then(move |first| match first {
                    Ok(()) => next.then(move |result| promise.keep(result)),
                    Err(error) => promise.keep(Err(error)),
                });
                answer
            }
        }
    }
}

impl<T: Send + 'static> Answer<T> {
    /// Converts the error. Unlike [`map`](Self::map) it does not allocate.
    pub fn map_err<F: Abandoned + Send + 'static>(
        self,
        convert: fn(BrokerError) -> F,
    ) -> Answer<T, F> {
        match self.0 {
            AnswerState::Ready(result) => Answer::now(result.map_err(convert)),
            AnswerState::Pending(slot) => Answer(AnswerState::PendingBroker(slot, convert)),
            other => Answer(other).map(move |result: Result<T, _>| result.map_err(convert)),
        }
    }
}

impl<T, E: Abandoned> Promise<T, E> {
    /// Sends the result.
    pub fn keep(mut self, result: Result<T, E>) {
        self.fill(result);
    }

    fn fill(&mut self, result: Result<T, E>) {
        let Some(slot) = self.0.take() else { return };
        let mut state = slot.lock();
        match mem::replace(&mut *state, SlotState::Taken) {
            SlotState::Callback(callback) => {
                drop(state);
                callback(result);
            }
            SlotState::Waker(waker) => {
                *state = SlotState::Filled(result);
                drop(state);
                waker.wake();
            }
            SlotState::Empty | SlotState::Filled(_) | SlotState::Taken => {
                *state = SlotState::Filled(result)
            }
        }
    }
}

impl<T, E: Abandoned> Drop for Promise<T, E> {
    fn drop(&mut self) {
        self.fill(Err(E::abandoned()));
    }
}

impl<T: Unpin, E: Unpin> Future for Answer<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match mem::replace(&mut self.0, AnswerState::Taken) {
            AnswerState::Ready(result) => Poll::Ready(result),
            AnswerState::Pending(slot) => {
                let result = poll_slot(&slot, context);
                if result.is_pending() {
                    self.0 = AnswerState::Pending(slot);
                }
                result
            }
            AnswerState::PendingBroker(slot, convert) => {
                let result = poll_slot(&slot, context).map_err(convert);
                if result.is_pending() {
                    self.0 = AnswerState::PendingBroker(slot, convert);
                }
                result
            }
            AnswerState::Taken => unreachable!("{TAKEN}"),
        }
    }
}

/// Takes the result out of a slot, if it is ready.
fn take_result<T, E>(slot: &Slot<T, E>) -> Option<Result<T, E>> {
    let mut state = slot.lock();
    match mem::replace(&mut *state, SlotState::Taken) {
        SlotState::Filled(result) => Some(result),
        waiting => {
            *state = waiting;
            None
        }
    }
}

/// Calls `callback` with the result, now or when it is sent.
fn set_callback<T, E>(slot: &Slot<T, E>, callback: impl FnOnce(Result<T, E>) + Send + 'static) {
    let mut state = slot.lock();
    match mem::replace(&mut *state, SlotState::Taken) {
        SlotState::Filled(result) => {
            drop(state);
            callback(result);
        }
        _ => *state = SlotState::Callback(Box::new(callback)),
    }
}

/// Takes the result, or registers the task's waker.
fn poll_slot<T, E>(slot: &Slot<T, E>, context: &mut Context<'_>) -> Poll<Result<T, E>> {
    let mut state = slot.lock();
    match mem::replace(&mut *state, SlotState::Taken) {
        SlotState::Filled(result) => Poll::Ready(result),
        _ => {
            *state = SlotState::Waker(context.waker().clone());
            Poll::Pending
        }
    }
}

impl<T, E> From<Result<T, E>> for Answer<T, E> {
    fn from(result: Result<T, E>) -> Self {
        Self::now(result)
    }
}

impl<T, E> fmt::Debug for Answer<T, E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if matches!(self.0, AnswerState::Ready(_)) {
            "Answer(ready)"
        } else {
            "Answer(pending)"
        })
    }
}

impl<T, E: Abandoned> fmt::Debug for Promise<T, E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Promise")
    }
}

impl Abandoned for BrokerError {
    fn abandoned() -> Self {
        Self::Unavailable
    }
}

impl Abandoned for ErrorCode {
    fn abandoned() -> Self {
        Self::INTERNAL
    }
}

const TAKEN: &str = "the result of an answer is taken once";

#[cfg(test)]
mod tests;
