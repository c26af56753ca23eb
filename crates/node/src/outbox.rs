//! The output of a hub: a shard shell writes its messages and closes connections.
//! In: calls of the hub during one turn → out: frames, writes and closes; in tests a record.
//! Uses: connection keys, shared broadcasts, disconnect codes. Never: sockets.
//! Changed here: the effects of a hub. Their causes live in `hub/` and `command/`.

use std::net::SocketAddr;
use std::sync::Arc;

use fanwire_broker::Position;
use fanwire_protocol::Disconnect;

use crate::broadcast::{Broadcast, DeltaMode};
use crate::encode_job::EncodeJob;
use crate::index::{MovedSubscription, SubscriptionIndex};
use crate::session::ConnectionKey;

/// Effects of one turn of a hub. The order of the calls for one connection is the order on its wire.
pub trait Outbox {
    /// Sends one encoded reply, or a push that is no publication, unframed and not joined. Called once per receiver
    /// of a join or leave, so it should not allocate per call.
    fn send(&mut self, connection: ConnectionKey, message: &[u8]);

    /// The last message to `connection`, perhaps joined with earlier ones, contained the recovered publications of
    /// its `subscription` to `channel`, up to the newest one. For shells that compress in context.
    fn recovered(
        &mut self,
        _connection: ConnectionKey,
        _subscription: SubscriptionIndex,
        _channel: &str,
    ) {
    }

    /// The next message to `connection`, which receives pushes only, brings its client to `position`. For event streams, whose
    /// clients come back with it ([`LastEventId`](crate::LastEventId)).
    fn position(&mut self, _connection: ConnectionKey, _position: Position) {}

    /// Tells a client that it missed publications after the event that its request named: one word and one sentence.
    fn unrecovered(&mut self, _connection: ConnectionKey, _reason: &str, _explanation: &str) {}

    /// Delivers a publication, in a delta mode that exists in the connection's encoding. Called once per subscriber,
    /// so it must not allocate per call.
    ///
    /// `connection` is the dense index.
    fn deliver(
        &mut self,
        connection: u32,
        subscription: SubscriptionIndex,
        broadcast: &Arc<Broadcast>,
        delta_mode: DeltaMode,
    );

    /// Delivers a publication as it is to all receivers. Most broadcasts are of this kind, so a shell may have a
    /// shorter way for it than [`deliver`](Self::deliver) for each.
    fn deliver_to_all(
        &mut self,
        receivers: impl Iterator<Item = (u32, SubscriptionIndex)>,
        broadcast: &Arc<Broadcast>,
    ) {
        for (connection, subscription) in receivers {
            self.deliver(connection, subscription, broadcast, DeltaMode::Plain);
        }
    }

    /// A subscription of a connection ended, and another one moved to its index.
    fn ended(&mut self, _connection: u32, _moved: MovedSubscription) {}

    /// Sends a native WebSocket ping frame, for sessions opened with [`crate::ConnectionInfo::frame_ping`]; the shell reports
    /// the pong to [`crate::Hub::pong`].
    fn ping(&mut self, connection: ConnectionKey);

    /// Offloads the encoding of a large reply to another thread, if there is one. Its result comes through the inbox.
    fn offload(&mut self, encode_job: EncodeJob) {
        encode_job.run();
    }

    /// The address of the peer, for the log and the flight recorder: called for a connection that connects, or was refused
    /// something.
    fn address(&self, _connection: ConnectionKey) -> Option<SocketAddr> {
        None
    }

    /// Bytes that wait for the socket of a connection, by its index.
    fn queued_bytes(&self, _connection: u32) -> usize {
        0
    }

    /// Closes with this code. The hub has removed the session; everything sent before is still flushed.
    fn disconnect(&mut self, connection: ConnectionKey, disconnect: &Disconnect);

    /// The connect request of a unidirectional client was refused with `code`, an error or a disconnect, and `text`. The
    /// hub has removed the session. A shell whose response to that request has not begun may answer with a status;
    /// otherwise the client is disconnected.
    fn refuse(
        &mut self,
        connection: ConnectionKey,
        _code: u32,
        _text: &str,
        disconnect: &Disconnect,
    ) {
        self.disconnect(connection, disconnect);
    }

    /// A command of this connection waits: the shell should stop reading its socket until [`release`](Self::release).
    /// The hub keeps what still arrives, so a shell may ignore this.
    fn hold(&mut self, _connection: ConnectionKey) {}

    /// The connection no longer waits. It may be gone.
    fn release(&mut self, _connection: ConnectionKey) {}
}
