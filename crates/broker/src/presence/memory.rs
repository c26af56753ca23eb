//! Presence of a node without cluster: the members of each channel in memory, one lock per stripe of channels.
//! In: members that are added, renewed and removed, on any thread → out: shared members, counts.
//! Uses: striped locks. Never: clocks (time is a parameter).
//! Changed here: locks and sweeping. The members of one channel live in `memory/channel_members.rs`.

mod channel_members;

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fanwire_protocol::ClientInfo;
use hashbrown::{DefaultHashBuilder, HashMap};
use parking_lot::Mutex;

use super::{Presence, PresencePage, PresenceStats};
use crate::Answer;
use crate::saved::{MemberRecord, SnapshotClock};
use channel_members::ChannelMembers;

/// Presence in memory.
///
/// Its memory is bounded by the subscriptions of the node: each member has one, and a channel without members is removed.
pub struct MemoryPresence {
    hasher: DefaultHashBuilder,
    stripes: Box<[Mutex<Stripe>]>,
    /// Index of the stripe that is swept next, before the modulo.
    next_sweep: AtomicUsize,
}

type Stripe = HashMap<Box<str>, ChannelMembers>;

impl MemoryPresence {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            next_sweep: AtomicUsize::new(0),
        }
    }

    /// All members, for another program.
    pub(crate) fn save(&self, clock: &SnapshotClock) -> Vec<MemberRecord> {
        let mut members = Vec::new();
        for stripe in &self.stripes {
            for (channel, channel_members) in &*stripe.lock() {
                members.extend(channel_members.save(channel, clock));
            }
        }
        members
    }

    /// Adds members that another program saved.
    pub(crate) fn restore(&self, members: Vec<MemberRecord>, clock: &SnapshotClock) {
        for MemberRecord { channel, info, until } in members {
            let mut stripe = self.stripe(&channel).lock();
            stripe.entry_ref(channel.as_str()).or_default().add(info, clock.instant(until));
        }
    }

    fn stripe(&self, channel: &str) -> &Mutex<Stripe> {
        &self.stripes[self.hasher.hash_one(channel) as usize % STRIPES]
    }

    /// Removes expired members of a channel and reads the others; the default if there are none.
    fn read<T: Default>(
        &self,
        channel: &str,
        now: Instant,
        read: impl FnOnce(&ChannelMembers) -> T,
    ) -> T {
        let mut stripe = self.stripe(channel).lock();
        let Some(channel_members) = stripe.get_mut(channel) else { return T::default() };
        channel_members.expire(now);
        read(channel_members)
    }
}

impl Default for MemoryPresence {
    fn default() -> Self {
        Self::new()
    }
}

impl Presence for MemoryPresence {
    fn add(&self, channel: &str, info: ClientInfo, ttl: Duration, now: Instant) -> Answer<()> {
        let mut stripe = self.stripe(channel).lock();
        stripe.entry_ref(channel).or_default().add(info, now + ttl);
        Answer::now(Ok(()))
    }

    fn remove(&self, channel: &str, client: &str) -> Answer<()> {
        let mut stripe = self.stripe(channel).lock();
        if let Some(channel_members) = stripe.get_mut(channel) {
            channel_members.remove(client);
            if channel_members.is_empty() {
                stripe.remove(channel);
            }
        }
        Answer::now(Ok(()))
    }

    /// Clones an `Arc` per member under the lock; texts are not copied.
    fn members(&self, channel: &str, now: Instant) -> Answer<Vec<Arc<ClientInfo>>> {
        Answer::now(Ok(
            self.read(channel, now, |channel_members| channel_members.members().cloned().collect())
        ))
    }

    fn page(&self, channel: &str, cursor: u64, limit: usize, now: Instant) -> Answer<PresencePage> {
        Answer::now(Ok(
            self.read(channel, now, |channel_members| channel_members.page(cursor, limit))
        ))
    }

    fn stats(&self, channel: &str, now: Instant) -> Answer<PresenceStats> {
        Answer::now(Ok(self.read(channel, now, ChannelMembers::stats)))
    }

    /// Sweeps one stripe per call, so 64 calls cover all channels.
    fn sweep(&self, now: Instant) {
        let stripe = self.next_sweep.fetch_add(1, Relaxed) % STRIPES;
        self.stripes[stripe].lock().retain(|_, channel_members| {
            channel_members.expire(now);
            !channel_members.is_empty()
        });
    }
}

/// Number of locks; calls for channels of one stripe wait for each other.
const STRIPES: usize = 64;

#[cfg(test)]
mod tests;
