//! What a port answers: a value that is there already, or one that comes later, from any thread.
//! In: results of brokers, of presence, of keys → out: the same results, to whoever asked, exactly once.
//! Uses: one small lock per answer that comes later, none for one that is there. Never: blocks.
//! Change here: how a port answers. Who waits on a shard lives in `pending.rs` of `node`; the server API awaits answers as futures.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};

use fanwire_protocol::ErrorCode;
use parking_lot::Mutex;

use crate::BrokerError;

/// A result, now or later. What is there already costs no allocation and no lock.
///
/// A future, too: it is ready when the result is there. To be polled by one task, and not after it was ready.
#[must_use = "an answer nobody takes may be an error nobody hears of"]
pub struct Answer<T, E = BrokerError>(State<T, E>);

enum State<T, E> {
    Now(Result<T, E>),
    Later(Arc<Slot<T, E>>),
    /// What a broker answers, whose error is another one here.
    Broker(Arc<Slot<T, BrokerError>>, fn(BrokerError) -> E),
    Taken,
}

/// The other end of an [`Answer`] that comes later. One that is dropped answers [`Abandoned::abandoned`].
pub struct Promise<T, E: Abandoned = BrokerError>(Option<Arc<Slot<T, E>>>);

/// An error that also says: nobody will answer any more.
pub trait Abandoned {
    fn abandoned() -> Self;
}

type Slot<T, E> = Mutex<Stage<T, E>>;

enum Stage<T, E> {
    /// Nobody asked yet whether it is there.
    Open,
    /// A task is to be woken.
    Awaited(Waker),
    /// A function wants it.
    Wanted(Box<dyn FnOnce(Result<T, E>) + Send>),
    Kept(Result<T, E>),
    Over,
}

impl<T, E> Answer<T, E> {
    /// An answer that is there.
    pub fn now(result: Result<T, E>) -> Self {
        Self(State::Now(result))
    }

    /// The result, if it is there.
    ///
    /// # Errors
    /// The answer itself, when it has to be waited for.
    pub fn ready(self) -> Result<Result<T, E>, Self> {
        match self.0 {
            State::Now(result) => Ok(result),
            State::Later(slot) => kept(&slot).ok_or(Self(State::Later(slot))),
            State::Broker(slot, convert) => match kept(&slot) {
                Some(result) => Ok(result.map_err(convert)),
                None => Err(Self(State::Broker(slot, convert))),
            },
            State::Taken => unreachable!("{TAKEN}"),
        }
    }

    /// Calls `take` with the result: at once if it is there, else later on the thread that brings it. So `take` must be
    /// short and must not take a lock that is held by callers of the port.
    pub fn then(self, take: impl FnOnce(Result<T, E>) + Send + 'static)
    where
        E: 'static,
    {
        match self.0 {
            State::Now(result) => take(result),
            State::Later(slot) => want(&slot, take),
            State::Broker(slot, convert) => {
                want(&slot, move |result| take(result.map_err(convert)))
            }
            State::Taken => unreachable!("{TAKEN}"),
        }
    }
}

impl<T: Send + 'static, E: Abandoned + Send + 'static> Answer<T, E> {
    /// Blocks this thread until the result is there. For threads of one's own: never on a shard, never in a task.
    ///
    /// # Errors
    /// Those of the answer.
    pub fn wait(self) -> Result<T, E> {
        match self.ready() {
            Ok(result) => result,
            Err(later) => {
                let (sender, receiver) = mpsc::sync_channel(1);
                later.then(move |result| drop(sender.send(result)));
                receiver.recv().unwrap_or_else(|_| Err(E::abandoned()))
            }
        }
    }

    /// An answer that comes later, with its promise.
    pub fn later() -> (Promise<T, E>, Self) {
        let slot = Arc::new(Mutex::new(Stage::Open));
        (Promise(Some(Arc::clone(&slot))), Self(State::Later(slot)))
    }

    /// The same answer, its result passed through `convert` when it is there.
    pub fn map<U: Send + 'static, F: Abandoned + Send + 'static>(
        self,
        convert: impl FnOnce(Result<T, E>) -> Result<U, F> + Send + 'static,
    ) -> Answer<U, F> {
        match self.ready() {
            Ok(result) => Answer::now(convert(result)),
            Err(later) => {
                let (promise, answer) = Answer::later();
                later.then(move |result| promise.keep(convert(result)));
                answer
            }
        }
    }
}

impl<E: Abandoned + Send + 'static> Answer<(), E> {
    /// What `next` answers, once this has succeeded; else the error of this.
    pub fn and<U: Send + 'static>(self, next: Answer<U, E>) -> Answer<U, E> {
        match self.ready() {
            Ok(Ok(())) => next,
            Ok(Err(error)) => Answer::now(Err(error)),
            Err(later) => {
                let (promise, answer) = Answer::later();
                later.then(move |first| match first {
                    Ok(()) => next.then(move |result| promise.keep(result)),
                    Err(error) => promise.keep(Err(error)),
                });
                answer
            }
        }
    }
}

impl<T: Send + 'static> Answer<T> {
    /// The same answer with another error. Unlike [`map`](Self::map) it costs no allocation.
    pub fn map_err<F: Abandoned + Send + 'static>(
        self,
        convert: fn(BrokerError) -> F,
    ) -> Answer<T, F> {
        match self.0 {
            State::Now(result) => Answer::now(result.map_err(convert)),
            State::Later(slot) => Answer(State::Broker(slot, convert)),
            other => Answer(other).map(move |result: Result<T, _>| result.map_err(convert)),
        }
    }
}

impl<T, E: Abandoned> Promise<T, E> {
    /// Answers.
    pub fn keep(mut self, result: Result<T, E>) {
        self.settle(result);
    }

    fn settle(&mut self, result: Result<T, E>) {
        let Some(slot) = self.0.take() else { return };
        let mut stage = slot.lock();
        match mem::replace(&mut *stage, Stage::Over) {
            Stage::Wanted(take) => {
                drop(stage);
                take(result);
            }
            Stage::Awaited(waker) => {
                *stage = Stage::Kept(result);
                drop(stage);
                waker.wake();
            }
            Stage::Open | Stage::Kept(_) | Stage::Over => *stage = Stage::Kept(result),
        }
    }
}

impl<T, E: Abandoned> Drop for Promise<T, E> {
    fn drop(&mut self) {
        self.settle(Err(E::abandoned()));
    }
}

impl<T: Unpin, E: Unpin> Future for Answer<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match mem::replace(&mut self.0, State::Taken) {
            State::Now(result) => Poll::Ready(result),
            State::Later(slot) => {
                let result = await_at(&slot, context);
                if result.is_pending() {
                    self.0 = State::Later(slot);
                }
                result
            }
            State::Broker(slot, convert) => {
                let result = await_at(&slot, context).map_err(convert);
                if result.is_pending() {
                    self.0 = State::Broker(slot, convert);
                }
                result
            }
            State::Taken => unreachable!("{TAKEN}"),
        }
    }
}

/// The result in a slot, if it is there.
fn kept<T, E>(slot: &Slot<T, E>) -> Option<Result<T, E>> {
    let mut stage = slot.lock();
    match mem::replace(&mut *stage, Stage::Over) {
        Stage::Kept(result) => Some(result),
        waits => {
            *stage = waits;
            None
        }
    }
}

/// Gives the result to `take`, now or later.
fn want<T, E>(slot: &Slot<T, E>, take: impl FnOnce(Result<T, E>) + Send + 'static) {
    let mut stage = slot.lock();
    match mem::replace(&mut *stage, Stage::Over) {
        Stage::Kept(result) => {
            drop(stage);
            take(result);
        }
        _ => *stage = Stage::Wanted(Box::new(take)),
    }
}

/// The result, or a task is woken when it is there.
fn await_at<T, E>(slot: &Slot<T, E>, context: &mut Context<'_>) -> Poll<Result<T, E>> {
    let mut stage = slot.lock();
    match mem::replace(&mut *stage, Stage::Over) {
        Stage::Kept(result) => Poll::Ready(result),
        _ => {
            *stage = Stage::Awaited(context.waker().clone());
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
        out.write_str(if matches!(self.0, State::Now(_)) { "Answer(now)" } else { "Answer(later)" })
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

const TAKEN: &str = "an answer is taken once";

#[cfg(test)]
mod tests;
