//! The counters of a shard: plain integers with one writer, readable by any thread.
//! In: increments on the shard's thread → out: relaxed reads by the metrics endpoint.
//! Uses the counters of `telemetry`, without read-modify-write; never a lock.
//! Changed here: which numbers a shard keeps. Their names in Prometheus live in `metrics`.

use std::time::Duration;

use fanwire_telemetry::Counter;

/// Durations in powers of two: bucket `i` counts durations up to `2^i` times 50 µs, the last one all longer ones.
#[derive(Default, Debug)]
pub struct Histogram {
    buckets: [Counter; Self::BOUNDS + 1],
    sum_us: Counter,
}

impl Histogram {
    pub const BOUNDS: usize = 16;

    pub fn observe(&self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = (0..Self::BOUNDS).find(|&i| us <= Self::bound_us(i)).unwrap_or(Self::BOUNDS);
        self.buckets[bucket].add(1);
        self.sum_us.add(us);
    }

    /// Upper bound of a bucket, in µs.
    pub fn bound_us(bucket: usize) -> u64 {
        50 << bucket
    }

    /// Counts per bucket, not cumulative, the unbounded one last; and the sum in µs.
    pub fn snapshot(&self) -> ([u64; Self::BOUNDS + 1], u64) {
        (std::array::from_fn(|i| self.buckets[i].value()), self.sum_us.value())
    }
}

/// One shard's numbers since its start.
#[derive(Default, Debug)]
pub struct ShardCounters {
    pub opened: Counter,
    pub closed: Counter,
    /// Text connections (JSON) and binary ones (Protobuf), see [`ShardCounters::of`].
    pub traffic: [Traffic; 2],
    pub writes: Counter,
    pub closes_out: Counter,
    pub protocol_failures: Counter,
    pub queue_overflows: Counter,
    pub write_timeouts: Counter,
    /// Compressed frames that a peer could not have decoded, found by `ShardSettings::compression_verify`.
    pub verify_failures: Counter,
    pub turns: Counter,
    /// From a publication's acceptance to the end of the turn that wrote it.
    pub publish_latency: Histogram,
}

/// Messages and bytes of the connections of one encoding.
#[derive(Default, Debug)]
pub struct Traffic {
    pub messages_in: Counter,
    /// Data messages as the application sees them: after inflating and unmasking.
    pub payload_bytes_in: Counter,
    pub wire_bytes_in: Counter,
    pub messages_out: Counter,
    /// Data messages before compression and framing.
    pub payload_bytes_out: Counter,
    pub wire_bytes_out: Counter,
}

impl Traffic {
    /// Counts a queued data message of `payload_bytes`.
    pub(super) fn message_out(&self, payload_bytes: usize) {
        self.messages_out.add(1);
        self.payload_bytes_out.add(payload_bytes as u64);
    }
}

impl ShardCounters {
    pub fn of(&self, is_binary: bool) -> &Traffic {
        &self.traffic[usize::from(is_binary)]
    }
}
