//! Subscribers of each channel inside one shard: a dense list of connections (step 6 of the route).
//! In: joins and leaves of sessions → out: the list of a channel with one lookup, walked once per broadcast.
//! Uses: a slab of channels and a hash table of their indices. Never: sessions, sockets, other shards.
//! Changed here: the layout of subscriber lists. `session_table.rs` maintains the back references from sessions.

mod clients;
mod deltas;
mod position_tracker;
mod users;

use std::hash::BuildHasher;
use std::sync::Arc;

use fanwire_protocol::Encoding;
use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;
use smallvec::SmallVec;

use crate::broadcast::Broadcast;
use crate::index::{SubscriberIndex, SubscriptionIndex};

pub(crate) use clients::Clients;
pub(crate) use deltas::{DeltaState, Deltas};
pub use position_tracker::PositionCheck;
pub(crate) use position_tracker::{CatchUp, PositionStep, PositionTracker, PossibleGap};
pub(crate) use users::Users;

/// The channels of one shard, each with its subscribers. A channel without subscribers is removed.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    channels: Slab<ChannelSubscribers>,
    /// Indices into `channels`, hashed by the channel's name: 5 bytes per channel instead of a second map of names.
    names: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// One channel of one shard.
#[derive(Debug)]
pub(crate) struct ChannelSubscribers {
    pub(crate) channel: Arc<str>,
    /// Subscribers in any order. Two fit without a heap block.
    pub(crate) list: SmallVec<[Subscriber; 2]>,
    /// Subscribers with JSON.
    pub(crate) json: u32,
    /// Subscribers that receive joins and leaves.
    pub(crate) join_leave_subscribers: u32,
    /// Subscribers with a filter.
    pub(crate) filtered: u32,
    /// Only while it has positioned subscribers.
    pub(crate) position_tracker: Option<Box<PositionTracker>>,
    /// Only while it has subscribers with deltas.
    pub(crate) deltas: Option<Box<Deltas>>,
}

/// One entry of a subscriber list: 8 bytes, read once per delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subscriber {
    /// Dense index of the connection.
    pub(crate) connection: u32,
    /// The index of the subscription in its session, and flags that deliveries need.
    marked_index: u32,
}

impl Subscriber {
    /// A subscription, its index far below 2^30, of the session at `connection`.
    pub(crate) fn new(connection: u32, subscription: SubscriptionIndex) -> Self {
        debug_assert!(subscription.0 <= INDEX, "an index is below client.channel_limit");
        Self { connection, marked_index: subscription.0 }
    }

    /// The index of the subscription in its session.
    pub(crate) fn subscription(self) -> SubscriptionIndex {
        SubscriptionIndex(self.marked_index & INDEX)
    }

    /// Whether the subscription has a filter.
    pub(crate) fn has_filter(self) -> bool {
        self.marked_index & HAS_FILTER != 0
    }

    /// Whether the subscription receives joins and leaves.
    pub(crate) fn wants_join_leave(self) -> bool {
        self.marked_index & WANTS_JOIN_LEAVE != 0
    }
}

impl Subscribers {
    /// The index of a channel that has subscribers here.
    pub(crate) fn find(&self, channel: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(channel);
        self.names
            .find(hash, |index| self.channel_subscribers(*index).channel.as_ref() == channel)
            .copied()
    }

    pub(crate) fn channel_subscribers(&self, index: u32) -> &ChannelSubscribers {
        &self.channels[index as usize]
    }

    pub(crate) fn channel_subscribers_mut(&mut self, index: u32) -> &mut ChannelSubscribers {
        &mut self.channels[index as usize]
    }

    /// The channel at `index`, if there is one.
    pub(crate) fn get(&self, index: u32) -> Option<&ChannelSubscribers> {
        self.channels.get(index as usize)
    }

    /// Adds a subscriber. Returns the index of the channel and that in its list.
    pub(crate) fn add(
        &mut self,
        channel: Arc<str>,
        subscriber: Subscriber,
        encoding: Encoding,
    ) -> (u32, SubscriberIndex) {
        let index = self.find(&channel).unwrap_or_else(|| self.insert(channel));
        let channel_subscribers = &mut self.channels[index as usize];
        channel_subscribers.json += u32::from(encoding == Encoding::Json);
        channel_subscribers.list.push(subscriber);
        if let Some(deltas) = &mut channel_subscribers.deltas {
            deltas.push();
        }
        (index, SubscriberIndex(channel_subscribers.list.len() as u32 - 1))
    }

    /// Removes a subscriber. Returns the one that was moved to its index, if any: its session must be updated.
    pub(crate) fn remove(
        &mut self,
        index: u32,
        subscriber: SubscriberIndex,
        encoding: Encoding,
    ) -> Option<Subscriber> {
        let channel_subscribers = &mut self.channels[index as usize];
        channel_subscribers.json -= u32::from(encoding == Encoding::Json);
        channel_subscribers.list.swap_remove(subscriber.0 as usize);
        if channel_subscribers
            .deltas
            .as_mut()
            .is_some_and(|deltas| deltas.remove(subscriber, encoding))
        {
            channel_subscribers.deltas = None;
        }
        if channel_subscribers.list.is_empty() {
            self.drop_channel(index);
            return None;
        }
        channel_subscribers.shrink();
        channel_subscribers.list.get(subscriber.0 as usize).copied()
    }

    /// The subscription of this subscriber moved to `to` in its session.
    pub(crate) fn moved(&mut self, index: u32, subscriber: SubscriberIndex, to: SubscriptionIndex) {
        let subscriber = &mut self.channels[index as usize].list[subscriber.0 as usize];
        subscriber.marked_index = subscriber.marked_index & !INDEX | to.0;
    }

    fn insert(&mut self, channel: Arc<str>) -> u32 {
        let hash = self.hasher.hash_one(channel.as_ref());
        let channel_subscribers = ChannelSubscribers {
            channel,
            list: SmallVec::new(),
            json: 0,
            join_leave_subscribers: 0,
            filtered: 0,
            position_tracker: None,
            deltas: None,
        };
        let index = u32::try_from(self.channels.insert(channel_subscribers))
            .expect("fewer than 2^32 channels");
        let channels = &self.channels;
        let hasher = &self.hasher;
        self.names.insert_unique(hash, index, |index| {
            hasher.hash_one(channels[*index as usize].channel.as_ref())
        });
        index
    }

    fn drop_channel(&mut self, index: u32) {
        let hash = self.hasher.hash_one(self.channels[index as usize].channel.as_ref());
        let entry = self.names.find_entry(hash, |other| *other == index);
        entry.expect("every channel has its name in the table").remove();
        self.channels.remove(index as usize);
    }
}

impl ChannelSubscribers {
    /// Enables deltas for a subscriber.
    pub(crate) fn agree(
        &mut self,
        subscriber: SubscriberIndex,
        encoding: Encoding,
        mark: DeltaState,
    ) {
        let count = self.list.len();
        self.deltas
            .get_or_insert_with(|| Box::new(Deltas::new(count)))
            .agree(subscriber, encoding, mark);
    }

    /// A subscriber has a filter from now on, or none.
    pub(crate) fn mark_filter(&mut self, subscriber: SubscriberIndex, has_filter: bool) {
        let subscriber = &mut self.list[subscriber.0 as usize];
        self.filtered -= u32::from(subscriber.has_filter());
        self.filtered += u32::from(has_filter);
        let flag = if has_filter { HAS_FILTER } else { 0 };
        subscriber.marked_index = subscriber.marked_index & !HAS_FILTER | flag;
    }

    /// A subscriber receives joins and leaves from now on.
    pub(crate) fn want_join_leave(&mut self, subscriber: SubscriberIndex) {
        self.join_leave_subscribers += 1;
        self.list[subscriber.0 as usize].marked_index |= WANTS_JOIN_LEAVE;
    }

    /// Whether the broadcast exists in the encoding of every subscriber here: data may not be JSON.
    pub(crate) fn can_read(&self, broadcast: &Broadcast) -> bool {
        let json_deltas = self.deltas.as_ref().map_or(0, |deltas| deltas.json());
        (self.json == json_deltas || broadcast.message(Encoding::Json).is_some())
            && (json_deltas == 0 || broadcast.is_json())
    }

    /// Frees memory after many subscribers have left.
    fn shrink(&mut self) {
        let capacity = self.list.capacity();
        if capacity > SHRINK_FROM && self.list.len() < capacity / 4 {
            self.list.shrink_to_fit();
        }
    }
}

const HAS_FILTER: u32 = 1 << 31;
const WANTS_JOIN_LEAVE: u32 = 1 << 30;
const INDEX: u32 = WANTS_JOIN_LEAVE - 1;
/// Lists below this length (8 bytes each) are not worth shrinking.
const SHRINK_FROM: usize = 64;

#[cfg(test)]
mod tests;
