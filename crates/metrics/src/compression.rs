//! The metrics of compression: per namespace the saved bytes and the cost, and its memory.
//! In: the sums of `compression` → out: rows for the writer.
//! Uses the writer alone; no label names a channel, so the number of series stays bounded.
//! Changed here: names, labels and help. The counters live in `compression::counters`.

use fanwire_fanout::{Contexts, DeliveryKind, NamespaceCounters};
use fanwire_telemetry::{Labels, MetricsWriter};

pub(super) fn write(contexts: &Contexts, names: &[String], writer: &mut impl MetricsWriter) {
    let rows = || names.iter().cloned().zip(contexts.counters());
    let kinds = rows().flat_map(|(namespace, counters)| {
        DeliveryKind::all().map(move |kind| {
            let kind_label = ("kind", kind.name().to_owned());
            let labels = [("namespace", namespace.clone()), kind_label, ("depth", kind.depth())];
            (labels, counters.deliveries(kind))
        })
    });
    let help = "Publications sent, by how they were compressed and how many earlier ones their frames refer to";
    writer.counters("compression_deliveries", help, kinds);
    for (name, help, read) in SUMS {
        let values = rows().map(|(namespace, counters)| -> (Labels<1>, u64) {
            ([("namespace", namespace)], read(counters))
        });
        writer.counters(name, help, values);
    }
    let time = rows()
        .map(|(namespace, counters)| ([("namespace", namespace)], counters.time().as_secs_f64()));
    writer.seconds("compression_time_seconds", "Time spent on compressing publications", time);
    let encode_time = rows().map(|(namespace, counters)| {
        ([("namespace", namespace)], counters.encode_time().as_secs_f64())
    });
    let help = "Time spent on encoding publications, each once per encoding for all receivers";
    writer.seconds("publication_encode_time_seconds", help, encode_time);
    let memory = contexts.memory();
    let (with_history, waiting) = contexts.channels();
    let gauges = [
        (
            "compression_memory_bytes",
            "Memory of histories and compressors, and what windows of clients may take",
            memory.bytes(),
        ),
        ("compression_memory_max_bytes", "websocket.compression_memory_max", memory.bytes_max()),
        ("compression_channels", "Channels with a history", with_history),
        (
            "compression_channels_waiting",
            "Channels without the history they need: until their next publication, or for lack of memory",
            waiting,
        ),
    ];
    for (name, help, value) in gauges {
        writer.gauge(name, help, value as u64);
    }
}

type Read = fn(&NamespaceCounters) -> u64;

const SUMS: [(&str, &str, Read); 6] = [
    (
        "compression_publications",
        "Publications with subscribers on the node, each counted once for all shards",
        NamespaceCounters::publications,
    ),
    (
        "compression_message_bytes",
        "Bytes of publications sent, before compression and framing",
        NamespaceCounters::message_bytes,
    ),
    (
        "compression_frame_bytes",
        "Bytes of their frames, headers included",
        NamespaceCounters::frame_bytes,
    ),
    (
        "compression_parses",
        "Times a publication was parsed, once per depth needed on the node",
        NamespaceCounters::parses,
    ),
    (
        "compression_emits",
        "Frames made of parses, once per shard and distinct gap",
        NamespaceCounters::emits,
    ),
    (
        "compression_gaps_refused",
        "Frames that were not made because a publication had too many distinct gaps",
        NamespaceCounters::gaps_refused,
    ),
];
