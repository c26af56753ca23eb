//! Handles updates of shared poll channels: values and removals for those who track a key (protocol §28).
//! In: a value or a removal of a key → out: deliveries to connections that lack it; keys whose signature has expired leave.
//! Uses: the trackers of the shard, the node's shared polls. Never: encodes, polls.
//! Changed here: who gets an update. `session_table/trackers.rs` knows who tracks a key.

use std::sync::Arc;
use std::time::Instant;

use fanwire_protocol::Disconnect;

use super::Hub;
use crate::broadcast::{Broadcast, DeltaMode};
use crate::deadlines;
use crate::index::SubscriptionIndex;
use crate::outbox::Outbox;
use crate::session::{ConnectionKey, Session};

impl Hub {
    /// Delivers an update to the connections that track its key and have an older version; a removal to all of them.
    pub(super) fn update_key(&mut self, broadcast: &Arc<Broadcast>, out: &mut impl Outbox) {
        let channel = broadcast.channel();
        let publication = broadcast.publication();
        let key = publication.key.as_str();
        let table = &mut self.session_table;
        let indices = if publication.removed {
            let indices = table.trackers.remove(channel, key);
            let name: Arc<str> = key.into();
            let untracked = vec![name; indices.len()];
            self.node.shared_polls().untrack(channel, untracked);
            indices
        } else {
            table.trackers.accept_all(channel, key, publication.version)
        };
        let Some(channel_index) = table.subscribers().find(channel) else { return };
        let mut receivers = Vec::with_capacity(indices.len());
        let mut unreadable = Vec::new();
        for index in indices {
            let Some(session) = table.at(index) else { continue };
            let Some(own) = subscription_of(session, channel_index) else { continue };
            if !session.subscription(own).wants(&publication.tags) {
                table.counters.filtered_publications.add(1);
                continue;
            }
            if broadcast.exists_for(session.encoding, DeltaMode::Plain) {
                receivers.push((index, own));
            } else {
                unreadable.push(ConnectionKey { index, generation: session.generation });
            }
        }
        table.counters.broadcasts.add(1);
        table.counters.deliveries.add(receivers.len() as u64);
        out.deliver_to_all(receivers.into_iter(), broadcast);
        self.disconnect_all(&unreadable, &Disconnect::INAPPROPRIATE_PROTOCOL, out);
    }

    /// Untracks the keys of a session whose signatures expired some time ago.
    pub(super) fn expire_tracked_keys(&mut self, index: u32, now: Instant) {
        let table = &mut self.session_table;
        let channels: Vec<_> = table.channels_of(index).cloned().collect();
        let settings = self.node.settings();
        let unix = self.node.unix(now);
        for channel in channels {
            let Ok(namespace) = settings.channels.resolve_trusted(&channel) else { continue };
            let delay_s = namespace.shared_poll.extra_delay_s();
            let expired = table.trackers.take_expired(index, &channel, delay_s, unix);
            self.node.shared_polls().untrack(&channel, expired);
        }
        deadlines::watch_tracked_keys(&self.node, table, index, now);
    }
}

fn subscription_of(session: &Session, channel: u32) -> Option<SubscriptionIndex> {
    let mut subscriptions = session.subscriptions.iter();
    let own = subscriptions.position(|subscription| subscription.channel == channel)?;
    Some(SubscriptionIndex(own as u32))
}
