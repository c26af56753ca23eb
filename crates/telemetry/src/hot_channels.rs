//! Publications and deliveries by channel, counted only while somebody looks.
//! In: channels with weights, looks → out: the channels with the most of each, and since when they are counted.
//! Uses: heavy hitters behind a lock, a switch. Never: costs more than one read without looks.
//! Changed here: how long is counted. What is listed besides: `node/questions/hot_lists.rs`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::heavy_hitters::{HeavyHitters, Largest};
use parking_lot::Mutex;

/// Counts of a node.
#[derive(Debug, Default)]
pub struct HotChannels {
    is_on: AtomicBool,
    counts: Mutex<ChannelCounts>,
}

#[derive(Debug, Default)]
struct ChannelCounts {
    /// Begin of the counts, and the last question for them; `None` before the first question.
    asked: Option<(Instant, Instant)>,
    publications: HeavyHitters,
    deliveries: HeavyHitters,
    /// Counts of the last seconds, and of those before.
    recent: [RecentCounts; 2],
}

/// Counts that begin again after [`RECENT`].
#[derive(Debug, Default)]
struct RecentCounts {
    /// `None` for counts that did not begin.
    begun: Option<Instant>,
    publications: HeavyHitters,
    deliveries: HeavyHitters,
}

/// The largest channels at one question.
#[derive(Debug, Default)]
pub struct HotChannelCounts {
    /// Time that the counts span; zero for the first question, which begins them.
    pub counted: Duration,
    pub publications: Vec<(u64, String)>,
    pub deliveries: Vec<(u64, String)>,
    /// Time that the counts of the last seconds span: some 5 s.
    pub recent: Duration,
    pub recent_publications: Vec<(u64, String)>,
    pub recent_deliveries: Vec<(u64, String)>,
}

impl HotChannels {
    /// Whether somebody asked a short time ago.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Counts a publication that this node accepts, also one without subscribers.
    pub fn count_publication(&self, channel: &str) {
        if self.is_on() {
            let counts = &mut *self.counts.lock();
            counts.publications.add(channel, 1);
            counts.recent[0].publications.add(channel, 1);
        }
    }

    /// Counts deliveries to subscribers of a shard.
    pub fn count_deliveries(&self, channel: &str, deliveries: u64) {
        if deliveries > 0 {
            let counts = &mut *self.counts.lock();
            counts.deliveries.add(channel, deliveries);
            counts.recent[0].deliveries.add(channel, deliveries);
        }
    }

    /// The largest channels since the counts began. Begins them, and begins them again when they span more than a minute.
    pub fn counts(&self, limit: usize, now: Instant) -> HotChannelCounts {
        let counts = &mut *self.counts.lock();
        let begun = counts.asked.map_or(now, |(begun, _)| begun);
        let result = HotChannelCounts {
            counted: now.saturating_duration_since(begun),
            publications: counts.publications.largest(limit),
            deliveries: counts.deliveries.largest(limit),
            recent: counts.recent_span(now),
            recent_publications: counts.recent_largest(limit, |recent| &recent.publications),
            recent_deliveries: counts.recent_largest(limit, |recent| &recent.deliveries),
        };
        counts.recent[0].begun.get_or_insert(now);
        let begun = if result.counted > SPAN {
            counts.publications.clear();
            counts.deliveries.clear();
            now
        } else {
            begun
        };
        counts.asked = Some((begun, now));
        self.is_on.store(true, Relaxed);
        result
    }

    /// Ends the counts if there was no question for a while. Call once a second.
    pub fn tick(&self, now: Instant) {
        if !self.is_on() {
            return;
        }
        let mut counts = self.counts.lock();
        let is_over = |at: Instant| now.saturating_duration_since(at) >= UNSEEN;
        if counts.asked.is_none_or(|(_, last)| is_over(last)) {
            *counts = ChannelCounts::default();
            self.is_on.store(false, Relaxed);
            return;
        }
        let begun = counts.recent[0].begun;
        if begun.is_some_and(|begun| now.saturating_duration_since(begun) >= RECENT) {
            counts.recent.swap(0, 1);
            counts.recent[0] = RecentCounts { begun: Some(now), ..RecentCounts::default() };
        }
    }
}

impl ChannelCounts {
    fn recent_span(&self, now: Instant) -> Duration {
        let begun = self.recent.iter().filter_map(|recent| recent.begun).min();
        begun.map_or(Duration::ZERO, |begun| now.saturating_duration_since(begun))
    }

    /// The largest channels of the last seconds and those before.
    fn recent_largest(
        &self,
        limit: usize,
        of: fn(&RecentCounts) -> &HeavyHitters,
    ) -> Vec<(u64, String)> {
        let mut sums = BTreeMap::<String, u64>::new();
        for (count, name) in self.recent.iter().flat_map(|recent| of(recent).largest(usize::MAX)) {
            *sums.entry(name).or_default() += count;
        }
        let mut largest = Largest::new(limit);
        sums.into_iter().for_each(|(name, count)| largest.offer(count, || name));
        largest.into_vec()
    }
}

/// Two of these spans are read, the newer one unfinished: 3 to 8 s, as `tick` is called once a second.
const RECENT: Duration = Duration::from_secs(3);
const SPAN: Duration = Duration::from_secs(60);
const UNSEEN: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
