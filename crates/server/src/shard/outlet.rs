//! The outgoing half of a shard: every frame that leaves passes here (RFC 6455 §5, RFC 7692 §7.2.1).
//! In: messages, shared frames and closes from the application → out: bytes on sockets, one `writev` per dirty connection.
//! Uses the slab of connections, the queues and the compressor; never reads a socket and never calls the application.
//! Changed here: queue limits, closing, flushing. Reading and the order of a turn live in `shard::turn`.

use std::{
    collections::VecDeque,
    net::Shutdown,
    time::{Duration, Instant},
};

use fanwire_ws::{Compression, Opcode, frame};
use rustix::{io::Errno, net::SendFlags};
use slab::Slab;

use super::{
    Settings,
    application::Key,
    connection::{Connection, Phase},
    counters::ShardCounters,
    framer::Framer,
    queue::{Frame, Lists},
};

/// All connections of a shard, seen from the side that writes.
pub struct Outlet {
    pub(super) connections: Slab<Connection>,
    pub(super) now: Instant,
    pub(super) counters: std::sync::Arc<ShardCounters>,
    settings: Settings,
    framer: Framer,
    lists: Lists,
    dirty: Vec<u32>,
    /// Connections that left `Open` during this turn; the application has not been told yet.
    pub(super) fallen: Vec<Key>,
    /// Connections to drop at the end of this turn.
    doomed: Vec<u32>,
    /// When to stop waiting for a peer's close, oldest first.
    lingering: VecDeque<(Instant, Key)>,
    /// When a blocked socket must have moved, oldest first; with its progress at that time.
    stalled: VecDeque<(Instant, Key, u32)>,
    latencies: Vec<Instant>,
}

impl Outlet {
    pub(super) fn new(settings: Settings, counters: std::sync::Arc<ShardCounters>) -> Self {
        Self {
            connections: Slab::new(),
            now: Instant::now(),
            counters,
            framer: Framer::new(settings.compression_level, settings.compression_min_bytes),
            settings,
            lists: Lists::default(),
            dirty: Vec::new(),
            fallen: Vec::new(),
            doomed: Vec::new(),
            lingering: VecDeque::new(),
            stalled: VecDeque::new(),
            latencies: Vec::new(),
        }
    }

    /// Sends one message to one connection: raw when small or not agreed otherwise, else a standalone compressed frame.
    pub fn send(&mut self, key: Key, payload: &[u8]) {
        let is_binary = self.open(key).is_some_and(|connection| connection.is_binary);
        self.send_as(key, is_binary, payload);
    }

    /// As [`Outlet::send`], with the kind of message chosen by the caller.
    pub fn send_as(&mut self, key: Key, is_binary: bool, payload: &[u8]) {
        let Some(connection) = self.open(key) else { return };
        let compression = connection.compression;
        let opcode = if is_binary { Opcode::Binary } else { Opcode::Text };
        let frame = self.framer.frame(opcode, compression.takes(payload.len()), payload).into();
        self.push(key.index, frame, payload.len());
    }

    /// Makes frames, for messages that many connections share.
    pub fn framer(&mut self) -> &mut Framer {
        &mut self.framer
    }

    /// Queues a frame made earlier, raw or standalone, for the connection at `index`; it leaves at the end of the turn.
    /// `payload_bytes` is the size of the message inside, for the counters. Above the limit of the queue the connection
    /// ends as slow (3008).
    pub fn push(&mut self, index: u32, frame: Frame, payload_bytes: usize) {
        let Some(connection) = self.connections.get(index as usize) else { return };
        if connection.phase != Phase::Open {
            return;
        }
        if connection.queue.bytes() + frame.len() > self.settings.queue_bytes_max
            && !self.make_room(index, &frame)
        {
            return;
        }
        let traffic = self.counters.of(self.connections[index as usize].is_binary);
        traffic.messages_out.add(1);
        traffic.payload_bytes_out.add(payload_bytes as u64);
        self.append(index, frame);
    }

    /// What decides about the bytes of this connection's frames: are they binary, and how are they compressed?
    pub fn form(&self, index: u32) -> Option<(bool, Compression)> {
        let connection = self.connections.get(index as usize)?;
        Some((connection.is_binary, connection.compression))
    }

    /// Sends a native ping frame (RFC 6455 §5.5.2).
    pub fn ping(&mut self, key: Key) {
        self.control(key, Opcode::Ping, &[]);
    }

    /// Ends a connection from our side: what is queued leaves first, then a close frame (RFC 6455 §5.5.1).
    pub fn close(&mut self, key: Key, code: u16, reason: &str) {
        self.say_goodbye(key, code, reason, Phase::Closing);
    }

    /// As [`Outlet::close`] for a peer that does not keep up: whole frames still queued are dropped first.
    pub fn close_slow(&mut self, key: Key, code: u16, reason: &str) {
        if let Some(connection) = any(&mut self.connections, key) {
            connection.queue.drop_unwritten(&mut self.lists);
        }
        self.say_goodbye(key, code, reason, Phase::Closing);
    }

    /// Ends a connection without a word: no close frame, nothing flushed.
    pub fn abort(&mut self, key: Key) {
        let Some(connection) = any(&mut self.connections, key) else { return };
        let was = std::mem::replace(&mut connection.phase, Phase::Done);
        connection.queue.drop_unwritten(&mut self.lists);
        self.doomed.push(key.index);
        self.fell(key, was);
    }

    /// Remembers that a publication accepted at `at` is being delivered in this turn.
    pub fn note_latency(&mut self, at: Instant) {
        self.latencies.push(at);
    }

    pub(super) fn pong(&mut self, key: Key, payload: &[u8]) {
        self.control(key, Opcode::Pong, payload);
    }

    /// The peer's close frame came: answer it with the same code, once (RFC 6455 §5.5.1).
    pub(super) fn peer_closed(&mut self, key: Key, code: Option<u16>) {
        let Some(connection) = any(&mut self.connections, key) else { return };
        match connection.phase {
            Phase::Open => {
                let was = std::mem::replace(&mut connection.phase, Phase::Done);
                let mut close = Vec::new();
                match code {
                    Some(code) => frame::encode_close(code, "", &mut close),
                    None => frame::encode(Opcode::Close, false, &[], &mut close),
                }
                self.append(key.index, close.into());
                self.fell(key, was);
            }
            Phase::Closing => {
                connection.phase = Phase::Done;
                self.mark_dirty(key.index);
            }
            Phase::Failed | Phase::Done => {}
        }
    }

    /// The peer's stream ended. Behind its close frame our answer still leaves; otherwise nobody waits for anything.
    pub(super) fn peer_ended(&mut self, key: Key) {
        let answers = |c: &mut Connection| c.phase == Phase::Done && !c.queue.is_empty();
        if !self.any(key).is_some_and(answers) {
            self.abort(key);
        }
    }

    /// The peer broke the protocol (RFC 6455 §7.1.7): a close frame with `code`, then its input is thrown away.
    pub(super) fn fail(&mut self, key: Key, code: u16, reason: &str) {
        self.say_goodbye(key, code, reason, Phase::Failed);
    }

    pub(super) fn is_open(&self, key: Key) -> bool {
        self.phase(key) == Some(Phase::Open)
    }

    pub(super) fn phase(&self, key: Key) -> Option<Phase> {
        let connection = self.connections.get(key.index as usize)?;
        (connection.generation == key.generation).then_some(connection.phase)
    }

    /// The socket can take bytes again.
    pub(super) fn writable(&mut self, index: u32) {
        if let Some(connection) = self.connections.get_mut(index as usize)
            && std::mem::take(&mut connection.is_blocked)
        {
            self.mark_dirty(index);
        }
    }

    /// Writes every dirty connection once, then drops the ones that are done. The last step of a turn.
    pub(crate) fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for index in dirty.drain(..) {
            self.flush_one(index);
        }
        self.dirty = dirty;
        let now = Instant::now();
        for accepted_at in self.latencies.drain(..) {
            self.counters.publish_latency.observe(now.saturating_duration_since(accepted_at));
        }
        while let Some(index) = self.doomed.pop() {
            self.connections.try_remove(index as usize);
        }
    }

    /// Gives up on peers that did not close, and on sockets that did not move.
    pub(super) fn advance(&mut self) {
        while let Some((deadline, key)) = self.lingering.front().copied()
            && deadline <= self.now
        {
            self.lingering.pop_front();
            self.abort(key);
        }
        while let Some((deadline, key, progress)) = self.stalled.front().copied()
            && deadline <= self.now
        {
            self.stalled.pop_front();
            self.check_stalled(key, progress);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let linger = self.lingering.front().map(|(deadline, _)| *deadline);
        let stall = self.stalled.front().map(|(deadline, ..)| *deadline);
        linger.into_iter().chain(stall).min()
    }

    pub(super) fn any(&mut self, key: Key) -> Option<&mut Connection> {
        any(&mut self.connections, key)
    }

    fn open(&mut self, key: Key) -> Option<&mut Connection> {
        any(&mut self.connections, key).filter(|connection| connection.phase == Phase::Open)
    }

    fn fell(&mut self, key: Key, was: Phase) {
        if was == Phase::Open {
            self.fallen.push(key);
        }
    }

    fn control(&mut self, key: Key, opcode: Opcode, payload: &[u8]) {
        if self.open(key).is_none() {
            return;
        }
        let mut bytes = Vec::with_capacity(frame::HEADER_BYTES_MAX + payload.len());
        frame::encode(opcode, false, payload, &mut bytes);
        let frame = Frame::from(bytes);
        let is_full = self.connections[key.index as usize].queue.bytes() + frame.len()
            > self.settings.queue_bytes_max;
        if !is_full || self.make_room(key.index, &frame) {
            self.append(key.index, frame);
        }
    }

    fn say_goodbye(&mut self, key: Key, code: u16, reason: &str, phase: Phase) {
        let Some(connection) = self.open(key) else { return };
        let was = std::mem::replace(&mut connection.phase, phase);
        let mut close = Vec::new();
        frame::encode_close(code, reason, &mut close);
        self.append(key.index, close.into());
        self.lingering.push_back((self.now + LINGER, key));
        self.counters.closes_out.add(1);
        self.fell(key, was);
    }

    /// Called with a full queue: writes at once what the socket takes. Still full → the connection ends as slow.
    fn make_room(&mut self, index: u32, frame: &Frame) -> bool {
        if !self.connections[index as usize].is_blocked {
            self.flush_one(index);
        }
        let connection = &self.connections[index as usize];
        if connection.phase != Phase::Open {
            return false;
        }
        if connection.queue.bytes() + frame.len() <= self.settings.queue_bytes_max {
            return true;
        }
        self.counters.queue_overflows.add(1);
        let (code, reason) = self.settings.slow_close;
        self.close_slow(connection.key(index), code, reason);
        false
    }

    fn append(&mut self, index: u32, frame: Frame) {
        self.connections[index as usize].queue.push(frame, &mut self.lists);
        self.mark_dirty(index);
    }

    fn mark_dirty(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        if !connection.is_blocked && !std::mem::replace(&mut connection.is_dirty, true) {
            self.dirty.push(index);
        }
    }

    fn flush_one(&mut self, index: u32) {
        let Some(connection) = self.connections.get_mut(index as usize) else { return };
        connection.is_dirty = false;
        match write(connection, &mut self.lists) {
            Ok(written) => {
                self.counters.of(connection.is_binary).wire_bytes_out.add(written as u64);
                self.counters.writes.add(1);
                self.after_write(index);
            }
            Err(_) => self.abort(self.connections[index as usize].key(index)),
        }
    }

    fn after_write(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        if !connection.queue.is_empty() {
            connection.is_blocked = true;
            let watch = (
                self.now + self.settings.write_timeout,
                connection.key(index),
                connection.progress,
            );
            self.stalled.push_back(watch);
            if connection.phase == Phase::Done {
                // Moving a little now and then keeps a connection, but not one that is over.
                self.lingering.push_back((self.now + LINGER, connection.key(index)));
            }
            return;
        }
        match connection.phase {
            Phase::Open | Phase::Closing => {}
            Phase::Failed => {
                // Half-closing lets the peer read the close frame before it sees the end of the stream.
                let _ = connection.socket.shutdown(Shutdown::Write);
            }
            Phase::Done => self.doomed.push(index),
        }
    }

    /// A connection that moved since and is blocked again has a later entry of its own. Before one is given up it gets
    /// a last chance: after a long turn the poller may not have said yet that the socket moved.
    fn check_stalled(&mut self, key: Key, progress: u32) {
        let is_stuck = |c: &Connection| c.is_blocked && c.progress == progress;
        match self.any(key) {
            Some(connection) if is_stuck(connection) => connection.is_blocked = false,
            _ => return,
        }
        self.flush_one(key.index);
        if self.any(key).is_some_and(|connection| is_stuck(connection)) {
            self.counters.write_timeouts.add(1);
            self.abort(key);
        }
    }
}

#[cfg(test)]
impl Outlet {
    /// An outlet without a shard around it.
    pub(crate) fn for_test(settings: Settings) -> Self {
        Self::new(settings, std::sync::Arc::default())
    }

    /// A connection on a socket of the test's own, unknown to any poller.
    pub(crate) fn open_for_test(
        &mut self,
        socket: std::net::TcpStream,
        compression: Compression,
    ) -> Key {
        super::prepare(&socket).expect("an open socket");
        let permit = super::Permit::acquire(&std::sync::Arc::default(), 0).expect("no limit");
        let connection =
            Connection::new(mio::net::TcpStream::from_std(socket), 1, false, compression, permit);
        Key { index: self.connections.insert(connection) as u32, generation: 1 }
    }
}

fn any(connections: &mut Slab<Connection>, key: Key) -> Option<&mut Connection> {
    connections
        .get_mut(key.index as usize)
        .filter(|connection| connection.generation == key.generation)
}

/// Writes until the queue is empty or the socket blocks; returns the bytes written.
///
/// The calls go to the kernel directly: libc's are cancellation points, which costs 1 % of a delivery in a process with
/// threads (`fanwire-bench fanout`).
fn write(connection: &mut Connection, lists: &mut Lists) -> rustix::io::Result<usize> {
    let mut total = 0;
    while !connection.queue.is_empty() {
        let result = match connection.queue.single() {
            Some(slice) => rustix::net::send(&connection.socket, slice, SendFlags::NOSIGNAL),
            None => rustix::io::writev(&connection.socket, &connection.queue.slices()),
        };
        match result {
            Ok(0) => return Err(Errno::PIPE),
            Ok(count) => {
                total += count;
                connection.progress = connection.progress.wrapping_add(1);
                connection.queue.advance(count, lists);
            }
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

/// How long a close frame of ours waits for the peer's (client-protocol: at most 5 s).
const LINGER: Duration = Duration::from_secs(5);
