//! Reads that many want at once: all that ask while one is on its way share the next, which is sent when that one is back.
//! In: reads, what each is sent with, who wants the answer → out: one at a time of each read, its answer for all who share it.
//! Uses a lock for a look at a map. Never: answers anybody with what was sent before the question.
//! Change here: who shares a read. What can be read, and how it is sent, is in `reads.rs`.

use std::hash::Hash;
use std::sync::Arc;

use fanwire_broker::Answer;
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::error::Failure;
use super::health::Health;

/// Something that can be read. Equal values have equal answers at any one moment.
pub(crate) trait SharedRead: Clone + Eq + Hash + Send + 'static {
    /// What it takes to send it; of those who share a read that of the last one counts.
    type Context: Send + 'static;
    /// What is found. Who shares it gets a clone.
    type Output: Clone + Send + 'static;

    /// Sends it. `done` is called once or dropped, which is a failure.
    fn send(
        &self,
        context: Self::Context,
        done: impl FnOnce(Result<Self::Output, Failure>) + Send + 'static,
    );
}

/// The reads of one kind that are on their way.
///
/// A read that was sent may have been done before somebody else asks. Its answer would lack what was published in
/// between, which was delivered before a subscriber that asks now was there to hear it: a hole that nobody tells of. So
/// nobody shares a read that was sent, or waits to be sent behind other commands: the answer of each shows the Redis as it was
/// when the question came, or later, and after all that the same thread had sent before. A single reader waits for nobody,
/// and however many ask, there are two: the one on its way, and the next.
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

    /// Reads. `done` gets the answer, later on another thread; or it gets a failure, perhaps at once.
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
    /// Sends a read, and the next ones for as long as they are answered at once, as they are while nothing can be sent.
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

    /// Answers those who wanted this one; with what to send the next, if somebody wants that.
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

/// Who waits for which read. `M` is what a read is sent with, `W` who waits.
struct InFlightTable<K, M, W> {
    reads: HashMap<K, InFlight<M, W>>,
    /// For all reads together.
    waiters: usize,
    waiters_max: usize,
}

struct InFlight<M, W> {
    /// Who is answered by the read that is on its way.
    waiters: Vec<W>,
    /// Who came since, and what the last of them would have the next one sent with.
    next: Option<(M, Vec<W>)>,
}

/// What became of a question.
#[derive(Debug, PartialEq, Eq)]
enum Joined<M, W> {
    /// None is on its way: this one is to be sent now.
    SendNow(M),
    /// It is answered by the next one.
    WaitsForNext,
    /// Too many wait.
    TableFull(W),
}

impl<K: Clone + Eq + Hash, M, W> InFlightTable<K, M, W> {
    fn new(waiters_max: usize) -> Self {
        Self { reads: HashMap::new(), waiters: 0, waiters_max }
    }

    /// Somebody wants a read.
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

    /// The read on its way is back: who waited for it, and what the next one, which counts as sent from now on, is to be
    /// sent with.
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

/// Most that wait for reads of one kind; more fail at once.
const WAITERS_MAX: usize = 256 * 1024;
/// Reads for which there is room when none is on its way.
const SPARE: usize = 1024;

#[cfg(test)]
mod tests;
