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
pub(crate) trait Read: Clone + Eq + Hash + Send + 'static {
    /// What it takes to send it; of those who share a read that of the last one counts.
    type Means: Send + 'static;
    /// What is found. Who shares it gets a clone.
    type Found: Clone + Send + 'static;

    /// Sends it. `done` is called once or dropped, which is a failure.
    fn send(
        &self,
        means: Self::Means,
        done: impl FnOnce(Result<Self::Found, Failure>) + Send + 'static,
    );
}

/// The reads of one kind that are on their way.
///
/// A read that was sent may have been done before somebody else asks. Its answer would lack what was published in
/// between, which was delivered before a subscriber that asks now was there to hear it: a hole that nobody tells of. So
/// nobody shares a read that was sent, or waits to be sent behind other commands: the answer of each shows the Redis as it was
/// when the question came, or later, and after all that the same thread had sent before. A single reader waits for nobody,
/// and however many ask, there are two: the one on its way, and the next.
pub(crate) struct Flights<R: Read> {
    shared: Arc<Shared<R>>,
}

struct Shared<R: Read> {
    board: Mutex<Board<R, R::Means, Waiter<R::Found>>>,
    health: Arc<Health>,
}

type Waiter<T> = Box<dyn FnOnce(Result<T, Failure>) + Send>;

impl<R: Read> Flights<R> {
    pub(crate) fn new(health: Arc<Health>) -> Self {
        let board = Mutex::new(Board::new(WAITERS_MAX));
        Self { shared: Arc::new(Shared { board, health }) }
    }

    /// Reads. `done` gets the answer, later on another thread; or it gets a failure, perhaps at once.
    pub(crate) fn ask(
        &self,
        read: R,
        means: R::Means,
        done: impl FnOnce(Result<R::Found, Failure>) + Send + 'static,
    ) {
        let boarded = self.shared.board.lock().board(&read, means, Box::new(done));
        match boarded {
            Boarded::First(means) => self.shared.launch(read, means),
            Boarded::Shares => {}
            Boarded::Full(done) => done(Err(Failure::Unavailable)),
        }
    }
}

impl<R: Read> Shared<R> {
    /// Sends a read, and the next ones for as long as they are answered at once, as they are while nothing can be sent.
    fn launch(self: &Arc<Self>, read: R, mut means: R::Means) {
        loop {
            let (promise, answer) = Answer::later();
            read.send(means, |found| promise.keep(found));
            let next = match answer.ready() {
                Ok(found) => self.land(&read, found),
                Err(later) => {
                    let shared = Arc::clone(self);
                    return later.then(move |found| {
                        if let Some(means) = shared.land(&read, found) {
                            shared.launch(read, means);
                        }
                    });
                }
            };
            match next {
                Some(next) => means = next,
                None => return,
            }
        }
    }

    /// Answers those who wanted this one; with what to send the next, if somebody wants that.
    fn land(&self, read: &R, found: Result<R::Found, Failure>) -> Option<R::Means> {
        let (mut aboard, next) = self.board.lock().land(read);
        let last = aboard.pop();
        self.health.merges(aboard.len());
        for waiter in aboard {
            waiter(found.clone());
        }
        if let Some(last) = last {
            last(found);
        }
        next
    }
}

/// Who waits for which read. `M` is what a read is sent with, `W` who waits.
struct Board<K, M, W> {
    flights: HashMap<K, Flight<M, W>>,
    /// For all reads together.
    waiters: usize,
    waiters_max: usize,
}

struct Flight<M, W> {
    /// Who is answered by the read that is on its way.
    aboard: Vec<W>,
    /// Who came since, and what the last of them would have the next one sent with.
    next: Option<(M, Vec<W>)>,
}

/// What became of a question.
#[derive(Debug, PartialEq, Eq)]
enum Boarded<M, W> {
    /// None is on its way: this one is to be sent now.
    First(M),
    /// It is answered by the next one.
    Shares,
    /// Too many wait.
    Full(W),
}

impl<K: Clone + Eq + Hash, M, W> Board<K, M, W> {
    fn new(waiters_max: usize) -> Self {
        Self { flights: HashMap::new(), waiters: 0, waiters_max }
    }

    /// Somebody wants a read.
    fn board(&mut self, read: &K, means: M, waiter: W) -> Boarded<M, W> {
        if self.waiters == self.waiters_max {
            return Boarded::Full(waiter);
        }
        self.waiters += 1;
        let Some(flight) = self.flights.get_mut(read) else {
            self.flights.insert(read.clone(), Flight { aboard: vec![waiter], next: None });
            return Boarded::First(means);
        };
        let mut waiters = flight.next.take().map(|(_, waiters)| waiters).unwrap_or_default();
        waiters.push(waiter);
        flight.next = Some((means, waiters));
        Boarded::Shares
    }

    /// The read on its way is back: who waited for it, and what the next one, which counts as sent from now on, is to be
    /// sent with.
    fn land(&mut self, read: &K) -> (Vec<W>, Option<M>) {
        let Some(flight) = self.flights.get_mut(read) else { return (Vec::new(), None) };
        let (means, following) = flight.next.take().unzip();
        let aboard = std::mem::replace(&mut flight.aboard, following.unwrap_or_default());
        self.waiters -= aboard.len();
        if means.is_none() {
            self.flights.remove(read);
            if self.flights.is_empty() {
                self.flights.shrink_to(SPARE);
            }
        }
        (aboard, means)
    }
}

/// Most that wait for reads of one kind; more fail at once.
const WAITERS_MAX: usize = 256 * 1024;
/// Reads for which there is room when none is on its way.
const SPARE: usize = 1024;

#[cfg(test)]
mod tests;
