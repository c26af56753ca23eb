//! What was really published, as the engine stored it, and which stream continues which: what checkers compare clients with.
//! In: each publication when it is accepted, each new epoch → out: the publication at a position, whether two positions agree.
//! Pure. Never: the product's code; positions are plain numbers and texts here.
//! Changed here: what is remembered of a publication.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use bytes::Bytes;
use fanwire_protocol::Publication;

/// Everything that was published.
#[derive(Default)]
pub struct Truth {
    /// Never walked through, so that its order does not matter.
    epochs: HashMap<String, EpochTruth>,
    /// By channel: publications without a place in a stream, in their order.
    unstored: BTreeMap<String, Vec<u64>>,
    /// By publication and channel: how often it was accepted. Numbers come first because they are compared faster.
    accepted: BTreeMap<(u64, String), u32>,
    /// An epoch that two streams had, or an offset that two publications had.
    contradiction: Option<String>,
    /// Epochs and offsets of publications that the engine has lost.
    lost: Vec<(String, u64)>,
}

#[derive(Default)]
struct EpochTruth {
    channel: String,
    /// The epoch before, and the last offset that both have.
    parent: Option<(String, u64)>,
    entries: BTreeMap<u64, TruthEntry>,
}

/// A publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthEntry {
    /// The number that is its data.
    pub number: u64,
    /// The key that it sets, or removes; "" in streams.
    pub key: String,
    /// Value of the tag `kind`; "" = none.
    pub kind: String,
    /// When a node accepted it.
    pub published_at: Instant,
    pub stored_at: Instant,
}

impl TruthEntry {
    /// The entry of a publication, if it is one of the simulation.
    pub fn of(
        publication: &Publication,
        published_at: Instant,
        stored_at: Instant,
    ) -> Option<Self> {
        let kind = publication.tags.get("kind").cloned().unwrap_or_default();
        let key = publication.key.clone();
        Some(Self { number: number_of(publication)?, key, kind, published_at, stored_at })
    }
}

/// The numbers of a map by their keys.
pub type MapEntries = BTreeMap<String, u64>;

/// The key of a map that a publication with this number sets.
pub fn key_of(number: u64) -> String {
    format!("k{}", number % 9)
}

/// The number with which the data of a simulated publication begins; 0 for the removal of a key.
pub fn number_of(publication: &Publication) -> Option<u64> {
    if publication.removed {
        return Some(REMOVAL);
    }
    std::str::from_utf8(&publication.data).ok()?.split(' ').next()?.parse().ok()
}

/// The data of a publication: its number, and text by which a patch is shorter than the whole.
pub fn data_of(number: u64, has_deltas: bool) -> Bytes {
    if has_deltas {
        format!("{number} {}", "text ".repeat(12)).into()
    } else {
        number.to_string().into()
    }
}

impl Truth {
    /// A stream of a channel begins, perhaps as the continuation of another epoch.
    pub fn begin_epoch(&mut self, channel: &str, epoch: &str, parent: Option<(String, u64)>) {
        let known = self.epochs.contains_key(epoch);
        if known {
            self.contradiction.get_or_insert(format!("epoch {epoch} of {channel} was used before"));
            return;
        }
        let channel = channel.to_owned();
        let begun = EpochTruth { channel, parent, entries: BTreeMap::new() };
        self.epochs.insert(epoch.to_owned(), begun);
    }

    /// A publication was stored.
    pub fn store(&mut self, channel: &str, epoch: &str, offset: u64, entry: TruthEntry) {
        if entry.number != REMOVAL {
            *self.accepted.entry((entry.number, channel.to_owned())).or_default() += 1;
        }
        let of_epoch = self.epochs.entry(epoch.to_owned()).or_default();
        if of_epoch.channel.is_empty() {
            of_epoch.channel = channel.to_owned();
        }
        let number = entry.number;
        if let Some(before) = of_epoch.entries.insert(offset, entry) {
            let before = before.number;
            let both = format!("{channel} has {before} and {number} at offset {offset} of {epoch}");
            self.contradiction.get_or_insert(both);
        }
    }

    /// A publication was accepted and not stored.
    pub fn pass_on(&mut self, channel: &str, number: u64) {
        *self.accepted.entry((number, channel.to_owned())).or_default() += 1;
        self.unstored.entry(channel.to_owned()).or_default().push(number);
    }

    /// The engine lost a publication. Clients may still hear of it for a moment.
    pub fn lose(&mut self, epoch: &str, offset: u64) {
        self.lost.push((epoch.to_owned(), offset));
    }

    /// Nothing lost is on its way any more.
    pub fn forget_lost(&mut self) {
        for (epoch, offset) in self.lost.drain(..) {
            if let Some(of_epoch) = self.epochs.get_mut(&epoch) {
                of_epoch.entries.remove(&offset);
            }
        }
    }

    /// The publication at a position, also if the epochs before had it.
    pub fn at(&self, epoch: &str, offset: u64) -> Option<&TruthEntry> {
        let of_epoch = self.epochs.get(epoch)?;
        let own = of_epoch.entries.get(&offset);
        own.or_else(|| match &of_epoch.parent {
            Some((parent, shared)) if offset <= *shared => self.at(parent, offset),
            _ => None,
        })
    }

    /// The entries of a map after the change at a position.
    pub fn entries(&self, epoch: &str, offset: u64) -> MapEntries {
        let mut entries = MapEntries::new();
        for entry in (1..=offset).filter_map(|offset| self.at(epoch, offset)) {
            if entry.number == REMOVAL {
                entries.remove(&entry.key);
            } else {
                entries.insert(entry.key.clone(), entry.number);
            }
        }
        entries
    }

    /// Whether the stream of `later` has the same publications up to `offset` as that of `earlier`.
    pub fn continues(&self, later: &str, earlier: &str, offset: u64) -> bool {
        if later == earlier {
            return true;
        }
        let parent = self.epochs.get(later).and_then(|epoch| epoch.parent.as_ref());
        parent.is_some_and(|(parent, shared)| {
            offset <= *shared && self.continues(parent, earlier, offset)
        })
    }

    /// The offset of the newest publication of a stream with this tag, or of all with none, that was stored before a time.
    pub fn newest_of_kind(&self, epoch: &str, kind: &str, before: Instant) -> Option<u64> {
        let of_epoch = self.epochs.get(epoch)?;
        let own = of_epoch.entries.last_key_value().map_or(0, |(offset, _)| *offset);
        let shared = of_epoch.parent.as_ref().map_or(0, |(_, shared)| *shared);
        (1..=own.max(shared)).rev().find_map(|offset| {
            let entry = self.at(epoch, offset)?;
            let is_wanted = kind.is_empty() || entry.kind == kind;
            (is_wanted && entry.stored_at < before).then_some(offset)
        })
    }

    /// The place of a publication among those of its channel that were not stored.
    pub fn place(&self, channel: &str, number: u64) -> Option<usize> {
        self.unstored.get(channel)?.iter().position(|one| *one == number)
    }

    /// Whether a publication was accepted.
    pub fn is_accepted(&self, channel: &str, number: u64) -> bool {
        self.accepted.contains_key(&(number, channel.to_owned()))
    }

    /// A publication that was accepted more than once.
    pub fn accepted_twice(&self) -> Option<(&str, u64)> {
        let twice = self.accepted.iter().find(|(_, count)| **count > 1);
        twice.map(|((number, channel), _)| (channel.as_str(), *number))
    }

    pub fn contradiction(&self) -> Option<&str> {
        self.contradiction.as_deref()
    }
}

/// The number of a change that removes a key.
const REMOVAL: u64 = 0;
