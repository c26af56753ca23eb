//! What runs on a shard: the port between sockets with WebSocket messages on one side and meaning on the other.
//! In: connections that open, messages, notices from other threads, time → out: calls on the turn's `ConnectionWriter`.
//! Uses the shard's keys and the `ConnectionWriter`; never sees a socket, a frame header or another shard.
//! Changed here: the contract itself. Fanwire's application is `realtime`, the echo server's is `echo`.

use std::time::Instant;

use super::{
    connection::{CloseCause, SlotKey},
    connection_writer::ConnectionWriter,
};

/// A data message of the peer, assembled, unmasked and inflated.
#[derive(Clone, Copy, Debug)]
pub enum ReceivedMessage<'a> {
    Text(&'a str),
    Binary(&'a [u8]),
}

impl<'a> ReceivedMessage<'a> {
    pub fn bytes(self) -> &'a [u8] {
        match self {
            ReceivedMessage::Text(text) => text.as_bytes(),
            ReceivedMessage::Binary(bytes) => bytes,
        }
    }
}

/// The state and behaviour of one shard. Everything runs to completion on the shard's thread; nothing may block.
pub trait Application: 'static {
    /// What other threads may tell this shard.
    type Notice: Send + 'static;
    /// What the handshake learned about a new connection.
    type Hello: Send + 'static;

    /// A turn begins; what came is served as of `now`.
    fn turn(&mut self, _now: Instant) {}
    fn open(&mut self, key: SlotKey, hello: Self::Hello, now: Instant, out: &mut ConnectionWriter);
    /// Returns how many commands it did: each connection gets a share of a turn, of which a message without any takes as much
    /// as one command; and who had one done while a shard is behind is [held](Self::held). So what nobody can put off, as an
    /// answer to a ping, is no command.
    fn receive(
        &mut self,
        key: SlotKey,
        message: ReceivedMessage<'_>,
        now: Instant,
        out: &mut ConnectionWriter,
    ) -> usize;
    /// The shard reads nothing more of this connection, because what it sends comes too fast for others; or it reads it again.
    fn held(&mut self, _key: SlotKey, _is_held: bool, _now: Instant) {}
    fn notice(&mut self, notice: Self::Notice, now: Instant, out: &mut ConnectionWriter);
    /// A native pong frame of the peer (RFC 6455 §5.5.3); most applications do not care.
    fn pong(&mut self, _key: SlotKey, _now: Instant, _out: &mut ConnectionWriter) {}
    /// Timers that are due at `now`.
    fn advance(&mut self, now: Instant, out: &mut ConnectionWriter);
    /// When `advance` wants to be called next.
    fn next_deadline(&self) -> Option<Instant>;
    /// The connection is gone or going: forget it. Called exactly once per opened key, whoever ended it.
    fn close(&mut self, key: SlotKey, end: CloseCause, now: Instant);
    /// The server stops: closes an open connection, as any other time.
    fn shut_down(&mut self, key: SlotKey, out: &mut ConnectionWriter) {
        out.close(key, 1001, "going away");
    }
}
