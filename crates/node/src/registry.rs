//! Registry of the node: channel → shards with their subscriber counts, and user → number of connections.
//! In: joins, leaves, connects and disconnects of every shard → out: the shards of a channel in O(1), counts, shared names.
//! Uses: striped locks, one hash per call. Never: connections, sessions, publications.
//! Changed here: what the whole node counts. `subscribers.rs` has the subscribers inside one shard.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use fanwire_broker::ClientId;
use hashbrown::{DefaultHashBuilder, HashMap};
use parking_lot::Mutex;
use smallvec::SmallVec;

use fanwire_policy::channel::NamespaceId;

/// A shard of this node, numbered from 0 in the order of [`crate::Node::attach`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

/// The registry of all shards. It is bounded, because each entry has a subscription or a connection.
#[derive(Debug)]
pub(crate) struct Registry {
    hasher: DefaultHashBuilder,
    channels: Box<[Mutex<ChannelStripe>]>,
    users: Box<[Mutex<UserStripe>]>,
    /// The stripe with which [`next_users`](Self::next_users) goes on.
    next_user_stripe: AtomicUsize,
}

/// The shards with subscribers of a channel, and the shared copy of its name.
#[derive(Debug)]
pub(crate) struct Listeners {
    pub(crate) channel: Arc<str>,
    pub(crate) namespace: NamespaceId,
    pub(crate) shards: SmallVec<[ShardId; 8]>,
}

#[derive(Debug, Default)]
struct ChannelStripe {
    channels: HashMap<Arc<str>, Entry>,
    /// Subscriptions by number of their namespace.
    subscriptions: Vec<usize>,
}

#[derive(Debug)]
struct Entry {
    namespace: NamespaceId,
    shares: Shares,
}

/// How many subscribers each shard has; no zeros. Two shards fit without a heap block.
type Shares = SmallVec<[(ShardId, u32); 2]>;

#[derive(Debug, Default)]
struct UserStripe {
    users: HashMap<Arc<str>, u32>,
    /// The newest connections of users limited to one; empty without such a limit.
    newest: HashMap<Arc<str>, ClientId>,
    connections: usize,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            channels: (0..STRIPES).map(|_| Mutex::default()).collect(),
            users: (0..STRIPES).map(|_| Mutex::default()).collect(),
            next_user_stripe: AtomicUsize::new(0),
        }
    }

    /// Adds a subscriber of `channel` on `shard`. Returns the shared name.
    ///
    /// The first subscriber stores the channel's `namespace`. `first` runs under the lock when the node had no
    /// subscriber before, so that it and `last` of [`leave`](Self::leave) run in order.
    pub(crate) fn join(
        &self,
        channel: &str,
        shard: ShardId,
        namespace: impl FnOnce() -> NamespaceId,
        first: impl FnOnce(),
    ) -> Arc<str> {
        let mut stripe = self.channel_stripe(channel).lock();
        let ChannelStripe { channels, subscriptions } = &mut *stripe;
        if let Some((name, entry)) = channels.get_key_value_mut(channel) {
            *of_namespace(subscriptions, entry.namespace) += 1;
            match entry.shares.iter_mut().find(|(id, _)| *id == shard) {
                Some((_, count)) => *count += 1,
                None => entry.shares.push((shard, 1)),
            }
            return Arc::clone(name);
        }
        first();
        let name: Arc<str> = channel.into();
        let shares = SmallVec::from_slice(&[(shard, 1)]);
        let namespace = namespace();
        *of_namespace(subscriptions, namespace) += 1;
        channels.insert(Arc::clone(&name), Entry { namespace, shares });
        name
    }

    /// Removes a subscriber of `channel` on `shard`; it must have joined. `last` runs under the lock when none is
    /// left.
    pub(crate) fn leave(&self, channel: &str, shard: ShardId, last: impl FnOnce()) {
        let mut stripe = self.channel_stripe(channel).lock();
        let ChannelStripe { channels, subscriptions } = &mut *stripe;
        let entry = channels.get_mut(channel).expect("who leaves has joined");
        *of_namespace(subscriptions, entry.namespace) -= 1;
        let shares = &mut entry.shares;
        let at = shares.iter().position(|(id, _)| *id == shard).expect("who leaves has joined");
        shares[at].1 -= 1;
        if shares[at].1 == 0 {
            shares.swap_remove(at);
            if shares.is_empty() {
                channels.remove(channel);
                last();
            }
        }
    }

    /// The shards with subscribers of `channel`; `None` without subscribers. No allocation up to 8 shards.
    pub(crate) fn listeners(&self, channel: &str) -> Option<Listeners> {
        let stripe = self.channel_stripe(channel).lock();
        let (name, entry) = stripe.channels.get_key_value(channel)?;
        let shards = entry.shares.iter().map(|(shard, _)| *shard).collect();
        Some(Listeners { channel: Arc::clone(name), namespace: entry.namespace, shards })
    }

    /// Whether `channel` has subscribers.
    pub(crate) fn has_listeners(&self, channel: &str) -> bool {
        self.channel_stripe(channel).lock().channels.contains_key(channel)
    }

    /// Adds a connection of `user`. `None` when it has `limit` already (0 = no limit, as always for anonymous ones). Returns
    /// the shared id.
    pub(crate) fn enter(&self, user: &str, limit: usize) -> Option<Arc<str>> {
        let mut stripe = self.user_stripe(user).lock();
        if let Some((name, count)) = stripe.users.get_key_value_mut(user) {
            if limit > 0 && !user.is_empty() && *count as usize >= limit {
                return None;
            }
            *count += 1;
            let name = Arc::clone(name);
            stripe.connections += 1;
            return Some(name);
        }
        let name: Arc<str> = user.into();
        stripe.users.insert(Arc::clone(&name), 1);
        stripe.connections += 1;
        Some(name)
    }

    /// Removes a connection of `user`; it must have entered.
    pub(crate) fn exit(&self, user: &str) {
        let mut stripe = self.user_stripe(user).lock();
        let count = stripe.users.get_mut(user).expect("who exits has entered");
        *count -= 1;
        if *count == 0 {
            stripe.users.remove(user);
            stripe.newest.remove(user);
        }
        stripe.connections -= 1;
    }

    /// The number of connections of `user`.
    pub(crate) fn connections_of(&self, user: &str) -> u32 {
        self.user_stripe(user).lock().users.get(user).copied().unwrap_or_default()
    }

    /// The users of some stripes, without the anonymous one: called once a second, it returns each user within `interval`.
    pub(crate) fn next_users(&self, interval: Duration) -> Vec<String> {
        let stripes = STRIPES.div_ceil(interval.as_secs().max(1) as usize);
        let first = self.next_user_stripe.fetch_add(stripes, Relaxed);
        let mut names = Vec::new();
        for stripe in first..first + stripes {
            let stripe = self.users[stripe % STRIPES].lock();
            let named = stripe.users.keys().filter(|user| !user.is_empty());
            names.extend(named.map(|user| user.as_ref().to_owned()));
        }
        names
    }

    /// Sets the newest connection of `user`, which has entered.
    pub(crate) fn supersede(&self, user: &Arc<str>, newest: ClientId) {
        self.user_stripe(user).lock().newest.insert(Arc::clone(user), newest);
    }

    /// The newest connection of `user`, if it [superseded](Self::supersede) others.
    pub(crate) fn newest_of(&self, user: &str) -> Option<ClientId> {
        self.user_stripe(user).lock().newest.get(user).copied()
    }

    /// Every channel with its number of subscribers, stripe by stripe: not a snapshot of one moment.
    pub(crate) fn each_channel(&self, mut see: impl FnMut(&str, u32)) {
        for stripe in &self.channels {
            for (channel, entry) in &stripe.lock().channels {
                see(channel, entry.shares.iter().map(|(_, count)| count).sum());
            }
        }
    }

    /// (channels, subscriptions)
    pub(crate) fn channel_counts(&self) -> (usize, usize) {
        self.channels.iter().map(|stripe| stripe.lock()).fold((0, 0), |sum, stripe| {
            (sum.0 + stripe.channels.len(), sum.1 + stripe.subscriptions.iter().sum::<usize>())
        })
    }

    /// Subscriptions by number of their namespace.
    pub(crate) fn subscriptions_by_namespace(&self) -> Vec<usize> {
        let mut sums = Vec::new();
        for stripe in &self.channels {
            for (number, count) in stripe.lock().subscriptions.iter().enumerate() {
                *of_namespace(&mut sums, NamespaceId(number as u16)) += count;
            }
        }
        sums
    }

    /// (users, connections)
    pub(crate) fn user_counts(&self) -> (usize, usize) {
        self.users
            .iter()
            .map(|stripe| stripe.lock())
            .fold((0, 0), |sum, stripe| (sum.0 + stripe.users.len(), sum.1 + stripe.connections))
    }

    fn channel_stripe(&self, channel: &str) -> &Mutex<ChannelStripe> {
        &self.channels[stripe(self.hasher.hash_one(channel))]
    }

    fn user_stripe(&self, user: &str) -> &Mutex<UserStripe> {
        &self.users[stripe(self.hasher.hash_one(user))]
    }
}

/// The count of a namespace.
fn of_namespace(counts: &mut Vec<usize>, NamespaceId(number): NamespaceId) -> &mut usize {
    let needed = usize::from(number) + 1;
    if counts.len() < needed {
        counts.resize(needed, 0);
    }
    &mut counts[usize::from(number)]
}

fn stripe(hash: u64) -> usize {
    hash as usize % STRIPES
}

/// Locks per table; well above the number of threads that use it.
const STRIPES: usize = 64;

#[cfg(test)]
mod tests;
