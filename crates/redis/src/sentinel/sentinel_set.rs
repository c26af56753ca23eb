//! The Sentinels of one master: the configured ones, and others that these report.
//! In: which Sentinel answered, which others it reported → out: the order in which to ask them, changes of the set.
//! Uses: addresses. Never: connections.
//! Changed here: how many are kept, and when one is dropped. The commands are in `sentinel.rs`.

use redis::Value;

use super::fields_of;
use crate::address::Address;
use crate::wire::{number, parts, text};

/// The Sentinels of a master.
#[derive(Debug)]
pub(super) struct SentinelSet {
    configured: Vec<Address>,
    /// The one that was reported last is the last.
    discovered: Vec<Address>,
    /// The first to ask: the one that answered last.
    first: Option<Address>,
}

/// Changes of the set.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SentinelChanges {
    pub(super) added: Vec<Address>,
    pub(super) removed: Vec<Address>,
}

impl SentinelSet {
    pub(super) fn of(configured: Vec<Address>) -> Self {
        Self { configured, discovered: Vec::new(), first: None }
    }

    /// All of them, in the order in which to ask them: the one that answered last, then the configured ones.
    pub(super) fn in_order(&self) -> Vec<Address> {
        let others = self.all().filter(|one| self.first.as_ref() != Some(one));
        self.first.iter().chain(others).cloned().collect()
    }

    pub(super) fn answered(&mut self, sentinel: &Address) {
        if self.first.as_ref() != Some(sentinel) && self.has(sentinel) {
            self.first = Some(sentinel.clone());
        }
    }

    /// The answer of the first was wrong: the one after it becomes the first.
    pub(super) fn ask_next_first(&mut self) {
        let all: Vec<&Address> = self.all().collect();
        let at = all.iter().position(|one| self.first.as_ref() == Some(*one)).unwrap_or(0);
        self.first = Some(all[(at + 1) % all.len()].clone());
    }

    /// Adds the Sentinels that one of them reported. Above the limit, those that were reported longest ago are
    /// dropped.
    pub(super) fn add_discovered(&mut self, announced: Vec<Address>) -> SentinelChanges {
        let mut discovered = SentinelChanges::default();
        for address in announced.into_iter().take(DISCOVERED_MAX) {
            if self.configured.contains(&address) {
                continue;
            }
            match self.discovered.iter().position(|one| *one == address) {
                Some(at) => drop(self.discovered.remove(at)),
                None => discovered.added.push(address.clone()),
            }
            self.discovered.push(address);
        }
        let surplus = self.discovered.len().saturating_sub(DISCOVERED_MAX);
        discovered.removed = self.discovered.drain(..surplus).collect();
        self.first.take_if(|first| discovered.removed.contains(first));
        discovered
    }

    fn all(&self) -> impl Iterator<Item = &Address> {
        self.configured.iter().chain(&self.discovered)
    }

    fn has(&self, sentinel: &Address) -> bool {
        self.all().any(|one| one == sentinel)
    }
}

/// Decodes the reply to `SENTINEL SENTINELS`, without those that are down. They get the settings of `sentinel`.
pub(super) fn others_of(sentinel: &Address, reply: Value) -> Vec<Address> {
    let other = |fields: Value| {
        let fields = fields_of(fields);
        let of = |name: &str| {
            let is_it = |(key, _): &&(Value, Value)| {
                text(key.clone()).is_some_and(|key| key == name.as_bytes())
            };
            fields.iter().find(is_it).map(|(_, value)| value.clone())
        };
        let text_of = |name| Some(String::from_utf8_lossy(&text(of(name)?)?).into_owned());
        let is_dead = text_of("flags").is_some_and(|flags| flags.contains("_down"));
        let host = text_of("ip")?;
        let port = number(of("port")?)?.try_into().ok()?;
        let is_usable = !is_dead && !host.is_empty() && port > 0;
        is_usable.then(|| Address { host, port, ..sentinel.clone() })
    };
    parts(reply).unwrap_or_default().into_iter().filter_map(other).collect()
}

/// Most reported Sentinels. A master needs only a few.
const DISCOVERED_MAX: usize = 16;

#[cfg(test)]
mod tests;
