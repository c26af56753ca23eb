//! Writing: one system call per dirty connection at the end of a turn or behind its last message; write and close timeouts.
//! In: queues with frames → out: bytes on sockets; connections that are done or stuck are dropped.
//! Uses the queues and timers of `ConnectionWriter`; never makes a frame and never calls the application.
//! Changed here: when bytes are written. How they reach a socket is in `sockets`.

use std::{collections::VecDeque, time::Instant};

use super::{ConnectionWriter, closes::CLOSE_TIMEOUT, records};
use crate::{
    connection::{CloseCause, Connection, Phase, SlotKey, any},
    transport::Transport,
};

impl ConnectionWriter {
    /// A turn begins now.
    pub(crate) fn begin_turn(&mut self) {
        self.now = Instant::now();
        self.load.begin_turn(self.now, self.flush_at.is_some());
    }

    /// The turn has ended.
    pub(crate) fn end_turn(&mut self) {
        let busy = self.now.elapsed();
        self.counters.turn_time.observe(busy);
        let busy_us = busy.as_micros() as u64;
        self.counters.turn_time_squares.add(busy_us.saturating_mul(busy_us));
        self.load.end_turn(busy);
    }

    /// Writes to a blocked connection that is writable again. It is not left to the end of the turn, so that the rest of the
    /// turn sees whether the socket takes bytes.
    pub(crate) fn writable(&mut self, index: u32) {
        if let Some(connection) = self.connections.get_mut(index as usize)
            && std::mem::take(&mut connection.is_blocked)
        {
            self.counters.blocked.subtract(1);
            let key = connection.key(index);
            self.stalls.push((key, connection.queue.bytes()));
            self.flush_one(index);
            if self.connections.get(index as usize).is_some_and(|one| one.queue.is_empty()) {
                self.stalls.push((key, 0));
            }
        }
    }

    /// Writes every dirty connection once, then removes connections that are done. The last step of a turn.
    pub(crate) fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.sockets.dirty);
        for index in dirty.drain(..) {
            self.flush_one(index);
        }
        self.sockets.dirty = dirty;
        self.sockets.joined.clear();
        if self.delayed.is_empty() {
            let now = Instant::now();
            for accepted_at in self.latencies.drain(..) {
                self.counters.publish_latency.observe(now.saturating_duration_since(accepted_at));
            }
        }
        while let Some(index) = self.to_remove.pop() {
            if let Some(mut connection) = self.remove(index) {
                records::end(&mut connection);
            }
        }
        self.counters.queued_bytes.set(self.sockets.lists.queued_bytes());
    }

    /// Removes the connection at `index`.
    pub(crate) fn remove(&mut self, index: u32) -> Option<Connection> {
        let connection = self.connections.try_remove(index as usize)?;
        connection.queue.forget(&mut self.sockets.lists);
        self.counters.blocked.subtract(connection.is_blocked.into());
        self.counters.window_changed(connection.reader.window_bytes(), 0);
        Some(connection)
    }

    /// Aborts connections whose peer did not close in time, and those whose socket made no progress. Lets the turn write
    /// what was delayed.
    pub(crate) fn advance(&mut self) {
        if self.flush_at.is_some_and(|flush_at| flush_at <= self.now) {
            self.flush_at = None;
            let mut connections = 0;
            for index in self.delayed.drain(..) {
                if let Some(connection) = self.connections.get_mut(index as usize)
                    && std::mem::take(&mut connection.is_delayed)
                {
                    connection.mark_dirty(index, &mut self.sockets.dirty);
                    connections += 1;
                }
            }
            self.load.end_wait(connections);
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
        let first_writes = self.write_deadlines.iter().filter_map(VecDeque::front);
        let write_deadlines = first_writes.map(|(deadline, ..)| *deadline);
        close_deadline.into_iter().chain(write_deadlines).chain(self.flush_at).min()
    }

    pub(super) fn flush_one(&mut self, index: u32) {
        let Some(connection) = self.connections.get_mut(index as usize) else { return };
        connection.is_dirty = false;
        connection.is_delayed = false;
        let queued_bytes = connection.queue.bytes();
        let result = self.sockets.write(connection); // RFC 6455 §6.1e
        if !self.observed.is_empty() {
            let left = connection.queue.bytes();
            let turn = self.counters.turns.value();
            self.observed.written(index, queued_bytes.saturating_sub(left), left, turn);
        }
        if result.is_err() {
            let key = connection.key(index);
            return self.abort(key);
        }
        match (connection.queue.is_empty(), connection.phase) {
            (true, Phase::Open) if connection.awaits_drain => {
                self.drained.push(connection.key(index));
            }
            (true, Phase::Open | Phase::Closing) => {}
            // Half-closing lets the peer read the close frame before it sees the end of the stream.
            (true, Phase::Failed) => {
                if self.sockets.end_failed(connection) {
                    self.flush_one(index);
                }
            }
            // Both sides have sent a close frame (RFC 6455 §5.5.1d, §5.5.1e), or a response has ended.
            (true, Phase::Done) => self.to_remove.push(index),
            (false, _) => self.blocked(index),
        }
    }

    /// Marks a connection whose socket did not take all bytes.
    fn blocked(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let key = connection.key(index);
        if !std::mem::replace(&mut connection.is_blocked, true) {
            self.counters.blocked.add(1);
            self.stalls.push((key, connection.queue.bytes()));
        }
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
        match any(&mut self.connections, key) {
            Some(connection) if is_stuck(connection) => connection.is_blocked = false,
            _ => return,
        }
        self.counters.blocked.subtract(1);
        self.flush_one(key.index);
        let connection = any(&mut self.connections, key);
        if connection.is_some_and(|connection| is_stuck(connection) && !connection.awaits_drain) {
            self.counters.write_timeouts.add(1);
            self.abort_because(key, CloseCause::WriteTimeout);
        }
    }
}

#[cfg(test)]
mod tests;
