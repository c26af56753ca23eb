//! A shared poll channel of a node: its keys with their newest values, the cycles in which they are polled, requests in flight.
//! In: keys that connections track, answers, direct publishes, the time → out: requests, effects for connections.
//! Uses tables and queues. Never: which connection tracks a key, as `tracked_keys.rs` knows for each; sockets, clocks.
//! Changed here: when a key is polled, and which answer counts.

use std::collections::VecDeque;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashMap};

use super::{
    DirectPublish, KeyUpdate, PollAnswer, PollEffect, PollItem, PollMode, PollNodeState,
    PollOptions, PollRequest, RequestId,
};

/// The keys of one channel.
///
/// Each key is in at most one request at a time, however many connections track it. In each interval it is polled once, in the
/// cycle; a key that is new, or whose value is not known, is polled at once instead. The newest value of each key is kept, so that
/// connections that come later get it without a request.
#[derive(Debug)]
pub struct PollChannel {
    options: PollOptions,
    epoch: String,
    keys: HashMap<Arc<str>, PolledKey>,
    /// Keys to poll at once; some may not need it any more.
    urgent: VecDeque<Arc<str>>,
    /// Time of the next cycle; `None` before the first key.
    next_cycle_at: Option<Instant>,
    /// Batches of this cycle, by the times at which they are sent.
    batches: VecDeque<(Instant, Vec<Arc<str>>)>,
    in_flight: HashMap<RequestId, InFlight>,
    node: Arc<PollNodeState>,
    hasher: DefaultHashBuilder,
    flipped_at: Option<Instant>,
    /// A version is known here, or a connection has one. Without any, the first epoch of a backend is no change.
    has_versions: bool,
    idle_count: usize,
    values_bytes: usize,
    counts: PollCounts,
}

#[derive(Debug, Default)]
struct PolledKey {
    /// Connections that track it. Without any it is idle: not polled, and forgotten in the next cycle.
    trackers: usize,
    /// 0 = its value is not known.
    version: u64,
    /// The hash of the value, in a versionless channel.
    hash: u64,
    /// `None` also where there is no memory for it.
    data: Option<Bytes>,
    /// A connection needs the value, and it is not kept.
    is_wanted: bool,
    is_in_flight: bool,
    /// Polled at once, or published, since the last cycle began: the next one leaves it out.
    is_recent: bool,
}

#[derive(Debug)]
struct InFlight {
    deadline: Instant,
    /// The epoch when it was sent.
    epoch: String,
    keys: HashMap<Arc<str>, SentKey>,
}

/// A key of a request.
#[derive(Clone, Copy, Debug)]
struct SentKey {
    /// The version of the request.
    asked: u64,
    /// The version that was known.
    known: u64,
}

/// Counts since the start of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollCounts {
    /// Requests without an answer, or with an error.
    pub failed: u64,
    /// Answers that came too late.
    pub late: u64,
    /// Values that were older than the known one.
    pub stale: u64,
    /// Items of keys that were not asked for.
    pub foreign: u64,
    /// Items without a version in a versioned channel, or with a new version and no value.
    pub invalid: u64,
    /// Changes of the epoch.
    pub flips: u64,
    /// Answers and publishes that were dropped, because the epoch had changed just before.
    pub flips_suppressed: u64,
}

impl PollCounts {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            failed: self.failed + other.failed,
            late: self.late + other.late,
            stale: self.stale + other.stale,
            foreign: self.foreign + other.foreign,
            invalid: self.invalid + other.invalid,
            flips: self.flips + other.flips,
            flips_suppressed: self.flips_suppressed + other.flips_suppressed,
        }
    }
}

impl PollChannel {
    /// A channel without keys. `epoch` is random in a versionless channel, "" in a versioned one. `node` is shared by all channels of the
    /// node.
    pub fn new(options: PollOptions, epoch: String, node: Arc<PollNodeState>) -> Self {
        Self {
            options,
            epoch,
            keys: HashMap::new(),
            urgent: VecDeque::new(),
            next_cycle_at: None,
            batches: VecDeque::new(),
            in_flight: HashMap::new(),
            node,
            hasher: DefaultHashBuilder::default(),
            flipped_at: None,
            has_versions: false,
            idle_count: 0,
            values_bytes: 0,
            counts: PollCounts::default(),
        }
    }

    pub fn epoch(&self) -> &str {
        &self.epoch
    }

    pub fn counts(&self) -> PollCounts {
        self.counts
    }

    /// A channel whose epoch has changed is not forgotten before this time: its subscribers come back, and must learn the new epoch.
    pub fn kept_until(&self) -> Option<Instant> {
        self.flipped_at.map(|at| at + FLIPPED_KEPT)
    }

    /// Whether no connection tracks a key.
    pub fn is_idle(&self) -> bool {
        self.keys.len() == self.idle_count
    }

    /// A connection tracks a key, of which it has a version; 0 = none. Returns the value if the connection lacks it and it is known.
    pub fn track(&mut self, key: &str, version: u64, now: Instant) -> Option<KeyUpdate> {
        self.next_cycle_at.get_or_insert(now + self.options.refresh_interval);
        self.has_versions |= version != 0;
        if !self.keys.contains_key(key) {
            self.keys.insert(key.into(), PolledKey::default());
            self.idle_count += 1;
        }
        let (name, polled) = self.keys.get_key_value_mut(key)?;
        self.idle_count -= usize::from(polled.trackers == 0);
        polled.trackers += 1;
        if version != 0 && version >= polled.version {
            return None;
        }
        if let Some(data) = &polled.data {
            let data = data.clone();
            return Some(KeyUpdate { key: Arc::clone(name), data, version: polled.version });
        }
        if !polled.is_wanted {
            polled.is_wanted = true;
            self.urgent.push_back(Arc::clone(name));
        }
        None
    }

    /// A connection tracks a key no longer.
    pub fn untrack(&mut self, key: &str) {
        let Some(polled) = self.keys.get_mut(key).filter(|polled| polled.trackers > 0) else {
            return;
        };
        polled.trackers -= 1;
        if polled.trackers == 0 {
            polled.is_wanted = false;
            self.idle_count += 1;
            if self.idle_count > IDLE_KEYS_MAX && !polled.is_in_flight {
                self.forget(key);
            }
        }
    }

    /// The next request that is due. Call it until it returns `None`: after each other call, and at [`deadline`](Self::deadline).
    pub fn poll(&mut self, now: Instant) -> Option<PollRequest> {
        self.drop_late_requests(now);
        if self.next_cycle_at.is_some_and(|at| at <= now) {
            self.begin_cycle(now);
        }
        let urgent = self.take_urgent();
        if !urgent.is_empty() {
            return Some(self.request(urgent, now));
        }
        while self.batches.front().is_some_and(|(at, _)| *at <= now) {
            let (_, mut batch) = self.batches.pop_front()?;
            batch.retain(|key| self.keys.get(key).is_some_and(PolledKey::is_due));
            if !batch.is_empty() {
                return Some(self.request(batch, now));
            }
        }
        None
    }

    /// When [`poll`](Self::poll) has to be called again; `None` while there are no keys.
    pub fn deadline(&self) -> Option<Instant> {
        let cycle = self.next_cycle_at.filter(|_| !self.keys.is_empty());
        let batch = self.batches.front().map(|(at, _)| *at);
        let late = self.in_flight.values().map(|sent| sent.deadline).min();
        [cycle, batch, late].into_iter().flatten().min()
    }

    /// Takes the answer to a request; `None` if it failed. Its keys then wait for the next cycle.
    pub fn answer(
        &mut self,
        id: RequestId,
        answer: Option<PollAnswer>,
        now: Instant,
    ) -> Vec<PollEffect> {
        let Some(sent) = self.in_flight.remove(&id) else {
            self.counts.late += 1;
            return Vec::new();
        };
        for key in sent.keys.keys() {
            if let Some(polled) = self.keys.get_mut(key) {
                polled.is_in_flight = false;
            }
        }
        let Some(answer) = answer else {
            self.counts.failed += 1;
            self.await_cycle(&sent);
            return Vec::new();
        };
        let effects = self.take_answer(&sent, answer, now);
        self.want_again(&sent);
        effects
    }

    /// Takes a value that was published directly.
    pub fn publish(&mut self, publish: DirectPublish, now: Instant) -> Vec<PollEffect> {
        let DirectPublish { key, data, version, epoch } = publish;
        let mut effects = Vec::new();
        if !self.take_epoch(epoch, now, &mut effects) {
            return effects;
        }
        let Some(polled) = self.keys.get_mut(&*key) else { return effects };
        if version <= polled.version {
            self.counts.stale += 1;
            return effects;
        }
        polled.is_recent = true;
        effects.extend(self.update(&key, data, version));
        effects
    }

    fn take_answer(
        &mut self,
        sent: &InFlight,
        answer: PollAnswer,
        now: Instant,
    ) -> Vec<PollEffect> {
        let mut effects = Vec::new();
        let is_versioned = self.options.mode == PollMode::Versioned;
        if is_versioned && answer.epoch != self.epoch && sent.epoch != self.epoch {
            // The epoch has changed since the request was sent; the answer may be of the one before.
            self.counts.stale += answer.items.len() as u64;
            return effects;
        }
        if is_versioned && !self.take_epoch(answer.epoch, now, &mut effects) {
            return effects;
        }
        for item in answer.items {
            let Some(sent_key) = sent.keys.get(&*item.key) else {
                self.counts.foreign += 1;
                continue;
            };
            let effect = match self.options.mode {
                _ if item.is_removed => self.take_removal(&item, *sent_key),
                PollMode::Versionless => self.take_value(item),
                PollMode::Versioned => self.take_versioned_value(item),
            };
            effects.extend(effect);
        }
        effects
    }

    /// Without a version, a removal is older than a value that was published after the request was sent.
    fn take_removal(&mut self, item: &PollItem, sent: SentKey) -> Option<PollEffect> {
        let polled = self.keys.get(&*item.key)?;
        let removed_version = if item.version == 0 { sent.known } else { item.version };
        if self.options.mode == PollMode::Versioned && removed_version < polled.version {
            self.counts.stale += 1;
            return None;
        }
        let (name, polled) = self.keys.get_key_value_mut(&*item.key)?;
        let name = Arc::clone(name);
        let PolledKey { trackers, is_in_flight, is_recent, .. } = *polled;
        let kept = PolledKey { trackers, is_in_flight, is_recent, ..PolledKey::default() };
        let removed = std::mem::replace(polled, kept);
        self.release(removed.bytes());
        Some(PollEffect::Removed(name))
    }

    fn take_value(&mut self, item: PollItem) -> Option<PollEffect> {
        let PollItem { key, data, .. } = item;
        let polled = self.keys.get_mut(&*key).filter(|_| !data.is_empty())?;
        let hash = self.hasher.hash_one(&data);
        if polled.version != 0 && polled.hash == hash {
            return self.supply(&key, data);
        }
        polled.hash = hash;
        let version = self.node.versions.fetch_add(1, Relaxed) + 1;
        self.update(&key, data, version)
    }

    fn take_versioned_value(&mut self, item: PollItem) -> Option<PollEffect> {
        let PollItem { key, data, version, .. } = item;
        let known = self.keys.get(&*key)?.version;
        if version < known && !(version == 0 && data.is_empty()) {
            self.counts.stale += 1;
            return None;
        }
        if data.is_empty() {
            self.counts.invalid += u64::from(version > known);
            return None;
        }
        if version == 0 {
            self.counts.invalid += 1;
            return None;
        }
        if version == known { self.supply(&key, data) } else { self.update(&key, data, version) }
    }

    /// A known value, which a connection may want and which may not be kept.
    fn supply(&mut self, key: &str, data: Bytes) -> Option<PollEffect> {
        let polled = self.keys.get(key)?;
        let is_wanted = polled.is_wanted;
        let version = polled.version;
        if polled.data.is_none() {
            self.keep(key, &data);
        }
        let (name, polled) = self.keys.get_key_value_mut(key)?;
        polled.is_wanted = false;
        let update = KeyUpdate { key: Arc::clone(name), data, version };
        is_wanted.then_some(PollEffect::Updated(update))
    }

    /// A new value.
    fn update(&mut self, key: &str, data: Bytes, version: u64) -> Option<PollEffect> {
        let (name, polled) = self.keys.get_key_value_mut(key)?;
        let name = Arc::clone(name);
        self.has_versions = true;
        polled.version = version;
        polled.is_wanted = false;
        let released = polled.bytes();
        polled.data = None;
        self.release(released);
        self.keep(key, &data);
        Some(PollEffect::Updated(KeyUpdate { key: name, data, version }))
    }

    /// Keeps a copy of a value, if there is memory: the value itself may be a part of a large answer, and would keep all of it.
    fn keep(&mut self, key: &str, data: &Bytes) {
        let bytes = self.values_bytes.saturating_add(data.len());
        let Some(polled) = self.keys.get_mut(key) else { return };
        if bytes <= self.options.values_bytes_max && self.node.reserve(data.len()) {
            self.values_bytes = bytes;
            polled.data = Some(Bytes::copy_from_slice(data));
        }
    }

    /// Returns the memory of values that are no longer kept.
    fn release(&mut self, bytes: usize) {
        self.values_bytes -= bytes;
        self.node.release(bytes);
    }

    fn forget(&mut self, key: &str) -> Option<Arc<str>> {
        let (name, polled) = self.keys.remove_entry(key)?;
        self.idle_count -= usize::from(polled.trackers == 0);
        self.release(polled.bytes());
        Some(name)
    }

    /// Whether a value of this epoch counts. Another epoch than the known one begins, and all values of the one before are forgotten;
    /// but at most once in [`FLIP_INTERVAL`], because each change costs every subscriber a subscribe.
    fn take_epoch(&mut self, epoch: String, now: Instant, effects: &mut Vec<PollEffect>) -> bool {
        if epoch == self.epoch {
            return true;
        }
        if !self.has_versions {
            self.epoch = epoch;
            return true;
        }
        if self.flipped_at.is_some_and(|at| now.saturating_duration_since(at) < FLIP_INTERVAL) {
            self.counts.flips_suppressed += 1;
            return false;
        }
        self.flipped_at = Some(now);
        self.counts.flips += 1;
        self.epoch = epoch;
        self.release(self.values_bytes);
        for polled in self.keys.values_mut() {
            let PolledKey { trackers, is_wanted, is_in_flight, .. } = *polled;
            *polled = PolledKey { trackers, is_wanted, is_in_flight, ..PolledKey::default() };
        }
        effects.push(PollEffect::EpochChanged);
        true
    }

    /// Keys that were asked for with a version, and are wanted whatever their version, are asked for once more. Others, which the backend
    /// does not have, wait for the next cycle.
    fn want_again(&mut self, sent: &InFlight) {
        for (key, sent_key) in &sent.keys {
            let Some(polled) = self.keys.get_mut(key).filter(|polled| polled.is_wanted) else {
                continue;
            };
            polled.is_recent = false;
            if sent_key.asked != 0 {
                self.urgent.push_back(Arc::clone(key));
            }
        }
    }

    /// The keys of a request that failed are polled in the next cycle.
    fn await_cycle(&mut self, sent: &InFlight) {
        for key in sent.keys.keys() {
            if let Some(polled) = self.keys.get_mut(key) {
                polled.is_recent = false;
            }
        }
    }

    fn drop_late_requests(&mut self, now: Instant) {
        let is_late = |sent: &InFlight| sent.deadline <= now;
        let late = self.in_flight.iter().filter(|(_, sent)| is_late(sent)).map(|(id, _)| *id);
        for id in late.collect::<Vec<_>>() {
            self.answer(id, None, now);
        }
    }

    /// Forgets idle keys, and distributes the others over the interval.
    fn begin_cycle(&mut self, now: Instant) {
        let PollOptions { refresh_interval, refresh_batch_size, .. } = self.options;
        // A key in flight is kept: a client that returns must not make a second request.
        let is_idle = |polled: &PolledKey| polled.trackers == 0 && !polled.is_in_flight;
        let idle = self.keys.iter().filter(|(_, polled)| is_idle(polled));
        for key in idle.map(|(key, _)| Arc::clone(key)).collect::<Vec<_>>() {
            self.forget(&key);
        }
        let is_due = self.keys.iter().filter(|(_, polled)| polled.is_due());
        let mut due: Vec<_> = is_due.map(|(key, _)| Arc::clone(key)).collect();
        due.sort_unstable();
        self.keys.values_mut().for_each(|polled| polled.is_recent = false);
        let start = self.next_cycle_at.unwrap_or(now);
        let next = start + refresh_interval;
        self.next_cycle_at = Some(if next > now { next } else { now + refresh_interval });
        let batches = due.chunks(refresh_batch_size.max(1));
        let pause = refresh_interval / u32::try_from(batches.len().max(1)).unwrap_or(u32::MAX);
        let times = (0..).map(|number| now + pause * number);
        self.batches = times.zip(batches.map(<[_]>::to_vec)).collect();
    }

    /// Takes the keys of one request that have to be polled at once.
    fn take_urgent(&mut self) -> Vec<Arc<str>> {
        let mut taken = Vec::new();
        while taken.len() < self.options.refresh_batch_size.max(1) {
            let Some(key) = self.urgent.pop_front() else { break };
            let Some(polled) = self.keys.get_mut(&key) else { continue };
            if polled.is_wanted && polled.trackers > 0 && !polled.is_in_flight {
                polled.is_in_flight = true;
                polled.is_recent = true;
                taken.push(key);
            }
        }
        taken
    }

    fn request(&mut self, keys: Vec<Arc<str>>, now: Instant) -> PollRequest {
        let id = RequestId(self.node.requests.fetch_add(1, Relaxed));
        let mut asked = Vec::with_capacity(keys.len());
        let mut sent = HashMap::with_capacity(keys.len());
        for key in keys {
            let Some(polled) = self.keys.get_mut(&key) else { continue };
            polled.is_in_flight = true;
            let known = polled.version;
            let needs_value = polled.is_wanted || self.options.mode == PollMode::Versionless;
            let version = if needs_value { 0 } else { known };
            asked.push((Arc::clone(&key), version));
            sent.insert(key, SentKey { asked: version, known });
        }
        let deadline = now + self.options.request_timeout;
        self.in_flight.insert(id, InFlight { deadline, epoch: self.epoch.clone(), keys: sent });
        PollRequest { id, keys: asked }
    }
}

impl Drop for PollChannel {
    fn drop(&mut self) {
        self.release(self.values_bytes);
    }
}

impl PolledKey {
    /// Bytes of the value that is kept.
    fn bytes(&self) -> usize {
        self.data.as_ref().map_or(0, Bytes::len)
    }

    /// Whether a cycle polls it.
    fn is_due(&self) -> bool {
        self.trackers > 0 && !self.is_in_flight && !self.is_recent
    }
}

/// Shortest time between two changes of the epoch.
const FLIP_INTERVAL: Duration = Duration::from_secs(1);
const FLIPPED_KEPT: Duration = Duration::from_secs(60);
/// Most keys that no connection tracks, and that are kept until the next cycle for connections that return.
const IDLE_KEYS_MAX: usize = 10_000;

#[cfg(test)]
mod tests;
