//! The shared poll channels of a node, and how many calls of backends run at a time.
//! In: tracked keys, answers, direct publishes, the time → out: requests of all channels, effects.
//! Uses the channels, a queue of those that may have a request, and an ordered tree of times. Never: connections, clocks.
//! Changed here: when a channel begins and ends, and the limit of calls.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use hashbrown::HashMap;

use super::{
    PollAnswer, PollChannel, PollCounts, PollEffect, PollNodeState, PollOptions, PollRequest,
    RequestId,
};

/// All channels of a node. A channel begins with its first key, and ends some time after its last one.
#[derive(Debug)]
pub struct PollTable {
    channels: HashMap<Arc<str>, TableEntry>,
    /// Channels that may have a request, in the order in which they get a turn.
    ready: VecDeque<Arc<str>>,
    /// The next time of each channel, though it may have an earlier one by now.
    wakes: BTreeSet<(Instant, Arc<str>)>,
    node: Arc<PollNodeState>,
    calls_max: usize,
    calls: usize,
    /// Of channels that have ended.
    ended_counts: PollCounts,
}

#[derive(Debug)]
struct TableEntry {
    channel: PollChannel,
    options: PollOptions,
    /// Time since which no key is tracked.
    idle_since: Option<Instant>,
    wake_at: Option<Instant>,
    is_ready: bool,
}

impl TableEntry {
    /// The time at which it is forgotten; `None` while a key is tracked.
    fn end(&self) -> Option<Instant> {
        let end = self.idle_since? + self.options.shutdown_delay;
        Some(self.channel.kept_until().map_or(end, |until| end.max(until)))
    }
}

impl PollTable {
    /// A table whose backends get at most `calls_max` calls at a time (`shared_poll.concurrency_limit`), and whose channels keep at most
    /// `values_bytes_max` bytes of values together (`shared_poll.values_memory_max`).
    pub fn new(calls_max: usize, values_bytes_max: usize) -> Self {
        Self {
            channels: HashMap::new(),
            ready: VecDeque::new(),
            wakes: BTreeSet::new(),
            node: Arc::new(PollNodeState::new(values_bytes_max)),
            calls_max: calls_max.max(1),
            calls: 0,
            ended_counts: PollCounts::default(),
        }
    }

    /// Begins the channel with this name, with these options and this epoch, if it does not exist. Options stay while it has keys.
    pub fn begin(&mut self, name: &str, options: PollOptions, epoch: &str) {
        if !self.channels.contains_key(name) {
            let node = Arc::clone(&self.node);
            let channel = PollChannel::new(options, epoch.to_owned(), node);
            let entry =
                TableEntry { channel, options, idle_since: None, wake_at: None, is_ready: false };
            self.channels.insert(name.into(), entry);
        }
    }

    /// The epoch of a channel, if it has begun and not ended.
    pub fn epoch(&self, name: &str) -> Option<&str> {
        self.channels.get(name).map(|entry| entry.channel.epoch())
    }

    /// Changes a channel, if it has begun and not ended.
    pub fn with<T>(
        &mut self,
        name: &str,
        now: Instant,
        change: impl FnOnce(&mut PollChannel) -> T,
    ) -> Option<T> {
        let (name, entry) = self.channels.get_key_value_mut(name)?;
        let name = Arc::clone(name);
        let done = change(&mut entry.channel);
        self.schedule(&name, true, now);
        Some(done)
    }

    /// The next request that is due, with its channel, if fewer calls run than may. Call it until it returns `None`: after each other
    /// call, and at [`deadline`](Self::deadline). Each request needs one call of [`answer`](Self::answer).
    pub fn poll(&mut self, now: Instant) -> Option<(Arc<str>, PollRequest)> {
        self.wake(now);
        while self.calls < self.calls_max {
            let name = self.ready.pop_front()?;
            let Some(entry) = self.channels.get_mut(&name) else { continue };
            entry.is_ready = false;
            let request = entry.channel.poll(now);
            self.schedule(&name, request.is_some(), now);
            if let Some(request) = request {
                self.calls += 1;
                return Some((name, request));
            }
        }
        None
    }

    /// When [`poll`](Self::poll) has to be called again.
    pub fn deadline(&self) -> Option<Instant> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Takes the answer to a request; `None` if it failed.
    pub fn answer(
        &mut self,
        name: &Arc<str>,
        id: RequestId,
        answer: Option<PollAnswer>,
        now: Instant,
    ) -> Vec<PollEffect> {
        self.calls = self.calls.saturating_sub(1);
        let Some(entry) = self.channels.get_mut(name) else { return Vec::new() };
        let effects = entry.channel.answer(id, answer, now);
        self.schedule(name, true, now);
        effects
    }

    /// Counts of all channels since the start.
    pub fn counts(&self) -> PollCounts {
        let all = self.channels.values().map(|entry| entry.channel.counts());
        all.fold(self.ended_counts, PollCounts::plus)
    }

    /// Makes the channels ready whose time has come, and ends those that are idle.
    fn wake(&mut self, now: Instant) {
        while self.wakes.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, name)) = self.wakes.pop_first() else { break };
            let Some(entry) = self.channels.get_mut(&name) else { continue };
            entry.wake_at = None;
            if entry.end().is_some_and(|end| end <= now) {
                self.ended_counts = self.ended_counts.plus(entry.channel.counts());
                self.channels.remove(&name);
                continue;
            }
            self.schedule(&name, true, now);
        }
    }

    /// Sets the next time of a channel, and whether it may have a request now.
    fn schedule(&mut self, name: &Arc<str>, may_be_ready: bool, now: Instant) {
        let Some(entry) = self.channels.get_mut(name) else { return };
        if may_be_ready && !entry.is_ready {
            entry.is_ready = true;
            self.ready.push_back(Arc::clone(name));
        }
        entry.idle_since =
            if entry.channel.is_idle() { entry.idle_since.or(Some(now)) } else { None };
        let end = entry.end();
        // A ready channel gets its turn without a time, however long calls are at their limit.
        let due = entry.channel.deadline().filter(|_| !entry.is_ready);
        let next = [due, end].into_iter().flatten().min();
        if next == entry.wake_at {
            return;
        }
        if let Some(at) = entry.wake_at {
            self.wakes.remove(&(at, Arc::clone(name)));
        }
        if let Some(at) = next {
            self.wakes.insert((at, Arc::clone(name)));
        }
        entry.wake_at = next;
    }
}

#[cfg(test)]
mod tests;
