//! One connection at rest: a slab entry of about two hundred bytes, without buffers, tasks or a compressor.
//! In: a socket whose handshake is done → out: the state that `shard::connection_writer` and `shard::turn` work on.
//! Uses the queue and the WebSocket reader; never decides anything.
//! Changed here: what a connection consists of, and its life from open to gone.

use fanwire_deflate::Shadow;
use fanwire_ws::{Compression, Reader};
use mio::net::TcpStream;

use super::{
    decode_failures::Peer, dedicated::Context, inbox::Permit, queue::Queue, window::PeerWindow,
};

/// Names one connection of one shard. `index` is dense and reused; `generation` tells its uses apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SlotKey {
    pub index: u32,
    pub generation: u32,
}

/// How a connection ended, as far as its application has to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseCause {
    /// The shard closed it with `Settings::slow_close`: too much waited for its peer.
    Slow,
    /// By the application, the peer or an error.
    Other,
}

pub(super) struct Connection {
    /// First, so that a place is free before the peer sees its connection end.
    pub(super) _permit: Permit,
    pub(super) socket: TcpStream,
    pub(super) generation: u32,
    /// Counts flushes that wrote something, so that a blocked socket can be seen to move.
    pub(super) progress: u32,
    pub(super) reader: Reader,
    /// What was read before it had to stop: it is unread, held or waiting. To be fed before the socket is read again.
    pub(super) rest: Box<[u8]>,
    pub(super) queue: Queue,
    pub(super) phase: Phase,
    pub(super) compression: Compression,
    pub(super) peer: Peer,
    pub(super) window: PeerWindow,
    /// With `Compression::Dedicated`, from the first compressed message on.
    pub(super) dedicated: Option<Box<Context>>,
    /// With `Settings::compression_verify`, from the first compressed message on.
    pub(super) shadow: Option<Box<Shadow>>,
    pub(super) is_binary: bool,
    /// In the list of connections to flush at the end of this turn.
    pub(super) is_dirty: bool,
    /// The socket took less than it was given: wait until it is writable.
    pub(super) is_blocked: bool,
    /// In the list of connections to read on with in the next turn.
    pub(super) is_unread: bool,
    /// It asked for more while a shard was behind: not read until all have caught up.
    pub(super) is_held: bool,
    /// Its application waits for somebody else: not read until it is released.
    pub(super) is_waiting: bool,
}

/// PeerFormat whose frames are the same as long as they refer to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerFormat {
    pub is_binary: bool,
    pub compression: Compression,
}

/// ```text
/// Open ──we close──► Closing ──peer's close or end──► Done ──queue empty──► (dropped)
///  │ ╰──peer closes────────────────────────────────────╯
///  ╰──peer breaks the protocol──► Failed ──end of its stream, or the linger time──► (dropped)
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Open,
    /// Our close frame is queued or sent; the peer's is awaited (RFC 6455 §5.5.1).
    Closing,
    /// A close frame with an error code is queued or sent; input is thrown away (RFC 6455 §7.1.7).
    Failed,
    /// Nothing more is expected; gone as soon as the queue is empty.
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
            rest: Box::default(),
            queue: Queue::default(),
            phase: Phase::Open,
            compression,
            peer: Peer::default(),
            window: PeerWindow::default(),
            dedicated: None,
            shadow: None,
            is_binary: false,
            is_dirty: false,
            is_blocked: false,
            is_unread: false,
            is_held: false,
            is_waiting: false,
        }
    }

    pub(super) fn key(&self, index: u32) -> SlotKey {
        SlotKey { index, generation: self.generation }
    }

    pub(super) fn format(&self) -> PeerFormat {
        PeerFormat { is_binary: self.is_binary, compression: self.compression }
    }

    /// Puts it, at `index`, into the list of those to flush, unless its socket takes nothing.
    pub(super) fn mark_dirty(&mut self, index: u32, dirty: &mut Vec<u32>) {
        if !self.is_blocked && !std::mem::replace(&mut self.is_dirty, true) {
            dirty.push(index);
        }
    }
}
