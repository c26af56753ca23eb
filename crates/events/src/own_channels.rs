//! The channels that have subscribers on this node, and those that changed since this was last reported.
//! In: subscriptions and their ends → out: channels in pages, and their changes.
//! Uses values only. Never: other nodes.
//! Changed here: what counts as a change. `occupancy.rs` reports it to the node that tells the backend.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct OwnChannels {
    subscribers: BTreeMap<Arc<str>, u32>,
    /// Channels whose first subscriber came, or whose last one left.
    changed: BTreeSet<Arc<str>>,
}

impl OwnChannels {
    /// A subscription began.
    pub(crate) fn enter(&mut self, channel: &Arc<str>) {
        let count = self.subscribers.entry(Arc::clone(channel)).or_default();
        *count += 1;
        if *count == 1 {
            self.changed.insert(Arc::clone(channel));
        }
    }

    /// A subscription ended.
    pub(crate) fn leave(&mut self, channel: &Arc<str>) {
        let Some(count) = self.subscribers.get_mut(channel) else { return };
        *count -= 1;
        if *count == 0 {
            self.subscribers.remove(channel);
            self.changed.insert(Arc::clone(channel));
        }
    }

    /// Takes some of the changed channels: those with subscribers now, and those without.
    pub(crate) fn take_changes(&mut self, max: usize) -> (Vec<String>, Vec<String>) {
        let changed = std::iter::from_fn(|| self.changed.pop_first()).take(max);
        let (occupied, vacant): (Vec<_>, Vec<_>) =
            changed.partition(|channel| self.subscribers.contains_key(channel));
        (names(&occupied), names(&vacant))
    }

    /// All channels are reported again: no change has to be.
    pub(crate) fn forget_changes(&mut self) {
        self.changed.clear();
    }

    /// The next channels by name.
    pub(crate) fn page(&self, after: Option<&str>, max: usize) -> Vec<String> {
        let after = after.map_or(Unbounded, Excluded);
        let page = self.subscribers.range::<str, _>((after, Unbounded)).take(max);
        page.map(|(channel, _)| channel.as_ref().to_owned()).collect()
    }
}

fn names(channels: &[Arc<str>]) -> Vec<String> {
    channels.iter().map(|channel| channel.as_ref().to_owned()).collect()
}
