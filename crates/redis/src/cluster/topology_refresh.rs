//! The topology refresh of a Cluster: periodic, and on request when slots may have moved.
//! In: known nodes, requests → out: the topology that all answers give together.
//! Uses: one task per Cluster, open connections, connections to seeds while none is open. Never: asks more than a few times a second.
//! Changed here: which nodes are asked, and how often. `cluster.rs` uses the topology.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use redis::{Pipeline, Value};
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

use super::super::address::Address;
use super::super::clock::RedisClock;
use super::super::dial::{Dialer, Expected};
use super::super::error::RedisError;
use super::super::options::RedisOptions;
use super::super::server::Server;
use super::Cluster;
use super::topology::Topology;

/// Keeps the map of a Cluster up to date until the Cluster is dropped.
pub(super) async fn run(cluster: Weak<Cluster>, woken: Arc<Notify>) {
    let mut pause = PAUSE_MIN;
    let mut fast_refreshes = 0;
    loop {
        let mut period = match cluster.upgrade() {
            Some(cluster) => cluster.refresh().await,
            None => return,
        };
        if fast_refreshes > 0 {
            (fast_refreshes, period) = (fast_refreshes - 1, PERIOD_DEGRADED);
        }
        let refreshed_at = Instant::now();
        let is_woken = timeout(period, woken.notified()).await.is_ok();
        if is_woken && cluster.strong_count() > 0 {
            let is_late = refreshed_at.elapsed() >= RECENT;
            pause = if is_late { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
            fast_refreshes = FAST_REFRESHES;
            sleep(pause).await;
        }
    }
}

impl Cluster {
    /// Refreshes once. Returns the time until the next periodic refresh.
    async fn refresh(&self) -> Duration {
        match self.newest_topology().await {
            Ok(topology) => self.adopt(&topology),
            Err(error) => self.factory.health.report_error(error),
        }
        self.send_waiting_calls();
        if self.is_settled() { PERIOD } else { PERIOD_DEGRADED }
    }

    async fn newest_topology(&self) -> Result<Topology, RedisError> {
        let servers = self.servers();
        let up = servers.iter().filter(|server| !server.is_down());
        let queries: FuturesUnordered<_> = up.map(|server| ask(server)).collect();
        match join_answers(queries).await {
            Some(topology) => Ok(topology),
            None => {
                let known = servers.iter().map(|server| &server.address);
                let seeds: Vec<_> = self.seeds.iter().chain(known).cloned().collect();
                ask_seeds(&seeds, &self.factory.options).await
            }
        }
    }
}

/// Asks a master on an open connection.
async fn ask(server: &Server) -> Option<Topology> {
    let replies = Topology::commands().map(|command| {
        let (sender, reply) = oneshot::channel();
        server.command_connections[0].send(command, |reply| drop(sender.send(reply)));
        reply
    });
    let [slots, nodes] = replies;
    Topology::read(&server.address, [slots.await.ok()?.ok()?, nodes.await.ok()?.ok()?])
}

/// Asks these nodes, and joins their answers.
///
/// # Errors
/// When none answers: the first permanent error, or else the first error.
pub(super) async fn ask_seeds(
    seeds: &[Address],
    options: &RedisOptions,
) -> Result<Topology, RedisError> {
    let mut errors = Vec::new();
    let topology = {
        let (sender, mut received_errors) = tokio::sync::mpsc::unbounded_channel();
        let queries: FuturesUnordered<_> = seeds
            .iter()
            .map(|seed| {
                let sender = sender.clone();
                async move {
                    let answer = ask_seed(seed, options).await;
                    answer.map_err(|error| drop(sender.send(error))).ok()
                }
            })
            .collect();
        let join_answers = join_answers(queries).await;
        while let Ok(error) = received_errors.try_recv() {
            errors.push(error);
        }
        join_answers
    };
    let no_seed = || RedisError::Unreachable {
        address: seeds.first().cloned().unwrap_or_default(),
        why: "no node of the Cluster is named".to_owned(),
    };
    topology.ok_or_else(|| {
        let worst = errors.iter().position(RedisError::is_permanent).unwrap_or(0);
        if errors.is_empty() { no_seed() } else { errors.swap_remove(worst) }
    })
}

/// Asks a node on a connection of its own.
async fn ask_seed(seed: &Address, options: &RedisOptions) -> Result<Topology, RedisError> {
    let dialer =
        Dialer::new(seed, options, Arc::new(RedisClock::new())).expecting(Expected::ClusterNode);
    let mut connection = dialer.dial(Vec::new(), Arc::new(drop)).await?;
    let mut commands = Pipeline::new();
    for command in Topology::commands() {
        commands.add_command(command.into_cmd());
    }
    let replies = connection.send_packed_commands(&commands, 0, commands.len()).await;
    let replies: Result<[Value; 2], _> = replies.map_err(|error| dialer.broken(&error))?.try_into();
    if let Ok([Value::ServerError(error), _] | [_, Value::ServerError(error)]) = &replies {
        return Err(dialer.refused(error.code(), error.details()));
    }
    let topology = replies.ok().and_then(|replies| Topology::read(seed, replies));
    topology.ok_or_else(|| RedisError::NotCluster { address: seed.clone() })
}

/// Joins all answers that arrive within [`GRACE`] after the first. A node that was cut off may answer first, and a
/// dead one never answers.
async fn join_answers(
    queries: FuturesUnordered<impl Future<Output = Option<Topology>>>,
) -> Option<Topology> {
    let mut join_answers: Option<Topology> = None;
    let mut answers = pin!(queries.filter_map(std::future::ready));
    let mut wait_timeout = Duration::MAX;
    while let Ok(Some(topology)) = timeout(wait_timeout, answers.next()).await {
        wait_timeout = GRACE;
        match &mut join_answers {
            Some(join_answers) => join_answers.join(topology),
            None => join_answers = Some(topology),
        }
    }
    join_answers
}

/// Refreshes at short intervals after a requested one, because other nodes get the news a moment later.
const FAST_REFRESHES: u32 = 4;
/// Between two refreshes when nothing happens.
const PERIOD: Duration = Duration::from_secs(10);
/// Between two refreshes while a slot has no reachable master.
const PERIOD_DEGRADED: Duration = Duration::from_millis(500);
/// Before a requested refresh, so that many requests cause one; longer if the last refresh is recent.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(300);
/// A refresh is not recent after this time.
const RECENT: Duration = Duration::from_secs(1);
/// How long to wait for other answers after the first.
const GRACE: Duration = Duration::from_millis(100);
