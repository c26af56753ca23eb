//! Publications and deliveries by channel, counted only while somebody looks.
//! In: channels with weights, looks → out: the channels with the most of each, and since when they are counted.
//! Uses: heavy hitters behind a lock, a switch. Never: costs more than one read without looks.
//! Change here: how long is counted. What is listed besides: `node/diagnostics.rs`, `hub/diagnostics.rs`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::heavy_hitters::HeavyHitters;
use parking_lot::Mutex;

/// Counts of a node.
#[derive(Debug, Default)]
pub struct HotChannels {
    is_on: AtomicBool,
    counts: Mutex<ChannelCounts>,
}

#[derive(Debug, Default)]
struct ChannelCounts {
    /// Begin of the counts, and the last look; `None` without looks.
    looked: Option<(Instant, Instant)>,
    publications: HeavyHitters,
    deliveries: HeavyHitters,
}

/// The result of a look.
#[derive(Debug, Default)]
pub struct ChannelLook {
    /// Time that the counts span; zero for the first look, which begins them.
    pub counted: Duration,
    pub publications: Vec<(u64, String)>,
    pub deliveries: Vec<(u64, String)>,
}

impl HotChannels {
    /// Whether somebody looks.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Counts a publication that this node accepts, also one without subscribers.
    pub fn count_publication(&self, channel: &str) {
        if self.is_on() {
            self.counts.lock().publications.add(channel, 1);
        }
    }

    /// Counts deliveries to subscribers of a shard.
    pub fn count_deliveries(&self, channel: &str, deliveries: u64) {
        if deliveries > 0 {
            self.counts.lock().deliveries.add(channel, deliveries);
        }
    }

    /// The largest channels since the counts began. Begins them, and begins them again when they span more than a minute.
    pub fn look(&self, limit: usize, now: Instant) -> ChannelLook {
        let counts = &mut *self.counts.lock();
        let begun = counts.looked.map_or(now, |(begun, _)| begun);
        let look = ChannelLook {
            counted: now.saturating_duration_since(begun),
            publications: counts.publications.largest(limit),
            deliveries: counts.deliveries.largest(limit),
        };
        let begun = if look.counted > SPAN {
            counts.publications.clear();
            counts.deliveries.clear();
            now
        } else {
            begun
        };
        counts.looked = Some((begun, now));
        self.is_on.store(true, Relaxed);
        look
    }

    /// Ends the counts if there was no look for a while.
    pub fn tick(&self, now: Instant) {
        if !self.is_on() {
            return;
        }
        let mut counts = self.counts.lock();
        let is_over = |at: Instant| now.saturating_duration_since(at) >= UNSEEN;
        if counts.looked.is_none_or(|(_, last)| is_over(last)) {
            *counts = ChannelCounts::default();
            self.is_on.store(false, Relaxed);
        }
    }
}

const SPAN: Duration = Duration::from_secs(60);
const UNSEEN: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
