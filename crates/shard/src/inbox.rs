//! The inbox of a shard: other threads send it connections, notices and the request to stop.
//! In: messages from any thread → out: all of them at once, in order, on the shard's thread.
//! Uses one small lock, and `wake_ups`; never blocks the shard and never runs application code.
//! Changed here: what crosses threads. The effect of a message lives in `shard::turn`.

use std::{
    collections::VecDeque,
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    INBOX_BYTES_MAX, accepted::RequestHandler, freeze::FreezeStep, new_connection::NewConnection,
    tls::TlsSession, wake_ups::ShardSleep,
};

/// A socket whose handshake is done, to be opened on a shard.
pub struct Arrival<H> {
    pub socket: TcpStream,
    /// `None` for a connection without TLS. What it has not sent is sent first.
    pub tls: Option<Box<TlsSession>>,
    /// Bytes that the peer sent after its handshake; with TLS their plaintext.
    pub early: Vec<u8>,
    pub connection: NewConnection<H>,
}

pub enum ShardMessage<N, H> {
    /// A nonblocking socket whose request has not been read.
    Accept(TcpStream, Box<dyn RequestHandler<H>>),
    Open(Box<Arrival<H>>),
    /// The task in this slot, which has this number, can go on.
    Wake(usize, u64),
    /// Closes the accepted socket that has been idle for the longest time after its request.
    CloseLongestIdle,
    Notice(N),
    /// Closes some of the connections.
    SendAway(SendAway),
    /// Stops the shard for a takeover.
    #[expect(private_interfaces, reason = "`Shards::freeze` alone makes the steps")]
    Freeze(FreezeStep),
    /// Closes all connections and ends the thread.
    Stop(Stop),
}

/// A message and its memory in bytes.
pub(super) type SizedMessage<N, H> = (ShardMessage<N, H>, usize);

/// How a shard ends; the default is at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop {
    /// Closes are spread evenly over at most this time.
    pub spread: Duration,
    /// Closes of few connections take all of that time, too; otherwise they take less.
    pub is_exact: bool,
    /// Connections that still exist after this time, from the start of the stop, are dropped.
    pub timeout: Duration,
}

/// Connections to close while the shard goes on. The application chooses them.
#[derive(Clone, Copy, Debug)]
pub struct SendAway {
    pub connections: usize,
    /// Connections that are younger stay.
    pub min_age: Duration,
    /// Closes are spread evenly over this time.
    pub spread: Duration,
}

/// The sending side, cheap to clone. Messages of one sender arrive in its order.
pub struct Inbox<N, H> {
    shared: Arc<Shared<N, H>>,
}

struct Shared<N, H> {
    /// `None` after the shard has ended.
    messages: Mutex<Option<VecDeque<SizedMessage<N, H>>>>,
    /// Memory of messages that are not served yet, in bytes.
    bytes: AtomicUsize,
    sleep: Arc<ShardSleep>,
}

impl<N, H> Inbox<N, H> {
    pub(super) fn new(waker: mio::Waker) -> Self {
        let shared = Shared {
            messages: Mutex::new(Some(VecDeque::new())),
            bytes: AtomicUsize::new(0),
            sleep: ShardSleep::new(waker),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Adds a message that holds `bytes` of memory, and wakes the shard if it sleeps. It never refuses a
    /// message: publishers check [`INBOX_BYTES_MAX`] before. After the shard has ended the message is dropped, and the
    /// socket of an arrival closes.
    pub fn push(&self, message: ShardMessage<N, H>, bytes: usize) {
        let _after_the_end = self.offer(message, bytes);
    }

    /// As [`Inbox::push`], but returns the message if the shard has ended.
    pub(super) fn offer(
        &self,
        message: ShardMessage<N, H>,
        bytes: usize,
    ) -> Result<(), ShardMessage<N, H>> {
        let mut messages = self.shared.messages.lock();
        let Some(waiting) = messages.as_mut() else { return Err(message) };
        waiting.push_back((message, bytes));
        self.shared.bytes.fetch_add(bytes, Relaxed);
        drop(messages);
        self.shared.sleep.message_sent();
        Ok(())
    }

    /// Must be called before the shard waits for events. Returns whether it may: messages that come from now on wake it. The
    /// lock orders this with [`offer`](Self::offer).
    pub(super) fn fall_asleep(&self) -> bool {
        self.shared.sleep.set_asleep(true);
        let is_empty = self.shared.messages.lock().as_ref().is_none_or(VecDeque::is_empty);
        if !is_empty {
            self.stay_awake();
        }
        is_empty
    }

    /// Must be called when the shard does not wait any more: the turn that begins takes all messages.
    pub(super) fn stay_awake(&self) {
        self.shared.sleep.set_asleep(false);
    }

    /// Swaps the inbox for the empty `taken`, whose storage is used again. Taken messages count in `bytes` until they
    /// are served.
    pub(super) fn take(&self, taken: &mut VecDeque<SizedMessage<N, H>>) {
        debug_assert!(taken.is_empty());
        if let Some(messages) = self.shared.messages.lock().as_mut() {
            std::mem::swap(messages, taken);
        }
    }

    /// Ends the inbox: drops its messages, and every later one.
    pub(super) fn end(&self) {
        let mut messages = self.shared.messages.lock();
        let left = messages.take();
        self.shared.bytes.store(0, Relaxed);
        drop(messages);
        drop(left);
    }

    /// Subtracts the memory of served messages.
    pub(super) fn served(&self, bytes: usize) {
        self.shared.bytes.fetch_sub(bytes, Relaxed);
    }

    /// Memory of all messages that are not served, in bytes.
    pub fn bytes(&self) -> usize {
        self.shared.bytes.load(Relaxed)
    }

    /// Whether more than [`INBOX_BYTES_MAX`] bytes wait for the shard.
    pub fn is_congested(&self) -> bool {
        self.bytes() > INBOX_BYTES_MAX
    }
}

/// The inboxes of all shards, for one of them.
pub(super) struct Inboxes<N, H> {
    pub(super) all: Vec<Inbox<N, H>>,
    pub(super) own: usize,
}

impl<N, H> Inboxes<N, H> {
    pub(super) fn own(&self) -> &Inbox<N, H> {
        &self.all[self.own]
    }

    /// Whether more than [`INBOX_BYTES_MAX`] bytes wait for some shard.
    pub(super) fn are_congested(&self) -> bool {
        self.all.iter().any(Inbox::is_congested)
    }
}

/// Bytes waiting in the fullest of these inboxes.
pub(super) fn backlog_bytes<N, H>(inboxes: &[Inbox<N, H>]) -> usize {
    inboxes.iter().map(Inbox::bytes).max().unwrap_or(0)
}

impl<N, H> Clone for Inbox<N, H> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}
