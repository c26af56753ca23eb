//! The way out of a hub: what a shard shell does with the bytes and verdicts of its sessions.
//! In: calls of the hub during one turn → out: whatever the shell makes of them (frames, writes, closes; a record in tests).
//! Uses: connection keys, shared broadcasts, disconnect codes. Never: sockets.
//! Change here: the effects a hub can have. What causes them lives in `hub/` and `command/`.

use std::sync::Arc;

use fanwire_protocol::Disconnect;

use crate::broadcast::{Broadcast, DeltaMode};
use crate::encode_job::EncodeJob;
use crate::session::ConnectionKey;

/// Effects of one turn of a hub. The order of the calls for one connection is the order on its wire.
pub trait Outbox {
    /// One encoded reply, or a push that is no publication, unframed and not joined. Called once per hearer of a join or
    /// leave, so it should not allocate per call.
    fn send(&mut self, connection: ConnectionKey, message: &[u8]);

    /// The message just sent to `connection`, perhaps with others before it, told its subscription at `place` what it had missed of `channel`, up to
    /// the newest publication that it knows. For shells that compress in context.
    fn recovered(&mut self, _connection: ConnectionKey, _place: u32, _channel: &str) {}

    /// A publication, in a shape that exists in the connection's encoding. Hot: called once per subscriber, so it must not
    /// allocate per call.
    ///
    /// `connection` is the dense index. `place` tells the subscriptions of one connection apart, below
    /// `client.channel_limit`; while a subscription lives it changes only when another one of the connection ends.
    fn deliver(
        &mut self,
        connection: u32,
        place: u32,
        broadcast: &Arc<Broadcast>,
        shape: DeltaMode,
    );

    /// A publication as it is, to each of these connections and places: what most broadcasts are, so a shell may have a
    /// shorter way for it than [`deliver`](Self::deliver) for each.
    fn deliver_to_all(
        &mut self,
        receivers: impl Iterator<Item = (u32, u32)>,
        broadcast: &Arc<Broadcast>,
    ) {
        for (connection, place) in receivers {
            self.deliver(connection, place, broadcast, DeltaMode::Plain);
        }
    }

    /// The subscription of a connection at place `from` is at `to` from now on, where another one was, which ended.
    fn moved(&mut self, _connection: u32, _from: u32, _to: u32) {}

    /// A native WebSocket ping frame, for sessions opened with [`crate::Hello::frame_ping`]; the answer is told to
    /// [`crate::Hub::pong`].
    fn ping(&mut self, connection: ConnectionKey);

    /// An answer of this shard is too large to be made in a turn: to be run by another thread, if there is one. Its result comes
    /// through the inbox.
    fn offload(&mut self, encode_job: EncodeJob) {
        encode_job.run();
    }

    /// Close with this code. The hub has forgotten the session already; everything sent before is still to be flushed.
    fn disconnect(&mut self, connection: ConnectionKey, disconnect: &Disconnect);

    /// A command of this connection waits for somebody else: what the peer sends next is better left in its socket until
    /// [`release`](Self::release). Whatever still comes is kept, so a shell may ignore this.
    fn hold(&mut self, _connection: ConnectionKey) {}

    /// The connection waits no more. It may be gone.
    fn release(&mut self, _connection: ConnectionKey) {}
}
