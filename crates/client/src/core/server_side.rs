//! Subscriptions that the server made, and pushes (client protocol §7, §9, §15).
//! Results of a connect and pushes → events, and positions for the next connect.
//! Uses `core` and the positions of `subscriptions`; never sends a command.
//! Changed here: what a push does. Subscriptions of the application are `subscriptions`.

use std::collections::BTreeMap;

use fanwire_protocol::{
    Publication, Push, StreamPosition, Subscribe, SubscribeRequest, SubscribeResult,
};

use super::ClientCore;
use super::subscriptions::{advance, no_position, position_of, subscribed_context};
use crate::{ClientEvent, SubscriptionEvent};

/// The state of one subscription that the server made.
#[derive(Debug, Default)]
pub(super) struct ServerSideSubscription {
    /// Position to recover from, if the subscription is recoverable.
    position: Option<StreamPosition>,
}

impl ClientCore {
    /// The positions from which the next connect recovers.
    pub(super) fn server_side_positions(&self) -> BTreeMap<String, SubscribeRequest> {
        let positions = self
            .server_side
            .iter()
            .filter_map(|(channel, it)| Some((channel, it.position.clone()?)));
        let requests = positions.map(|(channel, StreamPosition { offset, epoch })| {
            let request =
                SubscribeRequest { recover: true, offset, epoch, ..SubscribeRequest::default() };
            (channel.clone(), request)
        });
        requests.collect()
    }

    /// The subscriptions that the server made with a connect; earlier ones that it did not make again have ended.
    pub(super) fn server_side_subscribed(&mut self, results: BTreeMap<String, SubscribeResult>) {
        let before = std::mem::take(&mut self.server_side);
        for channel in before.into_keys().filter(|channel| !results.contains_key(channel)) {
            self.orders.event(ClientEvent::ServerUnsubscribed { channel });
        }
        for (channel, result) in results {
            self.server_side_begins(&channel, &result);
            for publication in result.publications {
                self.server_side_publication(&channel, publication, 0);
            }
        }
    }

    /// Forgets the token, and that positions are positions of a stream.
    pub(super) fn invalidate_state(&mut self) {
        self.token.clear();
        for subscription in self.server_side.values_mut() {
            if subscription.position.is_some() {
                subscription.position = Some(no_position());
            }
        }
        self.subscriptions.invalidate();
    }

    pub(super) fn push(&mut self, push: Push, wire_bytes: usize) {
        let Push { channel, .. } = push;
        let is_own = self.subscriptions.contains(&channel);
        if let Some(publication) = push.r#pub {
            if is_own {
                self.subscriptions.publication(&channel, publication, wire_bytes, &mut self.orders);
            } else {
                self.server_side_publication(&channel, publication, wire_bytes);
            }
        } else if let Some(info) = push.join.and_then(|join| join.info) {
            if is_own {
                self.orders.subscription_event(&channel, SubscriptionEvent::Join { info });
            } else {
                self.orders.event(ClientEvent::ServerJoin { channel, info });
            }
        } else if let Some(info) = push.leave.and_then(|leave| leave.info) {
            if is_own {
                self.orders.subscription_event(&channel, SubscriptionEvent::Leave { info });
            } else {
                self.orders.event(ClientEvent::ServerLeave { channel, info });
            }
        } else if let Some(unsubscribe) = push.unsubscribe {
            if is_own {
                self.subscriptions.unsubscribed(&channel, unsubscribe, &mut self.orders);
            } else if self.server_side.remove(&channel).is_some() {
                self.orders.event(ClientEvent::ServerUnsubscribed { channel });
            }
        } else if let Some(subscribe) = push.subscribe {
            self.server_side_begins(&channel, &result_of(subscribe));
        } else if let Some(message) = push.message {
            self.orders.event(ClientEvent::Message { data: message.data });
        } else if let Some(disconnect) = push.disconnect {
            let code = u16::try_from(disconnect.code).ok();
            self.closed(code, &disconnect.reason, self.orders.now);
        }
    }

    fn server_side_begins(&mut self, channel: &str, result: &SubscribeResult) {
        let position = result.recoverable.then(|| position_of(result));
        self.server_side.insert(channel.to_owned(), ServerSideSubscription { position });
        let subscribed = subscribed_context(result);
        self.orders
            .event(ClientEvent::ServerSubscribed { channel: channel.to_owned(), subscribed });
    }

    /// A publication of a channel that is not subscribed is dropped.
    fn server_side_publication(
        &mut self,
        channel: &str,
        publication: Publication,
        wire_bytes: usize,
    ) {
        let Some(subscription) = self.server_side.get_mut(channel) else { return };
        if let Some(position) = &mut subscription.position {
            advance(position, &publication);
        }
        let channel = channel.to_owned();
        self.orders.event(ClientEvent::ServerPublication { channel, publication, wire_bytes });
    }
}

/// A subscribe push as the result that it stands for.
fn result_of(push: Subscribe) -> SubscribeResult {
    let Subscribe { recoverable, epoch, offset, positioned, data } = push;
    SubscribeResult { recoverable, epoch, offset, positioned, data, ..SubscribeResult::default() }
}
