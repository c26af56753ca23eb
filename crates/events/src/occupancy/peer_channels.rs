//! The channels of one node, by its reports.
//! In: numbered reports → out: which channels may have changed.
//! Uses values only. Never: sends events.
//! Changed here: when a node has to send all of its channels again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_node::OccupancyReport;

#[derive(Debug)]
pub(super) struct PeerChannels {
    pub(super) started_ms: u64,
    /// See [`OccupancyReport::told`].
    pub(super) told: u64,
    /// Number of its last report.
    number: u64,
    channels: HashSet<Arc<str>>,
    /// Channels of a list that is not complete yet; until then those of the last one count.
    incoming: Option<HashSet<Arc<str>>>,
    /// A report is missing, or there was none.
    is_behind: bool,
    asked_at: Option<Instant>,
}

impl PeerChannels {
    pub(super) fn new(started_ms: u64) -> Self {
        Self {
            started_ms,
            told: 0,
            number: 0,
            channels: HashSet::new(),
            incoming: None,
            is_behind: true,
            asked_at: None,
        }
    }

    /// Adds a report. Returns the channels that may have changed.
    pub(super) fn apply(&mut self, report: OccupancyReport) -> Vec<Arc<str>> {
        let OccupancyReport { number, is_first, is_last, occupied, vacant, .. } = report;
        if is_first {
            (self.incoming, self.is_behind) = (Some(HashSet::new()), true);
        } else if number != self.number + 1 || (self.is_behind && self.incoming.is_none()) {
            (self.incoming, self.is_behind) = (None, true);
            return Vec::new();
        }
        self.number = number;
        let [occupied, vacant]: [Vec<Arc<str>>; 2] =
            [occupied, vacant].map(|names| names.into_iter().map(Arc::from).collect());
        let channels = self.incoming.as_mut().unwrap_or(&mut self.channels);
        channels.extend(occupied.iter().cloned());
        for channel in &vacant {
            channels.remove(channel);
        }
        match &mut self.incoming {
            None => occupied.into_iter().chain(vacant).collect(),
            Some(incoming) if is_last => {
                let before = std::mem::replace(&mut self.channels, std::mem::take(incoming));
                (self.incoming, self.is_behind) = (None, false);
                self.channels.symmetric_difference(&before).cloned().collect()
            }
            Some(_) => Vec::new(),
        }
    }

    /// Whether to ask for all channels now; at most once in an interval.
    pub(super) fn should_ask(&mut self, now: Instant, interval: Duration) -> bool {
        let is_recent = self.asked_at.is_some_and(|at| now < at + interval);
        let asks = self.is_behind && self.incoming.is_none() && !is_recent;
        if asks {
            self.asked_at = Some(now);
        }
        asks
    }

    pub(super) fn is_complete(&self) -> bool {
        !self.is_behind
    }

    pub(super) fn has(&self, channel: &str) -> bool {
        self.channels.contains(channel)
    }

    pub(super) fn channels(&self) -> impl Iterator<Item = &Arc<str>> {
        self.channels.iter()
    }

    pub(super) fn into_channels(self) -> HashSet<Arc<str>> {
        self.channels
    }

    /// This node does not tell the backend any more: it does not need them.
    pub(super) fn forget_channels(&mut self) {
        *self = Self { told: self.told, ..Self::new(self.started_ms) };
    }
}
