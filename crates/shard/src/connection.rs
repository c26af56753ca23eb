//! One connection at rest: a slab entry of 176 bytes, without buffers, tasks or a compressor.
//! In: a socket whose handshake is done → out: the state for `shard::connection_writer` and `shard::turn`.
//! Uses the queue and the WebSocket reader; never decides anything.
//! Changed here: the parts of a connection, and its phases.

use std::net::SocketAddr;

use fanwire_deflate::Shadow;
use fanwire_deflate::gap::{Publication, Reference};
use fanwire_ws::{Compression, Reader, frame};
use mio::net::TcpStream;
use rustix::net::sockopt::set_socket_send_buffer_size;
use slab::Slab;

use super::{
    budget::Reservation,
    decode_failures::Peer,
    dedicated::Context,
    new_connection::{CountedPlace, Permit},
    queue::Queue,
    tls::TlsSession,
    transport::{Framing, Transport},
    window::{PeerWindow, WindowIndex},
};

/// Identifies one connection of one shard. `index` is its slab slot and is reused; `generation` differs for each use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SlotKey {
    pub index: u32,
    pub generation: u32,
}

/// The cause of a connection's end, as reported to the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseCause {
    /// The shard closed it with `ShardSettings::slow_close`: its queue was full.
    Slow,
    /// The socket took no bytes for `ShardSettings::write_timeout`.
    WriteTimeout,
    /// The application, the peer or an error ended it.
    Other,
}

/// The state of one connection.
pub struct Connection {
    /// The first field, so that the count falls before the socket closes and the peer reconnects.
    pub(super) _permit: Permit,
    pub(super) socket: TcpStream,
    pub(super) generation: u32,
    /// Counts writes that took bytes, so that progress of a blocked socket can be detected.
    pub(super) progress: u32,
    pub(super) reader: Reader,
    /// `None` for most connections. Behind the reader, whose window uses memory that is reserved here.
    pub(super) rare: Option<Box<RareParts>>,
    /// Bytes read but not yet processed, because the connection was unread, held or waiting. Processed before the
    /// socket is read again.
    pub(super) rest: Box<[u8]>,
    pub(super) queue: Queue,
    pub(super) phase: Phase,
    pub(super) compression: Compression,
    pub(super) peer: Peer,
    pub(super) window: PeerWindow,
    pub(super) transport: Transport,
    pub(super) is_binary: bool,
    /// In the list of connections to flush at the end of this turn.
    pub(super) is_dirty: bool,
    /// In the list of connections to flush after `ShardSettings::write_delay`.
    pub(super) is_delayed: bool,
    /// The socket did not take all bytes: wait until it is writable.
    pub(super) is_blocked: bool,
    /// The application waits until all queued bytes are written.
    pub(super) awaits_drain: bool,
    /// The kernel's send buffer has a small limit.
    pub(super) has_small_buffer: bool,
    /// In the list of connections to continue reading in the next turn.
    pub(super) is_unread: bool,
    /// It sent commands while a shard lagged: not read until no shard lags.
    pub(super) is_held: bool,
    /// Its application waits for a result: not read until it is released.
    pub(super) is_waiting: bool,
}

/// Parts that few connections have, in one heap block.
#[derive(Default)]
pub(super) struct RareParts {
    /// Everything on the socket is encrypted.
    pub(super) tls: Option<Box<TlsSession>>,
    /// For the window of the reader, if the client may refer to earlier messages.
    pub(super) _client_window: Option<Reservation>,
    /// With `Compression::Dedicated`, from the first compressed message on.
    pub(super) dedicated: Option<Box<Context>>,
    /// With `ShardSettings::compression_verify`, from the first compressed message on.
    pub(super) shadow: Option<Box<Shadow>>,
    /// Address of the peer, if that of the socket is another one.
    pub(super) address: Option<SocketAddr>,
    /// Its place in what the application counts.
    pub(super) _place: Option<CountedPlace>,
}

/// Encoding, transport and compression of a peer. Peers of equal format get the same frame, if it refers to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerFormat {
    pub is_binary: bool,
    pub transport: Transport,
    pub compression: Compression,
}

impl PeerFormat {
    /// Whether the peer gets a response whose body is compressed as a whole.
    pub fn is_compressed_stream(self) -> bool {
        self.transport.framing() != Framing::WebSocket && self.compression != Compression::Raw
    }
}

/// ```text
/// Open ──we close──► Closing ──peer's close or end──► Done ──queue empty──► (dropped)
///  │ ╰──peer closes────────────────────────────────────╯
///  ╰──peer breaks the protocol──► Failed ──end of its stream, or CLOSE_TIMEOUT──► (dropped)
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Open,
    /// Our close frame is queued or sent; the peer's close frame has not arrived (RFC 6455 §5.5.1).
    Closing,
    /// A close frame with an error code is queued or sent; input is discarded (RFC 6455 §7.1.7).
    Failed,
    /// No more input is expected; the connection is dropped when the queue is empty.
    Done,
}

impl Connection {
    /// An open connection that has neither sent nor received anything.
    pub(super) fn new(
        socket: TcpStream,
        generation: u32,
        may_inflate: bool,
        compression: Compression,
        permit: Permit,
    ) -> Self {
        Self {
            _permit: permit,
            socket,
            generation,
            progress: 0,
            reader: Reader::new(may_inflate),
            rare: None,
            rest: Box::default(),
            queue: Queue::default(),
            phase: Phase::Open,
            compression,
            peer: Peer::default(),
            window: PeerWindow::default(),
            transport: Transport::default(),
            is_binary: false,
            is_dirty: false,
            is_delayed: false,
            is_blocked: false,
            awaits_drain: false,
            has_small_buffer: false,
            is_unread: false,
            is_held: false,
            is_waiting: false,
        }
    }

    /// The rare parts, to set one of them; the first call allocates them.
    pub(super) fn rare_mut(&mut self) -> &mut RareParts {
        self.rare.get_or_insert_default()
    }

    /// Whether everything on the socket is encrypted.
    #[inline]
    pub(super) fn is_encrypted(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.tls.is_some())
    }

    pub(super) fn tls_mut(&mut self) -> Option<&mut TlsSession> {
        self.rare.as_mut()?.tls.as_deref_mut()
    }

    pub(super) fn dedicated_mut(&mut self) -> Option<&mut Context> {
        self.rare.as_mut()?.dedicated.as_deref_mut()
    }

    /// The address of the peer; usually by a system call. A client by IPv4 at an IPv6 listener has its IPv4 address.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        let known = self.rare.as_ref().and_then(|rare| rare.address);
        let address = known.or_else(|| self.socket.peer_addr().ok())?;
        Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
    }

    /// Encrypted bytes that wait ahead of the queued frames.
    pub(super) fn unsent_records(&self) -> usize {
        let session = self.rare.as_ref().and_then(|rare| rare.tls.as_ref());
        session.map_or(0, |session| session.unsent().len())
    }

    pub(super) fn key(&self, index: u32) -> SlotKey {
        SlotKey { index, generation: self.generation }
    }

    /// The format of the peer.
    pub fn format(&self) -> PeerFormat {
        let Self { is_binary, transport, compression, .. } = *self;
        PeerFormat { is_binary, transport, compression }
    }

    /// The reference that the frame of `publication` may use, for the subscription in `window`.
    pub fn reference(
        &self,
        window: WindowIndex,
        publication: &Publication,
        window_bits: u8,
    ) -> Reference {
        let prefix_bytes = self.transport.framing().envelope(self.is_binary).prefix.len();
        self.window.reference(window, publication, window_bits, prefix_bytes)
    }

    /// Moves a subscription, replacing the one at `to`.
    pub fn moved(&mut self, from: WindowIndex, to: WindowIndex) {
        self.window.moved(from, to);
    }

    /// Whether the socket takes no bytes at the moment, or the application waits for [`drain`](crate::Application::drain).
    pub fn is_blocked(&self) -> bool {
        self.phase == Phase::Open && (self.is_blocked || self.awaits_drain)
    }

    /// Calls [`drain`](crate::Application::drain) once when all queued bytes of this connection, which is
    /// [blocked](Self::is_blocked), are written. Until then `ShardSettings::write_timeout` does not end it.
    pub fn notify_drain(&mut self) {
        self.awaits_drain = true;
    }

    /// Limits what the kernel holds to `SMALL_BUFFER_BYTES`, for messages that are worth nothing when they are late. The
    /// kernel's default is up to 4 MiB (`net.ipv4.tcp_wmem`).
    #[inline]
    pub fn limit_send_buffer(&mut self) {
        if !std::mem::replace(&mut self.has_small_buffer, true) {
            // A socket that cannot be limited still works.
            let _ = set_socket_send_buffer_size(&self.socket, SMALL_BUFFER_BYTES);
        }
    }

    /// Queued bytes.
    pub fn queued_bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// Whether a frame of a message for this connection enters the peer's window.
    #[inline]
    pub(super) fn is_compressed(&self, frame: &[u8]) -> bool {
        match self.transport.framing() {
            Framing::WebSocket => frame::is_compressed(frame),
            _ => self.compression != Compression::Raw,
        }
    }

    /// Whether the connection is a response whose body is compressed as a whole.
    pub(super) fn is_compressed_stream(&self) -> bool {
        self.format().is_compressed_stream()
    }

    /// Adds the connection, at `index`, to the list of those to flush later, unless it is flushed before that.
    pub(super) fn mark_delayed(&mut self, index: u32, delayed: &mut Vec<u32>) {
        if !self.is_blocked && !self.is_dirty && !std::mem::replace(&mut self.is_delayed, true) {
            delayed.push(index);
        }
    }

    /// Adds the connection, at `index`, to the list of those to flush, unless its socket is blocked.
    pub(super) fn mark_dirty(&mut self, index: u32, dirty: &mut Vec<u32>) {
        if !self.is_blocked && !std::mem::replace(&mut self.is_dirty, true) {
            dirty.push(index);
        }
    }
}

/// The connection with this key, in any phase.
pub(super) fn any(connections: &mut Slab<Connection>, key: SlotKey) -> Option<&mut Connection> {
    let connection = connections.get_mut(key.index as usize);
    connection.filter(|connection| connection.generation == key.generation)
}

/// The connection with this key, if it is open.
pub(super) fn open(connections: &mut Slab<Connection>, key: SlotKey) -> Option<&mut Connection> {
    any(connections, key).filter(|connection| connection.phase == Phase::Open)
}

/// Whether the connection with this key is open.
pub(super) fn is_open(connections: &Slab<Connection>, key: SlotKey) -> bool {
    connections.get(key.index as usize).is_some_and(|connection| {
        connection.generation == key.generation && connection.phase == Phase::Open
    })
}

/// The kernel doubles it for its own structures. It bounds a connection to this much per round trip: 640 KiB/s at 100 ms.
const SMALL_BUFFER_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests;
