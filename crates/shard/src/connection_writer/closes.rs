//! The end of connections: by us, by the peer, by an error; with or without a close frame (RFC 6455 §5.5.1, §7), or with a
//! last message to peers that expect one. The begin of responses, which may be their end.
//! In: a call, or an event of the peer → out: a close frame in the queue and the connection's next phase.
//! Uses the queues and timers of `ConnectionWriter`; never writes a socket and never calls the application.
//! Changed here: the order of closing. When queued bytes are written is decided in `connection_writer::flush`.

use std::time::Duration;

use fanwire_ws::{Opcode, frame};

use super::ConnectionWriter;
use super::framers::{Close, close_frame};
use crate::connection::{CloseCause, Connection, Phase, SlotKey, any, is_open, open};
use crate::queue::Frame;
use crate::transport::Framing;

impl ConnectionWriter {
    /// Closes a connection: sends the queued frames, then a close frame (RFC 6455 §7.1.2a).
    pub fn close(&mut self, key: SlotKey, code: u16, reason: &str) {
        self.send_close(key, code, reason, Phase::Closing, CloseCause::Other);
    }

    /// Closes the connection at `index` as slow (3008), because too much waits for it.
    pub fn close_as_slow(&mut self, index: u32) {
        if let Some(connection) = self.connections.get(index as usize) {
            self.counters.queue_overflows.add(1);
            let (code, reason) = self.settings.slow_close;
            let key = connection.key(index);
            self.close_and_drop_queue(key, code, reason, CloseCause::Slow);
        }
    }

    /// As [`ConnectionWriter::close`], but drops queued frames of which nothing has been written, as for a slow peer.
    pub fn close_and_drop_queue(&mut self, key: SlotKey, code: u16, reason: &str, end: CloseCause) {
        // In other phases this would drop a queued close frame.
        let Some(connection) = open(&mut self.connections, key) else { return };
        let queued_bytes = connection.queue.bytes();
        if end == CloseCause::Slow {
            self.stalls.push((key, queued_bytes));
        }
        connection.queue.drop_unwritten(connection.unsent_records(), &mut self.sockets.lists);
        if connection.queue.bytes() < queued_bytes {
            connection.window.lost();
        }
        self.send_close(key, code, reason, Phase::Closing, end);
    }

    /// Sends a whole response in the place of a stream, and ends the connection. What the peer sends until it closes is discarded:
    /// a socket that is closed with unread bytes resets the connection, and the response would be lost (RFC 9112 §9.6).
    pub fn refuse(&mut self, key: SlotKey, response: Vec<u8>) {
        if is_open(&self.connections, key) {
            self.end(key, response.into(), Phase::Failed, CloseCause::Other);
        }
    }

    /// Ends a connection without a close frame (RFC 6455 §7.2.2a); queued frames are dropped.
    pub fn abort(&mut self, key: SlotKey) {
        self.abort_because(key, CloseCause::Other);
    }

    pub(super) fn abort_because(&mut self, key: SlotKey, end: CloseCause) {
        let Some(connection) = any(&mut self.connections, key) else { return };
        let was = std::mem::replace(&mut connection.phase, Phase::Done);
        connection.queue.drop_unwritten(connection.unsent_records(), &mut self.sockets.lists);
        self.to_remove.push(key.index);
        self.note_closed(key, was, end);
    }

    /// Answers the peer's close frame with the same code, once (RFC 6455 §5.5.1c).
    pub(crate) fn peer_closed(&mut self, key: SlotKey, code: Option<u16>) {
        let Some(connection) = any(&mut self.connections, key) else { return };
        if code.is_some_and(|code| DECODE_FAILURES.contains(&code)) {
            self.settings.decode_failures.note(connection.peer, connection.compression, self.now);
        }
        match connection.phase {
            Phase::Open => {
                let was = std::mem::replace(&mut connection.phase, Phase::Done);
                let mut close = Vec::new();
                match code {
                    Some(code) => frame::encode_close(code, "", &mut close),
                    None => frame::encode(Opcode::Close, false, &[], &mut close),
                }
                self.sockets.append(connection, key.index, close.into());
                self.note_closed(key, was, CloseCause::Other);
            }
            Phase::Closing => {
                connection.phase = Phase::Done;
                connection.mark_dirty(key.index, &mut self.sockets.dirty);
            }
            Phase::Failed | Phase::Done => {}
        }
    }

    /// The peer's stream ended. If a close frame to it is still queued, it is written first.
    pub(crate) fn peer_ended(&mut self, key: SlotKey) {
        let answers = |c: &mut Connection| c.phase == Phase::Done && !c.queue.is_empty();
        if !any(&mut self.connections, key).is_some_and(answers) {
            self.abort(key);
        }
    }

    /// Sends the last message or frame of a connection and changes its phase; `Phase::Failed` if the peer broke the
    /// protocol (RFC 6455 §7.1.7a), so that further input is discarded.
    pub(crate) fn send_close(
        &mut self,
        key: SlotKey,
        code: u16,
        reason: &str,
        phase: Phase,
        end: CloseCause,
    ) {
        let Some(connection) = open(&mut self.connections, key) else { return };
        let format = connection.format();
        let close = Close { code, reason };
        let (bytes, phase) = if format.transport.framing() == Framing::WebSocket {
            close_frame(&self.settings, format, close, phase)
        } else {
            // A response body has no closing handshake.
            (self.framers.last_in_body(&self.settings, connection, close), Phase::Done)
        };
        self.end(key, bytes, phase, end);
    }

    /// Queues the last bytes of an open connection.
    fn end(&mut self, key: SlotKey, bytes: Frame, phase: Phase, end: CloseCause) {
        let Some(connection) = any(&mut self.connections, key) else { return };
        let was = std::mem::replace(&mut connection.phase, phase);
        if bytes.is_empty() {
            connection.mark_dirty(key.index, &mut self.sockets.dirty);
        } else {
            self.sockets.append(connection, key.index, bytes);
        }
        self.close_deadlines.push_back((self.now + CLOSE_TIMEOUT, key));
        self.counters.closes_out.add(1);
        self.note_closed(key, was, end);
    }

    /// Records the end of a connection for the application. Resumes reading, because the application will not release
    /// the connection and the peer's close frame must be read.
    fn note_closed(&mut self, key: SlotKey, was: Phase, end: CloseCause) {
        if was == Phase::Open {
            self.release(key);
            self.observed.end(key.index);
            self.closed.push((key, end));
        }
    }
}

/// Close codes of peers that failed to decode a frame (RFC 6455 §7.4.1).
const DECODE_FAILURES: [u16; 2] = [1002, 1007];

/// The longest wait for the peer's close frame after ours (protocol §5.9).
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
