//! Limits of one request with many commands: bytes of its replies, and work between two pauses.
//! In: commands before they run, bytes of their replies → out: an error beyond the limit, a pause now and then.
//! Uses atomics, because commands of a parallel batch share it; never a clock.
//! Changed here: the limits. Which requests have several commands: `method/batch.rs`, `http/legacy.rs`, `stream.rs`.

use std::future::poll_fn;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;

use serde::Serialize;

use crate::ApiError;

/// The costs of one request so far.
#[derive(Debug, Default)]
pub(crate) struct ReplyBudget {
    /// Bytes of the replies that are ready.
    held: AtomicUsize,
    /// Bytes of the replies since the last pause, and as many for each command as it costs about.
    since_pause: AtomicUsize,
}

impl ReplyBudget {
    /// Before a command that may have a large reply.
    ///
    /// # Errors
    /// 111 when the replies before it have too many bytes.
    pub(crate) fn admit_read(&self) -> Result<(), ApiError> {
        if self.held.load(Relaxed) > REPLIES_BYTES_MAX { Err(TOO_MUCH) } else { Ok(()) }
    }

    /// Counts a reply.
    pub(crate) fn hold(&self, bytes: usize) {
        self.held.fetch_add(bytes, Relaxed);
        self.since_pause.fetch_add(bytes + COMMAND_BYTES, Relaxed);
    }

    /// Pauses between commands: other tasks run when the last commands took long. The request is dropped
    /// here when its peer has left.
    pub(crate) async fn pause(&self) {
        if self.since_pause.load(Relaxed) < PAUSE_BYTES {
            return;
        }
        self.since_pause.store(0, Relaxed);
        let mut has_paused = false;
        poll_fn(|context| {
            if std::mem::replace(&mut has_paused, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

/// Bytes of a value as JSON.
pub(crate) fn json_bytes(value: &impl Serialize) -> usize {
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("replies have string keys");
    count.0
}

struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Limit of the replies to one request: 32 MiB. Above it, later commands of the request that read are not executed.
pub(crate) const REPLIES_BYTES_MAX: usize = 32 << 20;
const TOO_MUCH: ApiError = ApiError::TOO_MANY_REQUESTS
    .because("the replies before this one have more than 32 MiB, read the rest by another request");
/// Bytes of replies after which other requests run; 128 small commands count as much: some 0.2 ms.
const PAUSE_BYTES: usize = 64 << 10;
const COMMAND_BYTES: usize = 512;

#[cfg(test)]
pub(crate) mod tests;
