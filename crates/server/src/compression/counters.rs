//! What compression does to the publications of one namespace, counted.
//! In: one addition per publication, or per broadcast and shard → out: relaxed reads by the metrics endpoint and the demo page.
//! Uses atomics; never a lock, never a channel's name.
//! Changed here: which numbers there are. Their names in Prometheus live in `metrics`.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// How a publication was sent to one subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Raw,
    Standalone,
    /// Against the newest publication before it, or what a reply quoted of it.
    Newest,
    /// Against several, each with a gap of its own.
    Several,
    /// Against an unbroken run.
    Run,
    /// By a compressor of the connection's own.
    Dedicated,
}

impl Kind {
    pub const ALL: [Self; 6] =
        [Self::Raw, Self::Standalone, Self::Newest, Self::Several, Self::Run, Self::Dedicated];

    /// The label of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Standalone => "standalone",
            Self::Newest => "newest",
            Self::Several => "several",
            Self::Run => "run",
            Self::Dedicated => "dedicated",
        }
    }
}

/// Sums since the start.
#[derive(Debug, Default)]
pub struct NamespaceCounters {
    deliveries: [Sum; Kind::ALL.len()],
    message_bytes: Sum,
    frame_bytes: Sum,
    /// Publications on their way to the shards that have subscribers, once each whatever the number of shards.
    pub(crate) publications: Sum,
    /// Publications parsed, once per depth that was needed.
    pub(crate) parses: Sum,
    /// Frames made out of parses, once per shard and distinct gap.
    pub(crate) emits: Sum,
    /// Publications refused a frame of their own gap because there were too many.
    pub(crate) gaps_refused: Sum,
    time_ns: Sum,
}

/// A number that many threads raise, seldom.
#[derive(Debug, Default)]
pub(crate) struct Sum(AtomicU64);

impl Sum {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl NamespaceCounters {
    /// `deliveries` frames, with the bytes of all of them and of the messages in them.
    pub(crate) fn delivered(
        &self,
        kind: Kind,
        deliveries: u64,
        message_bytes: u64,
        frame_bytes: u64,
    ) {
        if deliveries > 0 {
            self.deliveries[kind as usize].add(deliveries);
            self.message_bytes.add(message_bytes);
            self.frame_bytes.add(frame_bytes);
        }
    }

    pub(crate) fn spent(&self, time: Duration) {
        self.time_ns.add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    pub fn deliveries(&self, kind: Kind) -> u64 {
        self.deliveries[kind as usize].value()
    }

    /// Bytes of all deliveries before compression and framing.
    pub fn message_bytes(&self) -> u64 {
        self.message_bytes.value()
    }

    /// Bytes of all deliveries as they were queued, frame headers included.
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

    /// Time in parsing and making compressed frames, on any thread.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.time_ns.value())
    }
}
