//! The metrics of the hubs: what clients did, by kind of command, code and cause.
//! In: the counters of all hubs → out: sums for the writer.
//! Uses the writer alone; no metric is per hub, so the number of series stays bounded.
//! Changed here: names, labels and help. The counters live in `fanwire_node`.

use std::{collections::BTreeMap, sync::Arc};

use fanwire_node::{HubCounters, Unrecovered};
use fanwire_telemetry::{Labels, MetricsWriter};

use super::shard::{HistogramSum, histogram};

pub(super) fn write(hubs: &[Arc<HubCounters>], writer: &mut impl MetricsWriter) {
    let sum = |read: Read| hubs.iter().map(|hub| read(hub)).sum::<u64>();
    let help = "Connections with a log of the flight recorder, open or ended";
    writer.gauge("recorder_connections", help, sum(|c| c.recorded_connections.value()));
    let help = "Bytes of the flight recorder";
    writer.gauge("recorder_bytes", help, sum(|c| c.recorder_bytes.value()));
    for (name, help, read) in COUNTS {
        writer.counter(name, help, sum(read));
    }
    let mut clients = BTreeMap::<[&str; 2], u64>::new();
    for (labels, count) in hubs.iter().flat_map(|hub| hub.clients()) {
        *clients.entry(labels).or_default() += count;
    }
    let clients =
        clients.into_iter().filter(|(_, count)| *count > 0).map(|([transport, name], count)| {
            ([("transport", transport.to_owned()), ("client_name", name.to_owned())], count)
        });
    let help = "Connected clients by transport and SDK";
    writer.gauges("client_connections_inflight", help, clients);
    let pings = HistogramSum::of(hubs.iter().map(|hub| &hub.ping_pong));
    let help = "From a ping to its pong: the network and the client";
    histogram(writer, "client_ping_pong_duration_seconds", help, &[([], pings)]);
    write_by_label(hubs, writer);
}

fn write_by_label(hubs: &[Arc<HubCounters>], writer: &mut impl MetricsWriter) {
    let hubs = || hubs.iter();
    let recoveries = hubs().flat_map(|hub| {
        let no = hub.failed_recoveries.iter().map(|count| count.value()).sum();
        [("yes".to_owned(), hub.recoveries.value()), ("no".to_owned(), no)]
    });
    let unrecovered = hubs().flat_map(|hub| {
        let counts = Unrecovered::ALL.into_iter().zip(&hub.failed_recoveries);
        counts.map(|(cause, count)| (cause.name().to_owned(), count.value()))
    });
    writer.counters("client_recover", "Recovery attempts", sums("recovered", recoveries));
    let help = "Recovery attempts that failed, by what was missing";
    writer.counters("client_unrecovered", help, sums("cause", unrecovered));
    let limited = hubs().flat_map(|hub| {
        [
            ("command".to_owned(), hub.limited_commands.value()),
            ("publish".to_owned(), hub.limited_publishes.value()),
            ("subscribe".to_owned(), hub.limited_subscribes.value()),
        ]
    });
    writer.counters("client_rate_limited", "Commands refused with 111", sums("limit", limited));
    let refused =
        hubs().flat_map(|hub| hub.token_refusals().map(|(cause, n)| (cause.name().to_owned(), n)));
    writer.counters("client_token_refusals", "Tokens refused", sums("cause", refused));
    let commands =
        hubs().flat_map(|hub| hub.commands().map(|(kind, n)| (kind.name().to_owned(), n)));
    writer.counters("client_commands", "Commands received", sums("method", commands));
    let errors = hubs().flat_map(|hub| hub.errors().map(|(code, n)| (code_label(code), n)));
    writer.counters("client_num_reply_errors", "Error replies", sums("code", errors));
    let ends = hubs()
        .flat_map(|hub| hub.disconnects().map(|(code, n)| (code_label(code.map(u32::from)), n)));
    writer.counters(
        "client_num_server_disconnects",
        "Disconnects by the server",
        sums("code", ends),
    );
}

/// Sums the counts of the hubs by name, as rows labelled with that name.
fn sums(
    label: &'static str,
    counts: impl Iterator<Item = (String, u64)>,
) -> impl Iterator<Item = (Labels<1>, u64)> {
    let mut sums = BTreeMap::<String, u64>::new();
    for (name, count) in counts {
        *sums.entry(name).or_default() += count;
    }
    sums.into_iter().map(move |(name, sum)| ([(label, name)], sum))
}

/// The label of a code: its number if the protocol defines it, else `other`, so that the number of series stays bounded.
fn code_label(code: Option<u32>) -> String {
    code.map_or_else(|| "other".to_owned(), |code| code.to_string())
}

type Read = fn(&HubCounters) -> u64;

const COUNTS: [(&str, &str, Read); 11] = [
    ("client_connections_accepted", "Connects that succeeded", |c| c.connections_accepted.value()),
    ("client_subscriptions_accepted", "Subscriptions that succeeded", |c| {
        c.subscriptions_accepted.value()
    }),
    ("client_num_server_unsubscribes", "Subscriptions ended by the server", |c| {
        c.server_unsubscribes.value()
    }),
    ("client_recovered_publications", "Publications sent in subscribe results", |c| {
        c.recovered_publications.value()
    }),
    ("client_lost_positions", "Subscriptions ended because a publication was missed", |c| {
        c.lost_positions.value()
    }),
    ("client_pings_sent", "Pings sent", |c| c.pings.value()),
    ("node_broadcasts", "Publications delivered, per shard", |c| c.broadcasts.value()),
    ("node_deliveries", "Publications delivered to subscribers", |c| c.deliveries.value()),
    ("client_deltas", "Publications sent as deltas", |c| c.deltas.value()),
    ("client_delta_saved_bytes", "Bytes of data that deltas saved, before any compression", |c| {
        c.delta_saved_bytes.value()
    }),
    (
        "node_tags_filter_dropped_publications",
        "Publications that filters of subscribers dropped",
        |c| c.filtered_publications.value(),
    ),
];
