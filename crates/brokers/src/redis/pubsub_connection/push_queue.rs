//! What Redis pushed over a connection and nobody took yet.
//! In: pushes from the task that reads the socket → out: the same, in order, to the task of the feed.
//! May use: a bounded queue, which fills while shards are behind. Never lets the reading task wait: beyond the bounds it says that something was dropped.
//! Bounds are changed here; what a push means lives in `feed.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use redis::{PushInfo, Value};
use tokio::sync::{Notify, mpsc};

/// What the Redis sent and nobody took yet.
pub(super) struct PushQueue {
    pub(super) queue: mpsc::Receiver<PushInfo>,
    bytes: Arc<AtomicUsize>,
    /// It became too much: something was dropped, so the connection has to be made again.
    pub(super) overflow: Arc<Notify>,
}

impl PushQueue {
    /// The sending end is called by the task that reads the socket, which must not wait.
    pub(super) fn pair() -> (impl Fn(PushInfo) + Send + Sync + 'static, Self) {
        let (sender, queue) = mpsc::channel(PUSHES_MAX);
        let (bytes, overflow) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let pushes = Self { queue, bytes: Arc::clone(&bytes), overflow: Arc::clone(&overflow) };
        let send = move |push: PushInfo| {
            let length = length(&push);
            if bytes.fetch_add(length, Relaxed) > PUSH_BYTES_MAX || sender.try_send(push).is_err() {
                overflow.notify_one();
            }
        };
        (send, pushes)
    }

    pub(super) fn taken(&self, push: &PushInfo) {
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

/// PushQueue that wait to be taken.
const PUSHES_MAX: usize = 64 * 1024;
/// And their bytes.
const PUSH_BYTES_MAX: usize = 64 * 1024 * 1024;

#[cfg(test)]
mod tests;
