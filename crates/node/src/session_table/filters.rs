//! Filters of subscriptions: what they let through, and how the server replaces its own (protocol §13).
//! In: tags of a publication, another filter → out: whether a subscriber gets it; marks in the lists of subscribers.
//! Uses: the tables. Pure. Never: reads tokens, sends.
//! Changed here: what changes together with a filter. `policy/filter.rs` evaluates it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fanwire_policy::filter::{Filter, SubscriptionFilter};
use fanwire_policy::tiles::tile_channel;

use super::{LIVES, SessionTable};
use crate::index::SubscriptionIndex;
use crate::session::SubscriptionGrant;
use crate::subscribers::Subscriber;

impl SessionTable {
    /// Whether the filter of a subscriber matches these tags.
    pub(crate) fn wants(&self, subscriber: Subscriber, tags: &BTreeMap<String, String>) -> bool {
        let session = self.at(subscriber.connection).expect(LIVES);
        session.subscription(subscriber.subscription()).wants(tags)
    }

    /// Replaces the filter that the server sets for a subscription and for the tiles in its view. That of the client stays.
    pub(crate) fn set_server_filter(
        &mut self,
        index: u32,
        subscription: SubscriptionIndex,
        of_server: Option<Filter>,
    ) {
        let Some(session) = self.at(index) else { return };
        let filter = session.subscription(subscription).filter_by_server(of_server).shared();
        self.set_filter(index, subscription, filter.clone());
        let Some(channel) = self.channel_of(index, subscription).cloned() else { return };
        for tile in self.views.tiles(index, &channel).to_vec() {
            if let Some(own) = self.subscription_to(index, &tile_channel(&channel, tile)) {
                self.set_filter(index, own, filter.clone());
            }
        }
    }

    fn set_filter(
        &mut self,
        index: u32,
        subscription: SubscriptionIndex,
        filter: Option<Arc<SubscriptionFilter>>,
    ) {
        let has_filter = filter.is_some();
        let subscription = self.expect_session(index).subscription_mut(subscription);
        subscription.terms = SubscriptionGrant::filtering(subscription.terms.take(), filter);
        let channel = subscription.channel;
        let subscriber = subscription.subscriber;
        self.subscribers.channel_subscribers_mut(channel).mark_filter(subscriber, has_filter);
    }
}

#[cfg(test)]
mod tests;
