//! The metrics of the shards: connections, writes, queues, and what grows with their load.
//! In: the counters of all shards → out: sums for the writer.
//! Uses the writer alone; no metric is per shard or per connection, so the number of series stays bounded.
//! Changed here: names and help. The counters live in `fanwire_shard`.

use std::sync::Arc;

use fanwire_fanout::Shards;
use fanwire_shard::Transport;
use fanwire_shard::counters::{ShardCounters, Traffic};
use fanwire_telemetry::{BOUNDS, Histogram, Labels, MetricsWriter};

pub(super) fn write(shards: &Shards, writer: &mut impl MetricsWriter) {
    write_traffic(shards.counters(), writer);
    let all = || shards.counters().iter();
    for (name, help, read) in COUNTS {
        writer.counter(name, help, all().map(|counters| read(counters)).sum());
    }
    for (name, help, read) in LEVELS {
        writer.gauge(name, help, all().map(|counters| read(counters)).sum());
    }
    let help = "Bytes in the longest shard inbox; publishers wait above 32 MiB";
    writer.gauge("shard_backlog_bytes", help, shards.backlog_bytes() as u64);
    let sum = HistogramSum::of(all().map(|counters| &counters.publish_latency));
    let help = "From the acceptance of a publication to the end of the write, per shard";
    histogram(writer, "node_publish_latency_seconds", help, &[([], sum)]);
    let sum = HistogramSum::of(all().map(|counters| &counters.turn_time));
    let help = "Duration of a turn of a shard loop, without its sleep";
    histogram(writer, "shard_turn_duration_seconds", help, &[([], sum)]);
    let sum = HistogramSum::of(all().map(|counters| &counters.message_time));
    let help =
        "Time to parse a message of a client and to execute its commands, of one message in 64";
    histogram(writer, "client_message_duration_seconds", help, &[([], sum)]);
    let sum = HistogramSum::of(all().map(|counters| &counters.write_time));
    let help = "Time in the system calls of a write, of one write in 64";
    histogram(writer, "transport_write_duration_seconds", help, &[([], sum)]);
}

/// Messages and bytes by transport and encoding.
fn write_traffic(all: &[Arc<ShardCounters>], writer: &mut impl MetricsWriter) {
    type Read = fn(&Traffic) -> u64;
    let rows: [(&str, &str, Read); 6] = [
        ("transport_messages_received", "Messages received", |t| t.messages_in.value()),
        ("transport_payload_bytes_received", "Bytes of messages received, after inflating", |t| {
            t.payload_bytes_in.value()
        }),
        ("transport_wire_bytes_received", "Bytes received on sockets", |t| t.wire_bytes_in.value()),
        ("transport_messages_sent", "Messages sent", |t| t.messages_out.value()),
        (
            "transport_payload_bytes_sent",
            "Bytes of messages sent, before compression and framing",
            |t| t.payload_bytes_out.value(),
        ),
        ("transport_wire_bytes_sent", "Bytes sent on sockets", |t| t.wire_bytes_out.value()),
    ];
    for (name, help, read) in rows {
        let rows = Transport::ALL.into_iter().flat_map(|transport| {
            [("json", false), ("protobuf", true)].map(|(encoding, is_binary)| {
                let transport_name = ("transport", transport.name().to_owned());
                let labels = [transport_name, ("encoding", encoding.to_owned())];
                let shards = all.iter();
                let sum = shards.map(|counters| read(counters.of(transport, is_binary))).sum();
                (labels, sum)
            })
        });
        writer.counters(name, help, rows);
    }
}

/// The sum of one histogram of several shards.
pub(super) struct HistogramSum<const FIRST_US: u64> {
    buckets: [u64; BOUNDS + 1],
    sum_ns: u64,
}

impl<const FIRST_US: u64> HistogramSum<FIRST_US> {
    pub(super) fn of<'a>(histograms: impl Iterator<Item = &'a Histogram<FIRST_US>>) -> Self {
        let mut total = Self { buckets: [0; BOUNDS + 1], sum_ns: 0 };
        for histogram in histograms {
            let (counts, sum_ns) = histogram.snapshot();
            total.buckets.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
            total.sum_ns += sum_ns;
        }
        total
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buckets.iter().all(|count| *count == 0)
    }
}

/// Writes one histogram with a row for each set of labels.
pub(super) fn histogram<const N: usize, const FIRST_US: u64>(
    writer: &mut impl MetricsWriter,
    name: &str,
    help: &str,
    sums: &[(Labels<N>, HistogramSum<FIRST_US>)],
) {
    let rows: Vec<_> = sums
        .iter()
        .map(|(labels, sum)| (labels.clone(), &sum.buckets[..], sum.sum_ns as f64 / 1e9))
        .collect();
    let bounds: Vec<u64> = (0..BOUNDS).map(Histogram::<FIRST_US>::bound_us).collect();
    writer.histogram(name, help, &bounds, &rows);
}

type Read = fn(&ShardCounters) -> u64;

const LEVELS: [(&str, &str, Read); 3] = [
    ("transport_queued_bytes", "Bytes that wait in the queues of all connections", |c| {
        c.queued_bytes.value()
    }),
    ("transport_blocked_connections", "Connections whose sockets take no bytes", |c| {
        c.blocked.value()
    }),
    (
        "compression_client_window_bytes",
        "Bytes that the server holds of messages of clients, because later ones may refer to them",
        |c| c.client_window_bytes.value(),
    ),
];

const COUNTS: [(&str, &str, Read); 9] = [
    ("transport_connections_opened", "Connections opened", |c| c.opened.value()),
    ("transport_connections_closed", "Connections closed", |c| c.closed.value()),
    ("transport_writes", "Write system calls", |c| c.writes.value()),
    ("transport_closes_sent", "Close frames sent", |c| c.closes_out.value()),
    ("transport_protocol_failures", "Connections closed for a WebSocket protocol violation", |c| {
        c.protocol_failures.value()
    }),
    ("transport_queue_overflows", "Clients closed as slow (3008)", |c| c.queue_overflows.value()),
    ("transport_write_timeouts", "Clients closed because a write made no progress in time", |c| {
        c.write_timeouts.value()
    }),
    ("transport_verify_failures", "Frames that websocket.compression_verify did not send", |c| {
        c.verify_failures.value()
    }),
    ("shard_turns", "Turns of all shard loops", |c| c.turns.value()),
];
