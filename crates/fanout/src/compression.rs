//! Compression of the fan-out: the histories of channels, so that publications can refer to earlier ones.
//! In: broadcasts in the order of their channels → out: the shared part of each, from which shards make frames.
//! Uses `deflate::gap`, the node's memory budget and one lock per stripe of channels; never a connection.
//! Changed here: which channels have a history. The history of one channel is `channel`; `sweep` distributes memory.

mod channel;
mod counters;
mod embedded_part;
mod policies;
mod prepared;
mod sweep;
mod text;

use std::{
    hash::BuildHasher,
    sync::{Arc, OnceLock},
};

use fanwire_deflate::gap::EmbeddedPart;
use fanwire_node::{Broadcast, DeltaMode, Prepare, Prepared, options::CompressionPolicy};
use hashbrown::{DefaultHashBuilder, HashMap};
use parking_lot::Mutex;

use channel::Channel;
pub(crate) use channel::EncodingHistory;
pub use counters::{DeliveryKind, NamespaceCounters};
use fanwire_shard::Budget;
pub use policies::Policies;
pub(crate) use prepared::{FrameForm, FrameVariant, PreparedBroadcast, StreamVariant};
pub(crate) use text::TextKind;

/// Settings of the compression of publications, for the whole node.
#[derive(Debug)]
pub struct ContextSettings {
    pub policies: Policies,
    /// 1–9, as in zlib.
    pub level: u8,
    /// Messages below this size are sent raw and are in no history.
    pub min_bytes: usize,
    /// Limit of distinct frames in context of one broadcast on one shard; further connections get a frame that refers
    /// to nothing.
    pub gaps_max: usize,
    /// The budget from which histories take their memory.
    pub memory: Arc<Budget>,
}

/// Each frame takes 0.5 to 1 µs, so this many distinct frames are still cheaper than the writes that carry them
/// (`fanwire-bench fanout --channels 5 --of 25`).
pub const GAPS_MAX: usize = 4096;

/// Channels that have a history or request one, by name.
type Stripe = HashMap<Arc<str>, Arc<Channel>>;

/// The histories of a node's channels.
pub struct Contexts {
    settings: ContextSettings,
    hasher: DefaultHashBuilder,
    stripes: Box<[Mutex<Stripe>]>,
    /// Counters by namespace.
    counters: Box<[NamespaceCounters]>,
    /// Locked while a sweep runs.
    sweeping: Mutex<()>,
}

impl Contexts {
    pub fn new(settings: ContextSettings) -> Self {
        let counters = (0..settings.policies.namespaces()).map(|_| NamespaceCounters::default());
        Self {
            counters: counters.collect(),
            settings,
            hasher: DefaultHashBuilder::default(),
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            sweeping: Mutex::default(),
        }
    }

    /// Records that a subscriber can take the next publications of the broadcast's channel in context. From the next
    /// publication on, the channel has a history of this `kind`, if there is memory for one.
    pub(crate) fn want(&self, broadcast: &Broadcast, kind: TextKind) {
        let channel = broadcast.channel();
        let mut stripe = self.stripe(channel).lock();
        let entry = stripe.entry(Arc::clone(channel)).or_default();
        entry.history(kind).want();
    }

    /// Finds the newest publication of the channel's history in `reply`, which sends missed publications of `channel`
    /// to a subscriber in context. Returns its byte position; the next publication may then refer to it.
    pub(crate) fn embedded_part(
        &self,
        channel: &str,
        kind: TextKind,
        reply: &[u8],
    ) -> Option<(usize, EmbeddedPart)> {
        self.find(channel)?.history(kind).embedded_part(kind, reply)
    }

    /// The policies, which a reload changes.
    pub fn policies(&self) -> &Policies {
        &self.settings.policies
    }

    /// Counters of each namespace.
    pub fn counters(&self) -> &[NamespaceCounters] {
        &self.counters
    }

    pub(crate) fn counters_of(&self, broadcast: &Broadcast) -> &NamespaceCounters {
        &self.counters[usize::from(broadcast.namespace().0)]
    }

    pub(crate) fn gaps_max(&self) -> usize {
        self.settings.gaps_max
    }

    /// The memory budget that histories share with the compressors of single connections.
    pub fn memory(&self) -> &Arc<Budget> {
        &self.settings.memory
    }

    /// Counts channels that have a history, and channels that wait for one, of some kind; a channel may be
    /// both. Holds the lock of each stripe while it looks at the channels of that stripe.
    pub fn channels(&self) -> (usize, usize) {
        let mut with_history = 0;
        let mut waiting = 0;
        for stripe in &self.stripes {
            for channel in stripe.lock().values() {
                let histories = || channel.histories().map(|(_, history)| history);
                with_history += usize::from(histories().any(EncodingHistory::has_history));
                waiting += usize::from(histories().any(EncodingHistory::waits));
            }
        }
        (with_history, waiting)
    }

    fn find(&self, channel: &str) -> Option<Arc<Channel>> {
        self.stripe(channel).lock().get(channel).cloned()
    }

    fn stripe(&self, channel: &str) -> &Mutex<Stripe> {
        &self.stripes[self.hasher.hash_one(channel) as usize % STRIPES]
    }
}

impl Prepare for Contexts {
    fn prepare(&self, broadcast: &Broadcast) -> Prepared {
        self.counters_of(broadcast).publications.add(1);
        let policy = self.settings.policies.of(broadcast);
        let channel = match policy {
            // What one connection receives is no part of the history that all have.
            CompressionPolicy::Context if broadcast.receiver().is_none() => {
                self.find(broadcast.channel())
            }
            _ => None,
        };
        Box::new(match channel {
            Some(channel) => {
                let counters = self.counters_of(broadcast);
                let (event, mut publications) = <(OnceLock<_>, [_; TextKind::COUNT])>::default();
                for (kind, history) in channel.histories() {
                    let text = || kind.text(broadcast, DeltaMode::Plain, &event);
                    let publication = history.publish(text, &self.settings, counters);
                    publications[kind.index()] = publication.map(Box::new);
                }
                PreparedBroadcast::in_context(channel, publications, event)
            }
            None => PreparedBroadcast::new(policy),
        })
    }
}

/// Number of locks. A lookup of one channel blocks other channels of its stripe.
const STRIPES: usize = 64;

#[cfg(test)]
mod tests;
