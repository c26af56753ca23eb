//! The metrics of tenants: what each namespace uses, for a bill, and how often limits were exceeded.
//! In: the usage of the node, the counters of all hubs → out: rows for the writer.
//! Uses the writer alone; labels are namespaces and limits, so the number of series stays bounded.
//! Changed here: names, labels and help. The counters live in `fanwire_node`.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use fanwire_node::{DeliveryCounters, ExceededCounts, HubCounters, NamespaceUsage, TenantUsage};
use fanwire_telemetry::{Labels, MetricsWriter};

pub(super) fn write(
    usage: &TenantUsage,
    hubs: &[Arc<HubCounters>],
    writer: &mut impl MetricsWriter,
) {
    let namespaces = usage.by_namespace();
    for (name, help, read) in PUBLICATIONS {
        let rows = namespaces.iter().map(|(label, usage)| (labels(label), read(usage)));
        writer.counters(name, help, rows);
    }
    for (name, help, read) in DELIVERIES {
        let sum = |number: usize| -> u64 {
            hubs.iter().filter_map(|hub| hub.namespaces.get(number)).map(read).sum()
        };
        let rows = namespaces.iter().enumerate();
        writer.counters(name, help, rows.map(|(number, (label, _))| (labels(label), sum(number))));
    }
    let limits = usage.exceeded().into_iter();
    let exceeded = limits.flat_map(|(limit, counts)| rows_of_limit(limit, counts));
    let help = "Publishes and connections of clients above a limit of their tenant, refused or counted only";
    writer.counters("limits_exceeded", help, exceeded);
}

fn labels(namespace: &str) -> Labels<1> {
    [("namespace", namespace.to_owned())]
}

fn rows_of_limit(limit: &'static str, counts: &ExceededCounts) -> [(Labels<2>, u64); 2] {
    let [refused, dry_run] = counts.values();
    let labels = |outcome: &str| [("limit", limit.to_owned()), ("outcome", outcome.to_owned())];
    [(labels("refused"), refused), (labels("dry_run"), dry_run)]
}

type ReadUsage = fn(&NamespaceUsage) -> u64;
type ReadDeliveries = fn(&DeliveryCounters) -> u64;

const PUBLICATIONS: [(&str, &str, ReadUsage); 2] = [
    (
        "usage_publications",
        "Publications that this node accepted, of clients and backends",
        |usage| usage.publications.load(Relaxed),
    ),
    ("usage_publication_bytes", "Bytes of the payloads of these publications", |usage| {
        usage.publication_bytes.load(Relaxed)
    }),
];

const DELIVERIES: [(&str, &str, ReadDeliveries); 2] = [
    ("usage_deliveries", "Live publications handed to subscribers of this node", |deliveries| {
        deliveries.publications.value()
    }),
    (
        "usage_delivery_bytes",
        "Bytes of the payloads of these deliveries, before any compression",
        |deliveries| deliveries.bytes.value(),
    ),
];
