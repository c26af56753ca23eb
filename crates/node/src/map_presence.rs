//! Entries of maps that exist because of a subscription: who is in a channel, and the client's own key (protocol §27).
//! In: subscriptions that begin, go on and end, with their time → out: changes of maps, through the node.
//! Uses: the session table, settings, the node's maps. Never: the presence of streams, which `session_effects.rs` tells.
//! Changed here: which entries a subscriber has. Their channels are `map_clients_presence_channel_prefix` and the like.

use std::time::Instant;

use fanwire_policy::options::Namespace;

use crate::index::SubscriptionIndex;
use crate::node::Node;
use crate::session::{ConnectionKey, Session, Subscription};
use crate::session_table::SessionTable;

/// The maps in which the sessions of a shard have entries.
#[derive(Clone, Copy)]
pub(crate) struct MapPresence<'a> {
    pub(crate) node: &'a Node,
    pub(crate) session_table: &'a SessionTable,
    pub(crate) now: Instant,
}

impl MapPresence<'_> {
    /// A subscription began.
    pub(crate) fn appear(self, index: u32, own: SubscriptionIndex) {
        if let Some(session) = self.session_table.at(index) {
            self.set(session, session.subscription(own));
        }
    }

    /// The entries of a session go on. Returns whether there are some.
    pub(crate) fn renew(self, index: u32) -> bool {
        let Some(session) = self.session_table.at(index) else { return false };
        let mut has_some = false;
        for subscription in session.subscriptions.iter().filter(|one| one.has_entries) {
            has_some = true;
            self.set(session, subscription);
        }
        has_some
    }

    /// A subscription is about to end.
    pub(crate) fn disappear(self, index: u32, own: SubscriptionIndex) {
        if let Some(session) = self.session_table.at(index) {
            self.remove(session, session.subscription(own));
        }
    }

    /// A session is about to end.
    pub(crate) fn disappear_from_all_of(self, key: ConnectionKey) {
        let Some(session) = self.session_table.session(key) else { return };
        session.subscriptions.iter().for_each(|subscription| self.remove(session, subscription));
    }

    fn set(self, session: &Session, subscription: &Subscription) {
        self.with_namespace(subscription, |channel, namespace| {
            let clients = &namespace.map_clients_presence_channel_prefix;
            if !clients.is_empty() {
                let info = session.client_info(Some(subscription));
                let key = info.client.clone();
                let map = format!("{clients}{channel}");
                self.node.maps().set_member(&map, key, Some(info), self.now);
            }
            let users = &namespace.map_users_presence_channel_prefix;
            if !users.is_empty() && !session.user.is_empty() {
                let map = format!("{users}{channel}");
                let key = session.user.as_ref().to_owned();
                self.node.maps().set_member(&map, key, None, self.now);
            }
        });
    }

    /// Users stay until their entries expire: they may have other connections, or come back.
    fn remove(self, session: &Session, subscription: &Subscription) {
        self.with_namespace(subscription, |channel, namespace| {
            let clients = &namespace.map_clients_presence_channel_prefix;
            if !clients.is_empty() {
                let map = format!("{clients}{channel}");
                self.node.maps().remove_member(&map, session.client(), self.now);
            }
            if namespace.map.remove_client_on_unsubscribe {
                self.node.maps().remove_member(channel, session.client(), self.now);
            }
        });
    }

    /// Calls `work` with the channel of a subscription and its namespace, if maps have entries because of it.
    fn with_namespace(self, subscription: &Subscription, work: impl FnOnce(&str, &Namespace)) {
        if !subscription.has_entries {
            return;
        }
        let subscribers = self.session_table.subscribers();
        let channel = &subscribers.channel_subscribers(subscription.channel).channel;
        let settings = self.node.settings();
        if let Ok(namespace) = settings.channels.resolve_trusted(channel) {
            work(channel, namespace);
        }
    }
}
