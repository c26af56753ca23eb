//! Which channels a PUB/SUB connection should hear, which it asked for, and which it is known to hear.
//! In: wants of the node, confirmations of the Redis, losses of the connection, the time → out: what to ask for next.
//! Uses: a map. Never: sockets, locks.
//! Change here: when a channel is subscribed and unsubscribed. Bytes live in `feed.rs`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hashbrown::HashMap;

/// The channels of one connection. `W` is what waits for a channel to be heard.
pub(crate) struct Roll<W> {
    channels: HashMap<Arc<str>, Entry<W>>,
    /// Wanted and not asked for, or not wanted any more since; each channel is here once.
    to_ask: VecDeque<Arc<str>>,
    /// Not wanted since a time, or wanted again since; each channel is here once.
    to_leave: VecDeque<(Instant, Arc<str>)>,
    /// Channels with waiters, by the end of their patience.
    patience: VecDeque<(Instant, Arc<str>)>,
    /// Wanted, and not to be heard here any more, or moved since; each channel is here once.
    displaced: Vec<Arc<str>>,
}

struct Entry<W> {
    is_wanted: bool,
    /// The last that was asked for is to hear it.
    is_asked: bool,
    /// Questions without a confirmation yet.
    unconfirmed: u32,
    is_to_ask: bool,
    is_to_leave: bool,
    /// The Redis does not send it: in a Cluster its slot is elsewhere, or on its way.
    is_displaced: bool,
    /// It was heard over a connection that is gone.
    was_lost: bool,
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
pub(crate) struct Confirmed<W> {
    /// Who waited for it, until when.
    pub(crate) waiters: Vec<(Instant, W)>,
    /// It was heard before, and not for a while.
    pub(crate) is_again: bool,
    /// It is wanted, and not heard any more, though nobody asked for that.
    pub(crate) is_displaced: bool,
}

/// A wanted channel on its way to another connection.
pub(crate) struct Moved<W> {
    name: Arc<str>,
    was_lost: bool,
    waiters: Vec<(Instant, W)>,
}

impl<W> Moved<W> {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// What to ask the Redis for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) subscribe: Vec<Arc<str>>,
    pub(crate) unsubscribe: Vec<Arc<str>>,
}

/// Whether a channel is heard.
pub(crate) enum Heard<W> {
    /// By now: the waiter comes back.
    Yes(W),
    /// Later, perhaps: the waiter stays.
    NotYet,
    /// Nobody wants to hear it: the waiter comes back.
    Never(W),
}

impl<W> Default for Roll<W> {
    fn default() -> Self {
        Self {
            channels: HashMap::new(),
            to_ask: VecDeque::new(),
            to_leave: VecDeque::new(),
            patience: VecDeque::new(),
            displaced: Vec::new(),
        }
    }
}

impl<W> Default for Entry<W> {
    fn default() -> Self {
        Self {
            is_wanted: false,
            is_asked: false,
            unconfirmed: 0,
            was_lost: false,
            is_to_ask: false,
            is_to_leave: false,
            is_displaced: false,
            waiters: Vec::new(),
        }
    }
}

impl<W> Roll<W> {
    /// A channel has its first subscriber. Whether there is something to ask for.
    pub(crate) fn want(&mut self, channel: &str) -> bool {
        let name = match self.channels.get_key_value(channel) {
            Some((name, _)) => Arc::clone(name),
            None => channel.into(),
        };
        let entry = self.channels.entry(Arc::clone(&name)).or_default();
        entry.is_wanted = true;
        if entry.is_asked || entry.is_to_ask || entry.is_displaced {
            return false;
        }
        entry.is_to_ask = true;
        self.to_ask.push_back(name);
        true
    }

    /// A channel has lost its last subscriber: it is left in a while, if it is not wanted again by then.
    pub(crate) fn leave(&mut self, channel: &str, now: Instant) {
        let Some((name, _)) = self.channels.get_key_value(channel) else { return };
        let name = Arc::clone(name);
        let Some(entry) = self.channels.get_mut(channel) else { return };
        entry.is_wanted = false;
        if !entry.is_to_leave {
            entry.is_to_leave = true;
            self.to_leave.push_back((now + DELAY, name));
        }
    }

    /// Keeps `waiter` until the channel is heard, at most until `by`.
    pub(crate) fn wait(&mut self, channel: &str, by: Instant, waiter: W) -> Heard<W> {
        let Some((name, _)) = self.channels.get_key_value(channel) else {
            return Heard::Never(waiter);
        };
        let name = Arc::clone(name);
        let entry = self.channels.entry(Arc::clone(&name)).or_default();
        if !entry.is_wanted {
            return Heard::Never(waiter);
        }
        if entry.is_asked && entry.unconfirmed == 0 {
            return Heard::Yes(waiter);
        }
        entry.waiters.push((by, waiter));
        self.patience.push_back((by, name));
        Heard::NotYet
    }

    /// What to ask for now, about `max` channels of it.
    pub(crate) fn turn(&mut self, now: Instant, max: usize) -> Turn {
        let mut turn = Turn::default();
        while turn.subscribe.len() < max
            && let Some(name) = self.to_ask.pop_front()
        {
            let Some(entry) = self.channels.get_mut(&name) else { continue };
            entry.is_to_ask = false;
            if entry.is_wanted {
                entry.is_asked = true;
                entry.unconfirmed += 1;
                turn.subscribe.push(name);
            }
        }
        while turn.unsubscribe.len() < max
            && let Some((_, name)) = self.to_leave.pop_front_if(|(due, _)| *due <= now)
        {
            let Some(entry) = self.channels.get_mut(&name) else { continue };
            entry.is_to_leave = false;
            if !entry.is_wanted && entry.is_asked {
                entry.is_asked = false;
                entry.unconfirmed += 1;
                turn.unsubscribe.push(name);
            } else {
                self.forget_unless_needed(&name);
            }
        }
        turn
    }

    /// When [`turn`](Self::turn) has something to do next, if nothing else happens; `now` when it has already.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        if !self.to_ask.is_empty() {
            return Some(now);
        }
        self.to_leave.front().map(|(due, _)| *due)
    }

    /// The Redis has done something for this channel: what was asked of it first, or what it did by itself.
    pub(crate) fn confirmed(&mut self, channel: &str, done: Done) -> Confirmed<W> {
        let mut confirmed = Confirmed { waiters: Vec::new(), is_again: false, is_displaced: false };
        let Some(entry) = self.channels.get_mut(channel) else { return confirmed };
        entry.unconfirmed = entry.unconfirmed.saturating_sub(1);
        if entry.unconfirmed > 0 {
            return confirmed;
        }
        if !entry.is_asked {
            self.forget_unless_needed(channel);
        } else if done == Done::Unsubscribed {
            confirmed.is_displaced = self.displace(channel);
        } else {
            confirmed.is_again = std::mem::take(&mut entry.was_lost);
            confirmed.waiters = std::mem::take(&mut entry.waiters);
        }
        confirmed
    }

    /// The Redis does not send what is published to this channel. Whether that is to be cared for, by
    /// [asking again](Self::ask_displaced) or by [taking it away](Self::take).
    pub(crate) fn displace(&mut self, channel: &str) -> bool {
        let Some((name, _)) = self.channels.get_key_value(channel) else { return false };
        let name = Arc::clone(name);
        let Some(entry) = self.channels.get_mut(channel) else { return false };
        entry.was_lost |= entry.is_asked;
        (entry.is_asked, entry.unconfirmed) = (false, 0);
        if !entry.is_wanted {
            self.forget_unless_needed(channel);
            return false;
        }
        if !entry.is_displaced {
            entry.is_displaced = true;
            self.displaced.push(name);
        }
        true
    }

    /// Displaces whatever was asked for and is not confirmed. Whether there is such a channel.
    pub(crate) fn displace_unconfirmed(&mut self) -> bool {
        let is_unsure = |(name, entry): (&Arc<str>, &Entry<W>)| {
            (entry.unconfirmed > 0).then(|| Arc::clone(name))
        };
        let unsure: Vec<_> = self.channels.iter().filter_map(is_unsure).collect();
        unsure.iter().filter(|name| self.displace(name)).count() > 0
    }

    /// What was displaced is to be asked for again. Whether there is something to ask for.
    pub(crate) fn ask_displaced(&mut self) -> bool {
        for name in std::mem::take(&mut self.displaced) {
            if let Some(entry) = self.channels.get_mut(&name)
                && std::mem::take(&mut entry.is_displaced)
                && !entry.is_to_ask
            {
                entry.is_to_ask = true;
                self.to_ask.push_back(name);
            }
        }
        !self.to_ask.is_empty()
    }

    /// Takes out the channels that belong elsewhere; those that nobody wants are forgotten.
    pub(crate) fn take(&mut self, is_elsewhere: impl Fn(&str) -> bool) -> Vec<Moved<W>> {
        let gone = self.channels.extract_if(|name, _| is_elsewhere(name));
        let moved = gone.filter(|(_, entry)| entry.is_wanted).map(|(name, entry)| {
            let was_lost = entry.was_lost || entry.is_asked;
            Moved { name, was_lost, waiters: entry.waiters }
        });
        let moved: Vec<_> = moved.collect();
        let channels = &self.channels;
        self.to_ask.retain(|name| channels.contains_key(name));
        self.to_leave.retain(|(_, name)| channels.contains_key(name));
        self.patience.retain(|(_, name)| channels.contains_key(name));
        self.displaced.retain(|name| channels.contains_key(name));
        moved
    }

    /// Takes in channels that were heard elsewhere until now.
    pub(crate) fn put(&mut self, moved: Vec<Moved<W>>) {
        for Moved { name, was_lost, waiters } in moved {
            self.want(&name);
            self.patience.extend(waiters.iter().map(|(by, _)| (*by, Arc::clone(&name))));
            if let Some(entry) = self.channels.get_mut(&name) {
                entry.was_lost |= was_lost;
                entry.waiters.extend(waiters);
            }
        }
        self.patience.make_contiguous().sort_by_key(|(by, _)| *by);
    }

    /// Whether the Redis was asked to send what is published to this channel, and may send it.
    pub(crate) fn is_asked(&self, channel: &str) -> bool {
        self.channels.get(channel).is_some_and(|entry| entry.is_asked)
    }

    /// The connection is gone: whatever is wanted has to be asked for again.
    pub(crate) fn lost(&mut self) {
        self.to_ask.clear();
        self.displaced.clear();
        for (name, entry) in &mut self.channels {
            entry.was_lost |= entry.is_asked;
            (entry.is_asked, entry.unconfirmed) = (false, 0);
            entry.is_displaced = false;
            entry.is_to_ask = entry.is_wanted;
            if entry.is_wanted {
                self.to_ask.push_back(Arc::clone(name));
            }
        }
        self.channels.retain(|_, entry| entry.is_wanted || entry.is_to_leave);
    }

    /// The waiters whose patience is over.
    pub(crate) fn impatient(&mut self, now: Instant) -> Vec<W> {
        let mut over = Vec::new();
        while let Some((_, name)) = self.patience.pop_front_if(|(by, _)| *by <= now) {
            if let Some(entry) = self.channels.get_mut(&name) {
                let gone = entry.waiters.extract_if(.., |(by, _)| *by <= now);
                over.extend(gone.map(|(_, waiter)| waiter));
            }
        }
        over
    }

    fn forget_unless_needed(&mut self, channel: &str) {
        let is_needed = |entry: &Entry<W>| {
            entry.is_wanted || entry.is_asked || entry.unconfirmed > 0 || entry.is_to_leave
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
