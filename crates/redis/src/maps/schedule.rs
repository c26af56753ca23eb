//! When this node looks for entries of maps whose time is over: the maps that it used or follows, by the time of the next look.
//! In: uses of maps, results of looks, the time → out: the maps that are due.
//! Uses: a table and an ordered tree. Never: Redis, locks, clocks (time is a parameter).
//! Changed here: which maps are looked at, and when. What a look does is in `script/map_sweep.lua`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_broker::map::{MapChannel, MapRetention};
use hashbrown::HashMap;

/// The maps of this node whose entries expire. A map leaves it when it is empty, and no subscriber of this node follows it.
///
/// Other nodes look at the same maps, which costs a script that finds nothing. An entry that another node sets later than a look ends
/// at least `key_ttl` after it, so no look is later than that.
#[derive(Default)]
pub(crate) struct SweepSchedule {
    maps: HashMap<Arc<str>, ScheduledMap>,
    /// The time of the next look; a map that is being looked at has none.
    wakes: BTreeSet<(Instant, Arc<str>)>,
}

struct ScheduledMap {
    retention: MapRetention,
    /// Subscribers of this node follow it.
    is_followed: bool,
    /// Used since the last look began, which may not have seen it.
    is_used: bool,
}

/// A map to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DueMap {
    pub(super) name: Arc<str>,
    pub(super) retention: MapRetention,
}

/// The result of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SweepResult {
    /// The first entry ends after this time.
    Next(Duration),
    /// The map has no entries.
    Empty,
    Failed,
}

impl SweepSchedule {
    /// A map is read or changed by this node. A new one is looked at after `wait`.
    pub(super) fn add(&mut self, channel: MapChannel<'_>, wait: Duration, now: Instant) {
        if channel.retention.key_ttl.is_zero() {
            return;
        }
        if let Some(map) = self.maps.get_mut(channel.name) {
            map.retention = channel.retention;
            map.is_used = true;
            return;
        }
        let Some(wake_at) = now.checked_add(wait) else { return };
        let name: Arc<str> = channel.name.into();
        self.wakes.insert((wake_at, Arc::clone(&name)));
        let retention = channel.retention;
        self.maps.insert(name, ScheduledMap { retention, is_followed: false, is_used: true });
    }

    /// A subscriber of this node follows a map.
    pub(super) fn follow(&mut self, channel: MapChannel<'_>, now: Instant) {
        self.add(channel, Duration::ZERO, now);
        if let Some(map) = self.maps.get_mut(channel.name) {
            map.is_followed = true;
        }
    }

    /// This node has no subscribers of a channel any more, which need not be a map.
    pub(crate) fn unfollow(&mut self, name: &str) {
        if let Some(map) = self.maps.get_mut(name) {
            map.is_followed = false;
        }
    }

    /// Takes up to `count` maps that are due. [`swept`](Self::swept) has to be called for each.
    pub(super) fn take_due(&mut self, count: usize, now: Instant) -> Vec<DueMap> {
        let mut due = Vec::new();
        while due.len() < count {
            let is_due = |(at, _): &&(Instant, Arc<str>)| *at <= now;
            if self.wakes.first().filter(is_due).is_none() {
                break;
            }
            let Some((_, name)) = self.wakes.pop_first() else { break };
            let Some(map) = self.maps.get_mut(&name) else { continue };
            map.is_used = false;
            due.push(DueMap { retention: map.retention, name });
        }
        due
    }

    /// Takes the result of a look that began at `now`.
    pub(super) fn swept(&mut self, name: &Arc<str>, result: SweepResult, now: Instant) {
        let Some(map) = self.maps.get_mut(name) else { return };
        let key_ttl = map.retention.key_ttl;
        let wait = match result {
            SweepResult::Next(wait) => wait.min(key_ttl),
            SweepResult::Empty if map.is_followed || map.is_used => key_ttl,
            SweepResult::Failed => RETRY_WAIT,
            SweepResult::Empty => {
                self.maps.remove(name);
                return;
            }
        };
        let wake_at = now.checked_add(wait).unwrap_or(now + RETRY_WAIT);
        self.wakes.insert((wake_at, Arc::clone(name)));
    }
}

/// Wait after a look that failed.
const RETRY_WAIT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
