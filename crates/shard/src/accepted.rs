//! Accepted sockets whose request has not arrived: from its bytes to a connection, a response, or another server.
//! In: a socket, and what handles its requests → out: the same, once there are bytes or the socket was silent for long.
//! Uses the shard's poller; never takes a byte from a socket before the decision, so that another server can read the whole request.
//! Changed here: how long a socket may be silent on a shard. The decision lives in the server, its effect in `turn`.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

use mio::{Interest, Registry, Token};
use slab::Slab;

use super::{new_connection::NewConnection, shard_socket::ShardSocket, socket_tasks::SocketTask};

/// Handles the requests of one accepted socket.
pub trait RequestHandler<H>: Send {
    /// Looks at the bytes that arrived, which may be a part of a request or more than one. Returns the length of the request
    /// and its outcome, `None` if another server is to read it. Must not block.
    fn handle(&mut self, bytes: &[u8]) -> Option<(usize, RequestOutcome<H>)>;

    /// Takes the socket, of which no byte of the next request has been read. Must not block.
    fn decline(self: Box<Self>, socket: TcpStream);

    /// Serves the socket on the shard, after [`RequestOutcome::Serve`].
    fn serve(self: Box<Self>, socket: ShardSocket) -> SocketTask;
}

/// The next step after a request was taken from its socket.
pub enum RequestOutcome<H> {
    /// A connection begins.
    Open(Box<NewConnection<H>>),
    /// The socket waits for its next request after this response, at most for this time.
    Answer(Vec<u8>, Duration),
    /// The socket closes after this response.
    Refuse(Vec<u8>),
    /// The handler serves the connection on this shard, from this request, of which no byte is taken.
    Serve,
}

/// An accepted socket that leaves the accepted ones, registered under its old token.
pub(super) enum Decided<H> {
    Connection(mio::net::TcpStream, Box<NewConnection<H>>),
    Served(mio::net::TcpStream, Box<dyn RequestHandler<H>>),
}

/// The accepted sockets of a shard.
pub(super) struct AcceptedSockets<H> {
    waiting: Slab<AcceptedSocket<H>>,
    /// When silent sockets are given away or closed. An entry counts if its socket has this number and this time
    /// ([`AcceptedSocket::checked_at`]).
    deadlines: BinaryHeap<Reverse<(Instant, usize, u64)>>,
    accepted: u64,
}

struct AcceptedSocket<H> {
    socket: mio::net::TcpStream,
    handler: Box<dyn RequestHandler<H>>,
    number: u64,
    /// How long it may take.
    deadline: Instant,
    /// The time of its entry in the deadlines, not after `deadline`.
    checked_at: Instant,
    awaits: Awaits,
}

/// The next event that an accepted socket waits for.
enum Awaits {
    /// Its first request. A silent socket is given away.
    FirstRequest,
    /// A request after an answer. A silent socket is closed.
    NextRequest { answered_at: Instant },
    /// The end of the peer, after a refusal: so many more bytes are discarded before the socket closes.
    End { bytes_max: usize },
}

impl<H> Default for AcceptedSockets<H> {
    fn default() -> Self {
        Self { waiting: Slab::new(), deadlines: BinaryHeap::new(), accepted: 0 }
    }
}

impl<H> AcceptedSockets<H> {
    /// The slot of an event with this token, if it is one of an accepted socket.
    pub(super) fn slot(token: Token) -> Option<usize> {
        token.0.checked_sub(FIRST_TOKEN)
    }

    /// Registers a nonblocking socket, whose first bytes may be there already. Returns its slot.
    pub(super) fn insert(
        &mut self,
        socket: TcpStream,
        handler: Box<dyn RequestHandler<H>>,
        registry: &Registry,
        now: Instant,
    ) -> Option<usize> {
        let mut socket = mio::net::TcpStream::from_std(socket);
        let entry = self.waiting.vacant_entry();
        let slot = entry.key();
        // Fails only if the kernel has no memory for one more watch. Then the socket is closed.
        registry.register(&mut socket, Token(FIRST_TOKEN + slot), Interest::READABLE).ok()?;
        self.accepted += 1;
        let number = self.accepted;
        let deadline = now + SILENCE_MAX;
        entry.insert(AcceptedSocket {
            socket,
            handler,
            number,
            deadline,
            checked_at: deadline,
            awaits: Awaits::FirstRequest,
        });
        self.deadlines.push(Reverse((deadline, slot, number)));
        Some(slot)
    }

    /// Looks at the bytes that arrived in a slot; `buffer` is scratch space. Returns the socket if that decides what it becomes.
    pub(super) fn receive(
        &mut self,
        slot: usize,
        buffer: &mut [u8],
        registry: &Registry,
        now: Instant,
    ) -> Option<Decided<H>> {
        if matches!(self.waiting.get(slot)?.awaits, Awaits::End { .. }) {
            self.discard(slot, buffer);
            return None;
        }
        for _ in 0..REQUESTS_PER_EVENT {
            let waiting = self.waiting.get_mut(slot)?;
            let most = buffer.len().min(REQUEST_BYTES_MAX);
            let length = match waiting.socket.peek(&mut buffer[..most]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                // The peer ended, or its connection failed.
                Ok(0) | Err(_) => {
                    self.waiting.remove(slot);
                    return None;
                }
                Ok(length) => length,
            };
            let Some((taken, outcome)) = waiting.handler.handle(&buffer[..length]) else {
                break;
            };
            let is_taken = waiting.socket.read_exact(&mut buffer[..taken]); // the bytes of the peek
            match outcome {
                RequestOutcome::Open(connection) => {
                    let socket = self.waiting.remove(slot).socket;
                    return is_taken.is_ok().then_some(Decided::Connection(socket, connection));
                }
                RequestOutcome::Serve => {
                    let AcceptedSocket { socket, handler, .. } = self.waiting.remove(slot);
                    return Some(Decided::Served(socket, handler));
                }
                RequestOutcome::Answer(response, idle_max) => {
                    waiting.awaits = Awaits::NextRequest { answered_at: now };
                    waiting.deadline = now + idle_max;
                    if waiting.deadline < waiting.checked_at {
                        waiting.checked_at = waiting.deadline;
                        self.deadlines.push(Reverse((waiting.deadline, slot, waiting.number)));
                    }
                    // A peer that does not read its responses gets no more of them.
                    if is_taken.and_then(|()| waiting.socket.write_all(&response)).is_err() {
                        self.waiting.remove(slot);
                    }
                    if length == taken {
                        return None; // what comes next raises an event
                    }
                }
                RequestOutcome::Refuse(response) => {
                    // The response is shorter than an empty send buffer; a peer that left needs none.
                    let socket = &mut waiting.socket;
                    let is_sent = is_taken.and_then(|()| socket.write_all(&response));
                    match is_sent.and_then(|()| socket.shutdown(Shutdown::Write)) {
                        Ok(()) => self.linger(slot, buffer, now),
                        Err(_) => drop(self.waiting.remove(slot)),
                    }
                    return None;
                }
            }
        }
        self.decline(slot, registry);
        None
    }

    /// Discards what the peer of a refused request sends until it closes: a socket that is closed with unread bytes resets the
    /// connection, and the response would be lost (RFC 9112 §9.6).
    fn linger(&mut self, slot: usize, buffer: &mut [u8], now: Instant) {
        let waiting = &mut self.waiting[slot];
        waiting.awaits = Awaits::End { bytes_max: LINGER_BYTES_MAX };
        waiting.deadline = now + LINGER_TIME;
        waiting.checked_at = waiting.deadline;
        self.deadlines.push(Reverse((waiting.deadline, slot, waiting.number)));
        self.discard(slot, buffer); // what is there already raises no event
    }

    /// Drops the bytes that have arrived; the socket closes at their end, or when there are too many.
    fn discard(&mut self, slot: usize, buffer: &mut [u8]) {
        let AcceptedSocket { socket, awaits, .. } = &mut self.waiting[slot];
        let Awaits::End { bytes_max } = awaits else { return };
        loop {
            match socket.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(count @ 1..) if count < *bytes_max => *bytes_max -= count,
                Ok(_) | Err(_) => return drop(self.waiting.remove(slot)),
            }
        }
    }

    /// Gives away the sockets that were silent for [`SILENCE_MAX`], and closes those that were silent for long after a
    /// request.
    pub(super) fn advance(&mut self, registry: &Registry, now: Instant) {
        while let Some(Reverse((time, slot, number))) = self.deadlines.peek().copied() {
            if time > now {
                return;
            }
            self.deadlines.pop();
            let waiting = self.waiting.get_mut(slot);
            match waiting.filter(|waiting| (waiting.number, waiting.checked_at) == (number, time)) {
                Some(waiting) if waiting.deadline > now => {
                    waiting.checked_at = waiting.deadline;
                    self.deadlines.push(Reverse((waiting.deadline, slot, number)));
                }
                Some(AcceptedSocket { awaits: Awaits::FirstRequest, .. }) => {
                    self.decline(slot, registry);
                }
                Some(_) => drop(self.waiting.remove(slot)),
                None => {}
            }
        }
    }

    /// Closes the socket that was answered and has been silent since then for the longest time.
    pub(super) fn close_longest_idle(&mut self) {
        let idle = self.waiting.iter().filter_map(|(slot, waiting)| match waiting.awaits {
            Awaits::NextRequest { answered_at } => Some((answered_at, slot)),
            Awaits::FirstRequest | Awaits::End { .. } => None,
        });
        if let Some((_, slot)) = idle.min() {
            self.waiting.remove(slot);
        }
    }

    /// The slots of all sockets.
    pub(super) fn slots(&self) -> Vec<usize> {
        self.waiting.iter().map(|(slot, _)| slot).collect()
    }

    /// Gives away all sockets.
    pub(super) fn decline_all(&mut self, registry: &Registry) {
        self.slots().into_iter().for_each(|slot| self.decline(slot, registry));
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.peek().map(|Reverse((deadline, ..))| *deadline)
    }

    fn decline(&mut self, slot: usize, registry: &Registry) {
        let AcceptedSocket { mut socket, handler, awaits, .. } = self.waiting.remove(slot);
        if !matches!(awaits, Awaits::End { .. }) && registry.deregister(&mut socket).is_ok() {
            handler.decline(socket.into());
        }
    }
}

/// The tokens of connections are below, that of the waker is above.
const FIRST_TOKEN: usize = usize::MAX / 2;

/// The most that is looked at: a longer request is read by another server, which has a limit of its own.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// A socket without a byte is given to another server after this time; that one closes it when its own limit is over.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// A peer whose request was refused has this long to close. No longer than the HTTP runtime waits while its places are scarce.
const LINGER_TIME: Duration = Duration::from_secs(2);

/// A refused peer that sends more than this loses the response.
const LINGER_BYTES_MAX: usize = 1 << 20;

/// A peer that sends more requests at once is served by another server, so that it delays no connection.
const REQUESTS_PER_EVENT: usize = 16;

#[cfg(test)]
mod tests;
