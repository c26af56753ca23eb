//! A connection for PUB/SUB: everything that is published to its channels, in the order of the Redis, to the door.
//! In: names that are wanted or not any more, from any thread; messages → out: publications, joins, leaves, words of nodes.
//! Uses: one task (`feed/ear.rs`), a RESP3 connection whose pushes wait in a bounded queue. Never: lets that queue grow; it gives up instead.
//! Change here: what a message means. When a name is asked for lives in `roll.rs`, where messages go in `mouth.rs`.

mod push_queue;
mod reader;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::{PushInfo, PushKind, Value};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use self::push_queue::PushQueue;
use self::reader::ReaderTask;
use super::backoff::Backoff;
use super::dial::Dialer;
use super::error::Failure;
use super::health::Health;
use super::message_handler::MessageHandler;
use super::redirect::ClusterRedirects;
use super::subscription_table::{Done, MovedSubscription, SubscriptionTable, WaitOutcome};
use super::wire::text;

/// The wanting end. The connection ends with it.
pub(crate) struct PubSubConnection {
    shared: Arc<Shared>,
    wait_timeout: Duration,
}

struct Shared {
    table: Mutex<SubscriptionTable<Waiter>>,
    /// There is something to ask for, or to end.
    woken: Notify,
    message_handler: Arc<MessageHandler>,
    redirects: ClusterRedirects,
    /// How often names were not heard any more that had been.
    losses: Arc<AtomicU64>,
}

/// Called once: when the channel is heard, or when it will not be.
pub(crate) type Waiter = Box<dyn FnOnce(Result<ContinuityCheck, Failure>) + Send>;

/// Whoever looks at something else after a name was heard asks this whether the name was heard all the time.
#[derive(Clone)]
pub(crate) struct ContinuityCheck {
    losses: Arc<AtomicU64>,
    before: u64,
}

impl ContinuityCheck {
    /// Whether nothing was lost since, as far as is known by now. A subscriber that asked in time is told later of what is noticed later.
    pub(crate) fn is_unbroken(&self) -> bool {
        self.losses.load(Relaxed) == self.before
    }
}

impl PubSubConnection {
    /// Begins to connect, and goes on until it is dropped.
    pub(crate) fn open(
        dialer: Dialer,
        message_handler: Arc<MessageHandler>,
        health: Arc<Health>,
        redirects: ClusterRedirects,
        runtime: &Handle,
    ) -> Self {
        health.connection_added();
        let feed = Self::unrouted(message_handler, redirects, dialer.io_timeout);
        let (backoff, shared) = (Backoff::default(), Arc::clone(&feed.shared));
        runtime.spawn(ReaderTask { dialer, shared, health, backoff }.run());
        feed
    }

    /// A feed that hears nothing yet: names can be wanted, waited for and [taken](Self::take).
    pub(crate) fn unrouted(
        message_handler: Arc<MessageHandler>,
        redirects: ClusterRedirects,
        wait_timeout: Duration,
    ) -> Self {
        let (table, woken, losses) = (Mutex::default(), Notify::new(), Arc::default());
        Self {
            shared: Arc::new(Shared { table, woken, message_handler, redirects, losses }),
            wait_timeout,
        }
    }

    /// Takes out the names that belong elsewhere, with who waits for them.
    pub(crate) fn take_matching(
        &self,
        is_elsewhere: impl Fn(&str) -> bool,
    ) -> Vec<MovedSubscription<Waiter>> {
        let mut table = self.shared.table.lock();
        let taken = table.take_matching(is_elsewhere);
        if !taken.is_empty() {
            self.shared.count_loss();
        }
        taken
    }

    /// Takes in names that were another feed's until now. Once they are heard they are doubted, if they were heard before.
    pub(crate) fn insert_moved(&self, moved: Vec<MovedSubscription<Waiter>>) {
        self.shared.table.lock().insert_moved(moved);
        self.shared.woken.notify_one();
    }

    /// Names that the Redis would not send are asked for again: it should have their slots by now.
    pub(crate) fn retry_misrouted(&self) {
        if self.shared.table.lock().retry_misrouted() {
            self.shared.woken.notify_one();
        }
    }

    /// Lets the waiters go whose patience is over. A feed that is connected does so by itself.
    pub(crate) fn expire_waiters(&self) {
        self.shared.expire_waiters();
    }

    /// What is published under `name` is wanted from now on.
    pub(crate) fn subscribe(&self, name: &str) {
        if self.shared.table.lock().set_desired(name) {
            self.shared.woken.notify_one();
        }
    }

    /// Nobody wants `name` any more.
    pub(crate) fn unsubscribe(&self, name: &str) {
        self.shared.table.lock().clear_desired(name, Instant::now());
        self.shared.woken.notify_one(); // so that the task knows when to look
    }

    /// Calls `waiter` when the Redis has confirmed that it sends what is published under `name`: at once, later on
    /// another thread, or with a failure when that takes too long or nobody wants it.
    pub(crate) fn when_subscribed(
        &self,
        name: &str,
        waiter: impl FnOnce(Result<ContinuityCheck, Failure>) + Send + 'static,
    ) {
        let by = Instant::now() + self.wait_timeout;
        let (heard, continuity) = {
            let mut table = self.shared.table.lock();
            (table.wait_until_subscribed(name, by, Box::new(waiter)), self.shared.continuity())
        };
        match heard {
            WaitOutcome::Yes(waiter) => waiter(Ok(continuity)),
            WaitOutcome::Pending => self.shared.woken.notify_one(),
            WaitOutcome::NotDesired(waiter) => waiter(Err(Failure::Unavailable)),
        }
    }
}

impl Drop for PubSubConnection {
    fn drop(&mut self) {
        self.shared.woken.notify_one();
    }
}

impl Shared {
    /// Takes a message, or that a name is heard or not any more; other pushes say nothing. Whether the Redis took a name
    /// away by itself.
    fn handle_push(&self, PushInfo { kind, data }: PushInfo) -> bool {
        let Ok([name, last]) = <[Value; 2]>::try_from(data) else { return false };
        let Some(name) = text(name) else { return false };
        let done = match kind {
            PushKind::Message | PushKind::SMessage => {
                if let Some(message) = text(last).filter(|_| self.is_accepted(&name)) {
                    self.message_handler.handle(&name, message, Instant::now());
                }
                return false;
            }
            PushKind::Subscribe | PushKind::SSubscribe => Done::Subscribed,
            PushKind::Unsubscribe | PushKind::SUnsubscribe => Done::Unsubscribed,
            _ => return false,
        };
        let Ok(name) = str::from_utf8(&name) else { return false };
        let mut table = self.table.lock();
        let confirmed = table.confirmed(name, done);
        if confirmed.is_misrouted {
            self.count_loss();
        }
        let continuity = self.continuity(); // from when the name was found: it may be taken away as soon as the roll is let go
        drop(table);
        if confirmed.is_resubscribed {
            self.message_handler.report_gap(name);
        }
        if confirmed.is_misrouted {
            self.redirects.request_refresh();
        }
        confirmed.waiters.into_iter().for_each(|(_, waiter)| waiter(Ok(continuity.clone())));
        confirmed.is_misrouted
    }

    /// Whether messages under this name are to be handed on. In a Cluster a name that moved may be heard from two Redis for
    /// a while: only that of the feed which has it counts.
    fn is_accepted(&self, name: &[u8]) -> bool {
        let is_requested = |name| self.table.lock().is_requested(name);
        !self.redirects.is_cluster() || str::from_utf8(name).is_ok_and(is_requested)
    }

    /// Names that were asked for long ago and never confirmed are asked for again once the slots are known anew.
    fn mark_unconfirmed_misrouted(&self) {
        if self.table.lock().mark_unconfirmed_misrouted() {
            self.redirects.request_refresh();
        }
    }

    /// The connection is gone.
    fn connection_lost(&self) {
        let mut table = self.table.lock();
        table.lost();
        self.count_loss();
    }

    /// A name that was heard is not any more. Called while the roll is locked: whoever looks for a name sees both or none.
    fn count_loss(&self) {
        self.losses.fetch_add(1, Relaxed);
    }

    fn continuity(&self) -> ContinuityCheck {
        ContinuityCheck { losses: Arc::clone(&self.losses), before: self.losses.load(Relaxed) }
    }

    /// Takes the messages that came before the connection was lost. What it confirmed is void. Once shards are behind, the
    /// other publications go with it, and only what nodes say is taken: they count an order as heard.
    fn drain_queue(&self, pushes: &mut PushQueue) {
        let mut is_congested = false;
        let is_node_channel = |push: &PushInfo| match push.data.first() {
            Some(Value::BulkString(name)) => self.message_handler.is_node_channel(name),
            _ => false,
        };
        while let Ok(push) = pushes.queue.try_recv() {
            is_congested |= self.message_handler.is_congested();
            if matches!(push.kind, PushKind::Message | PushKind::SMessage)
                && (!is_congested || is_node_channel(&push))
            {
                self.handle_push(push);
            }
        }
    }

    /// Lets the waiters go whose patience is over.
    fn expire_waiters(&self) {
        let over = self.table.lock().expired_waiters(Instant::now());
        over.into_iter().for_each(|waiter| waiter(Err(Failure::Unavailable)));
    }
}

#[cfg(test)]
mod tests;
