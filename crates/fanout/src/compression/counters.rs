//! Counters of the compression of one namespace's publications.
//! In: one addition per publication, or per broadcast and shard → out: relaxed reads by the metrics endpoint and the demo page.
//! Uses atomics and the depths of `deflate::gap`; never a lock, never a channel's name.
//! Changed here: which numbers there are. Their names in Prometheus live in `fanwire_metrics`.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use fanwire_deflate::gap::{DEPTH_MAX, RUN_DEPTHS};

/// How a publication was sent to one subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryKind {
    Raw,
    Standalone,
    /// Refers to the publication before it, or to the part of it that a reply embedded.
    Newest,
    /// Refers to this many publications, 2 to [`DEPTH_MAX`], each with a gap of its own.
    Several(usize),
    /// Refers to an unbroken run of publications; the index in [`RUN_DEPTHS`].
    Run(usize),
    /// Made by the connection's own compressor.
    Dedicated,
}

impl DeliveryKind {
    pub const COUNT: usize = 4 + (DEPTH_MAX - 1) + RUN_DEPTHS.len();

    /// All kinds, in the order of their indices.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Raw, Self::Standalone, Self::Dedicated, Self::Newest]
            .into_iter()
            .chain((2..=DEPTH_MAX).map(Self::Several))
            .chain((0..RUN_DEPTHS.len()).map(Self::Run))
    }

    /// Dense index below [`COUNT`](Self::COUNT).
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Raw => 0,
            Self::Standalone => 1,
            Self::Dedicated => 2,
            Self::Newest => 3,
            Self::Several(depth) => 2 + depth,
            Self::Run(run) => 3 + DEPTH_MAX + run,
        }
    }

    /// The label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Standalone => "standalone",
            Self::Newest => "newest",
            Self::Several(_) => "several",
            Self::Run(_) => "run",
            Self::Dedicated => "dedicated",
        }
    }

    /// The number of publications to which the frame refers, as a label. For a run it is the upper limit, or `all`
    /// without a limit.
    pub fn depth(self) -> String {
        match self {
            Self::Raw | Self::Standalone => "0".to_owned(),
            Self::Newest => "1".to_owned(),
            Self::Several(depth) => depth.to_string(),
            Self::Run(run) if RUN_DEPTHS[run] < u16::MAX => RUN_DEPTHS[run].to_string(),
            Self::Run(_) | Self::Dedicated => "all".to_owned(),
        }
    }
}

/// Sums since the start.
#[derive(Debug, Default)]
pub struct NamespaceCounters {
    deliveries: [SharedCounter; DeliveryKind::COUNT],
    message_bytes: SharedCounter,
    frame_bytes: SharedCounter,
    /// Publications of the namespace, each once, whatever the number of shards.
    pub(crate) publications: SharedCounter,
    /// Publications parsed, once per depth that was needed.
    pub(crate) parses: SharedCounter,
    /// Frames made out of parses, once per shard and distinct gap.
    pub(crate) emits: SharedCounter,
    /// Frames in context that were replaced by one that refers to nothing, because the broadcast had too many gaps.
    pub(crate) gaps_refused: SharedCounter,
    time_ns: SharedCounter,
    encode_ns: SharedCounter,
}

/// A number that many threads increase, rarely.
#[derive(Debug, Default)]
pub(crate) struct SharedCounter(AtomicU64);

impl SharedCounter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl NamespaceCounters {
    /// Adds `deliveries` frames; `message_bytes` and `frame_bytes` are their sums.
    pub(crate) fn delivered(
        &self,
        kind: DeliveryKind,
        deliveries: u64,
        message_bytes: u64,
        frame_bytes: u64,
    ) {
        if deliveries > 0 {
            self.deliveries[kind.index()].add(deliveries);
            self.message_bytes.add(message_bytes);
            self.frame_bytes.add(frame_bytes);
        }
    }

    pub(crate) fn spent(&self, time: Duration) {
        self.time_ns.add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn encoded(&self, time: Duration) {
        self.encode_ns.add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    pub fn deliveries(&self, kind: DeliveryKind) -> u64 {
        self.deliveries[kind.index()].value()
    }

    /// Bytes of all deliveries before compression and framing.
    pub fn message_bytes(&self) -> u64 {
        self.message_bytes.value()
    }

    /// Bytes of all deliveries as queued, frame headers included.
    pub fn frame_bytes(&self) -> u64 {
        self.frame_bytes.value()
    }

    pub fn publications(&self) -> u64 {
        self.publications.value()
    }

    pub fn parses(&self) -> u64 {
        self.parses.value()
    }

    pub fn emits(&self) -> u64 {
        self.emits.value()
    }

    pub fn gaps_refused(&self) -> u64 {
        self.gaps_refused.value()
    }

    /// Time that parses and compressed frames took, on any thread.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.time_ns.value())
    }

    /// Time that the encodings of publications took, on any thread.
    pub fn encode_time(&self) -> Duration {
        Duration::from_nanos(self.encode_ns.value())
    }
}

#[cfg(test)]
mod tests;
