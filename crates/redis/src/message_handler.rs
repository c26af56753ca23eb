//! Dispatches PUB/SUB messages: publications, joins and leaves to the `Deliver`, others to the listeners of the node.
//! In: a name and the bytes published under it → out: calls of the `Deliver` or of a listener.
//! Uses: keys, records. Never: sockets, queues.
//! Changed here: what is done with a message. Messages of another version are skipped and counted.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use fanwire_broker::{Deliver, DeliverOptions, RevocationEvent, RevocationListener};

use super::health::Health;
use super::keys::Keys;
use super::record::{Message, Record};
use super::revocations;

/// Shared by all PUB/SUB connections.
pub(crate) struct MessageHandler {
    keys: Keys,
    health: Arc<Health>,
    receiver: OnceLock<Arc<dyn Deliver>>,
    listener: OnceLock<NodeListener>,
    revocations: OnceLock<RevocationListener>,
}

/// Takes messages of other nodes and returns whether it could decode them. It must be short.
pub(crate) type NodeListener = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

impl MessageHandler {
    pub(crate) fn new(keys: Keys, health: Arc<Health>) -> Self {
        Self {
            keys,
            health,
            receiver: OnceLock::new(),
            listener: OnceLock::new(),
            revocations: OnceLock::new(),
        }
    }

    /// Sets the receiver of publications.
    pub(crate) fn deliver_to(&self, receiver: Arc<dyn Deliver>) {
        assert!(self.receiver.set(receiver).is_ok(), "an engine has one door");
    }

    /// Sets the receiver of messages between nodes.
    pub(crate) fn set_node_listener(&self, listener: NodeListener) {
        assert!(self.listener.set(listener).is_ok(), "an engine has one listener");
    }

    /// Sets the receiver of changes of blocks and revocations.
    pub(crate) fn set_revocation_listener(&self, listener: RevocationListener) {
        assert!(self.revocations.set(listener).is_ok(), "an engine has one such listener");
    }

    /// Whether messages would only wait in the inboxes of shards.
    pub(crate) fn is_congested(&self) -> bool {
        self.receiver.get().is_some_and(|receiver| receiver.is_congested())
    }

    /// Whether messages of nodes are published under `name`.
    pub(crate) fn is_node_channel(&self, name: &[u8]) -> bool {
        self.keys.is_node_channel(name)
    }

    /// Whether changes of blocks and revocations are published under `name`.
    pub(crate) fn is_of_revocations(&self, name: &[u8]) -> bool {
        self.revocation_listener(name).is_some()
    }

    /// Dispatches a message that was published under `name`.
    pub(crate) fn handle(&self, name: &[u8], message: Bytes, now: Instant) {
        if let Some(channel) = self.keys.channel_of_pubsub(name) {
            return self.deliver(channel, name, message, now);
        }
        if let Some(listener) = self.revocation_listener(name) {
            return match revocations::read_change(message) {
                Ok((position, change)) => listener(RevocationEvent::Change(position, change)),
                Err(_) => self.health.skipped_foreign_message(name),
            };
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

    /// Reports that `name` is subscribed again and messages in between are lost.
    pub(crate) fn report_gap(&self, name: &str) {
        if let (Some(receiver), Some(channel)) =
            (self.receiver.get(), self.keys.channel_of_pubsub(name.as_bytes()))
        {
            receiver.report_possible_gap(channel);
        } else if let Some(listener) = self.revocation_listener(name.as_bytes()) {
            listener(RevocationEvent::MayHaveGap);
        }
    }

    /// The listener of blocks and revocations, if their changes are published under `name`.
    fn revocation_listener(&self, name: &[u8]) -> Option<&RevocationListener> {
        let listener = self.revocations.get()?;
        let is_of_changes = self.keys.of_revocations(revocations::CHANGES).as_bytes() == name;
        is_of_changes.then_some(listener)
    }

    fn deliver(&self, channel: &str, name: &[u8], record: Bytes, now: Instant) {
        let Some(receiver) = self.receiver.get() else { return };
        match Record::read(record) {
            Ok(Message::Publication { publication, epoch, delta, excluded, class, receipt }) => {
                let options = DeliverOptions {
                    epoch,
                    delta,
                    exclude: excluded,
                    class,
                    receipt,
                    accepted_at: now,
                };
                receiver.deliver(channel, publication, options);
            }
            Ok(Message::Change(change, client)) => {
                receiver.deliver_join_leave(channel, change, client)
            }
            Ok(Message::Cleared) => receiver.report_possible_gap(channel),
            Err(_) => self.health.skipped_foreign_message(name),
        }
    }
}
