//! The application on a shard: the port between sockets with WebSocket messages and the meaning of those messages.
//! In: connections that open, messages, notices from other threads, time → out: calls on the turn's `ConnectionWriter`.
//! Uses the shard's keys and the `ConnectionWriter`; never sees a socket, a frame header or another shard.
//! Changed here: the contract itself. Fanwire's application is `realtime` in `fanout`; an echo server is the example `echo` of `edge`.

use std::{net::SocketAddr, time::Instant};

use super::{
    connection::{CloseCause, SlotKey},
    connection_writer::ConnectionWriter,
    inbox::SendAway,
    new_connection::CountedPlace,
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

/// The state and behaviour of one shard. Every call runs to completion on the shard's thread and must not block.
pub trait Application: 'static {
    /// A message from another thread to this shard.
    type Notice: Send + 'static;
    /// Properties of a new connection from its handshake.
    type Opening: Send + 'static;

    /// Called at the start of each turn, at `now`.
    fn turn(&mut self, _now: Instant) {}
    fn open(
        &mut self,
        key: SlotKey,
        opening: Self::Opening,
        now: Instant,
        out: &mut ConnectionWriter,
    );
    /// Handles a message and returns the number of its commands. Each connection has a share of a turn; a message
    /// without commands counts as one. After a command the connection is [held](Self::held) if a shard lags; messages
    /// that must not be delayed, such as answers to pings, count as no command.
    fn receive(
        &mut self,
        key: SlotKey,
        message: ReceivedMessage<'_>,
        now: Instant,
        out: &mut ConnectionWriter,
    ) -> usize;
    /// The shard stops reading this connection because some shard lags, or resumes it.
    fn held(&mut self, _key: SlotKey, _is_held: bool, _now: Instant) {}
    fn notice(&mut self, notice: Self::Notice, now: Instant, out: &mut ConnectionWriter);
    /// A native pong frame of the peer (RFC 6455 §5.5.3).
    fn pong(&mut self, _key: SlotKey, _now: Instant, _out: &mut ConnectionWriter) {}
    /// The socket of a connection with [`Connection::notify_drain`](crate::Connection::notify_drain) took all queued bytes.
    fn drain(&mut self, _key: SlotKey, _now: Instant, _out: &mut ConnectionWriter) {}
    /// The socket of a connection takes no bytes, and this many are queued; 0 when it took all. Reported when it begins,
    /// each time the socket takes some, and before the queue of a slow connection is dropped.
    fn stalled(&mut self, _key: SlotKey, _queued_bytes: usize, _now: Instant) {}
    /// Timers that are due at `now`.
    fn advance(&mut self, now: Instant, out: &mut ConnectionWriter);
    /// The time of the next call of `advance`.
    fn next_deadline(&self) -> Option<Instant>;
    /// The connection has ended or is ending. Called exactly once per opened key, whatever the cause.
    /// `out` still has its address.
    fn close(&mut self, key: SlotKey, end: CloseCause, now: Instant, out: &ConnectionWriter);
    /// Chooses connections that are to be closed, at most as many as are asked for.
    fn departures(&mut self, _wanted: SendAway, _now: Instant) -> Vec<SlotKey> {
        Vec::new()
    }
    /// The shard stops for a takeover: sends what it holds back, also to sockets that take no bytes.
    fn settle(&mut self, _now: Instant, _out: &mut ConnectionWriter) {}
    /// Whether an open connection can move to another program now.
    fn can_move(&mut self, _key: SlotKey) -> bool {
        false
    }
    /// The state of an open connection for another program; `None` if it cannot move.
    fn save(&mut self, _key: SlotKey, _now: Instant) -> Option<Vec<u8>> {
        None
    }
    /// Opens a connection with a state that another program saved. `false` if the state is not understood; the connection is closed then.
    fn adopt(&mut self, _key: SlotKey, _saved: &[u8], _now: Instant) -> bool {
        false
    }
    /// A place in what the application counts by address, for a connection with a saved state.
    fn place_of(&self, _address: Option<SocketAddr>) -> Option<CountedPlace> {
        None
    }
    /// The server stops, or sends a client away: closes an open connection.
    fn shut_down(&mut self, key: SlotKey, out: &mut ConnectionWriter) {
        out.close(key, 1001, "going away");
    }
}
