//! The socket of a connection that a task serves on a shard.
//! In: events of the poller, bytes of the task → out: bytes of the peer, one read in a turn; the task's bytes in one write.
//! Uses a nonblocking socket and a lock that only the shard's thread takes; never wakes a task, which each event does.
//! Changed here: when the socket is read and written. When a task is polled is decided in `socket_tasks`.

use std::{
    io::{self, ErrorKind, IoSlice, Read, Write},
    net::Shutdown,
    sync::Arc,
    task::Poll,
};

use mio::net::TcpStream;
use parking_lot::Mutex;

/// The socket of a connection that a task serves on a shard, for both of them. The shard polls the task after each event.
#[derive(Clone)]
pub struct ShardSocket(Arc<Mutex<SocketState>>);

struct SocketState {
    socket: TcpStream,
    /// A read may find bytes, or their end.
    is_readable: bool,
    /// No further event tells that there is something to read: the peer has ended.
    is_ended: bool,
    has_read_in_turn: bool,
    /// The task asked for bytes after its read of this turn.
    wants_more: bool,
    /// Written by the task, and not sent.
    unsent: Vec<u8>,
}

impl ShardSocket {
    pub(super) fn new(socket: TcpStream) -> Self {
        Self(Arc::new(Mutex::new(SocketState {
            socket,
            is_readable: true,
            is_ended: false,
            has_read_in_turn: false,
            wants_more: false,
            unsent: Vec::new(),
        })))
    }

    /// Reads once in a turn.
    pub fn poll_read(&self, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.lock().poll_read(buffer)
    }

    /// Ready when the peer has closed its sending side. Bytes that wait to be read hide what follows.
    pub fn poll_peer_end(&self) -> Poll<io::Result<()>> {
        match self.0.lock().socket.peek(&mut [0]) {
            Ok(0) => Poll::Ready(Ok(())),
            Ok(_) => Poll::Pending,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Takes bytes, which are sent after the poll of the task; earlier when they are many.
    pub fn poll_write(&self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(&[IoSlice::new(bytes)])
    }

    /// As [`poll_write`](Self::poll_write), of several pieces.
    pub fn poll_write_vectored(&self, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock();
        if state.unsent.len() >= UNSENT_BYTES_MAX {
            state.send()?;
            if state.unsent.len() >= UNSENT_BYTES_MAX {
                return Poll::Pending;
            }
        }
        let before = state.unsent.len();
        for piece in pieces {
            let room = UNSENT_BYTES_MAX - state.unsent.len();
            state.unsent.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        Poll::Ready(Ok(state.unsent.len() - before))
    }

    /// Closes the sending side, after everything was sent.
    pub fn poll_shutdown(&self) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        state.send()?;
        if !state.unsent.is_empty() {
            return Poll::Pending;
        }
        Poll::Ready(state.socket.shutdown(Shutdown::Write))
    }

    /// Sends what the socket takes.
    pub(super) fn send(&self) -> io::Result<()> {
        self.0.lock().send()
    }

    /// Notes what an event says.
    pub(super) fn note(&self, is_readable: bool, is_ended: bool) {
        let mut state = self.0.lock();
        state.is_ended |= is_ended;
        state.is_readable |= is_readable || is_ended;
    }

    pub(super) fn begin_turn(&self) {
        let mut state = self.0.lock();
        state.has_read_in_turn = false;
        state.wants_more = false;
    }

    /// Whether the task wants bytes that another turn may find.
    pub(super) fn may_read_on(&self) -> bool {
        let state = self.0.lock();
        state.wants_more && state.is_readable
    }
}

impl SocketState {
    fn poll_read(&mut self, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.has_read_in_turn {
            self.wants_more = true;
            return Poll::Pending;
        }
        let most = buffer.len().min(READ_BYTES_MAX);
        while self.is_readable {
            match self.socket.read(&mut buffer[..most]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_readable = false,
                result => {
                    self.has_read_in_turn = true;
                    // A read of less than was asked for has emptied the socket: what comes next raises an event.
                    let is_full = result.as_ref().is_ok_and(|count| *count == most);
                    self.is_readable = is_full || self.is_ended;
                    return Poll::Ready(result);
                }
            }
        }
        Poll::Pending
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.socket.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Some hundred small commands: what a client may send in a turn takes as long.
const READ_BYTES_MAX: usize = 8 << 10;

/// A task waits while so many bytes are not sent.
const UNSENT_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests;
