//! A PUB/SUB connection: delivers all messages of its channels, in the order of the Redis.
//! In: names to subscribe and unsubscribe, from any thread; messages → out: publications, joins, leaves, messages of nodes.
//! Uses: one task (`pubsub_connection/reader.rs`), a RESP3 connection whose pushes wait in a bounded queue. Never: lets that queue grow; it reconnects instead.
//! Changed here: the meaning of a push. `subscription_table.rs` decides when a name is subscribed, `message_handler.rs` where messages go.

mod gate;
mod push_queue;
mod reader;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::{PushInfo, PushKind, Value};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use self::gate::Gate;
pub(crate) use self::gate::Mark;
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

/// The handle. The connection ends with it.
pub(crate) struct PubSubConnection {
    shared: Arc<Shared>,
    wait_timeout: Duration,
}

struct Shared {
    table: Mutex<SubscriptionTable<Waiter>>,
    /// Wakes the task: a name is due, or the handle is dropped.
    woken: Notify,
    message_handler: Arc<MessageHandler>,
    redirects: ClusterRedirects,
    gate: Gate,
    /// How often subscribed names were lost.
    losses: Arc<AtomicU64>,
}

/// Called once: when the channel is subscribed, or when it will not be.
pub(crate) type Waiter = Box<dyn FnOnce(Result<ContinuityCheck, Failure>) + Send>;

/// Shows whether a name stayed subscribed since this value was made. A caller that reads from elsewhere after a
/// subscription checks it afterwards.
#[derive(Clone)]
pub(crate) struct ContinuityCheck {
    losses: Arc<AtomicU64>,
    before: u64,
}

impl ContinuityCheck {
    /// Whether no loss was noticed since. A loss that is noticed later is reported as a gap.
    pub(crate) fn is_unbroken(&self) -> bool {
        self.losses.load(Relaxed) == self.before
    }
}

impl PubSubConnection {
    /// Starts to connect, and reconnects until it is dropped.
    pub(crate) fn open(
        dialer: Dialer,
        message_handler: Arc<MessageHandler>,
        health: Arc<Health>,
        redirects: ClusterRedirects,
        runtime: &Handle,
    ) -> Self {
        health.connection_added();
        let connection = Self::unrouted(message_handler, redirects, dialer.io_timeout);
        let backoff = Backoff::default();
        let shared = Arc::clone(&connection.shared);
        runtime.spawn(ReaderTask { dialer, shared, health, backoff }.run());
        connection
    }

    /// A connection without a Redis: names can be subscribed, waited for and [taken](Self::take_matching).
    pub(crate) fn unrouted(
        message_handler: Arc<MessageHandler>,
        redirects: ClusterRedirects,
        wait_timeout: Duration,
    ) -> Self {
        let table = Mutex::default();
        let woken = Notify::new();
        let gate = Gate::default();
        let losses = Arc::default();
        let shared = Shared { table, woken, message_handler, redirects, gate, losses };
        Self { shared: Arc::new(shared), wait_timeout }
    }

    /// Removes the names that belong to another connection, with their waiters.
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

    /// Adds names of another connection. If they were subscribed there, a gap is reported once they are subscribed
    /// here.
    pub(crate) fn insert_moved(&self, moved: Vec<MovedSubscription<Waiter>>) {
        self.shared.table.lock().insert_moved(moved);
        self.shared.woken.notify_one();
    }

    /// Subscribes names again that the Redis refused: it should have their slots by now.
    pub(crate) fn retry_misrouted(&self) {
        if self.shared.table.lock().retry_misrouted() {
            self.shared.woken.notify_one();
        }
    }

    /// Fails the waiters whose time is over. A connected task does so by itself.
    pub(crate) fn expire_waiters(&self) {
        self.shared.expire_waiters();
    }

    /// Subscribes to `name`.
    pub(crate) fn subscribe(&self, name: &str) {
        if self.shared.table.lock().set_desired(name) {
            self.shared.woken.notify_one();
        }
    }

    /// Unsubscribes from `name`, after a delay.
    pub(crate) fn unsubscribe(&self, name: &str) {
        self.shared.table.lock().clear_desired(name, Instant::now());
        self.shared.woken.notify_one(); // for the new due time
    }

    /// Drops all messages up to the mark of a takeover.
    pub(crate) fn drop_until_mark(&self) {
        self.shared.gate.drop_until_mark();
    }

    /// Subscribes to the name of a mark, and takes no message behind the mark.
    pub(crate) fn stop_at(&self, mark: &Mark) {
        self.shared.gate.shut_at(mark.clone());
        self.subscribe(&mark.name);
    }

    /// Waits until the mark has come. Returns whether it has. Blocks.
    pub(crate) fn wait_for_mark(&self, deadline: Instant) -> bool {
        self.shared.gate.wait_until_shut(deadline)
    }

    /// Takes all messages again, beginning behind the mark.
    pub(crate) fn run_on(&self) {
        if let Some(mark) = self.shared.gate.open() {
            self.unsubscribe(&mark.name);
        }
        self.shared.woken.notify_one();
    }

    /// Calls `waiter` when the Redis has confirmed the subscription to `name`: at once, later on another thread, or
    /// with a failure when that takes too long or the name is not subscribed.
    pub(crate) fn when_subscribed(
        &self,
        name: &str,
        waiter: impl FnOnce(Result<ContinuityCheck, Failure>) + Send + 'static,
    ) {
        let by = Instant::now() + self.wait_timeout;
        let (outcome, continuity) = {
            let mut table = self.shared.table.lock();
            (table.wait_until_subscribed(name, by, Box::new(waiter)), self.shared.continuity())
        };
        match outcome {
            WaitOutcome::Subscribed(waiter) => waiter(Ok(continuity)),
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
    /// Takes a message or a confirmation; ignores other pushes. Returns whether the Redis ended a subscription by
    /// itself.
    fn handle_push(&self, PushInfo { kind, data }: PushInfo) -> bool {
        let Ok([name, last]) = <[Value; 2]>::try_from(data) else { return false };
        let Some(name) = text(name) else { return false };
        let done = match kind {
            PushKind::Message | PushKind::SMessage => {
                if let Some(message) = text(last).filter(|_| self.is_accepted(&name))
                    && (self.gate.passes(&name, &message)
                        || self.message_handler.is_of_revocations(&name))
                {
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
        let continuity = self.continuity(); // taken under the lock: the name may be removed right after
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

    /// Whether to deliver messages of this name. In a Cluster, two Redis may send the messages of a name that moved
    /// for a while; only the connection that has the name delivers them.
    fn is_accepted(&self, name: &[u8]) -> bool {
        let is_requested = |name| self.table.lock().is_requested(name);
        !self.redirects.is_cluster() || str::from_utf8(name).is_ok_and(is_requested)
    }

    /// Names that were requested long ago and never confirmed are requested again after the next topology refresh.
    fn mark_unconfirmed_misrouted(&self) {
        if self.table.lock().mark_unconfirmed_misrouted() {
            self.redirects.request_refresh();
        }
    }

    /// The connection is gone.
    fn connection_lost(&self) {
        let mut table = self.table.lock();
        table.connection_lost();
        self.count_loss();
    }

    /// Counts the loss of subscribed names. Called while the table is locked, so that other threads see the change of
    /// the table and the count together.
    fn count_loss(&self) {
        self.losses.fetch_add(1, Relaxed);
    }

    fn continuity(&self) -> ContinuityCheck {
        ContinuityCheck { losses: Arc::clone(&self.losses), before: self.losses.load(Relaxed) }
    }

    /// Takes the messages that came before the connection was lost; confirmations are void. Once shards are behind,
    /// only messages of nodes are taken, because their senders count them as received, and publications are dropped
    /// with the connection.
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

    /// Fails the waiters whose time is over.
    fn expire_waiters(&self) {
        let over = self.table.lock().expired_waiters(Instant::now());
        over.into_iter().for_each(|waiter| waiter(Err(Failure::Unavailable)));
    }
}

#[cfg(test)]
mod tests;
