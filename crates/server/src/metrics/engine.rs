//! The metrics of the engine and of the other nodes.
//! In: the health of the engine, what the node knows of others → out: rows of the page.
//! Uses the page alone.
//! Changed here: names and help. What is counted lives in `brokers` and in the node's cluster.

use std::fmt;
use std::time::Instant;

use fanwire_brokers::redis::Health;
use fanwire_node::Node;

use super::page::Page;
use crate::engine::Engine;

pub(super) fn write(engine: &Engine, node: &Node, page: &mut impl Page) -> fmt::Result {
    page.gauge(
        "cluster_nodes",
        "Nodes that are known, this one included",
        node.nodes(Instant::now()).len(),
    )?;
    let help = "Messages of other nodes that were not understood";
    page.counters("cluster_messages_refused", help, [([], node.refused_messages())])?;
    let Some(health) = engine.health() else { return Ok(()) };
    page.gauge(
        "redis_up",
        "1 while all connections to Redis are up",
        usize::from(health.is_healthy()),
    )?;
    for (name, help, read) in COUNTERS {
        page.counters(name, help, [([], read(health))])?;
    }
    Ok(())
}

type Read = fn(&Health) -> u64;

const COUNTERS: [(&str, &str, Read); 5] = [
    ("redis_connections_lost", "Connections to Redis that ended", Health::lost_count),
    (
        "redis_foreign_records",
        "Records and messages that were skipped: of another version, or garbage",
        Health::foreign_count,
    ),
    ("redis_commands_refused", "Commands that Redis answered with an error", Health::refused_count),
    (
        "redis_writes_unreplicated",
        "Writes that failed because too few replicas had them in time",
        Health::unreplicated_count,
    ),
    (
        "redis_reads_merged",
        "Reads of history and presence that shared the answer of an equal one",
        Health::merged_count,
    ),
];
