//! Where messages of PUB/SUB go: publications, joins and leaves to the door, words of other nodes to the node.
//! In: a name and the bytes published under it → out: calls of the door or of the node.
//! Uses: keys, records. Never: sockets, queues.
//! Change here: what is done with a message. Foreign ones are skipped and counted.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use fanwire_broker::Deliver;

use super::health::Health;
use super::keys::Keys;
use super::record::{Message, Record};

/// Hands messages on. Shared by all feeds.
pub(crate) struct MessageHandler {
    keys: Keys,
    health: Arc<Health>,
    door: OnceLock<Arc<dyn Deliver>>,
    listener: OnceLock<NodeListener>,
}

/// Takes what other nodes say, and says whether it was understood. To be short.
pub(crate) type NodeListener = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

impl MessageHandler {
    pub(crate) fn new(keys: Keys, health: Arc<Health>) -> Self {
        Self { keys, health, door: OnceLock::new(), listener: OnceLock::new() }
    }

    /// From now on publications go here.
    pub(crate) fn deliver_to(&self, door: Arc<dyn Deliver>) {
        assert!(self.door.set(door).is_ok(), "an engine has one door");
    }

    /// From now on words of nodes go here.
    pub(crate) fn set_node_listener(&self, listener: NodeListener) {
        assert!(self.listener.set(listener).is_ok(), "an engine has one listener");
    }

    /// Whether whatever is handed on would only wait there.
    pub(crate) fn is_congested(&self) -> bool {
        self.door.get().is_some_and(|door| door.is_congested())
    }

    /// Whether what is published under `name` is a word of a node.
    pub(crate) fn is_node_channel(&self, name: &[u8]) -> bool {
        self.keys.is_node_channel(name)
    }

    /// Hands on what was published under `name`.
    pub(crate) fn handle(&self, name: &[u8], message: Bytes, now: Instant) {
        if let Some(channel) = self.keys.channel_of_feed(name) {
            return self.deliver(channel, name, message, now);
        }
        match self.listener.get() {
            Some(listener) if self.keys.is_node_channel(name) => {
                if !listener(&message) {
                    self.health.skipped_foreign_node_message(name);
                }
            }
            _ => self.health.skipped_foreign_message(name),
        }
    }

    /// What is published under `name` is heard again; what was published meanwhile was not.
    pub(crate) fn report_gap(&self, name: &str) {
        if let (Some(door), Some(channel)) =
            (self.door.get(), self.keys.channel_of_feed(name.as_bytes()))
        {
            door.report_possible_gap(channel);
        }
    }

    fn deliver(&self, channel: &str, name: &[u8], record: Bytes, now: Instant) {
        let Some(door) = self.door.get() else { return };
        match Record::read(record) {
            Ok(Message::Publication { publication, epoch, delta, excluded }) => {
                door.deliver(channel, publication, epoch, delta, excluded, now);
            }
            Ok(Message::Change(change, client)) => door.deliver_join_leave(channel, change, client),
            Err(_) => self.health.skipped_foreign_message(name),
        }
    }
}
