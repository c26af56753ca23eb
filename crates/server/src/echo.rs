//! An application that sends every message back; the WebSocket conformance suites run against it.
//! In: data messages → out: the same messages.
//! Uses the same shards, frames and handshake as the server; never the client protocol.
//! Changed here: only the echo.

use std::time::Instant;

use crate::shard::{Application, CloseCause, ConnectionWriter, ReceivedMessage, SlotKey};

#[derive(Default)]
pub struct Echo;

impl Application for Echo {
    type Notice = std::convert::Infallible;
    type Hello = ();

    fn open(&mut self, _key: SlotKey, (): (), _now: Instant, _out: &mut ConnectionWriter) {}

    fn receive(
        &mut self,
        key: SlotKey,
        message: ReceivedMessage<'_>,
        _now: Instant,
        out: &mut ConnectionWriter,
    ) -> usize {
        out.send_as(key, matches!(message, ReceivedMessage::Binary(_)), message.bytes());
        0
    }

    fn notice(&mut self, notice: Self::Notice, _now: Instant, _out: &mut ConnectionWriter) {
        match notice {}
    }

    fn advance(&mut self, _now: Instant, _out: &mut ConnectionWriter) {}

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn close(&mut self, _: SlotKey, _: CloseCause, _: Instant, _: &ConnectionWriter) {}
}
