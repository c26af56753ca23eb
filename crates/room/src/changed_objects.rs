//! Changed objects: an encoder of state that sends what changed since the tick before, and all of it now and then.
//! In: the JSON state of each object in each tick → out: one JSON text per tick.
//! Uses values only. Never: decides which objects a player sees.
//! Changed here: the form of these texts. Programs with a binary format of their own send whole snapshots instead.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use bytes::Bytes;

/// The objects of a room, by id, and which of them changed.
///
/// Texts have the form `{"full":true,"set":{"7":STATE},"removed":[9]}`: a client with `full` forgets all its objects first, then
/// removes and sets. Texts without `full` build on the ones before, so send them with
/// [`reliable`](crate::RoomContext::reliable); a player that joins gets [`full`](Self::full).
///
/// With context compression a whole snapshot costs little more than its changes; this encoder saves the client the parsing,
/// and helps clients without compression.
#[derive(Clone, Debug)]
pub struct ChangedObjects {
    /// JSON.
    objects: BTreeMap<u64, Bytes>,
    changed: BTreeSet<u64>,
    removed: Vec<u64>,
    full_every: NonZeroU32,
    /// Texts since the last one with all objects.
    texts: u32,
}

impl ChangedObjects {
    /// One of `full_every` texts contains all objects, the first one among them; 1 = all of them.
    pub fn new(full_every: NonZeroU32) -> Self {
        Self {
            objects: BTreeMap::new(),
            changed: BTreeSet::new(),
            removed: Vec::new(),
            full_every,
            texts: 0,
        }
    }

    /// Sets the state of an object, a JSON value. Nothing is sent if it is the same as before.
    pub fn set(&mut self, id: u64, state: impl Into<Bytes>) {
        let state = state.into();
        if self.objects.get(&id) != Some(&state) {
            self.objects.insert(id, state);
            self.changed.insert(id);
        }
    }

    /// Removes an object, if there is one.
    pub fn remove(&mut self, id: u64) {
        if self.objects.remove(&id).is_some() {
            self.changed.remove(&id);
            self.removed.push(id);
        }
    }

    /// The text of this tick; `None` when nothing changed and it is not the turn of all objects.
    pub fn update(&mut self) -> Option<Bytes> {
        let is_full = self.texts == 0;
        self.texts = (self.texts + 1) % self.full_every;
        let text = if is_full {
            Some(self.full())
        } else if self.changed.is_empty() && self.removed.is_empty() {
            None
        } else {
            let changed = self.changed.iter().map(|id| (*id, &self.objects[id]));
            Some(text(false, changed, &self.removed))
        };
        self.changed.clear();
        self.removed.clear();
        text
    }

    /// The text with all objects, for one player.
    pub fn full(&self) -> Bytes {
        text(true, self.objects.iter().map(|(id, state)| (*id, state)), &[])
    }
}

fn text<'a>(is_full: bool, set: impl Iterator<Item = (u64, &'a Bytes)>, removed: &[u64]) -> Bytes {
    let mut text =
        Vec::from(if is_full { &b"{\"full\":true,\"set\":{"[..] } else { b"{\"set\":{" });
    for (number, (id, state)) in set.enumerate() {
        if number > 0 {
            text.push(b',');
        }
        text.extend_from_slice(format!("\"{id}\":").as_bytes());
        text.extend_from_slice(state);
    }
    text.push(b'}');
    if !removed.is_empty() {
        let ids: Vec<_> = removed.iter().map(u64::to_string).collect();
        text.extend_from_slice(format!(",\"removed\":[{}]", ids.join(",")).as_bytes());
    }
    text.push(b'}');
    text.into()
}

#[cfg(test)]
mod tests;
