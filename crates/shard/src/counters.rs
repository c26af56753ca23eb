//! The counters of a shard: plain integers with one writer, readable by any thread.
//! In: increments on the shard's thread → out: relaxed reads by the metrics endpoint.
//! Uses the counters of `telemetry`, without read-modify-write; never a lock.
//! Changed here: which numbers a shard keeps. Their names in Prometheus live in `fanwire_metrics`.

use fanwire_telemetry::{CallHistogram, Counter, Histogram};

use super::transport::Transport;

/// Whether to time the call that comes after `calls` others: one of 64, because two readings of the clock take 40 to
/// 50 ns, which is a tenth of the shortest calls.
pub(super) fn is_sampled(calls: &Counter) -> bool {
    calls.value().is_multiple_of(64)
}

/// One shard's numbers since its start.
#[derive(Default, Debug)]
pub struct ShardCounters {
    pub opened: Counter,
    pub closed: Counter,
    /// Text connections (JSON) and binary ones (Protobuf), see [`ShardCounters::of`].
    pub traffic: [Traffic; 2 * Transport::ALL.len()],
    pub writes: Counter,
    pub closes_out: Counter,
    pub protocol_failures: Counter,
    pub queue_overflows: Counter,
    pub write_timeouts: Counter,
    /// Compressed frames that a peer could not have decoded, found by `ShardSettings::compression_verify`.
    pub verify_failures: Counter,
    pub turns: Counter,
    /// Of each turn, without the time that the thread slept.
    pub turn_time: Histogram,
    /// The sum of the squares of these times, in square microseconds.
    pub turn_time_squares: Counter,
    /// Times of sampled messages of clients, for parsing them and executing their commands.
    pub message_time: CallHistogram,
    /// Times of sampled writes, for the system calls of one connection.
    pub write_time: CallHistogram,
    /// A level, as of the end of the last turn: bytes in the queues of all connections.
    pub queued_bytes: Counter,
    /// A level: connections whose sockets take no bytes.
    pub blocked: Counter,
    /// A level: bytes of the windows of clients that refer to their earlier messages.
    pub client_window_bytes: Counter,
    /// From a publication's acceptance to the end of the turn that wrote it.
    pub publish_latency: Histogram,
}

/// Messages and bytes of the connections of one transport and encoding.
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
    /// Counts that the window of one client grew from `before` to `after` bytes, or was freed.
    pub(super) fn window_changed(&self, before: usize, after: usize) {
        if before != after {
            self.client_window_bytes.add(after as u64);
            self.client_window_bytes.subtract(before as u64);
        }
    }

    pub fn of(&self, transport: Transport, is_binary: bool) -> &Traffic {
        &self.traffic[transport as usize * 2 + usize::from(is_binary)]
    }
}
