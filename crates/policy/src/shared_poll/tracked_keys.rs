//! The keys that one connection tracks in a shared poll channel, with the version of each that it has.
//! In: items that a client tracks, updates, the time → out: new keys, which updates the connection gets, keys that have expired.
//! Uses a table. Never: signatures, values, other connections.
//! Changed here: the limit of keys, and which update goes to a connection.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

/// The tracked keys of a connection in one channel.
#[derive(Debug, Default)]
pub struct TrackedKeys {
    keys: HashMap<Arc<str>, TrackedKey>,
}

#[derive(Clone, Copy, Debug)]
struct TrackedKey {
    /// That the connection has; 0 = none.
    version: u64,
    /// Unix seconds; `None` = never.
    expires_at: Option<u64>,
}

/// A key that a client tracks, of a batch whose signature was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackedItem<'a> {
    pub key: &'a str,
    /// That the client has; 0 = none.
    pub version: u64,
    /// The end of the signature, in Unix seconds; `None` = never.
    pub expires_at: Option<u64>,
}

/// The connection would track more keys than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyKeys;

impl TrackedKeys {
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The tracked keys, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.keys.keys()
    }

    /// Checks that `items`, together with the tracked keys and without `untracked`, are not too many. A key counts once.
    ///
    /// # Errors
    /// [`TooManyKeys`] beyond `keys_max`.
    pub fn check_room(
        &self,
        items: &[TrackedItem<'_>],
        untracked: &[String],
        keys_max: usize,
    ) -> Result<(), TooManyKeys> {
        let untracked: HashSet<&str> = untracked.iter().map(String::as_str).collect();
        let known = self.keys.keys().map(|key| &**key);
        let all: HashSet<&str> = known.chain(items.iter().map(|item| item.key)).collect();
        let kept = all.difference(&untracked).count();
        if kept > keys_max { Err(TooManyKeys) } else { Ok(()) }
    }

    /// Tracks a key, or sets version and expiry of a tracked one. Returns whether the key is new. `name` makes the name of a new key,
    /// which connections may share.
    pub fn track(&mut self, item: TrackedItem<'_>, name: impl FnOnce() -> Arc<str>) -> bool {
        let TrackedItem { key, version, expires_at } = item;
        let tracked = TrackedKey { version, expires_at };
        if let Some(known) = self.keys.get_mut(key) {
            *known = tracked;
            return false;
        }
        self.keys.insert(name(), tracked);
        true
    }

    /// Untracks a key. Returns whether it was tracked.
    pub fn untrack(&mut self, key: &str) -> bool {
        self.keys.remove(key).is_some()
    }

    /// Whether the connection gets an update of a key with this version, which it then has. Versions of a key only rise, also when two
    /// updates arrive in the wrong order.
    pub fn accepts(&mut self, key: &str, version: u64) -> bool {
        let Some(tracked) = self.keys.get_mut(key) else { return false };
        if version <= tracked.version {
            return false;
        }
        tracked.version = version;
        true
    }

    /// The version of a key that the connection has; 0 = none.
    #[cfg(test)]
    pub fn version(&self, key: &str) -> u64 {
        self.keys.get(key).map_or(0, |tracked| tracked.version)
    }

    /// Untracks the keys whose signature expired more than `delay_s` ago. Returns them, in no order.
    pub fn take_expired(&mut self, delay_s: u64, unix: u64) -> Vec<Arc<str>> {
        let is_expired = |tracked: &TrackedKey| {
            tracked.expires_at.is_some_and(|at| at.saturating_add(delay_s) < unix)
        };
        let expired = self.keys.extract_if(|_, tracked| is_expired(tracked));
        expired.map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests;
