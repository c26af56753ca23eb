//! Slots of HTTP connections: how many there are, who may keep one between requests, and who gives way.
//! In: connections that begin, become idle and end → out: time limits; a wake-up for the connection that gives way.
//! Uses tokio's semaphore and notifications; never a socket.
//! Changed here: when slots are scarce, and what that means. The time limits themselves are in `limits`.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, futures::OwnedNotified};

/// The slots of a listener.
pub(crate) struct ConnectionSlots {
    all: usize,
    free: Arc<Semaphore>,
    /// Idle connections of hyper, and the sockets that wait on shards for a next request.
    idle: AtomicUsize,
    idle_on_shards: AtomicUsize,
    /// Wakes the connection that has been idle for the longest time: tokio notifies in the order of waiting.
    gives_way: Arc<Notify>,
}

/// The slot of a connection. While a response lasts that counts as a client, the slot is free for other connections.
pub(crate) struct ConnectionSlot {
    pub(crate) slots: Arc<ConnectionSlots>,
    taken: Mutex<Option<OwnedSemaphorePermit>>,
}

impl ConnectionSlot {
    pub(crate) fn new(slots: &Arc<ConnectionSlots>, taken: OwnedSemaphorePermit) -> Arc<Self> {
        Arc::new(Self { slots: Arc::clone(slots), taken: Mutex::new(Some(taken)) })
    }

    pub(crate) fn give_back(&self) {
        *self.taken.lock() = None;
    }

    /// Takes a slot again, if there is one. A connection without is to end with its response.
    pub(crate) fn take_again(&self) {
        let free = Arc::clone(&self.slots.free);
        *self.taken.lock() = free.try_acquire_owned().ok();
    }

    /// Whether the connection may stay after its response.
    pub(crate) fn may_keep(&self) -> bool {
        self.slots.may_keep() && self.taken.lock().is_some()
    }
}

/// A connection of hyper that is idle. Ready when it is to give way.
pub(crate) struct IdleConnection {
    slots: Arc<ConnectionSlots>,
    notified: Pin<Box<OwnedNotified>>,
}

/// A socket that waits on a shard for its next request.
pub(crate) struct IdleOnShard(Arc<ConnectionSlots>);

impl ConnectionSlots {
    pub(crate) fn new(all: usize) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(all));
        let gives_way = Arc::default();
        let (idle, idle_on_shards) = Default::default();
        Arc::new(Self { all, free, idle, idle_on_shards, gives_way })
    }

    /// Waits for a free slot. When there is none, the client's connection that has been idle for the longest time on each
    /// shard gives way, which `close_on_shards` is to do, or else the one of hyper.
    pub(crate) async fn take(&self, close_on_shards: impl FnOnce()) -> OwnedSemaphorePermit {
        let free = Arc::clone(&self.free);
        if let Ok(slot) = free.clone().try_acquire_owned() {
            return slot;
        }
        if self.idle_on_shards.load(Relaxed) > 0 {
            close_on_shards();
        } else if self.idle.load(Relaxed) > 0 {
            self.gives_way.notify_one();
        }
        free.acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Waits until all connections have ended.
    pub(crate) async fn all_free(&self) {
        let all = u32::try_from(self.all).expect("at most HTTP_CONNECTIONS_MAX");
        let _all = self.free.acquire_many(all).await;
    }

    /// The time limit of a peer: `ample`, or at most [`TIMEOUT_SCARCE`] while more than half of the slots are taken, so that
    /// many slow peers ("slow loris") block others only for a short time.
    pub(crate) fn limit(&self, ample: Duration) -> Duration {
        let is_scarce = self.free.available_permits() < self.all / 2;
        if is_scarce { ample.min(TIMEOUT_SCARCE) } else { ample }
    }

    /// Whether a connection may stay after its response. The last eighth of the slots is for single requests, so that a
    /// health check, a call of the API or a handshake finds one, however many connections are kept.
    pub(crate) fn may_keep(&self) -> bool {
        self.free.available_permits() >= self.all / 8
    }

    pub(crate) fn idle(self: &Arc<Self>) -> IdleConnection {
        self.idle.fetch_add(1, Relaxed);
        let notified = Box::pin(Arc::clone(&self.gives_way).notified_owned());
        IdleConnection { slots: Arc::clone(self), notified }
    }

    pub(crate) fn idle_on_shard(self: &Arc<Self>) -> IdleOnShard {
        self.idle_on_shards.fetch_add(1, Relaxed);
        IdleOnShard(Arc::clone(self))
    }
}

impl Future for IdleConnection {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.notified.as_mut().poll(context)
    }
}

impl Drop for IdleConnection {
    fn drop(&mut self) {
        self.slots.idle.fetch_sub(1, Relaxed);
    }
}

impl Drop for IdleOnShard {
    fn drop(&mut self) {
        self.0.idle_on_shards.fetch_sub(1, Relaxed);
    }
}

/// Upper limit of each time limit while more than half of the slots are taken.
pub(crate) const TIMEOUT_SCARCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
