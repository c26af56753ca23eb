//! Starting and stopping a whole server.
//! In: a configuration → out: a bound address, running shards and HTTP services; and their shutdown.
//! Uses every other module; contains no behaviour of its own.
//! Changed here: the order of start and stop. The parts live in their modules.

mod apis;
mod backends;
mod bind;
mod hand_over;
mod http_side;
mod shards;
mod start;
mod tasks;

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use fanwire_api::{Command, DumpRequest};
use fanwire_config::{Config, ShutdownOptions};
use fanwire_consumers::Consumers;
use fanwire_edge::{SharedLimits, descriptors};
use fanwire_fanout::{Contexts, Shards};
use fanwire_metrics::{Reloads, ServerMetrics};
use fanwire_node::Node;
use fanwire_shard as shard;
use fanwire_tls::{Acme, ListenersTls};
use tokio::{sync::watch, task::JoinHandle};

use self::{
    apis::Apis,
    backends::Backends,
    bind::Listeners,
    hand_over::MovedStores,
    http_side::{HttpSide, Serving},
};
use crate::{
    Builder, Handle,
    closed_logs::ClosedLogWriter,
    engine::Engine,
    error,
    error::{ServerError, StartError},
    readiness::Readiness,
    snapshots::Snapshots,
    stats::ServerStats,
};

/// A running server. Dropping it leaves its threads running; call [`Server::shutdown`]. The [crate](crate) has an example.
///
/// It starts threads, raises the process's soft limit of descriptors to the hard limit, and aborts the process when a shard
/// panics, because the clients of that shard would hang. [`Server::failed`] reports a consumer that has ended for good.
pub struct Server {
    addresses: Addresses,
    node: Arc<Node>,
    shards: Arc<Shards>,
    apis: Apis,
    contexts: Arc<Contexts>,
    limits: SharedLimits,
    tls: ListenersTls,
    http_side: Arc<HttpSide>,
    http: Serving,
    background_tasks: [JoinHandle<()>; 4],
    consumers: Option<Arc<Consumers>>,
    failure: watch::Receiver<Option<ServerError>>,
    metrics: Arc<ServerMetrics>,
    closed_logs: Option<ClosedLogWriter>,
    snapshots: Option<(Arc<Snapshots>, JoinHandle<()>)>,
    /// Orders and renews certificates; sends traces; lets consumers begin.
    outgoing: Vec<JoinHandle<()>>,
    stop: watch::Sender<bool>,
    readiness: Arc<Readiness>,
    reloads: Arc<Reloads>,
    shutdown: ShutdownOptions,
    stores: MovedStores,
    /// Why this server cannot be handed over.
    obstacle: Option<&'static str>,
    /// The limit of open files.
    descriptors: usize,
}

impl Builder {
    /// Binds, starts the shards and serves. Must run inside a tokio runtime, which then runs the HTTP side and the hooks.
    ///
    /// # Errors
    /// See [`StartError`]; nothing keeps running after an error.
    pub async fn start(self) -> Result<Server, StartError> {
        Server::start_with(self).await
    }
}

impl Server {
    /// Binds, starts the shards and serves. Must run inside a tokio runtime, which then runs the HTTP side.
    ///
    /// # Errors
    /// See [`StartError`]; nothing keeps running after an error.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Builder::new(config).start().await
    }

    /// The server is compiled in this crate alone: code of an `async fn` is in every crate that awaits it.
    fn start_with(
        builder: Builder,
    ) -> Pin<Box<dyn Future<Output = Result<Self, StartError>> + Send>> {
        Box::pin(async {
            let Builder { config, listener, hooks, rooms, mut takeover } = builder;
            let builder = Builder { config, listener, hooks, rooms, takeover: None };
            let started = start::start(builder, &mut takeover).await;
            if let (Err(error), Some(takeover)) = (&started, takeover) {
                takeover.refuse(&error.to_string());
            }
            started
        })
    }

    /// Applies a configuration that differs from the running one in keys that can change
    /// ([`Reload::loaded`](crate::config::Reload)). New connections, commands and calls of the API follow it. Files with
    /// certificates of the listeners are read again; open connections stay.
    ///
    /// # Errors
    /// An option that the node refuses, or a wrong certificate; then nothing has changed.
    pub fn reload(&self, config: &Config) -> Result<(), StartError> {
        let reloaded = self.apply(config);
        self.reloads.record(reloaded.is_ok());
        reloaded
    }

    /// Counts a reload whose configuration could not be read, in the metrics.
    pub fn record_failed_reload(&self) {
        self.reloads.record(false);
    }

    fn apply(&self, config: &Config) -> Result<(), StartError> {
        let certificates = self.tls.read_again(config.tls_sections())?;
        let policies = self.contexts.policies();
        let reloaded =
            self.node.reload(config.node_options(), |id, namespace| policies.set(id, namespace));
        reloaded.map_err(StartError::Options)?;
        self.tls.replace(certificates);
        self.node.connections().rebalancing().configure(config.cluster.rebalance);
        let limits = start::limits(config, &self.node, Some(&self.limits.read()));
        *self.limits.write() = Arc::new(limits);
        self.apis.set_keys(config);
        Ok(())
    }

    /// The tables of this node and their sizes as one JSON document, as the API method `dump` returns it.
    pub async fn dump(&self) -> String {
        let dump = self.apis.http.run(Command::Dump(DumpRequest::default())).await;
        let text = match &dump {
            Ok(outcome) => serde_json::to_string_pretty(outcome),
            Err(error) => serde_json::to_string_pretty(error),
        };
        text.unwrap_or_default()
    }

    /// The errors of [`start`](Self::start) that can be found without a socket: invalid certificates.
    pub fn check(config: &Config) -> Vec<StartError> {
        let autocert = &config.http_server.tls_autocert;
        let acme = autocert.enabled.then(|| Acme::check(autocert)).and_then(Result::err);
        let sections = ListenersTls::check(config.tls_sections()).0.into_iter();
        Backends::check(config)
            .chain(acme.map(StartError::Acme))
            .chain(Consumers::check(&config.consumers).map(StartError::Consumer))
            .chain(Engine::check(config))
            .chain(sections.map(StartError::from))
            .collect()
    }

    /// Returns warnings about valid options that may still fail: certificates of the listeners that end soon, or have ended; more clients than this
    /// process may have descriptors, whose soft limit it raises.
    pub fn warnings(config: &Config) -> Vec<String> {
        let mut warnings = ListenersTls::check(config.tls_sections()).1;
        warnings.extend(start::too_many_clients(config, descriptors::raise()));
        warnings
    }

    /// The bound address, with the port chosen by the system when 0 was configured.
    pub fn address(&self) -> SocketAddr {
        self.addresses.public
    }

    /// The address for operators and backends: that of clients unless `http_server.internal_*` is set.
    pub fn internal_address(&self) -> SocketAddr {
        self.addresses.internal
    }

    /// The address of the server API: the internal address, or that of clients with `http_api.external`.
    pub fn api_address(&self) -> SocketAddr {
        self.addresses.api
    }

    /// The address of the server API over gRPC, with `grpc_api.enabled`.
    pub fn grpc_api_address(&self) -> Option<SocketAddr> {
        self.addresses.grpc_api
    }

    /// The address of unidirectional gRPC, with `uni_grpc.enabled`.
    pub fn uni_grpc_address(&self) -> Option<SocketAddr> {
        self.addresses.uni_grpc
    }

    /// The calls of the server for the program around it.
    pub fn handle(&self) -> Handle {
        Handle::new(self.node.clone(), self.shards.clone())
    }

    /// The totals of this server.
    pub fn stats(&self) -> ServerStats {
        ServerStats::of(&self.metrics)
    }

    pub(crate) fn metrics(&self) -> Arc<ServerMetrics> {
        self.metrics.clone()
    }

    pub(crate) fn failure(&self) -> watch::Receiver<Option<ServerError>> {
        self.failure.clone()
    }

    /// Waits until a part of the server has ended for good. Never completes while all parts work.
    pub async fn failed(&self) -> ServerError {
        error::reported(self.failure()).await
    }

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.shards.inboxes().len()
    }

    /// The limit of open files of this process.
    pub fn descriptors(&self) -> usize {
        self.descriptors
    }

    /// Stops accepting and closes every connection with 3001. The closes are spread over time, so that clients do not
    /// reconnect all at once. Returns when all connections are closed, or shortly after `shutdown.timeout`.
    ///
    /// With `shutdown.drain_interval`, connections are closed evenly over that time first. Until then the server
    /// delivers, answers the server API, and reports that it is not ready; handshakes get 503.
    pub async fn shutdown(mut self) {
        let started = Instant::now();
        let connections = self.shards.connections();
        self.readiness.drain();
        self.shards.announce_stop();
        if !self.shutdown.drain_interval.is_zero() {
            let stop = shard::Stop {
                spread: self.shutdown.drain_interval,
                is_exact: true,
                timeout: self.shutdown.drain_interval + self.shutdown.timeout,
            };
            let shards = self.shards.clone();
            let draining = tokio::task::spawn_blocking(move || shards.stop(stop));
            // Streams of commands on the shards end with the API, behind the drain. A panic of a shard aborts the process.
            let _ = tokio::time::timeout(self.shutdown.drain_interval, draining).await;
        }
        self.apis.close();
        self.node.cluster().leave();
        self.background_tasks.iter().chain(&self.outgoing).for_each(JoinHandle::abort);
        let _ = self.stop.send(true);
        let stop = shard::Stop {
            spread: self.shutdown.timeout.mul_f64(SPREAD_SHARE),
            is_exact: false,
            timeout: self.shutdown.timeout,
        };
        let shards = self.shards.clone();
        let closing = tokio::task::spawn_blocking(move || shards.stop(stop));
        let all = async { tokio::join!(self.http.end(), closing) };
        if tokio::time::timeout(self.shutdown.timeout + GRACE, all).await.is_err() {
            tracing::warn!("shutdown.timeout passed before every connection was closed");
        }
        if let Some(consumers) = &self.consumers {
            consumers.stop(self.shutdown.timeout + GRACE).await;
        }
        if let Some((snapshots, task)) = self.snapshots {
            task.abort();
            let _ = tokio::task::spawn_blocking(move || snapshots.finish(connections as u64)).await;
        }
        if let Some(closed_logs) = self.closed_logs {
            closed_logs.stop().await;
        }
        let left = self.shards.connections();
        tracing::info!(
            closed = connections.saturating_sub(left),
            left,
            took_ms = started.elapsed().as_millis() as u64,
            "stopped"
        );
    }
}

/// The bound addresses by their users.
struct Addresses {
    public: SocketAddr,
    internal: SocketAddr,
    api: SocketAddr,
    grpc_api: Option<SocketAddr>,
    uni_grpc: Option<SocketAddr>,
}

impl Addresses {
    fn of(config: &Config, listeners: &Listeners) -> Self {
        let Listeners { public, internal, grpc_api, uni_grpc } = listeners;
        let internal = internal.as_ref().unwrap_or(public).address;
        let public = public.address;
        let api = if config.http_api.external { public } else { internal };
        let [grpc_api, uni_grpc] =
            [grpc_api, uni_grpc].map(|bound| bound.as_ref().map(|bound| bound.address));
        Self { public, internal, api, grpc_api, uni_grpc }
    }
}

/// Added to `shutdown.timeout` for the last turns of the shards.
const GRACE: Duration = Duration::from_millis(250);

/// The part of `shutdown.timeout` over which closes are spread; the rest is for peers that reply late.
const SPREAD_SHARE: f64 = 0.75;
