//! The queue of pushes between the task that reads the socket and the task of the connection.
//! In: pushes → out: the same, in order.
//! May use: a bounded queue, which fills while shards are behind. Never: makes the reading task wait; it drops pushes beyond the bounds and signals an overflow.
//! Changed here: the bounds. The meaning of a push is in `pubsub_connection.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use redis::{PushInfo, Value};
use tokio::sync::{Notify, mpsc};

/// The receiving end.
pub(super) struct PushQueue {
    pub(super) queue: mpsc::Receiver<PushInfo>,
    bytes: Arc<AtomicUsize>,
    /// Something was dropped, so the connection has to be opened again.
    pub(super) overflow: Arc<Notify>,
}

impl PushQueue {
    /// The queue and the function that adds a push to it, which does not block.
    pub(super) fn pair() -> (impl Fn(PushInfo) + Send + Sync + 'static, Self) {
        let (sender, queue) = mpsc::channel(PUSHES_MAX);
        let bytes = Arc::new(AtomicUsize::new(0));
        let overflow = Arc::new(Notify::new());
        let pushes = Self { queue, bytes: Arc::clone(&bytes), overflow: Arc::clone(&overflow) };
        let send = move |push: PushInfo| {
            let length = length(&push);
            if bytes.fetch_add(length, Relaxed) > PUSH_BYTES_MAX || sender.try_send(push).is_err() {
                overflow.notify_one();
            }
        };
        (send, pushes)
    }

    pub(super) fn release(&self, push: &PushInfo) {
        self.bytes.fetch_sub(length(push), Relaxed);
    }
}

fn length(push: &PushInfo) -> usize {
    let texts = push.data.iter().map(|value| match value {
        Value::BulkString(text) => text.len(),
        _ => 0,
    });
    texts.sum()
}

/// Most pushes in the queue.
const PUSHES_MAX: usize = 64 * 1024;
/// Most bytes of the pushes in the queue.
const PUSH_BYTES_MAX: usize = 64 * 1024 * 1024;

#[cfg(test)]
mod tests;
