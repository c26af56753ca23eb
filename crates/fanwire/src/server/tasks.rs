//! The periodic work of a server, and what sends requests on its own.
//! In: its parts → out: tasks that run until they are aborted.
//! Uses tokio's timer; never a request.
//! Changed here: how often something is done. What is done lives in the parts.

use std::{
    future,
    sync::Arc,
    time::{Duration, Instant},
};

use fanwire_consumers::{Consumers, START_DELAY_MAX, StartPhase};
use fanwire_edge::Refusals;
use fanwire_fanout::{Contexts, Shards};
use fanwire_metrics::ServerMetrics;
use fanwire_node::{Departures, Node};
use fanwire_shard::SendAway;
use fanwire_telemetry::{Burst, LogThrottle};
use fanwire_tls::{Acme, HandshakeCounts};
use fanwire_traces::TraceExporter;
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{MissedTickBehavior, sleep_until, timeout},
};

use crate::{readiness::Readiness, shedding::Shedding};

/// Counts of refused handshakes, which know the ends of bursts.
#[derive(Clone, Default)]
pub(super) struct Handshakes {
    pub(super) refusals: Arc<Refusals>,
    pub(super) tls: Arc<HandshakeCounts>,
}

impl Handshakes {
    fn log_ended(&self, now: Instant) {
        for burst in self.refusals.ended(now).into_iter().chain(self.tls.ended(now)) {
            let Burst { kind, count, addresses, .. } = burst;
            tracing::info!(count, kind, addresses, "handshakes that were refused and not logged");
        }
    }
}

pub(super) fn background_tasks(
    node: &Arc<Node>,
    contexts: &Arc<Contexts>,
    metrics: &Arc<ServerMetrics>,
    handshakes: &Handshakes,
    observed: Observed,
) -> [JoinHandle<()>; 4] {
    [
        tokio::spawn(sweep_contexts(node.clone(), contexts.clone())),
        tokio::spawn(tick(node.clone(), metrics.clone(), handshakes.clone())),
        tokio::spawn(observed.run()),
        tokio::spawn(poll_backends(node.clone())),
    ]
}

/// Tasks that send requests on their own: for certificates and with traces.
pub(super) fn outgoing(acme: Option<Acme>, traces: Option<TraceExporter>) -> Vec<JoinHandle<()>> {
    let acme = acme.map(|acme| tokio::spawn(acme.run()));
    acme.into_iter().chain(traces.map(|traces| tokio::spawn(traces.run()))).collect()
}

/// Lets consumers begin, as clients can connect now. After a planned stop that closed connections, half of them end every
/// `start_delay`.
pub(super) fn begin_consumers(
    consumers: &Arc<Consumers>,
    node: &Arc<Node>,
    connections_before: u64,
) -> JoinHandle<()> {
    consumers.enter(StartPhase::Serving);
    let consumers = consumers.clone();
    let node = node.clone();
    tokio::spawn(async move {
        if connections_before == 0 {
            tracing::info!("consumers begin after their start_delay");
            return;
        }
        tracing::info!(
            connections_before,
            "consumers begin when half of the clients from before the restart are back, or after their start_delay"
        );
        let wanted = connections_before.div_ceil(2);
        let are_back = async {
            let mut ticks = tokio::time::interval(RETURNS_INTERVAL);
            while (node.counts().connections as u64) < wanted {
                ticks.tick().await;
            }
        };
        if timeout(START_DELAY_MAX, are_back).await.is_ok() {
            consumers.enter(StartPhase::ClientsBack);
            tracing::info!(
                connections_before,
                "half of the clients are back, so consumers do not wait any longer"
            );
        }
    })
}

/// Calls the backends of shared poll channels when it is time to.
async fn poll_backends(node: Arc<Node>) {
    let changed = Arc::new(Notify::new());
    let waker = changed.clone();
    node.shared_polls().wake_with(move || waker.notify_one());
    loop {
        let next = node.shared_polls().run(Instant::now());
        let due = async {
            match next {
                Some(at) => sleep_until(at.into()).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            () = changed.notified() => {}
            () = due => {}
        }
    }
}

/// Frees unused memory of compression, and moves memory to channels that save more bytes with it.
async fn sweep_contexts(node: Arc<Node>, contexts: Arc<Contexts>) {
    let mut ticks = tokio::time::interval(Contexts::SWEEP_INTERVAL);
    loop {
        ticks.tick().await;
        let node = node.clone();
        let contexts = contexts.clone();
        let sweep = move || contexts.sweep(|channel| node.channels().has_subscribers(channel));
        // With very many channels it takes some milliseconds; requests on this runtime must not wait for it.
        let _ = tokio::task::spawn_blocking(sweep).await;
    }
}

/// Runs the node's periodic work, logs the ends of bursts of refusals, and keeps `metrics`, which the node summarises, alive.
async fn tick(node: Arc<Node>, metrics: Arc<ServerMetrics>, handshakes: Handshakes) {
    node.summarise(metrics.meters());
    let mut ticks = tokio::time::interval(TICK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let throttle = LogThrottle::default();
    let mut logged = 0;
    loop {
        ticks.tick().await;
        log_evictions(&node, &throttle, &mut logged, Instant::now());
        handshakes.log_ended(Instant::now());
        let node = node.clone();
        let _ = tokio::task::spawn_blocking(move || {
            node.run_periodic_work(Instant::now(), fanwire_fanout::unix_ms())
        })
        .await;
    }
}

/// Says that histories were dropped; until then their loss shows only in failed recoveries.
fn log_evictions(node: &Node, throttle: &LogThrottle, logged: &mut u64, now: Instant) {
    let evictions = node.channels().history_evictions();
    if evictions > *logged && throttle.record("history", now).is_some() {
        let dropped = evictions - *logged;
        let bytes = node.counts().history_bytes;
        tracing::warn!(
            dropped,
            bytes,
            "histories are dropped, because channel.history_memory_max is reached: raise it, or lower history_size or history_ttl"
        );
        *logged = evictions;
    }
}

/// The shards, and what follows from their load.
pub(super) struct Observed {
    node: Arc<Node>,
    shards: Arc<Shards>,
    readiness: Arc<Readiness>,
    shedding: Shedding,
}

impl Observed {
    pub(super) fn new(
        node: &Arc<Node>,
        shards: &Arc<Shards>,
        readiness: &Arc<Readiness>,
        shedding: Shedding,
    ) -> Self {
        Self { node: node.clone(), shards: shards.clone(), readiness: readiness.clone(), shedding }
    }

    /// Observes once a second whether the shards turn, how loaded the process is, and whether it has too many clients.
    async fn run(mut self) {
        let mut ticks = tokio::time::interval(TICK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let counters = self.shards.counters();
            let turns = counters.iter().map(|counters| counters.turns.value());
            let have_waiting = self.shards.inboxes().iter().map(|inbox| inbox.bytes() > 0);
            self.readiness.observe(turns.zip(have_waiting));
            self.shedding.observe(counters, Instant::now());
            self.rebalance(Instant::now());
        }
    }

    /// Sends clients away, if this node has more of them than the others. A server that stops closes all of them anyway.
    fn rebalance(&self, now: Instant) {
        if self.shards.are_stopping() {
            return;
        }
        let rebalancing = self.node.connections().rebalancing();
        if let Some(Departures { clients, min_age }) = rebalancing.step(now) {
            let connections = usize::try_from(clients).unwrap_or(usize::MAX);
            self.shards.send_away(SendAway { connections, min_age, spread: TICK_INTERVAL });
        }
        self.shedding.set_evacuation(rebalancing.refuses_clients(now));
    }
}

const TICK_INTERVAL: Duration = Duration::from_secs(1);

/// How often the clients that are back are counted.
const RETURNS_INTERVAL: Duration = Duration::from_millis(100);
