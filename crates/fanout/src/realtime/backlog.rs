//! Publications that wait for connections whose sockets take no bytes (`delivery: latest`).
//! In: broadcasts for blocked connections → out: the newest of each key, and every reliable one behind them, in the channel's order.
//! Uses shared broadcasts; never their bytes, a frame or a socket.
//! Changed here: which publication takes the place of which. `frames` encodes them when the socket drains.

mod counters;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use fanwire_node::{
    Broadcast, DeltaMode, MovedSubscription, NamespaceId, Receipt, SubscriptionIndex,
};
use hashbrown::HashMap;

pub use counters::BacklogCounters;

/// The backlogs of a shard's connections, by the index of the connection. Connections without one take no memory.
pub(super) struct Backlogs {
    connections: HashMap<u32, Backlog>,
    counters: Arc<[BacklogCounters]>,
}

/// The publications that wait for one connection.
#[derive(Default)]
struct Backlog {
    /// Waiting publications by index of the subscription; no entry is empty.
    channels: HashMap<SubscriptionIndex, ChannelBacklog>,
    /// The places of `channels`; the next publication is of the first one.
    order: VecDeque<SubscriptionIndex>,
    /// Bytes of reliable publications.
    reliable_bytes: usize,
}

/// The publications of one channel that wait for one connection, in their order.
struct ChannelBacklog {
    namespace: NamespaceId,
    waiting: BTreeMap<u64, Waiting>,
    /// The publication in `waiting` that a newer one with the same key replaces.
    newest: HashMap<Box<str>, u64>,
    next: u64,
}

/// A publication that waits, and its form: deltas wait as a whole, because their base may be replaced.
pub(super) struct Waiting {
    pub(super) broadcast: Arc<Broadcast>,
    pub(super) subscription: SubscriptionIndex,
    pub(super) delta_mode: DeltaMode,
}

impl Backlogs {
    /// Creates empty backlogs, with counters for this number of namespaces.
    pub(super) fn new(namespaces: usize) -> Self {
        let counters = (0..namespaces).map(|_| BacklogCounters::default()).collect();
        Self { connections: HashMap::default(), counters }
    }

    /// Returns the counters by namespace.
    pub(super) fn counters(&self) -> Arc<[BacklogCounters]> {
        Arc::clone(&self.counters)
    }

    /// Whether a connection can have a reason to let the broadcast wait.
    pub(super) fn concern(&self, broadcast: &Broadcast) -> bool {
        broadcast.latest().is_some() || !self.connections.is_empty()
    }

    /// Keeps a broadcast for a blocked connection, if it is to wait: one that a newer one may replace, or a reliable one
    /// behind such a one. Returns whether it waits.
    pub(super) fn hold(
        &mut self,
        connection: u32,
        subscription: SubscriptionIndex,
        broadcast: &Arc<Broadcast>,
        delta_mode: DeltaMode,
    ) -> bool {
        let is_behind = |backlog: &Backlog| backlog.channels.contains_key(&subscription);
        if broadcast.latest().is_none() && !self.connections.get(&connection).is_some_and(is_behind)
        {
            return false;
        }
        let delta_mode = match delta_mode {
            DeltaMode::Plain => DeltaMode::Plain,
            DeltaMode::Full | DeltaMode::Patch => DeltaMode::Full,
        };
        let waiting = Waiting { broadcast: Arc::clone(broadcast), subscription, delta_mode };
        let backlog = self.connections.entry(connection).or_default();
        backlog.add(waiting, &self.counters[usize::from(broadcast.namespace().0)]);
        true
    }

    /// Bytes of the reliable publications that wait for a connection.
    pub(super) fn reliable_bytes(&self, connection: u32) -> usize {
        self.connections.get(&connection).map_or(0, |backlog| backlog.reliable_bytes)
    }

    /// The connections for which publications wait.
    pub(super) fn connections(&self) -> Vec<u32> {
        self.connections.keys().copied().collect()
    }

    /// Whether publications wait for a connection.
    pub(super) fn has_waiting(&self, connection: u32) -> bool {
        self.connections.contains_key(&connection)
    }

    /// Removes the next publication for a connection that takes bytes again; channels take turns.
    pub(super) fn pop(&mut self, connection: u32, now: Instant) -> Option<Waiting> {
        let backlog = self.connections.get_mut(&connection)?;
        let subscription = backlog.order.pop_front()?;
        let channel = backlog.channels.get_mut(&subscription)?;
        let counters = &self.counters[usize::from(channel.namespace.0)];
        let (_, waiting) = channel.waiting.pop_first()?;
        counters.age.observe(now.saturating_duration_since(waiting.broadcast.accepted_at()));
        match waiting.broadcast.latest() {
            Some(_) => drop(channel.newest.remove(waiting.broadcast.conflation_key())),
            None => backlog.reliable_bytes -= waiting.bytes(),
        }
        if channel.waiting.is_empty() {
            counters.subscriptions.subtract(1);
            backlog.channels.remove(&subscription);
        } else {
            backlog.order.push_back(subscription);
        }
        if backlog.order.is_empty() {
            self.connections.remove(&connection);
        }
        Some(waiting)
    }

    /// A subscription of a connection ended, and another one moved to its index. Returns the reliable publications that
    /// waited for the ended one; others are dropped.
    pub(super) fn ended(&mut self, connection: u32, moved: MovedSubscription) -> Vec<Waiting> {
        let MovedSubscription { to, from } = moved;
        let Some(backlog) = self.connections.get_mut(&connection) else { return Vec::new() };
        let reliable = backlog.remove(to, &self.counters);
        if let Some(mut channel) = backlog.channels.remove(&from) {
            channel.waiting.values_mut().for_each(|waiting| waiting.subscription = to);
            backlog.channels.insert(to, channel);
            backlog.order.iter_mut().filter(|at| **at == from).for_each(|at| *at = to);
        }
        if backlog.order.is_empty() {
            self.connections.remove(&connection);
        }
        reliable
    }

    /// Drops what waits for a connection that ends. Returns the reliable publications.
    pub(super) fn remove(&mut self, connection: u32) -> Vec<Waiting> {
        let Some(mut backlog) = self.connections.remove(&connection) else { return Vec::new() };
        let subscriptions = Vec::from(std::mem::take(&mut backlog.order));
        subscriptions
            .into_iter()
            .flat_map(|subscription| backlog.remove(subscription, &self.counters))
            .collect()
    }
}

impl Backlog {
    fn add(&mut self, waiting: Waiting, counters: &BacklogCounters) {
        let subscription = waiting.subscription;
        if waiting.broadcast.latest().is_none() {
            self.reliable_bytes += waiting.bytes();
        }
        let channel = self.channels.entry(subscription).or_insert_with(|| {
            self.order.push_back(subscription);
            counters.subscriptions.add(1);
            ChannelBacklog::new(waiting.broadcast.namespace())
        });
        channel.add(waiting, counters);
    }

    /// Drops what waits for a subscription, and returns the reliable publications.
    fn remove(
        &mut self,
        subscription: SubscriptionIndex,
        counters: &[BacklogCounters],
    ) -> Vec<Waiting> {
        let Some(channel) = self.channels.remove(&subscription) else { return Vec::new() };
        counters[usize::from(channel.namespace.0)].subscriptions.subtract(1);
        self.order.retain(|at| *at != subscription);
        let waiting = channel.waiting.into_values();
        let (reliable, latest): (Vec<_>, Vec<_>) =
            waiting.partition(|waiting| waiting.broadcast.latest().is_none());
        latest.iter().filter_map(Waiting::receipt).for_each(|receipt| receipt.drop_one());
        self.reliable_bytes -= reliable.iter().map(Waiting::bytes).sum::<usize>();
        reliable
    }
}

impl ChannelBacklog {
    fn new(namespace: NamespaceId) -> Self {
        Self { namespace, waiting: Default::default(), newest: Default::default(), next: 0 }
    }

    fn add(&mut self, waiting: Waiting, counters: &BacklogCounters) {
        let number = self.next;
        self.next += 1;
        if let Some(delivery) = waiting.broadcast.latest() {
            let key = waiting.broadcast.conflation_key();
            match self.newest.get_mut(key) {
                Some(replaced) => {
                    let old = self.waiting.remove(&std::mem::replace(replaced, number));
                    old.iter().filter_map(Waiting::receipt).for_each(|receipt| receipt.replace());
                    counters.conflated.add(1);
                }
                None => {
                    if self.newest.len() >= delivery.keys_max {
                        self.drop_oldest_key();
                        counters.keys_dropped.add(1);
                    }
                    self.newest.insert(key.into(), number);
                }
            }
        }
        self.waiting.insert(number, waiting);
    }

    fn drop_oldest_key(&mut self) {
        let is_latest = |(_, waiting): &(&u64, &Waiting)| waiting.broadcast.latest().is_some();
        let oldest = self.waiting.iter().find(is_latest).map(|(number, _)| *number);
        if let Some(dropped) = oldest.and_then(|number| self.waiting.remove(&number)) {
            self.newest.remove(dropped.broadcast.conflation_key());
            dropped.receipt().into_iter().for_each(|receipt| receipt.replace());
        }
    }
}

impl Waiting {
    fn receipt(&self) -> Option<&Receipt> {
        self.broadcast.receipt().map(Arc::as_ref)
    }

    /// Approximate bytes in memory and on the wire.
    fn bytes(&self) -> usize {
        self.broadcast.publication().data.len() + WAITING_BYTES
    }
}

/// Bytes of a waiting publication besides its payload: its entry, and the envelope on the wire.
const WAITING_BYTES: usize = 128;

#[cfg(test)]
mod tests;
