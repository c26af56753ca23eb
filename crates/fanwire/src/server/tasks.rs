//! The periodic work of a server.
//! In: its parts → out: tasks that run until they are aborted.
//! Uses tokio's timer; never a request.
//! Changed here: how often something is done. What is done lives in the parts.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use fanwire_fanout::{Contexts, Shards};
use fanwire_node::Node;
use tokio::{task::JoinHandle, time::MissedTickBehavior};

use crate::{metrics::Metrics, readiness::Readiness};

pub(super) fn background_tasks(
    node: &Arc<Node>,
    contexts: &Arc<Contexts>,
    metrics: &Arc<Metrics>,
    shards: &Arc<Shards>,
    readiness: &Arc<Readiness>,
) -> [JoinHandle<()>; 3] {
    [
        tokio::spawn(sweep_contexts(node.clone(), contexts.clone())),
        tokio::spawn(tick(node.clone(), metrics.clone())),
        tokio::spawn(observe(shards.clone(), readiness.clone())),
    ]
}

/// Frees unused memory of compression, and moves memory to channels that save more bytes with it.
async fn sweep_contexts(node: Arc<Node>, contexts: Arc<Contexts>) {
    let mut ticks = tokio::time::interval(Contexts::SWEEP_INTERVAL);
    loop {
        ticks.tick().await;
        let (node, contexts) = (node.clone(), contexts.clone());
        let sweep = move || contexts.sweep(|channel| node.has_listeners(channel));
        // With very many channels it takes some milliseconds; requests on this runtime must not wait for it.
        let _ = tokio::task::spawn_blocking(sweep).await;
    }
}

/// Runs the node's periodic work, and keeps `metrics`, which the node summarises, alive.
async fn tick(node: Arc<Node>, metrics: Arc<Metrics>) {
    node.summarise(metrics.meters());
    let mut ticks = tokio::time::interval(TICK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // An idle shard does not read the clock.
        node.synchronise(Instant::now(), fanwire_fanout::unix_ms());
        let node = node.clone();
        let _ = tokio::task::spawn_blocking(move || node.tick(Instant::now())).await;
    }
}

/// Observes once a second whether the shards turn.
async fn observe(shards: Arc<Shards>, readiness: Arc<Readiness>) {
    let mut ticks = tokio::time::interval(TICK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let turns = shards.counters().iter().map(|counters| counters.turns.value());
        readiness.observe(turns.zip(shards.inboxes().iter().map(|inbox| inbox.bytes() > 0)));
    }
}

const TICK_INTERVAL: Duration = Duration::from_secs(1);
