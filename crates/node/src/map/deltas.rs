//! The data of a map for subscribers with deltas: entries in full, of the changes of a key the first in full (protocol §11, §27).
//! In: a result with entries and changes → out: the same result in the form for subscribers with deltas, and what patches save.
//! Uses: `delta` for patches. Never: subscribers, live changes; the engine gives those their base, which is the value of the key before.
//! Changed here: which changes of a reply are patches.

use bytes::Bytes;
use fanwire_protocol::{Encoding, SubscribeResult};
use hashbrown::HashMap;

use super::paging::Phase;
use crate::delta::{PatchMaker, Saved};

/// Converts the entries and changes of a result. A page of changes has no patches, because clients take it as entries.
pub(crate) fn shape(encoding: Encoding, result: &mut SubscribeResult) -> Saved {
    let mut patches = PatchMaker::new(encoding, &result.publications);
    for entry in &mut result.state {
        patches.convert(entry, None);
    }
    let has_patches = result.phase == Phase::Live as i32;
    let mut values: HashMap<String, Bytes> = HashMap::new();
    for change in &mut result.publications {
        let data = change.data.clone();
        let base = values.remove(&change.key).filter(|_| !change.removed);
        patches.convert(change, base);
        if has_patches && !change.removed {
            values.insert(change.key.clone(), data);
        }
    }
    patches.saved()
}

#[cfg(test)]
mod tests;
