//! The keys of shared poll channels that the connections of a shard track, and who tracks a key (protocol §28).
//! In: keys that a connection tracks and untracks, updates → out: which connections get an update, keys that nothing tracks any more.
//! Uses the keys of a connection (`policy::shared_poll`). Never: the values of a key, which the node has.
//! Changed here: how the trackers of a key are found. `hub/polls.rs` sends to them, `command/track.rs` changes them.

use std::sync::Arc;

use fanwire_policy::shared_poll::{TrackedItem, TrackedKeys};
use hashbrown::{HashMap, HashSet};

use crate::broadcast::Broadcast;

/// The trackers of each channel. A channel without any is removed.
#[derive(Debug, Default)]
pub(crate) struct Trackers(HashMap<Arc<str>, PolledChannel>);

#[derive(Debug, Default)]
struct PolledChannel {
    keys: HashMap<Arc<str>, PolledKey>,
    /// Tracked keys by connection index.
    connections: HashMap<u32, TrackedKeys>,
}

/// A key with at least one tracker.
#[derive(Debug, Default)]
struct PolledKey {
    /// Connection indices.
    trackers: HashSet<u32>,
    /// The newest value as a push, if a connection tracked the key when its value was known already.
    known: Option<Arc<Broadcast>>,
}

impl Trackers {
    /// The keys that a connection tracks in a channel.
    pub(crate) fn keys(&self, index: u32, channel: &str) -> Option<&TrackedKeys> {
        self.0.get(channel)?.connections.get(&index)
    }

    /// A connection tracks a key, or has another version of it. Returns whether the key is new to the connection.
    pub(crate) fn track(&mut self, index: u32, channel: &Arc<str>, item: TrackedItem<'_>) -> bool {
        let polled = self.0.entry(Arc::clone(channel)).or_default();
        if !polled.keys.contains_key(item.key) {
            polled.keys.insert(item.key.into(), PolledKey::default());
        }
        let Some((name, key)) = polled.keys.get_key_value_mut(item.key) else { return false };
        key.trackers.insert(index);
        polled.connections.entry(index).or_default().track(item, || Arc::clone(name))
    }

    /// A connection tracks a key no longer. Returns the key if it was tracked.
    pub(crate) fn untrack(&mut self, index: u32, channel: &str, key: &str) -> Option<Arc<str>> {
        let polled = self.0.get_mut(channel)?;
        let keys = polled.connections.get_mut(&index)?;
        if !keys.untrack(key) {
            return None;
        }
        if keys.is_empty() {
            polled.connections.remove(&index);
        }
        let name = polled.release(index, key);
        self.drop_unused(channel);
        name
    }

    /// The subscription of a connection to a channel ends. Returns the keys that it tracked.
    pub(crate) fn end(&mut self, index: u32, channel: &str) -> Vec<Arc<str>> {
        let Some(polled) = self.0.get_mut(channel) else { return Vec::new() };
        let Some(keys) = polled.connections.remove(&index) else { return Vec::new() };
        let released = keys.keys().filter_map(|key| polled.release(index, key)).collect();
        self.drop_unused(channel);
        released
    }

    /// Untracks the keys of a connection whose signature expired more than `delay_s` ago. Returns them.
    pub(crate) fn take_expired(
        &mut self,
        index: u32,
        channel: &str,
        delay_s: u64,
        unix: u64,
    ) -> Vec<Arc<str>> {
        let Some(polled) = self.0.get_mut(channel) else { return Vec::new() };
        let Some(keys) = polled.connections.get_mut(&index) else { return Vec::new() };
        let expired = keys.take_expired(delay_s, unix);
        if keys.is_empty() {
            polled.connections.remove(&index);
        }
        expired.iter().for_each(|key| drop(polled.release(index, key)));
        self.drop_unused(channel);
        expired
    }

    /// The connections that get this version of a key, and have it from now on.
    pub(crate) fn accept_all(&mut self, channel: &str, key: &str, version: u64) -> Vec<u32> {
        let Some(polled) = self.0.get_mut(channel) else { return Vec::new() };
        let Some(polled_key) = polled.keys.get_mut(key) else { return Vec::new() };
        polled_key.known = None;
        let connections = &mut polled.connections;
        let mut accepts =
            |index: &u32| connections.get_mut(index).is_some_and(|keys| keys.accepts(key, version));
        polled_key.trackers.iter().copied().filter(|index| accepts(index)).collect()
    }

    /// The same for one connection.
    pub(crate) fn accept(&mut self, index: u32, channel: &str, key: &str, version: u64) -> bool {
        let keys = self.0.get_mut(channel).and_then(|polled| polled.connections.get_mut(&index));
        keys.is_some_and(|keys| keys.accepts(key, version))
    }

    /// Forgets a key that does not exist any more. Returns the connections that tracked it.
    pub(crate) fn remove(&mut self, channel: &str, key: &str) -> Vec<u32> {
        let Some(polled) = self.0.get_mut(channel) else { return Vec::new() };
        let Some(removed) = polled.keys.remove(key) else { return Vec::new() };
        for index in &removed.trackers {
            if let Some(keys) = polled.connections.get_mut(index) {
                keys.untrack(key);
                if keys.is_empty() {
                    polled.connections.remove(index);
                }
            }
        }
        self.drop_unused(channel);
        removed.trackers.into_iter().collect()
    }

    /// The push with a known value of a key, which `make` makes unless another connection got the same.
    pub(crate) fn known(
        &mut self,
        channel: &str,
        key: &str,
        version: u64,
        make: impl FnOnce() -> Option<Arc<Broadcast>>,
    ) -> Option<Arc<Broadcast>> {
        let known = &mut self.0.get_mut(channel)?.keys.get_mut(key)?.known;
        if known.as_ref().is_none_or(|known| known.publication().version != version) {
            *known = make();
        }
        known.clone()
    }

    fn drop_unused(&mut self, channel: &str) {
        if self.0.get(channel).is_some_and(|polled| polled.connections.is_empty()) {
            self.0.remove(channel);
        }
    }
}

impl PolledChannel {
    /// Removes a connection from the trackers of a key. Returns the key.
    fn release(&mut self, index: u32, key: &str) -> Option<Arc<str>> {
        let (name, polled_key) = self.keys.get_key_value_mut(key)?;
        let name = Arc::clone(name);
        polled_key.trackers.remove(&index);
        if polled_key.trackers.is_empty() {
            self.keys.remove(key);
        }
        Some(name)
    }
}

#[cfg(test)]
mod tests;
