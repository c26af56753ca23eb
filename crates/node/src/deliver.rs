//! Routes publications of every broker to the shards: between steps 5 and 6 of the route.
//! In: publications in broker order, on any thread → out: one `Arc<Broadcast>` in the inbox of each shard with subscribers.
//! Uses: `registry`, inboxes. Never: encodes; the hub selects the receivers inside a shard.
//! Changed here: the way from broker to shards. The broker orders publications; the router keeps that order.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use fanwire_auth::OptionsError;
use fanwire_broker::{Change, ClientId, Deliver, DeliverOptions, DeliveryClass, Epoch};
use fanwire_cluster::{ConnectionSelector, Receipts};
use fanwire_policy::channel::NamespaceId;
use fanwire_policy::options::{ChannelOptions, DeliveryOptions, Namespace};
use fanwire_protocol::{ClientInfo, Publication, UnsubscribeCode};
use parking_lot::RwLock;

use crate::broadcast::{Broadcast, Prepare};
use crate::join_leave::JoinLeave;
use crate::notice::{Inbox, Notice};
use crate::registry::ShardId;
use crate::registry::{Listeners, Registry};

/// The router of a node.
pub(crate) struct BroadcastRouter {
    registry: Arc<Registry>,
    /// Inboxes by shard id.
    inboxes: RwLock<Vec<Arc<dyn Inbox>>>,
    prepare: Option<Arc<dyn Prepare>>,
    observer: OnceLock<Observer>,
    /// Takes values that are published in shared poll channels.
    values: OnceLock<TakeValue>,
    /// Delivery options by namespace; set before a namespace's id is used.
    deliveries: Box<[OnceLock<Arc<DeliveryOptions>>]>,
    pub(crate) receipts: Receipts,
}

/// A function that is called with the channel of each publication, subscribers or not, and must be short.
pub(crate) type Observer = Box<dyn Fn(&str) + Send + Sync>;

/// A function that is called with the channel of each value, and the time. The broker holds the lock of the channel.
pub(crate) type TakeValue = Box<dyn Fn(&str, Publication, Instant) + Send + Sync>;

impl BroadcastRouter {
    pub(crate) fn new(
        registry: Arc<Registry>,
        options: &ChannelOptions,
        prepare: Option<Arc<dyn Prepare>>,
    ) -> Self {
        let first = NamespaceId::all(options).map(|one| Arc::new(one.delivery.clone()).into());
        let later = std::iter::repeat_with(OnceLock::new);
        let deliveries = first.chain(later).take(NamespaceId::count(options));
        Self {
            registry,
            inboxes: RwLock::default(),
            prepare,
            observer: OnceLock::new(),
            values: OnceLock::new(),
            deliveries: deliveries.collect(),
            receipts: Receipts::default(),
        }
    }

    /// Sets how publications of these namespaces are delivered; those that are set stay as they are.
    ///
    /// # Errors
    /// There are more namespaces than [`NamespaceId::count`].
    pub(crate) fn deliver_as<'a>(
        &self,
        namespaces: impl Iterator<Item = (NamespaceId, &'a Namespace)>,
    ) -> Result<(), OptionsError> {
        for (id, namespace) in namespaces {
            let Some(delivery) = self.deliveries.get(usize::from(id.0)) else {
                let expected = "fewer added namespaces, or a restart";
                return Err(OptionsError::value("channel.namespaces", &namespace.name, expected));
            };
            delivery.get_or_init(|| Arc::new(namespace.delivery.clone()));
        }
        Ok(())
    }

    /// Adds the inbox of a further shard.
    pub(crate) fn attach(&self, inbox: Arc<dyn Inbox>) -> ShardId {
        let mut inboxes = self.inboxes.write();
        let shard = ShardId(inboxes.len().try_into().expect("at most 65,536 shards"));
        inboxes.push(inbox);
        shard
    }

    /// The inbox of an attached shard.
    pub(crate) fn inbox(&self, shard: ShardId) -> Arc<dyn Inbox> {
        Arc::clone(&self.inboxes.read()[usize::from(shard.0)])
    }

    pub(crate) fn shard_count(&self) -> usize {
        self.inboxes.read().len()
    }

    pub(crate) fn observe(&self, observer: Observer) {
        assert!(self.observer.set(observer).is_ok(), "publications have one observer");
    }

    /// Sets the function that takes values of shared poll channels, once.
    pub(crate) fn take_values(&self, take: TakeValue) {
        assert!(self.values.set(take).is_ok(), "values have one taker");
    }

    /// Sends a notice to the shards with subscribers of a channel.
    pub(crate) fn send_to_shards(&self, channel: &str, notice: &Notice) {
        let Some(listeners) = self.registry.listeners(channel) else { return };
        let inboxes = self.inboxes.read();
        for shard in listeners.shards {
            inboxes[usize::from(shard.0)].push(notice.clone());
        }
    }

    /// Sends a notice to every shard.
    pub(crate) fn send_to_all_shards(&self, notice: &Notice) {
        for inbox in self.inboxes.read().iter() {
            inbox.push(notice.clone());
        }
    }

    /// Sends a publication to the shards with subscribers of its channel, for all of them or for one connection. The first
    /// publication of a stream carries its epoch, for clients that subscribed before there was one (protocol §10).
    pub(crate) fn deliver_to(
        &self,
        receiver: Option<ClientId>,
        channel: &str,
        mut publication: Publication,
        options: DeliverOptions,
    ) {
        let Some(listeners) = self.registry.listeners(channel) else {
            return; // no subscriber here: nothing is encoded
        };
        let Listeners { channel, namespace, shards } = listeners;
        let DeliverOptions { epoch, delta, exclude, class, receipt, accepted_at } = options;
        if publication.offset == 1 {
            publication.epoch = epoch.as_str().to_owned();
        }
        let mut broadcast = Broadcast::new(channel, namespace, publication, epoch, accepted_at);
        broadcast.exclude(exclude);
        broadcast.deliver_only_to(receiver);
        broadcast.allow_delta(delta);
        let open = |number| self.receipts.open(number, accepted_at);
        broadcast.report_in((receipt > 0).then_some(receipt).map(open));
        let delivery = self.deliveries[usize::from(namespace.0)]
            .get()
            .expect("a namespace is set before its id is used");
        if class.unwrap_or(delivery.class) == DeliveryClass::Latest {
            broadcast.may_be_replaced(Arc::clone(delivery));
        }
        if receiver.is_none() {
            broadcast.batch(delivery.batch);
        }
        if let Some(prepare) = &self.prepare {
            broadcast.prepare(prepare.as_ref());
        }
        let broadcast = Arc::new(broadcast);
        let inboxes = self.inboxes.read();
        for shard in shards {
            inboxes[usize::from(shard.0)].push(Notice::Broadcast(Arc::clone(&broadcast)));
        }
    }
}

impl BroadcastRouter {
    /// Makes the push of a key of a shared poll channel, for all who track it or for one connection. `None` without subscribers.
    pub(crate) fn make_update(
        &self,
        receiver: Option<ClientId>,
        channel: &str,
        publication: Publication,
        now: Instant,
    ) -> Option<Arc<Broadcast>> {
        let Listeners { channel, namespace, .. } = self.registry.listeners(channel)?;
        let mut broadcast = Broadcast::new(channel, namespace, publication, Epoch::NONE, now);
        broadcast.deliver_only_to(receiver);
        // A slow client gets the newest value of each key. The number of keys has a limit where they are tracked.
        let delivery = DeliveryOptions { keys_max: usize::MAX, ..DeliveryOptions::default() };
        broadcast.may_be_replaced(Arc::new(delivery));
        if let Some(prepare) = &self.prepare {
            broadcast.prepare(prepare.as_ref());
        }
        Some(Arc::new(broadcast))
    }

    /// Sends an update of a key of a shared poll channel to the shards with subscribers.
    pub(crate) fn send_update(&self, channel: &str, publication: Publication, now: Instant) {
        if let Some(broadcast) = self.make_update(None, channel, publication, now) {
            self.send_to_shards(channel, &Notice::KeyUpdate(broadcast));
        }
    }

    /// Ends all subscriptions to a channel; the clients subscribe again.
    pub(crate) fn end_all_subscriptions(&self, channel: &str) {
        let Some(Listeners { channel, .. }) = self.registry.listeners(channel) else { return };
        let target = ConnectionSelector { all_users: true, ..ConnectionSelector::default() };
        let code = UnsubscribeCode::INSUFFICIENT_STATE;
        let name = Some(Arc::clone(&channel));
        self.send_to_shards(
            &channel,
            &Notice::Unsubscribe { target: target.into(), channel: name, code },
        );
    }
}

impl Deliver for BroadcastRouter {
    fn deliver(&self, channel: &str, publication: Publication, options: DeliverOptions) {
        if let Some(observer) = self.observer.get() {
            observer(channel);
        }
        // Only values of shared poll channels have a version.
        let values = self.values.get().filter(|_| publication.version != 0);
        if let Some(take) = values {
            return take(channel, publication, options.accepted_at);
        }
        self.deliver_to(None, channel, publication, options);
    }

    fn deliver_join_leave(&self, channel: &str, change: Change, info: ClientInfo) {
        let Some(Listeners { channel, shards, .. }) = self.registry.listeners(channel) else {
            return;
        };
        let join_leave = Arc::new(JoinLeave::new(channel, change, info));
        let inboxes = self.inboxes.read();
        for shard in shards {
            inboxes[usize::from(shard.0)].push(Notice::JoinLeave(Arc::clone(&join_leave)));
        }
    }

    fn report_possible_gap(&self, channel: &str) {
        if let Some(Listeners { channel, .. }) = self.registry.listeners(channel) {
            self.send_to_shards(&channel, &Notice::PossibleGap(Arc::clone(&channel)));
        }
    }

    /// True when one shard is behind, because all shards receive the same broadcasts in one order.
    fn is_congested(&self) -> bool {
        self.inboxes.read().iter().any(|inbox| inbox.is_congested())
    }
}

#[cfg(test)]
mod tests;
