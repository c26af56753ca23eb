//! Shards: one thread per core, each with its own sockets, poller and application.
//! In: accepted sockets, sockets whose handshake is done, notices from any thread → out: the application's messages on the wire.
//! Uses `ws` and `deflate`; knows nothing of channels, sessions or the client protocol.
//! Changed here: how shards are started, chosen and stopped. One turn of a shard lives in `turn`, writing in `connection_writer`.
#![forbid(unsafe_code)]

mod accepted;
mod application;
mod budget;
mod client_window;
mod connection;
mod connection_writer;
pub mod counters;
mod decode_failures;
mod dedicated;
mod framer;
mod freeze;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod inbox;
mod load;
mod new_connection;
mod queue;
mod saved_connection;
mod shard_socket;
mod socket_tasks;
mod stop;
mod takeover;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tls;
mod transport;
mod turn;
mod uni_websocket;
mod wake_ups;
mod window;

use std::{
    io,
    net::TcpStream,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::Duration,
};

pub use accepted::{RequestHandler, RequestOutcome};
pub use application::{Application, ReceivedMessage};
pub use budget::{Budget, Reservation};
pub use client_window::ClientWindow;
pub use connection::{CloseCause, Connection, PeerFormat, SlotKey};
pub use connection_writer::{ConnectionWriter, FrameObserver, Framers, observe_frame};
use counters::ShardCounters;
pub use decode_failures::{DecodeFailures, Peer};
pub use dedicated::DedicatedSettings;
pub use fanwire_deflate::Coding;
pub use fanwire_ws::{Compression, Limits, Opcode};
pub use framer::Framer;
pub use freeze::{ConnectionSink, GIVEN_MAX, MovableConnections, MovedConnections};
use inbox::Inboxes;
pub use inbox::{Arrival, Inbox, SendAway, ShardMessage, Stop};
pub use new_connection::{CountedPlace, NewConnection, Permit};
pub use queue::{BorrowedFrame, Frame};
pub use saved_connection::CONNECTION_VERSION;
pub use shard_socket::ShardSocket;
pub use socket_tasks::SocketTask;
pub use takeover::FrozenShards;
pub use transport::{Framing, Transport};
use uni_websocket::InputLimits;
pub use uni_websocket::UniWebSocketSettings;
pub use wake_ups::wake_shards_after;
pub use window::{EmbeddedPublication, StreamMessage, WindowIndex};

/// Settings of all shards of a server.
#[derive(Clone, Debug)]
pub struct ShardSettings {
    /// Threads; at least one.
    pub shards: usize,
    /// Limit of unsent bytes of a connection; above it the connection ends as slow.
    pub queue_bytes_max: usize,
    /// Close code and reason of a slow connection.
    pub slow_close: (u16, &'static str),
    /// Makes the last message to a peer, of a code and a reason, where no close frame is all that it gets.
    pub last_message: fn(PeerFormat, u16, &str) -> Vec<u8>,
    /// The longest time that a blocked socket may take no bytes.
    pub write_timeout: Duration,
    /// Messages of a connection wait so long for others that are written with them; zero writes at the end of a turn.
    pub write_delay: Duration,
    /// While the shard is busy and `write_delay` is zero, a publication waits for others of its connection: for a tenth of the
    /// longest turn, and at most this long. Zero if none waits.
    pub write_delay_under_load: Duration,
    /// Replies are written at the end of the turn, whatever `write_delay` says.
    pub reply_without_queue: bool,
    /// Messages below this size are sent raw.
    pub compression_min_bytes: usize,
    /// 1–9, as in zlib.
    pub compression_level: u8,
    /// Compressors of single connections, for those with [`Compression::Dedicated`].
    pub dedicated: DedicatedSettings,
    /// Inflate every compressed frame before it is queued, and compare.
    pub compression_verify: bool,
    /// Peers whose inflater failed.
    pub decode_failures: Arc<DecodeFailures>,
    pub message_bytes_max: usize,
    pub inflated_bytes_max: usize,
    pub fragments_max: u32,
    pub uni_websocket: UniWebSocketSettings,
}

impl Default for ShardSettings {
    /// One shard with the defaults of the configuration.
    fn default() -> Self {
        Self {
            shards: 1,
            queue_bytes_max: 1 << 20,
            slow_close: (1008, "slow"),
            last_message: |_, code, reason| format!("{code} {reason}").into_bytes(),
            write_timeout: Duration::from_secs(1),
            write_delay: Duration::ZERO,
            write_delay_under_load: Duration::ZERO,
            reply_without_queue: false,
            compression_min_bytes: 128,
            compression_level: 6,
            dedicated: DedicatedSettings::default(),
            compression_verify: false,
            decode_failures: Arc::default(),
            message_bytes_max: 64 << 10,
            inflated_bytes_max: 640 << 10,
            fragments_max: 1 << 16,
            uni_websocket: UniWebSocketSettings::default(),
        }
    }
}

/// The running shards of one application.
pub struct Shards<A: Application> {
    inboxes: Vec<Inbox<A::Notice, A::Opening>>,
    counters: Vec<Arc<ShardCounters>>,
    threads: parking_lot::Mutex<Vec<JoinHandle<()>>>,
    connections: Arc<AtomicUsize>,
    next: AtomicUsize,
    /// The shard that closes one connection more than others, when some are to be closed next.
    next_to_close: AtomicUsize,
    is_stopping: AtomicBool,
}

impl<A: Application> Shards<A> {
    /// Starts the threads. `make` builds the application of a shard on the shard's own thread from the shard's number.
    pub fn start<M>(settings: &ShardSettings, make: M) -> io::Result<Arc<Self>>
    where
        M: Fn(usize) -> A + Send + Sync + 'static,
    {
        let make = Arc::new(make);
        let mut shards = Self {
            inboxes: Vec::new(),
            counters: Vec::new(),
            threads: parking_lot::Mutex::new(Vec::new()),
            connections: Arc::default(),
            next: AtomicUsize::new(0),
            next_to_close: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
        };
        let mut polls = Vec::new();
        for _ in 0..settings.shards.max(1) {
            let poll = mio::Poll::new()?;
            shards.inboxes.push(Inbox::new(mio::Waker::new(poll.registry(), turn::WAKER)?));
            polls.push(poll);
        }
        for (number, poll) in polls.into_iter().enumerate() {
            let inboxes = Inboxes { all: shards.inboxes.clone(), own: number };
            let counters = Arc::new(ShardCounters::default());
            shards.counters.push(counters.clone());
            let settings = settings.clone();
            let make = make.clone();
            let thread = std::thread::Builder::new()
                .name(format!("shard-{number}"))
                .spawn(move || run(make(number), &settings, counters, poll, inboxes));
            match thread {
                Ok(thread) => shards.threads.get_mut().push(thread),
                Err(error) => {
                    shards.stop(Stop::default());
                    return Err(error);
                }
            }
        }
        Ok(Arc::new(shards))
    }

    pub fn inboxes(&self) -> &[Inbox<A::Notice, A::Opening>] {
        &self.inboxes
    }

    pub fn counters(&self) -> &[Arc<ShardCounters>] {
        &self.counters
    }

    /// Open connections of all shards.
    pub fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }

    /// Bytes waiting in the fullest inbox. Above [`INBOX_BYTES_MAX`] publishers wait: API requests before they are
    /// served, clients that send commands because they are not read, and publications of other nodes in the queues of
    /// the broker's connections.
    pub fn backlog_bytes(&self) -> usize {
        inbox::backlog_bytes(&self.inboxes)
    }

    /// Counts one more connection, unless there are `max` (0 = no limit).
    pub fn permit(&self, max: usize) -> Option<Permit> {
        Permit::acquire(&self.connections, max)
    }

    /// Whether [`stop`](Self::stop) has begun, so that a new connection would be closed at once.
    pub fn are_stopping(&self) -> bool {
        self.is_stopping.load(Relaxed)
    }

    /// Sends a connection to the next shard, round robin. If that shard has ended, the socket closes.
    pub fn open(&self, arrival: Arrival<A::Opening>) {
        let shard = self.next.fetch_add(1, Relaxed) % self.inboxes.len();
        self.inboxes[shard].push(ShardMessage::Open(Box::new(arrival)), 0);
    }

    /// Lets the next shard, round robin, read the requests of a nonblocking socket. While the shards stop, another
    /// server gets it at once.
    pub fn accept(&self, socket: TcpStream, handler: Box<dyn RequestHandler<A::Opening>>) {
        if self.are_stopping() {
            return handler.decline(socket);
        }
        let shard = self.next.fetch_add(1, Relaxed) % self.inboxes.len();
        let message = ShardMessage::Accept(socket, handler);
        if let Err(ShardMessage::Accept(socket, handler)) = self.inboxes[shard].offer(message, 0) {
            handler.decline(socket);
        }
    }

    /// Makes room: each shard closes the accepted socket that has been idle for the longest time after its request.
    pub fn close_longest_idle(&self) {
        for inbox in &self.inboxes {
            inbox.push(ShardMessage::CloseLongestIdle, 0);
        }
    }

    /// Closes some connections, as many on each shard. Those that are left over are another shard's each time, so that a shard with the
    /// last connections of all is asked, too.
    pub fn send_away(&self, wanted: SendAway) {
        let shards = self.inboxes.len();
        let first = self.next_to_close.fetch_add(1, Relaxed) % shards;
        let inboxes = self.inboxes.iter().cycle().skip(first).take(shards);
        for (number, inbox) in inboxes.enumerate() {
            let has_one_more = number < wanted.connections % shards;
            let connections = wanted.connections / shards + usize::from(has_one_more);
            inbox.push(ShardMessage::SendAway(SendAway { connections, ..wanted }), 0);
        }
    }

    /// From now on [`are_stopping`](Self::are_stopping), before [`stop`](Self::stop) is called where it may block.
    pub fn announce_stop(&self) {
        self.is_stopping.store(true, Relaxed);
    }

    /// Closes every connection as `stop` says and waits for the threads. Blocks.
    pub fn stop(&self, stop: Stop) {
        self.announce_stop();
        for inbox in &self.inboxes {
            inbox.push(ShardMessage::Stop(stop), 0);
        }
        for thread in self.threads.lock().drain(..) {
            // A shard that panicked has already logged it.
            let _ = thread.join();
        }
    }
}

/// Publishers wait while more than this many bytes wait for one shard.
pub const INBOX_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Prepares a socket that left its HTTP connection.
pub fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)
}

fn run<A: Application>(
    application: A,
    settings: &ShardSettings,
    counters: Arc<ShardCounters>,
    poll: mio::Poll,
    inboxes: Inboxes<A::Notice, A::Opening>,
) {
    let out = ConnectionWriter::new(settings.clone(), counters);
    let turn = turn::Turn::new(application, out, poll, inboxes, InputLimits::of_settings(settings));
    match std::panic::catch_unwind(AssertUnwindSafe(|| turn.run())) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => tracing::error!(%error, "a shard ended: its poller failed"),
        Err(_) => tracing::error!("a shard panicked: a bug, its message is on stderr"),
    }
    // Without this shard its clients would hang; after the process ends they reconnect to another one.
    std::process::abort();
}
