//! Presence of a node that stands alone: the members of each channel in memory, under a lock per channel stripe.
//! In: members that come, are renewed and go, on any thread → out: shared members, counts.
//! Uses: striped locks. Never: clocks (time is a parameter).
//! Change here: locks and sweeping. The members of one channel live in `memory/channel_members.rs`.

mod channel_members;

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fanwire_protocol::ClientInfo;
use hashbrown::{DefaultHashBuilder, HashMap};
use parking_lot::Mutex;

use super::{Presence, PresenceStats};
use crate::Answer;
use channel_members::ChannelMembers;

/// Bounded by the subscriptions of the node: no member is there without one, and no channel without members.
pub struct MemoryPresence {
    hasher: DefaultHashBuilder,
    stripes: Box<[Mutex<Stripe>]>,
    /// The stripe that is swept next.
    hand: AtomicUsize,
}

type Stripe = HashMap<Box<str>, ChannelMembers>;

impl MemoryPresence {
    /// Nobody is anywhere.
    pub fn new() -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            hand: AtomicUsize::new(0),
        }
    }

    fn stripe(&self, channel: &str) -> &Mutex<Stripe> {
        &self.stripes[self.hasher.hash_one(channel) as usize % STRIPES]
    }

    /// What `look` sees in the channel_members of a channel without those whose time is over; nothing where nobody is.
    fn see<T: Default>(
        &self,
        channel: &str,
        now: Instant,
        look: impl FnOnce(&ChannelMembers) -> T,
    ) -> T {
        let mut stripe = self.stripe(channel).lock();
        let Some(channel_members) = stripe.get_mut(channel) else { return T::default() };
        channel_members.expire(now);
        look(channel_members)
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

    /// Ten thousand members are ten thousand counted references under the lock; texts are not copied.
    fn members(&self, channel: &str, now: Instant) -> Answer<Vec<Arc<ClientInfo>>> {
        Answer::now(Ok(
            self.see(channel, now, |channel_members| channel_members.members().cloned().collect())
        ))
    }

    fn stats(&self, channel: &str, now: Instant) -> Answer<PresenceStats> {
        Answer::now(Ok(self.see(channel, now, ChannelMembers::stats)))
    }

    /// One stripe per call, so that 64 calls see every channel.
    fn sweep(&self, now: Instant) {
        let stripe = self.hand.fetch_add(1, Relaxed) % STRIPES;
        self.stripes[stripe].lock().retain(|_, channel_members| {
            channel_members.expire(now);
            !channel_members.is_empty()
        });
    }
}

/// Locks; calls about channels of one stripe wait for each other.
const STRIPES: usize = 64;

#[cfg(test)]
mod tests;
