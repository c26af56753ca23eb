//! Which channels a PUB/SUB connection should hear, which it asked for, and which it is known to hear.
//! In: wants of the node, confirmations of the Redis, losses of the connection, the time → out: what to ask for next.
//! Uses: a map. Never: sockets, locks.
//! Change here: when a channel is subscribed and unsubscribed. Bytes live in `feed.rs`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hashbrown::HashMap;

/// The channels of one connection. `W` is what waits for a channel to be heard.
pub(crate) struct SubscriptionTable<W> {
    channels: HashMap<Arc<str>, Subscription<W>>,
    /// Wanted and not asked for, or not wanted any more since; each channel is here once.
    to_subscribe: VecDeque<Arc<str>>,
    /// Not wanted since a time, or wanted again since; each channel is here once.
    to_unsubscribe: VecDeque<(Instant, Arc<str>)>,
    /// Channels with waiters, by the end of their patience.
    wait_timeout: VecDeque<(Instant, Arc<str>)>,
    /// Wanted, and not to be heard here any more, or moved since; each channel is here once.
    misrouted: Vec<Arc<str>>,
}

struct Subscription<W> {
    is_desired: bool,
    /// The last that was asked for is to hear it.
    is_requested: bool,
    /// Questions without a confirmation yet.
    unconfirmed: u32,
    is_queued_to_subscribe: bool,
    is_queued_to_unsubscribe: bool,
    /// The Redis does not send it: in a Cluster its slot is elsewhere, or on its way.
    is_misrouted: bool,
    /// It was heard over a connection that is gone.
    was_interrupted: bool,
    waiters: Vec<(Instant, W)>,
}

/// What the Redis has done for a channel, asked or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Subscribed,
    Unsubscribed,
}

/// What a confirmation means.
#[derive(Debug)]
pub(crate) struct ConfirmationEffect<W> {
    /// Who waited for it, until when.
    pub(crate) waiters: Vec<(Instant, W)>,
    /// It was heard before, and not for a while.
    pub(crate) is_resubscribed: bool,
    /// It is wanted, and not heard any more, though nobody asked for that.
    pub(crate) is_misrouted: bool,
}

/// A wanted channel on its way to another connection.
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

/// What to ask the Redis for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SubscriptionChanges {
    pub(crate) subscribe: Vec<Arc<str>>,
    pub(crate) unsubscribe: Vec<Arc<str>>,
}

/// Whether a channel is heard.
pub(crate) enum WaitOutcome<W> {
    /// By now: the waiter comes back.
    Yes(W),
    /// Later, perhaps: the waiter stays.
    Pending,
    /// Nobody wants to hear it: the waiter comes back.
    NotDesired(W),
}

impl<W> Default for SubscriptionTable<W> {
    fn default() -> Self {
        Self {
            channels: HashMap::new(),
            to_subscribe: VecDeque::new(),
            to_unsubscribe: VecDeque::new(),
            wait_timeout: VecDeque::new(),
            misrouted: Vec::new(),
        }
    }
}

impl<W> Default for Subscription<W> {
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
    /// A channel has its first subscriber. Whether there is something to ask for.
    pub(crate) fn set_desired(&mut self, channel: &str) -> bool {
        let name = match self.channels.get_key_value(channel) {
            Some((name, _)) => Arc::clone(name),
            None => channel.into(),
        };
        let entry = self.channels.entry(Arc::clone(&name)).or_default();
        entry.is_desired = true;
        if entry.is_requested || entry.is_queued_to_subscribe || entry.is_misrouted {
            return false;
        }
        entry.is_queued_to_subscribe = true;
        self.to_subscribe.push_back(name);
        true
    }

    /// A channel has lost its last subscriber: it is left in a while, if it is not wanted again by then.
    pub(crate) fn clear_desired(&mut self, channel: &str, now: Instant) {
        let Some((name, _)) = self.channels.get_key_value(channel) else { return };
        let name = Arc::clone(name);
        let Some(entry) = self.channels.get_mut(channel) else { return };
        entry.is_desired = false;
        if !entry.is_queued_to_unsubscribe {
            entry.is_queued_to_unsubscribe = true;
            self.to_unsubscribe.push_back((now + DELAY, name));
        }
    }

    /// Keeps `waiter` until the channel is heard, at most until `by`.
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
        let entry = self.channels.entry(Arc::clone(&name)).or_default();
        if !entry.is_desired {
            return WaitOutcome::NotDesired(waiter);
        }
        if entry.is_requested && entry.unconfirmed == 0 {
            return WaitOutcome::Yes(waiter);
        }
        entry.waiters.push((by, waiter));
        self.wait_timeout.push_back((by, name));
        WaitOutcome::Pending
    }

    /// What to ask for now, about `max` channels of it.
    pub(crate) fn next_changes(&mut self, now: Instant, max: usize) -> SubscriptionChanges {
        let mut next_changes = SubscriptionChanges::default();
        while next_changes.subscribe.len() < max
            && let Some(name) = self.to_subscribe.pop_front()
        {
            let Some(entry) = self.channels.get_mut(&name) else { continue };
            entry.is_queued_to_subscribe = false;
            if entry.is_desired {
                entry.is_requested = true;
                entry.unconfirmed += 1;
                next_changes.subscribe.push(name);
            }
        }
        while next_changes.unsubscribe.len() < max
            && let Some((_, name)) = self.to_unsubscribe.pop_front_if(|(due, _)| *due <= now)
        {
            let Some(entry) = self.channels.get_mut(&name) else { continue };
            entry.is_queued_to_unsubscribe = false;
            if !entry.is_desired && entry.is_requested {
                entry.is_requested = false;
                entry.unconfirmed += 1;
                next_changes.unsubscribe.push(name);
            } else {
                self.remove_if_unused(&name);
            }
        }
        next_changes
    }

    /// When [`turn`](Self::turn) has something to do next, if nothing else happens; `now` when it has already.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        if !self.to_subscribe.is_empty() {
            return Some(now);
        }
        self.to_unsubscribe.front().map(|(due, _)| *due)
    }

    /// The Redis has done something for this channel: what was asked of it first, or what it did by itself.
    pub(crate) fn confirmed(&mut self, channel: &str, done: Done) -> ConfirmationEffect<W> {
        let mut confirmed =
            ConfirmationEffect { waiters: Vec::new(), is_resubscribed: false, is_misrouted: false };
        let Some(entry) = self.channels.get_mut(channel) else { return confirmed };
        entry.unconfirmed = entry.unconfirmed.saturating_sub(1);
        if entry.unconfirmed > 0 {
            return confirmed;
        }
        if !entry.is_requested {
            self.remove_if_unused(channel);
        } else if done == Done::Unsubscribed {
            confirmed.is_misrouted = self.mark_misrouted(channel);
        } else {
            confirmed.is_resubscribed = std::mem::take(&mut entry.was_interrupted);
            confirmed.waiters = std::mem::take(&mut entry.waiters);
        }
        confirmed
    }

    /// The Redis does not send what is published to this channel. Whether that is to be cared for, by
    /// [asking again](Self::ask_displaced) or by [taking it away](Self::take).
    pub(crate) fn mark_misrouted(&mut self, channel: &str) -> bool {
        let Some((name, _)) = self.channels.get_key_value(channel) else { return false };
        let name = Arc::clone(name);
        let Some(entry) = self.channels.get_mut(channel) else { return false };
        entry.was_interrupted |= entry.is_requested;
        (entry.is_requested, entry.unconfirmed) = (false, 0);
        if !entry.is_desired {
            self.remove_if_unused(channel);
            return false;
        }
        if !entry.is_misrouted {
            entry.is_misrouted = true;
            self.misrouted.push(name);
        }
        true
    }

    /// Displaces whatever was asked for and is not confirmed. Whether there is such a channel.
    pub(crate) fn mark_unconfirmed_misrouted(&mut self) -> bool {
        let is_unsure = |(name, entry): (&Arc<str>, &Subscription<W>)| {
            (entry.unconfirmed > 0).then(|| Arc::clone(name))
        };
        let unsure: Vec<_> = self.channels.iter().filter_map(is_unsure).collect();
        unsure.iter().filter(|name| self.mark_misrouted(name)).count() > 0
    }

    /// What was displaced is to be asked for again. Whether there is something to ask for.
    pub(crate) fn retry_misrouted(&mut self) -> bool {
        for name in std::mem::take(&mut self.misrouted) {
            if let Some(entry) = self.channels.get_mut(&name)
                && std::mem::take(&mut entry.is_misrouted)
                && !entry.is_queued_to_subscribe
            {
                entry.is_queued_to_subscribe = true;
                self.to_subscribe.push_back(name);
            }
        }
        !self.to_subscribe.is_empty()
    }

    /// Takes out the channels that belong elsewhere; those that nobody wants are forgotten.
    pub(crate) fn take_matching(
        &mut self,
        is_elsewhere: impl Fn(&str) -> bool,
    ) -> Vec<MovedSubscription<W>> {
        let gone = self.channels.extract_if(|name, _| is_elsewhere(name));
        let moved = gone.filter(|(_, entry)| entry.is_desired).map(|(name, entry)| {
            let was_interrupted = entry.was_interrupted || entry.is_requested;
            MovedSubscription { name, was_interrupted, waiters: entry.waiters }
        });
        let moved: Vec<_> = moved.collect();
        let channels = &self.channels;
        self.to_subscribe.retain(|name| channels.contains_key(name));
        self.to_unsubscribe.retain(|(_, name)| channels.contains_key(name));
        self.wait_timeout.retain(|(_, name)| channels.contains_key(name));
        self.misrouted.retain(|name| channels.contains_key(name));
        moved
    }

    /// Takes in channels that were heard elsewhere until now.
    pub(crate) fn insert_moved(&mut self, moved: Vec<MovedSubscription<W>>) {
        for MovedSubscription { name, was_interrupted, waiters } in moved {
            self.set_desired(&name);
            self.wait_timeout.extend(waiters.iter().map(|(by, _)| (*by, Arc::clone(&name))));
            if let Some(entry) = self.channels.get_mut(&name) {
                entry.was_interrupted |= was_interrupted;
                entry.waiters.extend(waiters);
            }
        }
        self.wait_timeout.make_contiguous().sort_by_key(|(by, _)| *by);
    }

    /// Whether the Redis was asked to send what is published to this channel, and may send it.
    pub(crate) fn is_requested(&self, channel: &str) -> bool {
        self.channels.get(channel).is_some_and(|entry| entry.is_requested)
    }

    /// The connection is gone: whatever is wanted has to be asked for again.
    pub(crate) fn lost(&mut self) {
        self.to_subscribe.clear();
        self.misrouted.clear();
        for (name, entry) in &mut self.channels {
            entry.was_interrupted |= entry.is_requested;
            (entry.is_requested, entry.unconfirmed) = (false, 0);
            entry.is_misrouted = false;
            entry.is_queued_to_subscribe = entry.is_desired;
            if entry.is_desired {
                self.to_subscribe.push_back(Arc::clone(name));
            }
        }
        self.channels.retain(|_, entry| entry.is_desired || entry.is_queued_to_unsubscribe);
    }

    /// The waiters whose patience is over.
    pub(crate) fn expired_waiters(&mut self, now: Instant) -> Vec<W> {
        let mut over = Vec::new();
        while let Some((_, name)) = self.wait_timeout.pop_front_if(|(by, _)| *by <= now) {
            if let Some(entry) = self.channels.get_mut(&name) {
                let gone = entry.waiters.extract_if(.., |(by, _)| *by <= now);
                over.extend(gone.map(|(_, waiter)| waiter));
            }
        }
        over
    }

    fn remove_if_unused(&mut self, channel: &str) {
        let is_needed = |entry: &Subscription<W>| {
            entry.is_desired
                || entry.is_requested
                || entry.unconfirmed > 0
                || entry.is_queued_to_unsubscribe
        };
        if self.channels.get(channel).is_some_and(|entry| !is_needed(entry)) {
            self.channels.remove(channel);
        }
    }

    /// Channels that anything is known of.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.channels.len()
    }
}

/// How long a channel is heard after its last subscriber left: who reloads a page comes back within.
const DELAY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
