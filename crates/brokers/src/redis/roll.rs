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
}

struct Entry<W> {
    is_wanted: bool,
    /// The last that was asked for is to hear it.
    is_asked: bool,
    /// Questions without a confirmation yet.
    unconfirmed: u32,
    is_to_ask: bool,
    is_to_leave: bool,
    /// It was heard over a connection that is gone.
    was_lost: bool,
    waiters: Vec<(Instant, W)>,
}

/// What a confirmation means.
#[derive(Debug)]
pub(crate) struct Confirmed<W> {
    /// Who waited for it, until when.
    pub(crate) waiters: Vec<(Instant, W)>,
    /// It was heard before, and not for a while.
    pub(crate) is_again: bool,
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
        if entry.is_asked || entry.is_to_ask {
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

    /// The Redis has done what was asked of it first for this channel.
    pub(crate) fn confirmed(&mut self, channel: &str) -> Confirmed<W> {
        let nothing = Confirmed { waiters: Vec::new(), is_again: false };
        let Some(entry) = self.channels.get_mut(channel) else { return nothing };
        entry.unconfirmed = entry.unconfirmed.saturating_sub(1);
        if entry.unconfirmed > 0 {
            return nothing;
        }
        if entry.is_asked {
            let is_again = std::mem::take(&mut entry.was_lost);
            return Confirmed { waiters: std::mem::take(&mut entry.waiters), is_again };
        }
        self.forget_unless_needed(channel);
        nothing
    }

    /// The connection is gone: whatever is wanted has to be asked for again.
    pub(crate) fn lost(&mut self) {
        self.to_ask.clear();
        for (name, entry) in &mut self.channels {
            entry.was_lost |= entry.is_asked;
            (entry.is_asked, entry.unconfirmed) = (false, 0);
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
