//! Accepted sockets whose request has not arrived: from the first bytes to a connection, a refusal, or another server.
//! In: a socket, and what decides about its request → out: the same, once there are bytes or the socket was silent for long.
//! Uses the shard's poller; never takes a byte from a socket before the decision, so that whoever gets it reads all of it.
//! Changed here: how long a socket may be silent on a shard. The decision lives in the server, its effect in `turn`.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use mio::{Interest, Registry, Token};
use slab::Slab;

use super::negotiated::Negotiated;

/// Decides about the request of one accepted socket.
pub trait Handshake<H>: Send {
    /// Looks at the first bytes, which may be a part of the request or more than it. Must not block.
    fn decide(&mut self, bytes: &[u8], now: Instant) -> HandshakeOutcome<H>;

    /// Takes the socket, of which no byte has been read. Must not block.
    fn decline(self: Box<Self>, socket: TcpStream);
}

/// What happens with an accepted socket. `request_bytes` are taken from it before the response is sent.
pub enum HandshakeOutcome<H> {
    /// It becomes a WebSocket.
    Open { request_bytes: usize, response: Vec<u8>, negotiated: Negotiated<H> },
    /// It closes after the response.
    Refuse { request_bytes: usize, response: Vec<u8> },
    /// Another server reads the request.
    Decline,
}

/// The accepted sockets of a shard.
pub(super) struct Handshakes<H> {
    pending: Slab<Pending<H>>,
    /// When a silent socket is given away, oldest first, with its slot and number.
    deadlines: VecDeque<(Instant, usize, u64)>,
    accepted: u64,
}

struct Pending<H> {
    socket: mio::net::TcpStream,
    handshake: Box<dyn Handshake<H>>,
    number: u64,
}

/// A socket that becomes a connection, registered under its old token.
pub(super) struct Opened<H> {
    pub(super) socket: mio::net::TcpStream,
    pub(super) response: Vec<u8>,
    pub(super) negotiated: Negotiated<H>,
}

impl<H> Default for Handshakes<H> {
    fn default() -> Self {
        Self { pending: Slab::new(), deadlines: VecDeque::new(), accepted: 0 }
    }
}

impl<H> Handshakes<H> {
    /// The slot of an event with this token, if it is one of an accepted socket.
    pub(super) fn slot(token: Token) -> Option<usize> {
        token.0.checked_sub(FIRST_TOKEN)
    }

    /// Registers a nonblocking socket, whose first bytes may be there already. Returns its slot.
    pub(super) fn insert(
        &mut self,
        socket: TcpStream,
        handshake: Box<dyn Handshake<H>>,
        registry: &Registry,
        now: Instant,
    ) -> Option<usize> {
        let mut socket = mio::net::TcpStream::from_std(socket);
        let entry = self.pending.vacant_entry();
        let slot = entry.key();
        // An error is the lack of kernel memory for one more watch: the peer sees its connection end.
        registry.register(&mut socket, Token(FIRST_TOKEN + slot), Interest::READABLE).ok()?;
        self.accepted += 1;
        entry.insert(Pending { socket, handshake, number: self.accepted });
        self.deadlines.push_back((now + SILENCE_MAX, slot, self.accepted));
        Some(slot)
    }

    /// Looks at the bytes that arrived in a slot; `buffer` is scratch space. Returns the socket if it becomes a connection.
    pub(super) fn receive(
        &mut self,
        slot: usize,
        buffer: &mut [u8],
        registry: &Registry,
        now: Instant,
    ) -> Option<Opened<H>> {
        let pending = self.pending.get_mut(slot)?;
        let most = buffer.len().min(REQUEST_BYTES_MAX);
        let length = match pending.socket.peek(&mut buffer[..most]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            // The peer ended, or its connection failed.
            Ok(0) | Err(_) => {
                self.pending.remove(slot);
                return None;
            }
            Ok(length) => length,
        };
        match pending.handshake.decide(&buffer[..length], now) {
            HandshakeOutcome::Open { request_bytes, response, negotiated } => {
                let mut socket = self.pending.remove(slot).socket;
                take(&mut socket, &mut buffer[..request_bytes]).ok()?;
                Some(Opened { socket, response, negotiated })
            }
            HandshakeOutcome::Refuse { request_bytes, response } => {
                let mut socket = self.pending.remove(slot).socket;
                // The response is shorter than an empty send buffer; a peer that left needs none.
                let _ = take(&mut socket, &mut buffer[..request_bytes])
                    .and_then(|()| socket.write_all(&response));
                None
            }
            HandshakeOutcome::Decline => {
                self.decline(slot, registry);
                None
            }
        }
    }

    /// Gives away the sockets that were silent for [`SILENCE_MAX`].
    pub(super) fn advance(&mut self, registry: &Registry, now: Instant) {
        while let Some((deadline, slot, number)) = self.deadlines.front().copied() {
            let is_pending = self.pending.get(slot).is_some_and(|one| one.number == number);
            if is_pending && deadline > now {
                return;
            }
            self.deadlines.pop_front();
            if is_pending {
                self.decline(slot, registry);
            }
        }
    }

    /// Gives away all sockets.
    pub(super) fn decline_all(&mut self, registry: &Registry) {
        let slots: Vec<usize> = self.pending.iter().map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.decline(slot, registry));
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.front().map(|(deadline, ..)| *deadline)
    }

    fn decline(&mut self, slot: usize, registry: &Registry) {
        let Pending { mut socket, handshake, .. } = self.pending.remove(slot);
        if registry.deregister(&mut socket).is_ok() {
            handshake.decline(socket.into());
        }
    }
}

/// Takes bytes that a peek has seen.
fn take(socket: &mut mio::net::TcpStream, bytes: &mut [u8]) -> io::Result<()> {
    socket.read_exact(bytes)
}

/// The tokens of connections are below, that of the waker is above.
const FIRST_TOKEN: usize = usize::MAX / 2;

/// The most that is looked at: a longer request is read by another server, which has a limit of its own.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// A socket without a byte is given to another server after this time; that one closes it when its own limit is over.
const SILENCE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
