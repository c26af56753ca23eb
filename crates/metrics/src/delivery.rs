//! The metrics of publications that wait for connections that take no bytes, per namespace.
//! In: the counters of all shards → out: rows for the writer.
//! Uses the writer alone; no label names a channel, so the number of series stays bounded.
//! Changed here: names, labels and help. The counters live in `fanout`.

use std::sync::Arc;

use fanwire_fanout::BacklogCounters;
use fanwire_telemetry::{Labels, MetricsWriter};

use super::shard::{HistogramSum, histogram};

pub(super) fn write(
    shards: &[Arc<[BacklogCounters]>],
    names: &[String],
    writer: &mut impl MetricsWriter,
) {
    let labels = |number: usize| -> Labels<1> { [("namespace", names[number].clone())] };
    let of = |number: usize| shards.iter().map(move |shard| &shard[number]);
    for (name, help, read) in SUMS {
        let sums = (0..names.len()).map(|n| (labels(n), of(n).map(read).sum()));
        writer.counters(name, help, sums);
    }
    let waiting = |counters: &BacklogCounters| counters.subscriptions.value();
    let waiting = (0..names.len()).map(|n| (labels(n), of(n).map(waiting).sum()));
    let help = "Subscriptions whose connection takes no bytes and for which publications wait";
    writer.gauges("delivery_waiting_subscriptions", help, waiting);
    let ages = (0..names.len())
        .map(|n| (labels(n), HistogramSum::of(of(n).map(|counters| &counters.age))))
        .collect::<Vec<_>>();
    let help = "Age of publications that waited, when their connection took bytes again";
    histogram(writer, "delivery_waiting_age_seconds", help, &ages);
}

type Read = fn(&BacklogCounters) -> u64;

const SUMS: [(&str, &str, Read); 2] = [
    ("delivery_conflated", "Waiting publications whose place a newer one took", |counters| {
        counters.conflated.value()
    }),
    (
        "delivery_keys_dropped",
        "Waiting publications dropped because of delivery_keys_max",
        |counters| counters.keys_dropped.value(),
    ),
];
