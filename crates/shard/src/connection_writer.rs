//! The outgoing half of a shard: every outgoing frame passes through here (RFC 6455 §5, RFC 7692 §7.2.1).
//! In: messages, shared frames and closes from the application → out: bytes on sockets, one write per dirty connection.
//! Uses the slab of connections, the queues and the compressor; never reads a socket and never calls the application.
//! Changed here: the queues and their limit. Ends live in `closes`, writing in `flush`, the turn in `shard::turn`.

mod body;
mod closes;
mod flush;
mod joined;
mod records;
#[cfg(any(test, feature = "testing"))]
mod testing;

use std::{collections::VecDeque, iter, net::SocketAddr, sync::Arc, time::Instant};

use fanwire_deflate::{
    Checksum, Mismatch, Shadow,
    gap::{Publication, Reference},
};
use fanwire_ws::{Compression, Opcode, frame};
use mio::net::TcpStream;
use rustix::net::{SendFlags, sockopt::set_socket_send_buffer_size};
use slab::Slab;

use super::{
    ShardSettings, UniWebSocketSettings,
    connection::{CloseCause, Connection, PeerFormat, Phase, SlotKey},
    counters::ShardCounters,
    framer::Framer,
    queue::{Frame, Lists, WireFrame},
    transport::{Framing, Transport},
    window::{EmbeddedPublication, PeerWindow, StreamMessage},
};
use joined::JoinedFrames;
use records::RecordBuffers;

/// When a frame is written to a connection with an empty queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WritePolicy {
    /// At once, if the turn serves its last inbox message.
    Immediate,
    /// At the end of the turn.
    EndOfTurn,
}

/// The frame of a message for one connection, and what its window contains behind it if the frame is compressed.
struct OwnFrame {
    frame: Frame,
    plaintext_bytes: usize,
    /// Of a compressed stream.
    checksum: Option<Checksum>,
}

/// All connections of a shard, for writing.
pub struct ConnectionWriter {
    pub(super) connections: Slab<Connection>,
    pub(super) now: Instant,
    pub(crate) counters: Arc<ShardCounters>,
    settings: ShardSettings,
    framer: Framer,
    /// Of unidirectional WebSockets, which may be compressed otherwise; made for the first of their messages.
    uni_framer: Option<Box<Framer>>,
    lists: Lists,
    joined: JoinedFrames,
    records: RecordBuffers,
    dirty: Vec<u32>,
    /// Connections with messages that wait for `ShardSettings::write_delay`, and when it is over for the first of them.
    delayed: Vec<u32>,
    flush_at: Option<Instant>,
    /// The turn serves its last inbox message. No later message can add frames to the same write, so frames are written
    /// at once, while the state of the connection is in the cache.
    pub(super) is_last: bool,
    /// Connections that left `Open` during this turn and are not yet reported to the application.
    pub(super) closed: Vec<(SlotKey, CloseCause)>,
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
        Self {
            connections: Slab::new(),
            now: Instant::now(),
            counters,
            framer: Framer::new(settings.compression_level, settings.compression_min_bytes),
            uni_framer: None,
            settings,
            lists: Lists::default(),
            joined: JoinedFrames::default(),
            records: RecordBuffers::default(),
            dirty: Vec::new(),
            delayed: Vec::new(),
            flush_at: None,
            is_last: false,
            closed: Vec::new(),
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
        let is_binary = self.open(key).is_some_and(|connection| connection.is_binary);
        self.send_as(key, is_binary, payload);
    }

    /// As [`ConnectionWriter::send`], for a message that embeds publications. If it is sent compressed, the next
    /// publications may refer to the embedded ones.
    pub fn send_embedding(
        &mut self,
        key: SlotKey,
        payload: &[u8],
        embedded: &[EmbeddedPublication],
    ) {
        let Some(PeerFormat { is_binary, transport, .. }) =
            self.open(key).map(|connection| connection.format())
        else {
            return;
        };
        if let Some(own) = self.frame(key.index, is_binary, payload) {
            let embedded = embedded.iter().map(|publication| EmbeddedPublication {
                at: transport.framing().position(payload, publication.at),
                ..*publication
            });
            self.queue_own(key.index, own, payload, embedded);
        }
    }

    /// As [`ConnectionWriter::send`], with the opcode chosen by the caller.
    pub fn send_as(&mut self, key: SlotKey, is_binary: bool, payload: &[u8]) {
        if self.open(key).is_some() {
            self.send_at(key.index, is_binary, payload);
        }
    }

    /// As [`ConnectionWriter::send_as`], to the connection at `index`. Returns the size of the frame in bytes.
    pub fn send_at(&mut self, index: u32, is_binary: bool, payload: &[u8]) -> usize {
        let Some(own) = self.frame(index, is_binary, payload) else { return 0 };
        let frame_bytes = own.frame.len();
        self.queue_own(index, own, payload, iter::empty());
        frame_bytes
    }

    /// Makes the frame of a message for the connection at `index` alone.
    fn frame(&mut self, index: u32, is_binary: bool, payload: &[u8]) -> Option<OwnFrame> {
        let PeerFormat { transport, compression, .. } = self.format(index)?;
        if transport.framing() != Framing::WebSocket {
            return Some(self.in_own_body(index, is_binary, payload));
        }
        let opcode = if is_binary { Opcode::Binary } else { Opcode::Text };
        let is_worth_it = self.framer_of(transport).compresses_for_one(payload);
        let frame = match compression {
            Compression::Dedicated { window_bits } if is_worth_it => {
                self.dedicated(index, window_bits, opcode, payload)
            }
            _ => {
                let may_compress = is_worth_it && compression.takes(payload.len());
                self.framer_of(transport).frame(opcode, may_compress, payload).into()
            }
        };
        Some(OwnFrame { frame, plaintext_bytes: payload.len(), checksum: None })
    }

    /// Queues a message for the connection at `index` alone.
    fn queue_own(
        &mut self,
        index: u32,
        own: OwnFrame,
        payload: &[u8],
        embedded: impl Iterator<Item = EmbeddedPublication>,
    ) {
        let OwnFrame { frame, plaintext_bytes, checksum } = own;
        let advance_window =
            |window: &mut PeerWindow| window.queued(plaintext_bytes, embedded, checksum);
        self.queue(index, &frame, payload, WritePolicy::EndOfTurn, advance_window);
    }

    /// Makes frames that many connections can share.
    pub fn framer(&mut self) -> &mut Framer {
        &mut self.framer
    }

    /// As [`ConnectionWriter::framer`], for connections with this transport.
    pub fn framer_of(&mut self, transport: Transport) -> &mut Framer {
        if transport != Transport::UniWebSocket {
            return &mut self.framer;
        }
        let UniWebSocketSettings { compression_level, compression_min_bytes, .. } =
            self.settings.uni_websocket;
        let make = || Box::new(Framer::new(compression_level, compression_min_bytes));
        self.uni_framer.get_or_insert_with(make)
    }

    /// The reference that the frame of `publication` may use, for the connection at `index` and its subscription at
    /// `place`.
    pub fn reference(
        &self,
        index: u32,
        place: u32,
        publication: &Publication,
        window_bits: u8,
    ) -> Reference {
        let connection = self.connections.get(index as usize);
        connection.map_or(Reference::ALONE, |connection| {
            let framing = connection.transport.framing();
            let prefix_bytes = framing.envelope(connection.is_binary).prefix.len();
            connection.window.reference(place, publication, window_bits, prefix_bytes)
        })
    }

    /// Moves the subscription of the connection at `index` from place `from` to `to`, replacing the one there.
    pub fn moved(&mut self, index: u32, from: u32, to: u32) {
        if let Some(connection) = self.connections.get_mut(index as usize) {
            connection.window.moved(from, to);
        }
    }

    /// Queues a frame of `message` that is raw or refers to nothing, for the connection at `index`. It is written at
    /// the end of the turn, or at once behind the turn's last message. Above the queue limit the connection ends as
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
    /// [`ConnectionWriter::reference`] returned just before.
    pub fn push_publication(
        &mut self,
        index: u32,
        place: u32,
        frame: &impl WireFrame,
        message: &[u8],
        publication: &Publication,
        stream: Option<&StreamMessage>,
    ) {
        let advance_window =
            |window: &mut PeerWindow| window.queued_publication(place, publication, stream);
        self.queue(index, frame, message, WritePolicy::Immediate, advance_window);
    }

    /// Queues the frame of a message, unless the connection has ended or its queue is full.
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
            let frame = self.verified(index, frame, message);
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
        let connection = &mut self.connections[index as usize];
        if connection.is_compressed(frame.bytes()) {
            advance_window(&mut connection.window);
        }
        self.counters.of(connection.transport, connection.is_binary).message_out(message_bytes);
        let is_delayed = !self.settings.write_delay.is_zero()
            && (write_policy == WritePolicy::Immediate || !self.settings.reply_without_queue);
        let is_immediate = write_policy == WritePolicy::Immediate && self.is_last && !is_delayed;
        if is_immediate && connection.queue.is_empty() {
            return self.write_through(index, frame);
        }
        connection.queue.push(frame.shared(), &mut self.lists);
        if is_delayed {
            connection.mark_delayed(index, &mut self.delayed);
            self.flush_at.get_or_insert_with(|| self.now + self.settings.write_delay);
        } else {
            connection.mark_dirty(index, &mut self.dirty);
        }
    }

    /// Returns the frame if the peer's inflater decodes it to `message`. Otherwise, which is a bug, it returns a raw
    /// frame and ends compression for this connection.
    fn verified(&mut self, index: u32, frame: &impl WireFrame, message: &[u8]) -> Frame {
        let bytes = frame.bytes();
        let connection = &mut self.connections[index as usize];
        if connection.is_compressed_stream() {
            return self.verified_in_body(index, frame.shared(), message);
        }
        let window_bits = connection.compression.window_bits().unwrap_or(WINDOW_BITS_MAX);
        let shadow =
            connection.rare_mut().shadow.get_or_insert_with(|| Box::new(Shadow::new(window_bits)));
        let Err(mismatch) = shadow.check(frame::payload(bytes), message) else {
            return frame.shared();
        };
        connection.compression = Compression::Raw;
        self.note_mismatch(mismatch);
        let opcode = frame::opcode(bytes).expect("a frame of ours");
        self.framer.frame(opcode, false, message).into()
    }

    fn note_mismatch(&self, mismatch: Mismatch) {
        tracing::error!(%mismatch, "a compressed frame was wrong and goes out uncompressed: a bug");
        debug_assert!(false, "a compressed frame was wrong: {mismatch}");
        self.counters.verify_failures.add(1);
    }

    /// The frame of a message in the connection's own context; the first such message allocates it. Without memory for
    /// a context, the connection's messages are compressed alone from now on.
    fn dedicated(&mut self, index: u32, window_bits: u8, opcode: Opcode, message: &[u8]) -> Frame {
        let connection = &mut self.connections[index as usize];
        if connection.dedicated_mut().is_none()
            && let Some(made) = self.settings.dedicated.make(window_bits)
        {
            connection.rare_mut().dedicated = Some(made);
        }
        if let Some(dedicated) = connection.dedicated_mut() {
            return self.framer.dedicated(opcode, &mut dedicated.compressor, message).into();
        }
        connection.compression = connection.compression.without_context();
        self.framer.frame(opcode, connection.compression.takes(message.len()), message).into()
    }

    /// The format of the peer of the connection at `index`.
    pub fn format(&self, index: u32) -> Option<PeerFormat> {
        self.connections.get(index as usize).map(Connection::format)
    }

    /// The address of the peer at `index`; usually by a system call.
    pub fn peer_address(&self, index: u32) -> Option<SocketAddr> {
        self.connections.get(index as usize)?.peer_address()
    }

    /// Sends a native ping frame (RFC 6455 §5.5.2).
    pub fn ping(&mut self, key: SlotKey) {
        self.control(key, Opcode::Ping, &[]);
    }

    /// Stops reading a connection until [`ConnectionWriter::release`].
    pub fn hold(&mut self, key: SlotKey) {
        if let Some(connection) = self.open(key) {
            connection.is_waiting = true;
        }
    }

    /// Reads a connection again in the next turn.
    pub fn release(&mut self, key: SlotKey) {
        if self.any(key).is_some_and(|connection| std::mem::take(&mut connection.is_waiting)) {
            self.released.push(key);
        }
    }

    /// Whether the socket of the connection at `index` takes no bytes at the moment, or its application waits for
    /// [`drain`](super::Application::drain).
    pub fn is_blocked(&self, index: u32) -> bool {
        self.connections.get(index as usize).is_some_and(|connection| {
            connection.phase == Phase::Open && (connection.is_blocked || connection.awaits_drain)
        })
    }

    /// Calls [`drain`](super::Application::drain) once when all queued bytes of the connection at `index`, which is
    /// [blocked](Self::is_blocked), are written. Until then `ShardSettings::write_timeout` does not end it.
    pub fn notify_drain(&mut self, index: u32) {
        if let Some(connection) = self.connections.get_mut(index as usize) {
            connection.awaits_drain = true;
        }
    }

    /// Limits what the kernel holds for the connection at `index` to [`SMALL_BUFFER_BYTES`], for messages that are worth
    /// nothing when they are late. The kernel's default is up to 4 MiB (`net.ipv4.tcp_wmem`).
    #[inline]
    pub fn limit_send_buffer(&mut self, index: u32) {
        if let Some(connection) = self.connections.get_mut(index as usize)
            && !std::mem::replace(&mut connection.has_small_buffer, true)
        {
            // A socket that cannot be limited still works.
            let _ = set_socket_send_buffer_size(&connection.socket, SMALL_BUFFER_BYTES);
        }
    }

    /// Whether `bytes` fit into the queue of the connection at `index`.
    pub fn takes(&self, index: u32, bytes: usize) -> bool {
        let queue = self.connections.get(index as usize).map(|connection| &connection.queue);
        queue.is_some_and(|queue| queue.takes(bytes, self.settings.queue_bytes_max))
    }

    /// Queued bytes of the connection at `index`.
    pub fn queued_bytes(&self, index: u32) -> usize {
        self.connections.get(index as usize).map_or(0, |connection| connection.queue.bytes())
    }

    /// Writes the queue of the connection at `index` now. Returns whether its socket took all bytes.
    pub fn write(&mut self, index: u32) -> bool {
        self.flush_one(index);
        self.queued_bytes(index) == 0
    }

    /// Records that this turn delivers a publication that was accepted at `at`.
    pub fn note_latency(&mut self, at: Instant) {
        self.latencies.push(at);
    }

    pub(super) fn pong(&mut self, key: SlotKey, payload: &[u8]) {
        self.control(key, Opcode::Pong, payload);
    }

    pub(super) fn is_open(&self, key: SlotKey) -> bool {
        self.phase(key) == Some(Phase::Open)
    }

    pub(super) fn phase(&self, key: SlotKey) -> Option<Phase> {
        let connection = self.connections.get(key.index as usize)?;
        (connection.generation == key.generation).then_some(connection.phase)
    }

    pub(super) fn any(&mut self, key: SlotKey) -> Option<&mut Connection> {
        any(&mut self.connections, key)
    }

    fn open(&mut self, key: SlotKey) -> Option<&mut Connection> {
        any(&mut self.connections, key).filter(|connection| connection.phase == Phase::Open)
    }

    fn control(&mut self, key: SlotKey, opcode: Opcode, payload: &[u8]) {
        if self.open(key).is_none() {
            return;
        }
        let mut bytes = Vec::with_capacity(frame::HEADER_BYTES_MAX + payload.len());
        frame::encode(opcode, false, payload, &mut bytes);
        let frame = Frame::from(bytes);
        let queue = &self.connections[key.index as usize].queue;
        let takes = queue.takes(frame.len(), self.settings.queue_bytes_max);
        if takes || self.make_room(key.index, frame.len()) {
            self.append(key.index, frame);
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

    /// Queues bytes that are no message, such as a control frame.
    pub(crate) fn append(&mut self, index: u32, frame: Frame) {
        let connection = &mut self.connections[index as usize];
        connection.queue.push(frame, &mut self.lists);
        connection.mark_dirty(index, &mut self.dirty);
    }
}

/// Calls the kernel directly: libc's function is a cancellation point, which costs 1 % of a delivery in a process with
/// threads (`fanwire-bench fanout`). No flag against SIGPIPE, which Apple's systems lack and `writev` has not either: Rust
/// programs ignore that signal, so a closed socket is `EPIPE`.
fn send(socket: &TcpStream, bytes: &[u8]) -> rustix::io::Result<usize> {
    rustix::net::send(socket, bytes, SendFlags::empty())
}

/// The kernel doubles it for its own structures. It bounds a connection to this much per round trip: 640 KiB/s at 100 ms.
const SMALL_BUFFER_BYTES: usize = 64 << 10;

/// The window of a peer that named no smaller one (RFC 7692 §7.1.2.1).
const WINDOW_BITS_MAX: u8 = 15;

#[cfg(test)]
mod tests;

fn any(connections: &mut Slab<Connection>, key: SlotKey) -> Option<&mut Connection> {
    connections
        .get_mut(key.index as usize)
        .filter(|connection| connection.generation == key.generation)
}
