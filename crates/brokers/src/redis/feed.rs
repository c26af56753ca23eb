//! A connection for PUB/SUB: everything that is published to its channels, in the order of the Redis, to the door.
//! In: names that are wanted or not any more, from any thread; messages → out: publications, joins, leaves, words of nodes.
//! Uses: one task (`feed/ear.rs`), a RESP3 connection whose pushes wait in a bounded queue. Never: lets that queue grow; it gives up instead.
//! Change here: what a message means. When a name is asked for lives in `roll.rs`, where messages go in `mouth.rs`.

mod ear;
mod pushes;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::{PushInfo, PushKind, Value};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use self::ear::Ear;
use self::pushes::Pushes;
use super::backoff::Backoff;
use super::dial::Dialer;
use super::error::Failure;
use super::guide::Guided;
use super::health::Health;
use super::mouth::Mouth;
use super::roll::{Done, Heard, Moved, Roll};
use super::wire::text;

/// The wanting end. The connection ends with it.
pub(crate) struct Feed {
    shared: Arc<Shared>,
    patience: Duration,
}

struct Shared {
    roll: Mutex<Roll<Waiter>>,
    /// There is something to ask for, or to end.
    woken: Notify,
    mouth: Arc<Mouth>,
    guided: Guided,
    /// How often names were not heard any more that had been.
    losses: Arc<AtomicU64>,
}

/// Called once: when the channel is heard, or when it will not be.
pub(crate) type Waiter = Box<dyn FnOnce(Result<Witness, Failure>) + Send>;

/// Whoever looks at something else after a name was heard asks this whether the name was heard all the time.
#[derive(Clone)]
pub(crate) struct Witness {
    losses: Arc<AtomicU64>,
    before: u64,
}

impl Witness {
    /// Whether nothing was lost since, as far as is known by now. A subscriber that asked in time is told later of what is noticed later.
    pub(crate) fn is_sure(&self) -> bool {
        self.losses.load(Relaxed) == self.before
    }
}

impl Feed {
    /// Begins to connect, and goes on until it is dropped.
    pub(crate) fn open(
        dialer: Dialer,
        mouth: Arc<Mouth>,
        health: Arc<Health>,
        guided: Guided,
        runtime: &Handle,
    ) -> Self {
        health.counts_on();
        let feed = Self::nowhere(mouth, guided, dialer.io_timeout);
        let (backoff, shared) = (Backoff::default(), Arc::clone(&feed.shared));
        runtime.spawn(Ear { dialer, shared, health, backoff }.run());
        feed
    }

    /// A feed that hears nothing yet: names can be wanted, waited for and [taken](Self::take).
    pub(crate) fn nowhere(mouth: Arc<Mouth>, guided: Guided, patience: Duration) -> Self {
        let (roll, woken, losses) = (Mutex::default(), Notify::new(), Arc::default());
        Self { shared: Arc::new(Shared { roll, woken, mouth, guided, losses }), patience }
    }

    /// Takes out the names that belong elsewhere, with who waits for them.
    pub(crate) fn take(&self, is_elsewhere: impl Fn(&str) -> bool) -> Vec<Moved<Waiter>> {
        let mut roll = self.shared.roll.lock();
        let taken = roll.take(is_elsewhere);
        if !taken.is_empty() {
            self.shared.has_lost();
        }
        taken
    }

    /// Takes in names that were another feed's until now. Once they are heard they are doubted, if they were heard before.
    pub(crate) fn put(&self, moved: Vec<Moved<Waiter>>) {
        self.shared.roll.lock().put(moved);
        self.shared.woken.notify_one();
    }

    /// Names that the Redis would not send are asked for again: it should have their slots by now.
    pub(crate) fn ask_displaced(&self) {
        if self.shared.roll.lock().ask_displaced() {
            self.shared.woken.notify_one();
        }
    }

    /// Lets the waiters go whose patience is over. A feed that is connected does so by itself.
    pub(crate) fn tire(&self) {
        self.shared.tire();
    }

    /// What is published under `name` is wanted from now on.
    pub(crate) fn want(&self, name: &str) {
        if self.shared.roll.lock().want(name) {
            self.shared.woken.notify_one();
        }
    }

    /// Nobody wants `name` any more.
    pub(crate) fn leave(&self, name: &str) {
        self.shared.roll.lock().leave(name, Instant::now());
        self.shared.woken.notify_one(); // so that the task knows when to look
    }

    /// Calls `waiter` when the Redis has confirmed that it sends what is published under `name`: at once, later on
    /// another thread, or with a failure when that takes too long or nobody wants it.
    pub(crate) fn when_heard(
        &self,
        name: &str,
        waiter: impl FnOnce(Result<Witness, Failure>) + Send + 'static,
    ) {
        let by = Instant::now() + self.patience;
        let (heard, witness) = {
            let mut roll = self.shared.roll.lock();
            (roll.wait(name, by, Box::new(waiter)), self.shared.witness())
        };
        match heard {
            Heard::Yes(waiter) => waiter(Ok(witness)),
            Heard::NotYet => self.shared.woken.notify_one(),
            Heard::Never(waiter) => waiter(Err(Failure::Unavailable)),
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.shared.woken.notify_one();
    }
}

impl Shared {
    /// Takes a message, or that a name is heard or not any more; other pushes say nothing. Whether the Redis took a name
    /// away by itself.
    fn take(&self, PushInfo { kind, data }: PushInfo) -> bool {
        let Ok([name, last]) = <[Value; 2]>::try_from(data) else { return false };
        let Some(name) = text(name) else { return false };
        let done = match kind {
            PushKind::Message | PushKind::SMessage => {
                if let Some(message) = text(last).filter(|_| self.is_heard(&name)) {
                    self.mouth.say(&name, message, Instant::now());
                }
                return false;
            }
            PushKind::Subscribe | PushKind::SSubscribe => Done::Subscribed,
            PushKind::Unsubscribe | PushKind::SUnsubscribe => Done::Unsubscribed,
            _ => return false,
        };
        let Ok(name) = str::from_utf8(&name) else { return false };
        let mut roll = self.roll.lock();
        let confirmed = roll.confirmed(name, done);
        if confirmed.is_displaced {
            self.has_lost();
        }
        let witness = self.witness(); // from when the name was found: it may be taken away as soon as the roll is let go
        drop(roll);
        if confirmed.is_again {
            self.mouth.doubt(name);
        }
        if confirmed.is_displaced {
            self.guided.look_again();
        }
        confirmed.waiters.into_iter().for_each(|(_, waiter)| waiter(Ok(witness.clone())));
        confirmed.is_displaced
    }

    /// Whether messages under this name are to be handed on. In a Cluster a name that moved may be heard from two Redis for
    /// a while: only that of the feed which has it counts.
    fn is_heard(&self, name: &[u8]) -> bool {
        let is_asked = |name| self.roll.lock().is_asked(name);
        !self.guided.is_guided() || str::from_utf8(name).is_ok_and(is_asked)
    }

    /// Names that were asked for long ago and never confirmed are asked for again once the slots are known anew.
    fn displace_unconfirmed(&self) {
        if self.roll.lock().displace_unconfirmed() {
            self.guided.look_again();
        }
    }

    /// The connection is gone.
    fn lose(&self) {
        let mut roll = self.roll.lock();
        roll.lost();
        self.has_lost();
    }

    /// A name that was heard is not any more. Called while the roll is locked: whoever looks for a name sees both or none.
    fn has_lost(&self) {
        self.losses.fetch_add(1, Relaxed);
    }

    fn witness(&self) -> Witness {
        Witness { losses: Arc::clone(&self.losses), before: self.losses.load(Relaxed) }
    }

    /// Takes the messages that came before the connection was lost. What it confirmed is void. Once shards are behind, the
    /// other publications go with it, and only what nodes say is taken: they count an order as heard.
    fn take_what_is_left(&self, pushes: &mut Pushes) {
        let mut is_congested = false;
        let is_of_nodes = |push: &PushInfo| match push.data.first() {
            Some(Value::BulkString(name)) => self.mouth.is_of_nodes(name),
            _ => false,
        };
        while let Ok(push) = pushes.queue.try_recv() {
            is_congested |= self.mouth.is_congested();
            if matches!(push.kind, PushKind::Message | PushKind::SMessage)
                && (!is_congested || is_of_nodes(&push))
            {
                self.take(push);
            }
        }
    }

    /// Lets the waiters go whose patience is over.
    fn tire(&self) {
        let over = self.roll.lock().impatient(Instant::now());
        over.into_iter().for_each(|waiter| waiter(Err(Failure::Unavailable)));
    }
}

#[cfg(test)]
mod tests;
