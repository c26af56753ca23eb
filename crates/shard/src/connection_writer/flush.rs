//! Writing: one system call per dirty connection at the end of a turn or behind its last message; write and close timeouts.
//! In: queues with frames → out: bytes on sockets; connections that are done or stuck are dropped.
//! Uses sockets and the timers of `ConnectionWriter`; never makes a frame and never calls the application.
//! Changed here: when bytes are written. The bytes are decided before they are queued.

use std::{collections::VecDeque, net::Shutdown, time::Instant};

use rustix::io::Errno;

use super::{ConnectionWriter, closes::CLOSE_TIMEOUT, joined::JoinedFrames, records, send};
use crate::{
    connection::{CloseCause, Connection, Phase, SlotKey},
    counters::is_sampled,
    queue::{Lists, WireFrame},
    transport::Transport,
};

impl ConnectionWriter {
    /// Writes to a blocked connection that is writable again. It is not left to the end of the turn, so that the rest of the
    /// turn sees whether the socket takes bytes.
    pub(crate) fn writable(&mut self, index: u32) {
        if let Some(connection) = self.connections.get_mut(index as usize)
            && std::mem::take(&mut connection.is_blocked)
        {
            self.counters.blocked.subtract(1);
            self.flush_one(index);
        }
    }

    /// Writes every dirty connection once, then removes connections that are done. The last step of a turn.
    pub(crate) fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for index in dirty.drain(..) {
            self.flush_one(index);
        }
        self.dirty = dirty;
        self.joined.clear();
        if self.delayed.is_empty() {
            let now = Instant::now();
            for accepted_at in self.latencies.drain(..) {
                self.counters.publish_latency.observe(now.saturating_duration_since(accepted_at));
            }
        }
        while let Some(index) = self.to_remove.pop() {
            if let Some(mut connection) = self.connections.try_remove(index as usize) {
                records::end(&mut connection);
                connection.queue.forget(&mut self.lists);
                self.counters.blocked.subtract(connection.is_blocked.into());
                self.counters.window_changed(connection.reader.window_bytes(), 0);
            }
        }
        self.counters.queued_bytes.set(self.lists.queued_bytes());
    }

    /// Aborts connections whose peer did not close in time, and those whose socket made no progress. Lets the turn write
    /// what was delayed.
    pub(crate) fn advance(&mut self) {
        if self.flush_at.is_some_and(|flush_at| flush_at <= self.now) {
            self.flush_at = None;
            for index in self.delayed.drain(..) {
                if let Some(connection) = self.connections.get_mut(index as usize)
                    && std::mem::take(&mut connection.is_delayed)
                {
                    connection.mark_dirty(index, &mut self.dirty);
                }
            }
        }
        while let Some((deadline, key)) = self.close_deadlines.front().copied()
            && deadline <= self.now
        {
            self.close_deadlines.pop_front();
            self.abort(key);
        }
        for list in 0..self.write_deadlines.len() {
            while let Some((deadline, key, progress)) = self.write_deadlines[list].front().copied()
                && deadline <= self.now
            {
                self.write_deadlines[list].pop_front();
                self.check_write_deadline(key, progress);
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let close_deadline = self.close_deadlines.front().map(|(deadline, _)| *deadline);
        let write_deadlines = self.write_deadlines.iter().filter_map(VecDeque::front);
        let write_deadlines = write_deadlines.map(|(deadline, ..)| *deadline);
        close_deadline.into_iter().chain(write_deadlines).chain(self.flush_at).min()
    }

    pub(super) fn flush_one(&mut self, index: u32) {
        let Some(connection) = self.connections.get_mut(index as usize) else { return };
        (connection.is_dirty, connection.is_delayed) = (false, false);
        let started = is_sampled(&self.counters.writes).then(Instant::now);
        let (written, result) = if connection.is_encrypted() {
            records::write(connection, &mut self.lists, &mut self.joined, &mut self.records)
        } else {
            write(connection, &mut self.lists, &mut self.joined)
        };
        if let Some(started) = started {
            self.counters.write_time.observe(started.elapsed());
        }
        self.counters
            .of(connection.transport, connection.is_binary)
            .wire_bytes_out
            .add(written as u64);
        match result {
            Ok(()) => {
                self.counters.writes.add(1);
                match (connection.queue.is_empty(), connection.phase) {
                    (true, Phase::Open) if connection.awaits_drain => {
                        self.drained.push(connection.key(index));
                    }
                    (true, Phase::Open | Phase::Closing) => {}
                    (true, Phase::Failed) if connection.is_encrypted() => self.end_failed(index),
                    (true, Phase::Failed) => {
                        // Half-closing lets the peer read the close frame before it sees the end of the stream.
                        let _ = connection.socket.shutdown(Shutdown::Write);
                    }
                    (true, Phase::Done) => self.to_remove.push(index),
                    (false, _) => self.blocked(index),
                }
            }
            Err(_) => self.abort(self.connections[index as usize].key(index)),
        }
    }

    /// Writes a frame to a connection with an empty queue, and queues the part that the socket does not take.
    #[inline]
    pub(super) fn write_through(&mut self, index: u32, frame: &impl WireFrame) {
        let connection = &mut self.connections[index as usize];
        if connection.is_encrypted() {
            connection.queue.push(frame.shared(), &mut self.lists);
            return self.flush_one(index);
        }
        let bytes = frame.bytes();
        let started = is_sampled(&self.counters.writes).then(Instant::now);
        let sent = send(&connection.socket, bytes).unwrap_or(0);
        if let Some(started) = started {
            self.counters.write_time.observe(started.elapsed());
        }
        self.counters
            .of(connection.transport, connection.is_binary)
            .wire_bytes_out
            .add(sent as u64);
        if sent == bytes.len() {
            self.counters.writes.add(1);
            return;
        }
        connection.queue.push(frame.shared(), &mut self.lists);
        connection.queue.advance(sent, &mut self.lists);
        self.flush_one(index);
    }

    /// Marks a connection whose socket did not take all bytes.
    fn blocked(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        if !std::mem::replace(&mut connection.is_blocked, true) {
            self.counters.blocked.add(1);
        }
        let key = connection.key(index);
        let (list, timeout) = match connection.transport {
            Transport::UniWebSocket => (1, self.settings.uni_websocket.write_timeout),
            _ => (0, self.settings.write_timeout),
        };
        self.write_deadlines[list].push_back((self.now + timeout, key, connection.progress));
        if connection.phase == Phase::Done {
            // Slow progress keeps an open connection alive, but not one that is closed.
            self.close_deadlines.push_back((self.now + CLOSE_TIMEOUT, key));
        }
    }

    /// Aborts a connection that made no progress since `progress`, after one more attempt to write: after a long turn
    /// the poller may not have reported yet that the socket is writable. If it made progress, a later entry has its new
    /// deadline.
    fn check_write_deadline(&mut self, key: SlotKey, progress: u32) {
        let is_stuck = |c: &Connection| c.is_blocked && c.progress == progress;
        match self.any(key) {
            Some(connection) if is_stuck(connection) => connection.is_blocked = false,
            _ => return,
        }
        self.counters.blocked.subtract(1);
        self.flush_one(key.index);
        if self.any(key).is_some_and(|connection| is_stuck(connection) && !connection.awaits_drain)
        {
            self.counters.write_timeouts.add(1);
            self.abort_because(key, CloseCause::WriteTimeout);
        }
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

#[cfg(test)]
mod tests;
