//! What a hub does in one call: frames, ends, connections that are read or not.
//! In: calls of the hub → out: the same effects in their order, by index of the connection.
//! Uses `Outbox` of the node. Never: sockets.
//! Changed here: which effects a simulated shard has.

use std::sync::Arc;

use bytes::Bytes;
use fanwire_node::{Broadcast, ConnectionKey, DeltaMode, Outbox, SubscriptionIndex};
use fanwire_protocol::{Disconnect, Encoding};

/// An effect of a hub on a connection.
pub enum Effect {
    Message(Bytes),
    Disconnect(Disconnect),
    /// The shard reads the connection no longer.
    Hold,
    Release,
}

/// Records effects.
#[derive(Default)]
pub(super) struct EffectRecorder {
    pub(super) effects: Vec<(u32, Effect)>,
}

impl Outbox for EffectRecorder {
    fn send(&mut self, connection: ConnectionKey, message: &[u8]) {
        let message = Bytes::copy_from_slice(message);
        self.effects.push((connection.index, Effect::Message(message)));
    }

    fn deliver(
        &mut self,
        connection: u32,
        _: SubscriptionIndex,
        broadcast: &Arc<Broadcast>,
        delta_mode: DeltaMode,
    ) {
        let encoded = broadcast.message_in(delta_mode, Encoding::Protobuf);
        let message = encoded.expect("every payload has a Protobuf form").clone();
        self.effects.push((connection, Effect::Message(message)));
    }

    fn ping(&mut self, _: ConnectionKey) {
        unreachable!("simulated clients have no native pings");
    }

    fn disconnect(&mut self, connection: ConnectionKey, disconnect: &Disconnect) {
        self.effects.push((connection.index, Effect::Disconnect(disconnect.clone())));
    }

    fn hold(&mut self, connection: ConnectionKey) {
        self.effects.push((connection.index, Effect::Hold));
    }

    fn release(&mut self, connection: ConnectionKey) {
        self.effects.push((connection.index, Effect::Release));
    }
}
