//! The subscriptions of a PUB/SUB connection: which channels are desired, requested and confirmed.
//! In: desired channels, confirmations of the Redis, losses of the connection, the time → out: channels to subscribe and unsubscribe next.
//! Uses: a map. Never: sockets, locks.
//! Changed here: when a channel is subscribed and unsubscribed. `pubsub_connection.rs` sends the commands.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hashbrown::HashMap;

/// The channels of one connection. `W` waits until a channel is subscribed.
pub(crate) struct SubscriptionTable<W> {
    channels: HashMap<Arc<str>, RedisSubscription<W>>,
    /// Channels that were desired and are not requested yet, each once. Some may not be desired any more.
    to_subscribe: VecDeque<Arc<str>>,
    /// Not desired since a time, though some may be desired again; each channel once.
    to_unsubscribe: VecDeque<(Instant, Arc<str>)>,
    /// Channels with waiters, by the end of their time.
    waiter_deadlines: VecDeque<(Instant, Arc<str>)>,
    /// Desired and refused by this Redis, though some may have moved; each channel once.
    misrouted: Vec<Arc<str>>,
}

struct RedisSubscription<W> {
    is_desired: bool,
    /// The last command that was sent for it is a subscribe.
    is_requested: bool,
    /// Commands without a confirmation yet.
    unconfirmed: u32,
    is_queued_to_subscribe: bool,
    is_queued_to_unsubscribe: bool,
    /// The Redis does not send its messages: in a Cluster its slot is elsewhere, or is being migrated.
    is_misrouted: bool,
    /// The channel was subscribed on a connection that is gone.
    was_interrupted: bool,
    waiters: Vec<(Instant, W)>,
}

/// A confirmation of the Redis, requested or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Subscribed,
    Unsubscribed,
}

/// The effect of a confirmation.
#[derive(Debug)]
pub(crate) struct ConfirmationEffect<W> {
    /// The waiters, with the end of their time.
    pub(crate) waiters: Vec<(Instant, W)>,
    /// The channel was subscribed before, with a break since.
    pub(crate) is_resubscribed: bool,
    /// The channel is desired, and the Redis ended the subscription by itself.
    pub(crate) is_misrouted: bool,
}

/// A desired channel that moves to another connection.
pub(crate) struct MovedSubscription<W> {
    name: Arc<str>,
    was_interrupted: bool,
    waiters: Vec<(Instant, W)>,
}

impl<W> MovedSubscription<W> {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Channels for the next commands.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SubscriptionChanges {
    pub(crate) subscribe: Vec<Arc<str>>,
    pub(crate) unsubscribe: Vec<Arc<str>>,
}

/// The result of waiting for a subscription.
pub(crate) enum WaitOutcome<W> {
    /// The channel is subscribed: the waiter is returned.
    Subscribed(W),
    /// The waiter is kept.
    Pending,
    /// The channel is not desired: the waiter is returned.
    NotDesired(W),
}

impl<W> Default for SubscriptionTable<W> {
    fn default() -> Self {
        Self {
            channels: HashMap::new(),
            to_subscribe: VecDeque::new(),
            to_unsubscribe: VecDeque::new(),
            waiter_deadlines: VecDeque::new(),
            misrouted: Vec::new(),
        }
    }
}

impl<W> Default for RedisSubscription<W> {
    fn default() -> Self {
        Self {
            is_desired: false,
            is_requested: false,
            unconfirmed: 0,
            was_interrupted: false,
            is_queued_to_subscribe: false,
            is_queued_to_unsubscribe: false,
            is_misrouted: false,
            waiters: Vec::new(),
        }
    }
}

impl<W> SubscriptionTable<W> {
    /// A channel has its first subscriber. Returns whether there is something to send.
    pub(crate) fn set_desired(&mut self, channel: &str) -> bool {
        let name = match self.channels.get_key_value(channel) {
            Some((name, _)) => Arc::clone(name),
            None => channel.into(),
        };
        let subscription = self.channels.entry(Arc::clone(&name)).or_default();
        subscription.is_desired = true;
        if subscription.is_requested
            || subscription.is_queued_to_subscribe
            || subscription.is_misrouted
        {
            return false;
        }
        subscription.is_queued_to_subscribe = true;
        self.to_subscribe.push_back(name);
        true
    }

    /// A channel has lost its last subscriber. It is unsubscribed after [`UNSUBSCRIBE_DELAY`] unless it is desired again by then.
    pub(crate) fn clear_desired(&mut self, channel: &str, now: Instant) {
        let Some((name, _)) = self.channels.get_key_value(channel) else { return };
        let name = Arc::clone(name);
        let Some(subscription) = self.channels.get_mut(channel) else { return };
        subscription.is_desired = false;
        if !subscription.is_queued_to_unsubscribe {
            subscription.is_queued_to_unsubscribe = true;
            self.to_unsubscribe.push_back((now + UNSUBSCRIBE_DELAY, name));
        }
    }

    /// Keeps `waiter` until the channel is subscribed, at most until `by`.
    pub(crate) fn wait_until_subscribed(
        &mut self,
        channel: &str,
        by: Instant,
        waiter: W,
    ) -> WaitOutcome<W> {
        let Some((name, _)) = self.channels.get_key_value(channel) else {
            return WaitOutcome::NotDesired(waiter);
        };
        let name = Arc::clone(name);
        let subscription = self.channels.entry(Arc::clone(&name)).or_default();
        if !subscription.is_desired {
            return WaitOutcome::NotDesired(waiter);
        }
        if subscription.is_requested && subscription.unconfirmed == 0 {
            return WaitOutcome::Subscribed(waiter);
        }
        subscription.waiters.push((by, waiter));
        self.waiter_deadlines.push_back((by, name));
        WaitOutcome::Pending
    }

    /// The channels for the next commands, at most about `max` of each kind.
    pub(crate) fn next_changes(&mut self, now: Instant, max: usize) -> SubscriptionChanges {
        let mut next_changes = SubscriptionChanges::default();
        while next_changes.subscribe.len() < max
            && let Some(name) = self.to_subscribe.pop_front()
        {
            let Some(subscription) = self.channels.get_mut(&name) else { continue };
            subscription.is_queued_to_subscribe = false;
            if subscription.is_desired {
                subscription.is_requested = true;
                subscription.unconfirmed += 1;
                next_changes.subscribe.push(name);
            }
        }
        while next_changes.unsubscribe.len() < max
            && let Some((_, name)) = self.to_unsubscribe.pop_front_if(|(due, _)| *due <= now)
        {
            let Some(subscription) = self.channels.get_mut(&name) else { continue };
            subscription.is_queued_to_unsubscribe = false;
            if !subscription.is_desired && subscription.is_requested {
                subscription.is_requested = false;
                subscription.unconfirmed += 1;
                next_changes.unsubscribe.push(name);
            } else {
                self.remove_if_unused(&name);
            }
        }
        next_changes
    }

    /// Returns the time at which [`next_changes`](Self::next_changes) has something to return, if nothing else happens;
    /// at or before `now` if it has already.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        if !self.to_subscribe.is_empty() {
            return Some(now);
        }
        self.to_unsubscribe.front().map(|(due, _)| *due)
    }

    /// The Redis has confirmed a command for this channel, or has changed the subscription by itself.
    pub(crate) fn confirmed(&mut self, channel: &str, done: Done) -> ConfirmationEffect<W> {
        let mut confirmed =
            ConfirmationEffect { waiters: Vec::new(), is_resubscribed: false, is_misrouted: false };
        let Some(subscription) = self.channels.get_mut(channel) else { return confirmed };
        subscription.unconfirmed = subscription.unconfirmed.saturating_sub(1);
        if subscription.unconfirmed > 0 {
            return confirmed;
        }
        if !subscription.is_requested {
            self.remove_if_unused(channel);
        } else if done == Done::Unsubscribed {
            confirmed.is_misrouted = self.mark_misrouted(channel);
        } else {
            confirmed.is_resubscribed = std::mem::take(&mut subscription.was_interrupted);
            confirmed.waiters = std::mem::take(&mut subscription.waiters);
        }
        confirmed
    }

    /// The Redis does not send the messages of this channel. Returns whether the channel has to be [requested
    /// again](Self::retry_misrouted) or [moved](Self::take_matching).
    pub(crate) fn mark_misrouted(&mut self, channel: &str) -> bool {
        let Some((name, _)) = self.channels.get_key_value(channel) else { return false };
        let name = Arc::clone(name);
        let Some(subscription) = self.channels.get_mut(channel) else { return false };
        subscription.was_interrupted |= subscription.is_requested;
        (subscription.is_requested, subscription.unconfirmed) = (false, 0);
        if !subscription.is_desired {
            self.remove_if_unused(channel);
            return false;
        }
        if !subscription.is_misrouted {
            subscription.is_misrouted = true;
            self.misrouted.push(name);
        }
        true
    }

    /// Marks all requested and unconfirmed channels as misrouted. Returns whether there is one.
    pub(crate) fn mark_unconfirmed_misrouted(&mut self) -> bool {
        let is_unconfirmed = |(name, subscription): (&Arc<str>, &RedisSubscription<W>)| {
            (subscription.unconfirmed > 0).then(|| Arc::clone(name))
        };
        let unconfirmed: Vec<_> = self.channels.iter().filter_map(is_unconfirmed).collect();
        unconfirmed.iter().filter(|name| self.mark_misrouted(name)).count() > 0
    }

    /// Queues misrouted channels to be requested again. Returns whether there is something to send.
    pub(crate) fn retry_misrouted(&mut self) -> bool {
        for name in std::mem::take(&mut self.misrouted) {
            if let Some(subscription) = self.channels.get_mut(&name)
                && std::mem::take(&mut subscription.is_misrouted)
                && !subscription.is_queued_to_subscribe
            {
                subscription.is_queued_to_subscribe = true;
                self.to_subscribe.push_back(name);
            }
        }
        !self.to_subscribe.is_empty()
    }

    /// Removes the channels that belong to another connection. Channels that are not desired are dropped.
    pub(crate) fn take_matching(
        &mut self,
        is_elsewhere: impl Fn(&str) -> bool,
    ) -> Vec<MovedSubscription<W>> {
        let gone = self.channels.extract_if(|name, _| is_elsewhere(name));
        let moved =
            gone.filter(|(_, subscription)| subscription.is_desired).map(|(name, subscription)| {
                let was_interrupted = subscription.was_interrupted || subscription.is_requested;
                MovedSubscription { name, was_interrupted, waiters: subscription.waiters }
            });
        let moved: Vec<_> = moved.collect();
        let channels = &self.channels;
        self.to_subscribe.retain(|name| channels.contains_key(name));
        self.to_unsubscribe.retain(|(_, name)| channels.contains_key(name));
        self.waiter_deadlines.retain(|(_, name)| channels.contains_key(name));
        self.misrouted.retain(|name| channels.contains_key(name));
        moved
    }

    /// Adds channels of another connection.
    pub(crate) fn insert_moved(&mut self, moved: Vec<MovedSubscription<W>>) {
        for MovedSubscription { name, was_interrupted, waiters } in moved {
            self.set_desired(&name);
            self.waiter_deadlines.extend(waiters.iter().map(|(by, _)| (*by, Arc::clone(&name))));
            if let Some(subscription) = self.channels.get_mut(&name) {
                subscription.was_interrupted |= was_interrupted;
                subscription.waiters.extend(waiters);
            }
        }
        self.waiter_deadlines.make_contiguous().sort_by_key(|(by, _)| *by);
    }

    /// Whether the Redis may send messages of this channel, because it was requested.
    pub(crate) fn is_requested(&self, channel: &str) -> bool {
        self.channels.get(channel).is_some_and(|subscription| subscription.is_requested)
    }

    /// The connection is gone: all desired channels have to be requested again.
    pub(crate) fn connection_lost(&mut self) {
        self.to_subscribe.clear();
        self.misrouted.clear();
        for (name, subscription) in &mut self.channels {
            subscription.was_interrupted |= subscription.is_requested;
            (subscription.is_requested, subscription.unconfirmed) = (false, 0);
            subscription.is_misrouted = false;
            subscription.is_queued_to_subscribe = subscription.is_desired;
            if subscription.is_desired {
                self.to_subscribe.push_back(Arc::clone(name));
            }
        }
        self.channels.retain(|_, subscription| {
            subscription.is_desired || subscription.is_queued_to_unsubscribe
        });
    }

    /// The waiters whose time is over.
    pub(crate) fn expired_waiters(&mut self, now: Instant) -> Vec<W> {
        let mut over = Vec::new();
        while let Some((_, name)) = self.waiter_deadlines.pop_front_if(|(by, _)| *by <= now) {
            if let Some(subscription) = self.channels.get_mut(&name) {
                let gone = subscription.waiters.extract_if(.., |(by, _)| *by <= now);
                over.extend(gone.map(|(_, waiter)| waiter));
            }
        }
        over
    }

    fn remove_if_unused(&mut self, channel: &str) {
        let is_needed = |subscription: &RedisSubscription<W>| {
            subscription.is_desired
                || subscription.is_requested
                || subscription.unconfirmed > 0
                || subscription.is_queued_to_unsubscribe
        };
        if self.channels.get(channel).is_some_and(|subscription| !is_needed(subscription)) {
            self.channels.remove(channel);
        }
    }

    /// Channels in the table.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.channels.len()
    }
}

/// How long a channel stays subscribed after its last subscriber left; a client that reloads a page returns within
/// this time.
const UNSUBSCRIBE_DELAY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
