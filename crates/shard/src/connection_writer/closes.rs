//! How connections end: by us, by the peer, by an error; with a close frame (RFC 6455 §5.5.1, §7) or without a word.
//! In: the wish, or what the peer did → out: a close frame in the queue and the connection's next phase.
//! Uses the connection_writer's queues and timers; never writes a socket and never calls the application.
//! Changed here: the order of closing. When queued bytes write_policy lives in `connection_writer::flush`.

use std::time::Duration;

use fanwire_ws::{Opcode, frame};

use super::{ConnectionWriter, any};
use crate::connection::{CloseCause, Connection, Phase, SlotKey};

impl ConnectionWriter {
    /// Ends a connection from our side: what is queued leaves first, then a close frame (RFC 6455 §5.5.1).
    pub fn close(&mut self, key: SlotKey, code: u16, reason: &str) {
        self.send_close(key, code, reason, Phase::Closing, CloseCause::Other);
    }

    /// As [`ConnectionWriter::close`] for a peer that does not keep up: whole frames still queued are dropped first.
    pub fn close_slow(&mut self, key: SlotKey, code: u16, reason: &str) {
        self.drop_and_close(key, code, reason, CloseCause::Other);
    }

    /// The same from the shard's side, when the queue is full.
    pub(super) fn overflow(&mut self, key: SlotKey) {
        let (code, reason) = self.settings.slow_close;
        self.drop_and_close(key, code, reason, CloseCause::Slow);
    }

    fn drop_and_close(&mut self, key: SlotKey, code: u16, reason: &str, end: CloseCause) {
        // Else it would lose the close frame that waits.
        let is_open = |connection: &&mut Connection| connection.phase == Phase::Open;
        let Some(connection) = any(&mut self.connections, key).filter(is_open) else { return };
        connection.queue.drop_unwritten(&mut self.lists);
        self.send_close(key, code, reason, Phase::Closing, end);
    }

    /// Ends a connection without a word: no close frame, nothing flushed.
    pub fn abort(&mut self, key: SlotKey) {
        let Some(connection) = any(&mut self.connections, key) else { return };
        let was = std::mem::replace(&mut connection.phase, Phase::Done);
        connection.queue.drop_unwritten(&mut self.lists);
        self.to_remove.push(key.index);
        self.note_closed(key, was, CloseCause::Other);
    }

    /// The peer's close frame came: answer it with the same code, once (RFC 6455 §5.5.1).
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

    /// The peer's stream ended. Behind its close frame our answer still leaves; otherwise nobody waits for anything.
    pub(crate) fn peer_ended(&mut self, key: SlotKey) {
        let answers = |c: &mut Connection| c.phase == Phase::Done && !c.queue.is_empty();
        if !self.any(key).is_some_and(answers) {
            self.abort(key);
        }
    }

    /// The peer broke the protocol (RFC 6455 §7.1.7): a close frame with `code`, then its input is thrown away.
    pub(crate) fn fail(&mut self, key: SlotKey, code: u16, reason: &str) {
        self.send_close(key, code, reason, Phase::Failed, CloseCause::Other);
    }

    fn send_close(&mut self, key: SlotKey, code: u16, reason: &str, phase: Phase, end: CloseCause) {
        let Some(connection) = self.open(key) else { return };
        let was = std::mem::replace(&mut connection.phase, phase);
        let mut close = Vec::new();
        frame::encode_close(code, reason, &mut close);
        self.append(key.index, close.into());
        self.close_deadlines.push_back((self.now + CLOSE_TIMEOUT, key));
        self.counters.closes_out.add(1);
        self.note_closed(key, was, end);
    }

    /// What its application waits for will release it no more, and its peer's close is to be read.
    fn note_closed(&mut self, key: SlotKey, was: Phase, end: CloseCause) {
        if was == Phase::Open {
            self.release(key);
            self.closed.push((key, end));
        }
    }
}

/// What peers say whose inflater did not understand a frame (RFC 6455 §7.4.1).
const DECODE_FAILURES: [u16; 2] = [1002, 1007];

/// How long a close frame of ours waits for the peer's (protocol §5.9).
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
