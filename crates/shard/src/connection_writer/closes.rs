//! The end of connections: by us, by the peer, by an error; with or without a close frame (RFC 6455 §5.5.1, §7), or with a
//! last message to peers that expect one. The begin of responses, which may be their end.
//! In: a call, or an event of the peer → out: a close frame in the queue and the connection's next phase.
//! Uses the queues and timers of `ConnectionWriter`; never writes a socket and never calls the application.
//! Changed here: the order of closing. When queued bytes are written is decided in `connection_writer::flush`.

use std::time::Duration;

use fanwire_ws::{Opcode, frame};

use super::{ConnectionWriter, any};
use crate::connection::{CloseCause, Connection, PeerFormat, Phase, SlotKey};
use crate::queue::Frame;
use crate::transport::{Framing, Transport};

impl ConnectionWriter {
    /// Closes a connection: sends the queued frames, then a close frame (RFC 6455 §5.5.1).
    pub fn close(&mut self, key: SlotKey, code: u16, reason: &str) {
        self.send_close(key, code, reason, Phase::Closing, CloseCause::Other);
    }

    /// As [`ConnectionWriter::close`], but drops queued frames of which nothing has been written, as for a slow peer.
    pub fn close_and_drop_queue(&mut self, key: SlotKey, code: u16, reason: &str) {
        self.drop_and_close(key, code, reason, CloseCause::Other);
    }

    /// Closes the connection at `index` as slow (3008), because too much waits for it.
    pub fn close_as_slow(&mut self, index: u32) {
        if let Some(connection) = self.connections.get(index as usize) {
            self.counters.queue_overflows.add(1);
            self.overflow(connection.key(index));
        }
    }

    /// Closes a connection as slow because its queue is full.
    fn overflow(&mut self, key: SlotKey) {
        let (code, reason) = self.settings.slow_close;
        self.drop_and_close(key, code, reason, CloseCause::Slow);
    }

    fn drop_and_close(&mut self, key: SlotKey, code: u16, reason: &str, end: CloseCause) {
        // In other phases this would drop a queued close frame.
        let is_open = |connection: &&mut Connection| connection.phase == Phase::Open;
        let Some(connection) = any(&mut self.connections, key).filter(is_open) else { return };
        let queued_bytes = connection.queue.bytes();
        connection.queue.drop_unwritten(connection.unsent_records(), &mut self.lists);
        if connection.queue.bytes() < queued_bytes {
            connection.window.lost();
        }
        self.send_close(key, code, reason, Phase::Closing, end);
    }

    /// Sends the head of a response, for a connection that was opened without one.
    pub fn begin_response(&mut self, key: SlotKey, head: Vec<u8>) {
        if self.is_open(key) {
            self.begin_body(key, None, head);
        }
    }

    /// Sends a whole response in the place of a stream, and ends the connection. What the peer sends until it closes is discarded:
    /// a socket that is closed with unread bytes resets the connection, and the response would be lost (RFC 9112 §9.6).
    pub fn refuse(&mut self, key: SlotKey, response: Vec<u8>) {
        if self.is_open(key) {
            self.end(key, response.into(), Phase::Failed, CloseCause::Other);
        }
    }

    /// Ends a connection without a close frame; queued frames are dropped.
    pub fn abort(&mut self, key: SlotKey) {
        self.abort_because(key, CloseCause::Other);
    }

    pub(super) fn abort_because(&mut self, key: SlotKey, end: CloseCause) {
        let Some(connection) = any(&mut self.connections, key) else { return };
        let was = std::mem::replace(&mut connection.phase, Phase::Done);
        connection.queue.drop_unwritten(connection.unsent_records(), &mut self.lists);
        self.to_remove.push(key.index);
        self.note_closed(key, was, end);
    }

    /// Answers the peer's close frame with the same code, once (RFC 6455 §5.5.1).
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
                self.append(key.index, close.into());
                self.note_closed(key, was, CloseCause::Other);
            }
            Phase::Closing => {
                connection.phase = Phase::Done;
                connection.mark_dirty(key.index, &mut self.dirty);
            }
            Phase::Failed | Phase::Done => {}
        }
    }

    /// The peer's stream ended. If a close frame to it is still queued, it is written first.
    pub(crate) fn peer_ended(&mut self, key: SlotKey) {
        let answers = |c: &mut Connection| c.phase == Phase::Done && !c.queue.is_empty();
        if !self.any(key).is_some_and(answers) {
            self.abort(key);
        }
    }

    /// The peer broke the protocol (RFC 6455 §7.1.7): sends a close frame with `code` and discards further input.
    pub(crate) fn fail(&mut self, key: SlotKey, code: u16, reason: &str) {
        self.send_close(key, code, reason, Phase::Failed, CloseCause::Other);
    }

    fn send_close(&mut self, key: SlotKey, code: u16, reason: &str, phase: Phase, end: CloseCause) {
        let Some(format) = self.open(key).map(|connection| connection.format()) else { return };
        let (bytes, phase) = if format.transport.framing() == Framing::WebSocket {
            self.close_of(format, code, reason, phase)
        } else {
            // A response body has no closing handshake.
            (self.last_in_body(key.index, code, reason), Phase::Done)
        };
        self.end(key, bytes, phase, end);
    }

    /// What the peer of a WebSocket is sent at the end, and the phase behind it.
    fn close_of(
        &self,
        format: PeerFormat,
        code: u16,
        reason: &str,
        phase: Phase,
    ) -> (Frame, Phase) {
        let PeerFormat { transport, is_binary, .. } = format;
        let mut bytes = Vec::new();
        let last_message = || (self.settings.last_message)(format, code, reason);
        // A peer that broke the protocol gets a close frame alone (RFC 6455 §7.1.7).
        if transport == Transport::UniWebSocket && phase != Phase::Failed {
            let settings = &self.settings.uni_websocket;
            if settings.sends_last_message {
                let opcode = if is_binary { Opcode::Binary } else { Opcode::Text };
                frame::encode(opcode, false, &last_message(), &mut bytes);
            }
            if !settings.sends_close_frame {
                return (bytes.into(), Phase::Done);
            }
        }
        frame::encode_close(code, reason, &mut bytes);
        (bytes.into(), phase)
    }

    /// Queues the last bytes of an open connection.
    fn end(&mut self, key: SlotKey, bytes: Frame, phase: Phase, end: CloseCause) {
        let Some(connection) = any(&mut self.connections, key) else { return };
        let was = std::mem::replace(&mut connection.phase, phase);
        if bytes.is_empty() {
            connection.mark_dirty(key.index, &mut self.dirty);
        } else {
            self.append(key.index, bytes);
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
