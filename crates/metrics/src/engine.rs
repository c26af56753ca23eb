//! The metrics of the engine and of the cluster.
//! In: the health of the engine, the node's cluster state → out: rows for the writer.
//! Uses the writer alone.
//! Changed here: names and help. The counters live in `redis` and in the node's cluster.

use std::time::Instant;

use fanwire_broker::SuppressedCounts;
use fanwire_cluster::{ClusterTimes, SurveyKind};
use fanwire_node::Node;
use fanwire_node::shared_poll::PollCounts;
use fanwire_redis::{Health, Redis};
use fanwire_telemetry::MetricsWriter;

use super::shard::{HistogramSum, histogram};

pub(super) fn write(redis: Option<&Redis>, node: &Node, writer: &mut impl MetricsWriter) {
    writer.gauge(
        "cluster_nodes",
        "Nodes of the cluster, this one included",
        node.nodes(Instant::now()).len() as u64,
    );
    let help = "Messages of other nodes that could not be decoded";
    writer.counter("cluster_messages_refused", help, node.cluster().refused());
    let counts =
        node.revocations().counts().map(|(table, count)| ([("table", table.to_owned())], count));
    writer.gauges(
        "revocations",
        "Blocked users, revoked tokens, users with invalid tokens",
        counts,
    );
    let published = [([("type", "publication".to_owned())], node.channels().published())];
    let help = "Publications that this node gave to the broker";
    writer.counters("node_messages_sent", help, published);
    let SuppressedCounts { idempotency, version, keys_dropped } =
        node.channels().suppressed_publications();
    let rows = [("idempotency", idempotency), ("version", version)]
        .map(|(reason, count)| ([("reason", reason.to_owned())], count));
    let help = "Publications that were not published: a repeated idempotency key, an old version";
    writer.counters("broker_publish_suppressed", help, rows);
    let help = "Payloads that readers of Durable Streams of JSON did not get: they are no JSON, or nested too deep";
    writer.counter("durable_streams_payloads_left_out", help, node.channels().left_out());
    let help = "Idempotency keys in memory that were forgotten early";
    writer.counter("broker_idempotency_keys_dropped", help, keys_dropped);
    polls(&node.shared_polls().counts(), writer);
    if node.cluster().has_bus() {
        times(&node.cluster().times(), writer);
    }
    let Some(health) = redis.map(Redis::health) else { return };
    writer.gauge(
        "redis_up",
        "1 while all connections to Redis are up",
        u64::from(health.is_healthy()),
    );
    for (name, help, read) in COUNTERS {
        writer.counter(name, help, read(health));
    }
}

/// Items of backends that had no effect in shared poll channels, and their epochs.
fn polls(counts: &PollCounts, writer: &mut impl MetricsWriter) {
    let rows = [("foreign", counts.foreign), ("invalid", counts.invalid), ("stale", counts.stale)]
        .map(|(reason, count)| ([("reason", reason.to_owned())], count));
    let help = "Items of polls and published values that had no effect: not asked for, without value or version, an old version";
    writer.counters("shared_poll_items_ignored", help, rows);
    let help = "Changes of the epoch of a shared poll channel, which all its subscribers follow";
    writer.counter("shared_poll_epoch_changes", help, counts.flips);
    let help = "Answers and values of another epoch that were dropped, because the epoch had changed a second before";
    writer.counter("shared_poll_epoch_changes_suppressed", help, counts.flips_suppressed);
}

/// The times of messages between nodes; surveys only of kinds that took place.
fn times(times: &ClusterTimes, writer: &mut impl MetricsWriter) {
    let lag = [([], HistogramSum::of([&times.pub_sub_lag].into_iter()))];
    let help = "From the publication of this node's state to its own subscription";
    histogram(writer, "cluster_pub_sub_lag_seconds", help, &lag);
    let surveys: Vec<_> = SurveyKind::ALL
        .into_iter()
        .zip(&times.surveys)
        .map(|(kind, times)| {
            ([("op", kind.name().to_owned())], HistogramSum::of([times].into_iter()))
        })
        .filter(|(_, sum)| !sum.is_empty())
        .collect();
    let help = "From a question to all nodes to the last answer";
    histogram(writer, "cluster_survey_duration_seconds", help, &surveys);
}

type Read = fn(&Health) -> u64;

const COUNTERS: [(&str, &str, Read); 5] = [
    ("redis_connections_lost", "Connections to Redis that ended", Health::lost_count),
    (
        "redis_foreign_records",
        "Skipped records and messages: of another version, or invalid",
        Health::foreign_count,
    ),
    ("redis_commands_refused", "Commands that Redis answered with an error", Health::refused_count),
    (
        "redis_writes_unreplicated",
        "Writes that failed because too few replicas acknowledged them in time",
        Health::unreplicated_count,
    ),
    (
        "redis_reads_merged",
        "Reads of history and presence that shared the result of an equal read in flight (singleflight)",
        Health::merged_count,
    ),
];
