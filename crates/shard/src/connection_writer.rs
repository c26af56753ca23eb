//! The outgoing half of a shard: every outgoing frame passes through here (RFC 6455 §5, RFC 7692 §7.2.1).
//! In: messages, shared frames and closes from the application → out: bytes on sockets, one write per dirty connection.
//! Uses the slab of connections, the queues and the compressor; never reads a socket and never calls the application.
//! Changed here: the queues and their limit. Ends live in `closes`, frames in `framers`, writing in `flush` and `sockets`.

mod body;
mod closes;
mod flush;
mod framers;
mod joined;
mod observed;
mod records;
mod sockets;
#[cfg(any(test, feature = "testing"))]
mod testing;

use std::{
    collections::VecDeque,
    iter,
    sync::Arc,
    time::{Duration, Instant},
};

use fanwire_deflate::gap::Publication;
use fanwire_ws::{Opcode, frame};
use mio::net::TcpStream;
use rustix::net::SendFlags;
use slab::Slab;

use super::{
    ShardSettings,
    budget::Budget,
    connection::{CloseCause, Connection, PeerFormat, Phase, SlotKey, any, open},
    counters::ShardCounters,
    load::Load,
    queue::{Frame, WireFrame},
    window::{EmbeddedPublication, PeerWindow, StreamMessage, WindowIndex},
};
pub use framers::Framers;
use observed::ObservedFrames;
pub use observed::{FrameObserver, observe_frame};
use sockets::SocketWriter;

/// When a frame is written to a connection with an empty queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WritePolicy {
    /// At once, if the turn serves its last inbox message.
    Immediate,
    /// At the end of the turn.
    EndOfTurn,
}

/// All connections of a shard, for writing.
pub struct ConnectionWriter {
    pub(super) connections: Slab<Connection>,
    pub(super) now: Instant,
    pub(crate) counters: Arc<ShardCounters>,
    settings: ShardSettings,
    framers: Framers,
    pub(super) sockets: SocketWriter,
    /// Connections with messages that wait for a delay of `ShardSettings`, and when it is over for the first of them.
    delayed: Vec<u32>,
    flush_at: Option<Instant>,
    load: Load,
    /// Publications may wait for others while the load is high.
    publications_may_wait: bool,
    /// The turn serves its last inbox message. No later message can add frames to the same write, so frames are written
    /// at once, while the state of the connection is in the cache.
    pub(super) is_last: bool,
    /// Connections that left `Open` during this turn and are not yet reported to the application.
    pub(super) closed: Vec<(SlotKey, CloseCause)>,
    /// Connections whose socket took no bytes or took some again, with their queued bytes, not yet reported.
    pub(super) stalls: Vec<(SlotKey, usize)>,
    observed: ObservedFrames,
    /// Slots to remove at the end of this turn.
    to_remove: Vec<u32>,
    /// Time limits for a peer's close frame, oldest first.
    close_deadlines: VecDeque<(Instant, SlotKey)>,
    /// Time limits for progress of blocked sockets, oldest first, with the progress at the time of blocking. Unidirectional
    /// WebSockets, which have another `write_timeout`, are in the second list.
    write_deadlines: [VecDeque<(Instant, SlotKey, u32)>; 2],
    latencies: Vec<Instant>,
    /// Connections that the next turn reads again.
    pub(super) released: Vec<SlotKey>,
    /// Connections with an empty queue whose application waits for that.
    pub(super) drained: Vec<SlotKey>,
}

impl ConnectionWriter {
    pub(super) fn new(settings: ShardSettings, counters: Arc<ShardCounters>) -> Self {
        let now = Instant::now();
        Self {
            connections: Slab::new(),
            now,
            load: Load::new(settings.write_delay_under_load, now),
            publications_may_wait: false,
            sockets: SocketWriter::new(Arc::clone(&counters)),
            counters,
            framers: Framers::new(&settings),
            settings,
            delayed: Vec::new(),
            flush_at: None,
            is_last: false,
            closed: Vec::new(),
            stalls: Vec::new(),
            observed: ObservedFrames::default(),
            to_remove: Vec::new(),
            close_deadlines: VecDeque::new(),
            write_deadlines: Default::default(),
            latencies: Vec::new(),
            released: Vec::new(),
            drained: Vec::new(),
        }
    }

    /// Sends one message to one connection. A message that is small, huge or without agreed compression is sent raw;
    /// others are compressed alone, or in the connection's own context if it has one.
    pub fn send(&mut self, key: SlotKey, payload: &[u8]) {
        if let Some(connection) = open(&mut self.connections, key) {
            let is_binary = connection.is_binary;
            self.send_at(key.index, is_binary, payload);
        }
    }

    /// As [`ConnectionWriter::send`], for a message that embeds publications. If it is sent compressed, the next
    /// publications may refer to the embedded ones.
    pub fn send_embedding(
        &mut self,
        key: SlotKey,
        payload: &[u8],
        embedded: &[EmbeddedPublication],
    ) {
        let Some(connection) = open(&mut self.connections, key) else { return };
        let is_binary = connection.is_binary;
        let framing = connection.transport.framing();
        let own = self.framers.own_frame(&self.settings, connection, is_binary, payload);
        let embedded = embedded.iter().map(|publication| EmbeddedPublication {
            at: framing.position(payload, publication.at),
            ..*publication
        });
        let advance_window = |window: &mut PeerWindow| {
            window.queued(own.plaintext_bytes, embedded, own.checksum);
        };
        self.queue(key.index, &own.frame, payload, WritePolicy::EndOfTurn, advance_window);
    }

    /// As [`ConnectionWriter::send`], with the opcode chosen by the caller.
    pub fn send_as(&mut self, key: SlotKey, is_binary: bool, payload: &[u8]) {
        if open(&mut self.connections, key).is_some() {
            self.send_at(key.index, is_binary, payload);
        }
    }

    /// As [`ConnectionWriter::send_as`], to the connection at `index`. Returns the size of the frame in bytes.
    pub fn send_at(&mut self, index: u32, is_binary: bool, payload: &[u8]) -> usize {
        let Some(connection) = self.connections.get_mut(index as usize) else { return 0 };
        let own = self.framers.own_frame(&self.settings, connection, is_binary, payload);
        let frame_bytes = own.frame.len();
        let advance_window = |window: &mut PeerWindow| {
            window.queued(own.plaintext_bytes, iter::empty(), own.checksum);
        };
        self.queue(index, &own.frame, payload, WritePolicy::EndOfTurn, advance_window);
        frame_bytes
    }

    /// The budget of the node for windows and compressors.
    pub(super) fn memory(&self) -> &Arc<Budget> {
        &self.settings.dedicated.memory
    }

    /// Makes frames, which many connections may share.
    pub fn framers(&mut self) -> &mut Framers {
        &mut self.framers
    }

    /// The connection at `index`.
    pub fn connection(&self, index: u32) -> Option<&Connection> {
        self.connections.get(index as usize)
    }

    /// The connection at `index`, to change it.
    pub fn connection_mut(&mut self, index: u32) -> Option<&mut Connection> {
        self.connections.get_mut(index as usize)
    }

    /// Queues a frame of `message` that is raw or refers to nothing, for the connection at `index`. It is written at
    /// the end of the turn, or at once behind the turn's last message, or after a delay. Above the queue limit the connection ends as
    /// slow (3008). `stream` is set if the connection is a compressed stream.
    pub fn push(
        &mut self,
        index: u32,
        frame: &Frame,
        message: &[u8],
        stream: Option<&StreamMessage>,
    ) {
        let advance_window = |window: &mut PeerWindow| window.queued_shared(message.len(), stream);
        self.queue(index, frame, message, WritePolicy::Immediate, advance_window);
    }

    /// As [`ConnectionWriter::push`], if the peer has this `format` and needs no further checks. Returns whether the
    /// frame was queued.
    #[inline]
    pub fn push_if_same_format(
        &mut self,
        index: u32,
        format: PeerFormat,
        frame: &Frame,
        message_bytes: usize,
        stream: Option<&StreamMessage>,
    ) -> bool {
        let Some(connection) = self.connections.get(index as usize) else { return false };
        let is_usual = connection.phase == Phase::Open
            && connection.format() == format
            && connection.queue.takes(frame.len(), self.settings.queue_bytes_max)
            && !(self.settings.compression_verify && connection.is_compressed(frame));
        if is_usual {
            let advance_window =
                |window: &mut PeerWindow| window.queued_shared(message_bytes, stream);
            self.put(index, frame, message_bytes, WritePolicy::Immediate, advance_window);
        }
        is_usual
    }

    /// As [`ConnectionWriter::push`], for a publication in a history: the frame is raw, or uses the reference that
    /// [`Connection::reference`] returned just before.
    pub fn push_publication(
        &mut self,
        index: u32,
        window: WindowIndex,
        frame: &impl WireFrame,
        message: &[u8],
        publication: &Publication,
        stream: Option<&StreamMessage>,
    ) {
        let advance_window =
            |peer: &mut PeerWindow| peer.queued_publication(window, publication, stream);
        self.queue(index, frame, message, WritePolicy::Immediate, advance_window);
    }

    /// Queues the frame of a message, unless the connection has ended (RFC 6455 §5.5.1b, §6.1a) or its queue is full.
    fn queue(
        &mut self,
        index: u32,
        frame: &impl WireFrame,
        message: &[u8],
        write_policy: WritePolicy,
        advance_window: impl FnOnce(&mut PeerWindow),
    ) {
        let Some(connection) = self.connections.get(index as usize) else { return };
        if connection.phase != Phase::Open {
            return;
        }
        let bytes = frame.bytes().len();
        let takes = connection.queue.takes(bytes, self.settings.queue_bytes_max);
        let verifies = self.settings.compression_verify && connection.is_compressed(frame.bytes());
        if !takes && !self.make_room(index, bytes) {
            return;
        }
        if verifies {
            let connection = &mut self.connections[index as usize];
            let frame = self.framers.verified(&self.counters, connection, frame, message);
            return self.put(index, &frame, message.len(), write_policy, advance_window);
        }
        self.put(index, frame, message.len(), write_policy, advance_window);
    }

    /// Puts the frame of a message into the queue. No other function does, so the peer's window advances here only.
    /// After a queued frame is dropped, no later message is written to its connection.
    #[inline]
    fn put(
        &mut self,
        index: u32,
        frame: &impl WireFrame,
        message_bytes: usize,
        write_policy: WritePolicy,
        advance_window: impl FnOnce(&mut PeerWindow),
    ) {
        let delay = self.delay(write_policy);
        let connection = &mut self.connections[index as usize];
        if connection.is_compressed(frame.bytes()) {
            advance_window(&mut connection.window);
        }
        self.counters.of(connection.transport, connection.is_binary).message_out(message_bytes);
        let is_delayed = !delay.is_zero();
        let is_immediate = write_policy == WritePolicy::Immediate && self.is_last && !is_delayed;
        if is_immediate && connection.queue.is_empty() {
            if !self.sockets.write_through(connection, frame) {
                self.flush_one(index);
            }
            return;
        }
        if is_delayed {
            self.sockets.push(connection, frame.shared());
            connection.mark_delayed(index, &mut self.delayed);
            self.flush_at.get_or_insert(self.now + delay);
            self.load.count_waiting();
        } else {
            self.sockets.append(connection, index, frame.shared());
        }
    }

    /// How long a frame waits for others of its connection.
    fn delay(&self, write_policy: WritePolicy) -> Duration {
        let is_publication = write_policy == WritePolicy::Immediate;
        let ShardSettings { write_delay, reply_without_queue, .. } = self.settings;
        if !write_delay.is_zero() && (is_publication || !reply_without_queue) {
            write_delay
        } else if write_delay.is_zero() && is_publication && self.publications_may_wait {
            self.load.delay()
        } else {
            Duration::ZERO
        }
    }

    /// Whether the publications that are queued from now on may wait for others while the shard is busy
    /// ([`ShardSettings::write_delay_under_load`]).
    pub fn let_publications_wait(&mut self, may_wait: bool) {
        self.publications_may_wait = may_wait;
    }

    /// Sends a native ping frame (RFC 6455 §5.5.2).
    pub fn ping(&mut self, key: SlotKey) {
        self.control(key, Opcode::Ping, &[]);
    }

    /// Stops reading a connection until [`ConnectionWriter::release`].
    pub fn hold(&mut self, key: SlotKey) {
        if let Some(connection) = open(&mut self.connections, key) {
            connection.is_waiting = true;
        }
    }

    /// Reads a connection again in the next turn.
    pub fn release(&mut self, key: SlotKey) {
        let connection = any(&mut self.connections, key);
        if connection.is_some_and(|connection| std::mem::take(&mut connection.is_waiting)) {
            self.released.push(key);
        }
    }

    /// Whether `bytes` fit into the queue of the connection at `index`.
    pub fn takes(&self, index: u32, bytes: usize) -> bool {
        let queue = self.connections.get(index as usize).map(|connection| &connection.queue);
        queue.is_some_and(|queue| queue.takes(bytes, self.settings.queue_bytes_max))
    }

    /// Writes the queue of the connection at `index` now. Returns whether its socket took all bytes.
    pub fn write(&mut self, index: u32) -> bool {
        self.flush_one(index);
        self.connection(index).is_none_or(|connection| connection.queued_bytes() == 0)
    }

    /// Records that this turn delivers a publication that was accepted at `at`.
    pub fn note_latency(&mut self, at: Instant) {
        self.latencies.push(at);
    }

    /// Sends a control frame.
    pub(super) fn control(&mut self, key: SlotKey, opcode: Opcode, payload: &[u8]) {
        if open(&mut self.connections, key).is_none() {
            return;
        }
        let mut bytes = Vec::with_capacity(frame::HEADER_BYTES_MAX + payload.len());
        frame::encode(opcode, false, payload, &mut bytes);
        let frame = Frame::from(bytes);
        let queue = &self.connections[key.index as usize].queue;
        let takes = queue.takes(frame.len(), self.settings.queue_bytes_max);
        if takes || self.make_room(key.index, frame.len()) {
            self.sockets.append(&mut self.connections[key.index as usize], key.index, frame);
        }
    }

    /// Writes to the socket at once because the queue is full. If the queue is still full, the connection ends as
    /// slow.
    fn make_room(&mut self, index: u32, frame_bytes: usize) -> bool {
        if !self.connections[index as usize].is_blocked {
            self.flush_one(index);
        }
        let connection = &self.connections[index as usize];
        if connection.phase != Phase::Open {
            return false;
        }
        if connection.queue.takes(frame_bytes, self.settings.queue_bytes_max) {
            return true;
        }
        self.close_as_slow(index);
        false
    }
}

/// Calls the kernel directly: libc's function is a cancellation point, which costs 1 % of a delivery in a process with
/// threads (`fanwire-bench fanout`). No flag against SIGPIPE, which Apple's systems lack and `writev` has not either: Rust
/// programs ignore that signal, so a closed socket is `EPIPE`.
fn send(socket: &TcpStream, bytes: &[u8]) -> rustix::io::Result<usize> {
    rustix::net::send(socket, bytes, SendFlags::empty())
}

#[cfg(test)]
mod tests;
