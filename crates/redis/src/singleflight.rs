//! Singleflight for reads: callers that ask while an equal read is in flight share the next one, which is sent when the first is answered.
//! In: reads, their context, callers → out: at most one read of each kind in flight, its answer for all who share it.
//! Uses a lock for one look at a map. Never: answers a caller with a read that was sent before the call.
//! Changed here: who shares a read. The reads themselves are in `reads.rs`.

use std::hash::Hash;
use std::sync::Arc;

use fanwire_broker::Answer;
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::error::Failure;
use super::health::Health;

/// A read. Equal values have equal answers at any one moment.
pub(crate) trait SharedRead: Clone + Eq + Hash + Send + 'static {
    /// Needed to send the read. Callers that share a read may give different contexts; the last one is used.
    type Context: Send + 'static;
    /// The answer. Callers that share a read get clones.
    type Output: Clone + Send + 'static;

    /// Sends the read. `done` is called once or dropped, which is a failure.
    fn send(
        &self,
        context: Self::Context,
        done: impl FnOnce(Result<Self::Output, Failure>) + Send + 'static,
    );
}

/// The in-flight reads of one kind.
///
/// Redis may have executed a read that was sent before another caller asks. Its answer would lack publications between
/// the two, which were also delivered before the new subscriber was registered: a gap that nothing reports. So a
/// caller never shares a read that was sent already, not even one that still waits behind other commands. The answer
/// of each caller shows the Redis at the time of its call or later, and after all commands that the same thread sent
/// before. A single caller never waits for another, and any number of callers need two reads: the one in flight and
/// the next.
pub(crate) struct Singleflight<R: SharedRead> {
    shared: Arc<Shared<R>>,
}

struct Shared<R: SharedRead> {
    table: Mutex<InFlightTable<R, R::Context, Waiter<R::Output>>>,
    health: Arc<Health>,
}

type Waiter<T> = Box<dyn FnOnce(Result<T, Failure>) + Send>;

impl<R: SharedRead> Singleflight<R> {
    pub(crate) fn new(health: Arc<Health>) -> Self {
        let table = Mutex::new(InFlightTable::new(WAITERS_MAX));
        Self { shared: Arc::new(Shared { table, health }) }
    }

    /// Reads. `done` gets the answer, later on another thread, or a failure, possibly at once.
    pub(crate) fn ask(
        &self,
        read: R,
        context: R::Context,
        done: impl FnOnce(Result<R::Output, Failure>) + Send + 'static,
    ) {
        let joined = self.shared.table.lock().join(&read, context, Box::new(done));
        match joined {
            Joined::SendNow(context) => self.shared.send_read(read, context),
            Joined::WaitsForNext => {}
            Joined::TableFull(done) => done(Err(Failure::Unavailable)),
        }
    }
}

impl<R: SharedRead> Shared<R> {
    /// Sends a read, and then the next ones in a loop while they are answered at once, as they are when the connection
    /// is down.
    fn send_read(self: &Arc<Self>, read: R, mut context: R::Context) {
        loop {
            let (promise, answer) = Answer::later();
            read.send(context, |output| promise.keep(output));
            let next = match answer.ready() {
                Ok(output) => self.complete(&read, output),
                Err(later) => {
                    let shared = Arc::clone(self);
                    return later.then(move |output| {
                        if let Some(context) = shared.complete(&read, output) {
                            shared.send_read(read, context);
                        }
                    });
                }
            };
            match next {
                Some(next) => context = next,
                None => return,
            }
        }
    }

    /// Answers the waiters of a read; returns the context of the next one if there is one.
    fn complete(&self, read: &R, output: Result<R::Output, Failure>) -> Option<R::Context> {
        let (mut waiters, next) = self.table.lock().complete(read);
        let last = waiters.pop();
        self.health.count_merged(waiters.len());
        for waiter in waiters {
            waiter(output.clone());
        }
        if let Some(last) = last {
            last(output);
        }
        next
    }
}

/// Waiters by read. `M` is the context of a read, `W` a waiter.
struct InFlightTable<K, M, W> {
    reads: HashMap<K, InFlight<M, W>>,
    /// Number of waiters of all reads together.
    waiters: usize,
    waiters_max: usize,
}

struct InFlight<M, W> {
    /// Waiters that get the answer of the read in flight.
    waiters: Vec<W>,
    /// The context and the waiters of the next read.
    next: Option<(M, Vec<W>)>,
}

/// The effect of [`InFlightTable::join`].
#[derive(Debug, PartialEq, Eq)]
enum Joined<M, W> {
    /// No equal read is in flight: the caller has to send it now.
    SendNow(M),
    /// The next read answers the waiter.
    WaitsForNext,
    /// There are too many waiters.
    TableFull(W),
}

impl<K: Clone + Eq + Hash, M, W> InFlightTable<K, M, W> {
    fn new(waiters_max: usize) -> Self {
        Self { reads: HashMap::new(), waiters: 0, waiters_max }
    }

    /// Adds a waiter for a read.
    fn join(&mut self, read: &K, context: M, waiter: W) -> Joined<M, W> {
        if self.waiters == self.waiters_max {
            return Joined::TableFull(waiter);
        }
        self.waiters += 1;
        let Some(in_flight) = self.reads.get_mut(read) else {
            self.reads.insert(read.clone(), InFlight { waiters: vec![waiter], next: None });
            return Joined::SendNow(context);
        };
        let mut waiters = in_flight.next.take().map(|(_, waiters)| waiters).unwrap_or_default();
        waiters.push(waiter);
        in_flight.next = Some((context, waiters));
        Joined::WaitsForNext
    }

    /// Takes the waiters of a read that was answered. With a context the caller has to send the next read, which
    /// counts as in flight from now on.
    fn complete(&mut self, read: &K) -> (Vec<W>, Option<M>) {
        let Some(in_flight) = self.reads.get_mut(read) else { return (Vec::new(), None) };
        let (context, following) = in_flight.next.take().unzip();
        let waiters = std::mem::replace(&mut in_flight.waiters, following.unwrap_or_default());
        self.waiters -= waiters.len();
        if context.is_none() {
            self.reads.remove(read);
            if self.reads.is_empty() {
                self.reads.shrink_to(SPARE);
            }
        }
        (waiters, context)
    }
}

/// Most waiters for reads of one kind; further calls fail at once.
const WAITERS_MAX: usize = 256 * 1024;
/// Capacity that the map keeps when no read is in flight.
const SPARE: usize = 1024;

#[cfg(test)]
mod tests;
