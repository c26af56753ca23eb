//! How connections end: by us, by the peer, by an error; with a close frame (RFC 6455 §5.5.1, §7) or without a word.
//! In: the wish, or what the peer did → out: a close frame in the queue and the connection's next phase.
//! Uses the connection_writer's queues and timers; never writes a socket and never calls the application.
//! Changed here: the order of closing. When queued bytes leave lives in `connection_writer::flush`.

use std::time::Duration;

use fanwire_ws::{Opcode, frame};

use super::{ConnectionWriter, any};
use crate::connection::{Connection, End, Key, Phase};

impl ConnectionWriter {
    /// Ends a connection from our side: what is queued leaves first, then a close frame (RFC 6455 §5.5.1).
    pub fn close(&mut self, key: Key, code: u16, reason: &str) {
        self.say_goodbye(key, code, reason, Phase::Closing, End::Other);
    }

    /// As [`ConnectionWriter::close`] for a peer that does not keep up: whole frames still queued are dropped first.
    pub fn close_slow(&mut self, key: Key, code: u16, reason: &str) {
        self.drop_and_close(key, code, reason, End::Other);
    }

    /// The same from the shard's side, when the queue is full.
    pub(super) fn overflow(&mut self, key: Key) {
        let (code, reason) = self.settings.slow_close;
        self.drop_and_close(key, code, reason, End::Slow);
    }

    fn drop_and_close(&mut self, key: Key, code: u16, reason: &str, end: End) {
        // Else it would lose the close frame that waits.
        let is_open = |connection: &&mut Connection| connection.phase == Phase::Open;
        let Some(connection) = any(&mut self.connections, key).filter(is_open) else { return };
        connection.queue.drop_unwritten(&mut self.lists);
        self.say_goodbye(key, code, reason, Phase::Closing, end);
    }

    /// Ends a connection without a word: no close frame, nothing flushed.
    pub fn abort(&mut self, key: Key) {
        let Some(connection) = any(&mut self.connections, key) else { return };
        let was = std::mem::replace(&mut connection.phase, Phase::Done);
        connection.queue.drop_unwritten(&mut self.lists);
        self.doomed.push(key.index);
        self.fell(key, was, End::Other);
    }

    /// The peer's close frame came: answer it with the same code, once (RFC 6455 §5.5.1).
    pub(crate) fn peer_closed(&mut self, key: Key, code: Option<u16>) {
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
                self.fell(key, was, End::Other);
            }
            Phase::Closing => {
                connection.phase = Phase::Done;
                connection.mark_dirty(key.index, &mut self.dirty);
            }
            Phase::Failed | Phase::Done => {}
        }
    }

    /// The peer's stream ended. Behind its close frame our answer still leaves; otherwise nobody waits for anything.
    pub(crate) fn peer_ended(&mut self, key: Key) {
        let answers = |c: &mut Connection| c.phase == Phase::Done && !c.queue.is_empty();
        if !self.any(key).is_some_and(answers) {
            self.abort(key);
        }
    }

    /// The peer broke the protocol (RFC 6455 §7.1.7): a close frame with `code`, then its input is thrown away.
    pub(crate) fn fail(&mut self, key: Key, code: u16, reason: &str) {
        self.say_goodbye(key, code, reason, Phase::Failed, End::Other);
    }

    fn say_goodbye(&mut self, key: Key, code: u16, reason: &str, phase: Phase, end: End) {
        let Some(connection) = self.open(key) else { return };
        let was = std::mem::replace(&mut connection.phase, phase);
        let mut close = Vec::new();
        frame::encode_close(code, reason, &mut close);
        self.append(key.index, close.into());
        self.lingering.push_back((self.now + LINGER, key));
        self.counters.closes_out.add(1);
        self.fell(key, was, end);
    }

    /// What its application waits for will release it no more, and its peer's close is to be read.
    fn fell(&mut self, key: Key, was: Phase, end: End) {
        if was == Phase::Open {
            self.release(key);
            self.fallen.push((key, end));
        }
    }
}

/// What peers say whose inflater did not understand a frame (RFC 6455 §7.4.1).
const DECODE_FAILURES: [u16; 2] = [1002, 1007];

/// How long a close frame of ours waits for the peer's (protocol §5.9).
pub(super) const LINGER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
