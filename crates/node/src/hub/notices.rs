//! How a hub obeys notices: who gets a broadcast (design §3, step 6), whom an API call disconnects or unsubscribes.
//! In: broadcasts, targets → out: deliveries, unsubscribe pushes, disconnects.
//! Uses: `roster` lists. Never: encodes a broadcast, beyond asking whether its JSON form exists.
//! Change here: the delivery loop, matching of targets.

use std::sync::Arc;

use fanwire_protocol::{Disconnect, Encoding, UnsubscribeCode};

use super::Hub;
use crate::broadcast::Broadcast;
use crate::notice::Target;
use crate::outbox::Outbox;
use crate::session::{ConnectionKey, Session};

impl Hub {
    /// Hands the broadcast to every subscriber of its channel here: one walk over one dense list, no lookup and no
    /// allocation per subscriber.
    ///
    /// The JSON form is made first when JSON subscribers are there (once for all shards), because it may not exist.
    pub(super) fn broadcast(&mut self, broadcast: &Arc<Broadcast>, out: &mut impl Outbox) {
        let subscribers = self.roster.subscribers();
        let Some(index) = subscribers.find(broadcast.channel()) else {
            return; // the last subscriber left while the notice was under way
        };
        let audience = subscribers.audience(index);
        let counters = self.roster.counters();
        counters.broadcasts.add(1);
        if audience.json > 0 && broadcast.message(Encoding::Json).is_none() {
            return self.broadcast_not_json(index, broadcast, out);
        }
        counters.deliveries.add(audience.list.len() as u64);
        for subscriber in &audience.list {
            out.deliver(subscriber.connection, subscriber.place, broadcast);
        }
    }

    /// The rare way: data that is not JSON reaches the Protobuf subscribers, the JSON ones are disconnected with 3506
    /// (protocol §3).
    fn broadcast_not_json(
        &mut self,
        index: u32,
        broadcast: &Arc<Broadcast>,
        out: &mut impl Outbox,
    ) {
        let mut refused = Vec::new();
        for subscriber in &self.roster.subscribers().audience(index).list {
            let session = self.roster.at(subscriber.connection).expect("subscribers have sessions");
            if session.encoding == Encoding::Json {
                refused.extend(self.roster.key_at(subscriber.connection));
            } else {
                self.counters().deliveries.add(1);
                out.deliver(subscriber.connection, subscriber.place, broadcast);
            }
        }
        for key in refused {
            self.disconnect(key, &Disconnect::INAPPROPRIATE_PROTOCOL, out);
        }
    }

    pub(super) fn disconnect_target(
        &mut self,
        target: &Target,
        disconnect: &Disconnect,
        out: &mut impl Outbox,
    ) {
        for key in self.matching(target) {
            self.disconnect(key, disconnect, out);
        }
    }

    pub(super) fn unsubscribe_target(
        &mut self,
        target: &Target,
        channel: Option<&str>,
        code: UnsubscribeCode,
        out: &mut impl Outbox,
    ) {
        for key in self.matching(target) {
            match channel {
                Some(channel) => {
                    if let Some(place) = self.roster.place_of(key.index, channel) {
                        self.end_subscription(key, place, code, out);
                    }
                }
                None => self.end_all_subscriptions(key, code, out),
            }
        }
    }

    fn end_all_subscriptions(
        &mut self,
        key: ConnectionKey,
        code: UnsubscribeCode,
        out: &mut impl Outbox,
    ) {
        let count = self.roster.session(key).map_or(0, |session| session.subscriptions.len());
        for place in (0..count).rev() {
            self.end_subscription(key, place, code, out);
        }
    }

    /// The connected sessions a target means.
    fn matching(&self, target: &Target) -> Vec<ConnectionKey> {
        (self.roster.users().of(&target.user))
            .filter(|index| self.roster.at(*index).is_some_and(|session| target.means(session)))
            .filter_map(|index| self.roster.key_at(index))
            .collect()
    }
}

impl Target {
    /// Whether a session of the right user passes the other filters.
    fn means(&self, session: &Session) -> bool {
        let mut buffer = uuid::Uuid::encode_buffer();
        let client: &str = session.id.hyphenated().encode_lower(&mut buffer);
        self.session.is_empty()
            && (self.client.is_empty() || self.client == client)
            && !self.whitelist.iter().any(|spared| spared == client)
    }
}
