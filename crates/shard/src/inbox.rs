//! The letterbox of a shard: how other threads hand it connections, notices and the wish to stop.
//! In: messages from any thread → out: all of them at once, in order, on the shard's thread.
//! Uses one small lock and the poller's waker; never blocks the shard and never runs application code.
//! Changed here: what crosses threads. What a message does lives in `shard::turn`.

use std::{
    collections::VecDeque,
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use fanwire_ws::Compression;
use parking_lot::Mutex;

use super::{INBOX_BYTES_MAX, decode_failures::Peer};

/// A socket whose handshake is done, on its way to the shard that will own it.
pub struct Arrival<H> {
    pub socket: TcpStream,
    /// Bytes the peer sent behind its handshake.
    pub early: Vec<u8>,
    /// Messages to this peer go out as binary frames.
    pub is_binary: bool,
    pub compression: Compression,
    /// permessage-deflate was agreed, so the peer may send compressed messages.
    pub may_inflate: bool,
    pub peer: Peer,
    pub hello: H,
    /// Counts the connection for as long as it lives.
    pub permit: Permit,
}

pub enum ShardMessage<N, H> {
    Open(Box<Arrival<H>>),
    Notice(N),
    /// Close everything and end the thread.
    Stop(Stop),
}

/// A message with its weight in bytes.
pub(super) type Weighed<N, H> = (ShardMessage<N, H>, usize);

/// How a shard is to end. By default at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop {
    /// Closes are spread evenly over at most this time.
    pub spread: Duration,
    /// After this time, counted from the same moment, connections that are still there are dropped.
    pub timeout: Duration,
}

/// The sending side, cheap to clone. ShardMessages of one sender arrive in its order.
pub struct Inbox<N, H> {
    shared: Arc<Shared<N, H>>,
}

struct Shared<N, H> {
    /// `None` when the shard has ended.
    messages: Mutex<Option<VecDeque<Weighed<N, H>>>>,
    /// What the messages not yet served weigh, in bytes.
    bytes: AtomicUsize,
    waker: mio::Waker,
}

impl<N, H> Inbox<N, H> {
    pub(super) fn new(waker: mio::Waker) -> Self {
        let messages = Mutex::new(Some(VecDeque::new()));
        let shared = Shared { messages, bytes: AtomicUsize::new(0), waker };
        Self { shared: Arc::new(shared) }
    }

    /// Leaves a message that keeps `bytes` of memory; the shard is woken when the box was empty. Never refuses: publishers
    /// are made to wait by others, see [`INBOX_BYTES_MAX`]. For a shard that has ended a message is dropped, and with an
    /// arrival its socket closes.
    pub fn push(&self, message: ShardMessage<N, H>, bytes: usize) {
        let mut messages = self.shared.messages.lock();
        let Some(waiting) = messages.as_mut() else { return };
        waiting.push_back((message, bytes));
        self.shared.bytes.fetch_add(bytes, Relaxed);
        let was_empty = waiting.len() == 1;
        drop(messages);
        if was_empty {
            // An eventfd write fails only when its counter is full, and then the shard is awake already.
            let _ = self.shared.waker.wake();
        }
    }

    /// Swaps the full box for the empty `taken`; its storage is used again. What is taken weighs on until it is served.
    pub(super) fn take(&self, taken: &mut VecDeque<Weighed<N, H>>) {
        debug_assert!(taken.is_empty());
        if let Some(messages) = self.shared.messages.lock().as_mut() {
            std::mem::swap(messages, taken);
        }
    }

    /// Nobody will take messages any more: those that came meanwhile are dropped, as later ones are.
    pub(super) fn end(&self) {
        let mut messages = self.shared.messages.lock();
        let left = messages.take();
        self.shared.bytes.store(0, Relaxed);
        drop(messages);
        drop(left);
    }

    /// ShardMessages of so many bytes were served.
    pub(super) fn served(&self, bytes: usize) {
        self.shared.bytes.fetch_sub(bytes, Relaxed);
    }

    /// What waits here or was taken and waits there, in bytes.
    pub fn bytes(&self) -> usize {
        self.shared.bytes.load(Relaxed)
    }

    /// The shard is behind by more than [`INBOX_BYTES_MAX`].
    pub fn is_congested(&self) -> bool {
        self.bytes() > INBOX_BYTES_MAX
    }
}

/// All inboxes, as one shard sees them.
pub(super) struct Inboxes<N, H> {
    pub(super) all: Vec<Inbox<N, H>>,
    pub(super) own: usize,
}

impl<N, H> Inboxes<N, H> {
    pub(super) fn own(&self) -> &Inbox<N, H> {
        &self.all[self.own]
    }

    /// Some shard is behind by more than [`INBOX_BYTES_MAX`].
    pub(super) fn are_congested(&self) -> bool {
        self.all.iter().any(Inbox::is_congested)
    }
}

/// Bytes waiting in the fullest of these.
pub(super) fn backlog_bytes<N, H>(inboxes: &[Inbox<N, H>]) -> usize {
    inboxes.iter().map(Inbox::bytes).max().unwrap_or(0)
}

impl<N, H> Clone for Inbox<N, H> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

/// One counted connection; the count falls when the permit is dropped with it.
pub struct Permit(Arc<AtomicUsize>);

impl Permit {
    /// Counts one more, unless `max` (0 = no limit) are counted already.
    pub fn acquire(count: &Arc<AtomicUsize>, max: usize) -> Option<Self> {
        let before = count.fetch_add(1, Relaxed);
        if max > 0 && before >= max {
            count.fetch_sub(1, Relaxed);
            return None;
        }
        Some(Self(count.clone()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
