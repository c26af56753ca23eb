//! The queues of all connections and their bytes on sockets, with or without TLS.
//! In: frames, connections → out: queued frames, system calls; whether a socket took all bytes.
//! Uses queues, sockets and the buffers that all connections share; never makes a frame, never ends a connection.
//! Changed here: how queued bytes reach a socket. When they are written is decided in `connection_writer::flush`.

use std::{sync::Arc, time::Instant};

use rustix::io::Errno;

use super::{
    joined::JoinedFrames,
    records::{self, RecordBuffers},
    send,
};
use crate::{
    connection::Connection,
    counters::{ShardCounters, is_sampled},
    queue::{Frame, Lists, WireFrame},
    tls::TlsSession,
};

/// The memory that the queues of a shard share, and the connections whose queues are to be written.
pub(crate) struct SocketWriter {
    pub(super) counters: Arc<ShardCounters>,
    pub(super) lists: Lists,
    pub(super) joined: JoinedFrames,
    records: RecordBuffers,
    pub(super) dirty: Vec<u32>,
}

impl SocketWriter {
    pub(super) fn new(counters: Arc<ShardCounters>) -> Self {
        Self {
            counters,
            lists: Lists::default(),
            joined: JoinedFrames::default(),
            records: RecordBuffers::default(),
            dirty: Vec::new(),
        }
    }

    /// Queues a frame.
    pub(super) fn push(&mut self, connection: &mut Connection, frame: Frame) {
        connection.queue.push(frame, &mut self.lists);
    }

    /// Queues what another program has not written: the rest of a frame, and whole ones behind it.
    pub(crate) fn resume(
        &mut self,
        connection: &mut Connection,
        index: u32,
        begun: &[u8],
        queued: &[u8],
    ) {
        if !begun.is_empty() {
            connection.queue.push_begun(begun, &mut self.lists);
            connection.mark_dirty(index, &mut self.dirty);
        }
        if !queued.is_empty() {
            self.append(connection, index, queued.into());
        }
    }

    /// Queues a frame for the connection at `index`, which is written at the end of the turn.
    pub(crate) fn append(&mut self, connection: &mut Connection, index: u32, frame: Frame) {
        self.push(connection, frame);
        connection.mark_dirty(index, &mut self.dirty);
    }

    /// Writes the queue until it is empty or the socket blocks.
    ///
    /// # Errors
    /// The socket failed.
    pub(super) fn write(&mut self, connection: &mut Connection) -> rustix::io::Result<()> {
        let started = is_sampled(&self.counters.writes).then(Instant::now);
        let (written, result) = if connection.is_encrypted() {
            records::write(connection, &mut self.lists, &mut self.joined, &mut self.records)
        } else {
            write(connection, &mut self.lists, &mut self.joined)
        };
        self.count(connection, started, written);
        if result.is_ok() {
            self.counters.writes.add(1);
        }
        result
    }

    /// Writes a frame to a connection with an empty queue, and queues the part that the socket does not take. Returns
    /// whether nothing is queued.
    #[inline]
    pub(super) fn write_through(
        &mut self,
        connection: &mut Connection,
        frame: &impl WireFrame,
    ) -> bool {
        if connection.is_encrypted() {
            connection.queue.push(frame.shared(), &mut self.lists);
            return false;
        }
        let bytes = frame.bytes();
        let started = is_sampled(&self.counters.writes).then(Instant::now);
        let sent = send(&connection.socket, bytes).unwrap_or(0);
        self.count(connection, started, sent);
        if sent == bytes.len() {
            self.counters.writes.add(1);
            return true;
        }
        connection.queue.push(frame.shared(), &mut self.lists);
        connection.queue.advance(sent, &mut self.lists);
        false
    }

    fn count(&self, connection: &Connection, started: Option<Instant>, bytes: usize) {
        if let Some(started) = started {
            self.counters.write_time.observe(started.elapsed());
        }
        let traffic = self.counters.of(connection.transport, connection.is_binary);
        traffic.wire_bytes_out.add(bytes as u64);
    }

    /// From now on everything on the socket of the connection at `index` is encrypted.
    pub(crate) fn encrypt_with(
        &mut self,
        connection: &mut Connection,
        index: u32,
        session: Box<TlsSession>,
    ) {
        connection.rare_mut().tls = Some(session);
        self.count_answers(connection, index, 0);
    }

    /// Has the session of the connection at `index` send its answers to the peer: the unsent bytes beyond `before`.
    pub(crate) fn count_answers(&mut self, connection: &mut Connection, index: u32, before: usize) {
        let answers = connection.unsent_records() - before;
        if answers > 0 {
            connection.queue.add_encrypted(answers, &mut self.lists);
            connection.mark_dirty(index, &mut self.dirty);
        }
    }

    /// Ends our side of a connection whose peer broke the protocol, so that the peer reads the close frame before the end.
    /// Returns whether records have to be written for that.
    pub(super) fn end_failed(&mut self, connection: &mut Connection) -> bool {
        if let Some(session) = connection.tls_mut() {
            session.close();
        }
        // The queue was empty, so all of it is close_notify.
        let records = connection.unsent_records();
        if records > 0 {
            connection.queue.add_encrypted(records, &mut self.lists);
            return true;
        }
        // An error means that the peer has left.
        let _ = connection.socket.shutdown(std::net::Shutdown::Write);
        false
    }
}

/// Writes until the queue is empty or the socket blocks. Returns the bytes written, even if the socket failed after
/// them.
fn write(
    connection: &mut Connection,
    lists: &mut Lists,
    joined: &mut JoinedFrames,
) -> (usize, rustix::io::Result<()>) {
    let mut total = 0;
    while !connection.queue.is_empty() {
        let result = match connection.queue.single() {
            Some(slice) => send(&connection.socket, slice),
            None => match joined.bytes_of(&connection.queue) {
                Some(bytes) => send(&connection.socket, bytes),
                None => rustix::io::writev(&connection.socket, &connection.queue.slices()),
            },
        };
        match result {
            Ok(0) => return (total, Err(Errno::PIPE)),
            Ok(count) => {
                total += count;
                connection.progress = connection.progress.wrapping_add(1);
                connection.queue.advance(count, lists);
            }
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return (total, Err(error)),
        }
    }
    (total, Ok(()))
}
