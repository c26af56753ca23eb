//! Starting and stopping a whole server.
//! In: a configuration → out: a bound address, running shards and HTTP services; and their shutdown.
//! Uses every other module; contains no behaviour of its own.
//! Changed here: the order of start and stop. The parts live in their modules.

mod bind;
mod http_side;
mod shards;
mod tasks;

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use fanwire_api::{Api, Command, DumpRequest, grpc::GrpcApi};
use fanwire_config::{Config, ShutdownOptions, TokenSection};
use fanwire_consumers::Consumers;
use fanwire_edge::{
    AdmissionLimits, AllowedOrigins, ClientParts, ConnectionRate, SharedLimits, descriptors,
    settings as endpoints,
};
use fanwire_events::{Events, EventsError};
use fanwire_fanout::{Contexts, Shards};
use fanwire_metrics::{Reloads, ServerMetrics, Sources};
use fanwire_node::{Node, NodeParts, hooks::Hooks as NodeHooks};
use fanwire_proxy::EventProxies;
use fanwire_shard as shard;
use fanwire_tls::{Acme, KeyFetcher, ListenersTls};
use fanwire_traces::TraceExporter;
use tokio::{sync::watch, task::JoinHandle};

use self::{
    bind::Listeners,
    http_side::{Acceptors, HttpSide},
    shards::start_shards,
    tasks::{Handshakes, Observed, attach, background_tasks, begin_consumers, outgoing},
};
use crate::{
    Builder, Handle,
    closed_logs::ClosedLogWriter,
    compression,
    engine::Engine,
    error,
    error::{ServerError, StartError},
    grpc::GrpcService,
    hooks::all_hooks,
    http::routes,
    readiness::Readiness,
    shedding::Shedding,
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
    http: JoinHandle<()>,
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
        Box::pin(Self::start_parts(builder))
    }

    async fn start_parts(builder: Builder) -> Result<Self, StartError> {
        let Builder { mut config, listener, hooks, rooms } = builder;
        let (descriptors, (acme, tls)) = (prepare_process(&config), start_tls(&config).await?);
        let (listeners, addresses) = bind(&mut config, listener).await?;
        let (fetchers, proxies, events) = (fetchers(&config)?, proxies(&config)?, events(&config)?);
        let closed_logs = ClosedLogWriter::start(&config)?;
        let contexts = compression::contexts(&config);
        let hooks = all_hooks(hooks, rooms.as_ref(), proxies.as_ref(), events.as_ref());
        let parts = node_parts(&contexts, hooks, closed_logs.as_ref());
        let (engine, node) = Engine::start(&config, parts).await?;
        fetch_keys(&node, fetchers);
        attach(&node, proxies.as_ref(), events.as_ref(), rooms.as_ref());
        let snapshots = engine.snapshots();
        let traces = traces(&config, &node)?;
        let (report_failure, failure) = watch::channel(None);
        let (consumers, consuming) = start_consumers(&config, &node, report_failure).await?;
        let (realtime_counters, decode_failures, readiness) = Default::default();
        let shards = start_shards(&config, &node, &contexts, &decode_failures, &realtime_counters)?;
        let (apis, grpc) = apis(&config, &node, &shards, consuming);
        let (handshakes, reloads) = (Handshakes::default(), Arc::<Reloads>::default());
        let limits = limits(&config, None).shared();
        let metrics = Arc::new(ServerMetrics::new(Sources {
            node: node.clone(),
            shards: shards.clone(),
            realtime_counters,
            contexts: contexts.clone(),
            apis: apis.clone(),
            redis: engine.redis(),
            refusals: handshakes.refusals.clone(),
            overload: limits.read().overload.clone(),
            tls: tls.clone(),
            tls_handshakes: handshakes.tls.clone(),
            certificates: acme.as_ref().map(Acme::certificates),
            rooms: rooms.map(|rooms| Box::new(move || rooms.totals()) as _),
            proxies: proxies.clone(),
            events,
            consumers: consumers.as_ref().map(|it| it.monitor()),
            reloads: reloads.clone(),
            snapshots: snapshots.clone().map(|it| Box::new(move || it.readings()) as _),
            requests: routes::request_counts(&config),
            has_centrifugo_names: config.compatibility.centrifugo_metrics,
        }));
        let demo = config.serves_demo();
        let admission = || endpoints::admission(&limits, demo, descriptors, &handshakes.refusals);
        let options = config.client_endpoints();
        let memory = contexts.memory();
        let endpoints =
            endpoints::websockets(&options, &shards, memory, &decode_failures, admission);
        let shedding = Shedding::new(&config.shed, &limits);
        let observed = Observed::new(&shards, &readiness, shedding);
        let tasks = background_tasks(&node, &contexts, &metrics, &handshakes, observed);
        let parts = routes::Parts {
            clients: ClientParts { endpoints, node: node.clone() },
            shards: shards.clone(),
            api: apis[0].1.clone(),
            metrics: metrics.clone(),
            health: (engine, proxies, consumers.as_ref().map(|it| it.monitor())),
            readiness: readiness.clone(),
            demo_curl: routes::demo_curl(&config, addresses.api),
        };
        let (stop, stopped) = watch::channel(false);
        let services = routes::services(&config, parts, stopped.clone());
        let acceptors = Acceptors::new(&tls, &handshakes.tls);
        let http_side = HttpSide::new(&config, listeners, acceptors, descriptors);
        let mut outgoing = outgoing(acme, traces);
        let before = snapshots.as_ref().map_or(0, |snapshots| snapshots.connections_before());
        outgoing.extend(consumers.as_ref().map(|it| begin_consumers(it, &node, before)));
        Ok(Self {
            addresses,
            node,
            shards,
            apis,
            contexts,
            limits,
            tls,
            http: tokio::spawn(http_side.serve(services, grpc, stopped)),
            background_tasks: tasks,
            consumers,
            failure,
            metrics,
            closed_logs,
            snapshots: snapshots.map(|snapshots| (snapshots.clone(), snapshots.run())),
            outgoing,
            stop,
            readiness,
            reloads,
            shutdown: config.shutdown,
            descriptors,
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
        let limits = limits(config, Some(&self.limits.read()));
        *self.limits.write() = Arc::new(limits);
        self.apis[0].1.set_keys(&config.api_options());
        if let Some((_, grpc)) = self.apis.iter().find(|(protocol, _)| *protocol == "grpc") {
            grpc.set_keys(&config.grpc_api_options());
        }
        Ok(())
    }

    /// The tables of this node and their sizes as one JSON document, as the API method `dump` returns it.
    pub async fn dump(&self) -> String {
        let dump = self.apis[0].1.run(Command::Dump(DumpRequest::default())).await;
        let text = match &dump {
            Ok(outcome) => serde_json::to_string_pretty(outcome),
            Err(error) => serde_json::to_string_pretty(error),
        };
        text.unwrap_or_default()
    }

    /// The errors of [`start`](Self::start) that can be found without a socket: invalid certificates.
    pub fn check(config: &Config) -> Vec<StartError> {
        let engine = Engine::check(config);
        let autocert = &config.http_server.tls_autocert;
        let acme = autocert.enabled.then(|| Acme::check(autocert)).and_then(Result::err);
        let errors = fetchers(config)
            .err()
            .into_iter()
            .chain(acme.map(StartError::Acme))
            .chain(EventProxies::check(&config.event_proxies()).map(StartError::Proxy))
            .chain(events(config).err());
        let consumers = Consumers::check(&config.consumers).map(StartError::Consumer);
        let errors = errors.chain(consumers);
        let sections =
            ListenersTls::check(config.tls_sections()).0.into_iter().map(StartError::from);
        errors.chain(engine).chain(sections).collect()
    }

    /// Returns warnings about valid options that may still fail: certificates of the listeners that end soon, or have ended; more clients than this
    /// process may have descriptors, whose soft limit it raises.
    pub fn warnings(config: &Config) -> Vec<String> {
        let mut warnings = ListenersTls::check(config.tls_sections()).1;
        warnings.extend(too_many_clients(config, descriptors::raise()));
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
    pub async fn shutdown(self) {
        let (started, connections) = (Instant::now(), self.shards.connections());
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
        self.apis.iter().for_each(|(_, api)| api.close());
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
        let all = async { (self.http.await, closing.await) };
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

/// The parts of the node around its engine.
fn node_parts(
    contexts: &Arc<Contexts>,
    hooks: NodeHooks,
    closed_logs: Option<&ClosedLogWriter>,
) -> NodeParts {
    NodeParts {
        prepare: Some(contexts.clone()),
        hooks,
        keep_closed_log: closed_logs.map(ClosedLogWriter::keep),
        ..NodeParts::default()
    }
}

/// Enables profiles, and raises the limit of descriptors, which it returns.
fn prepare_process(config: &Config) -> usize {
    if config.debug.enabled && !fanwire_profile::heap::enable() {
        tracing::warn!("debug.enabled: this build has no heap profile, only a CPU profile");
    }
    let descriptors = descriptors::raise();
    if let Some(warning) = too_many_clients(config, descriptors) {
        tracing::warn!("{warning}");
    }
    descriptors
}

fn too_many_clients(config: &Config, descriptors: usize) -> Option<String> {
    let limit = config.client.connection_limit;
    let of_clients = descriptors::for_clients(descriptors);
    (limit > of_clients).then(|| {
        format!(
            "client.connection_limit is {limit}, but there are descriptors for {of_clients} clients: raise the limit of this \
             process (ulimit -Hn, LimitNOFILE= of a unit)"
        )
    })
}

/// The sender of traces, if the configuration asks for one.
fn traces(config: &Config, node: &Arc<Node>) -> Result<Option<TraceExporter>, StartError> {
    let exporter = config.opentelemetry.enabled.then(|| TraceExporter::start(node));
    exporter.transpose().map_err(StartError::Traces)
}

fn proxies(config: &Config) -> Result<Option<EventProxies>, StartError> {
    let runtime = tokio::runtime::Handle::current();
    EventProxies::new(&config.event_proxies(), runtime).map_err(StartError::Proxy)
}

fn events(config: &Config) -> Result<Option<Events>, StartError> {
    Events::new(&config.events).map_err(|error| match error {
        EventsError::HttpTls(source) => StartError::Tls { key: "events.http.tls", source },
        EventsError::RedisTls(source) => StartError::Tls { key: "events.redis_stream.tls", source },
        EventsError::Redis(error) => StartError::Engine(error.into()),
    })
}

/// Binds all listeners.
async fn bind(
    config: &mut Config,
    listener: Option<std::net::TcpListener>,
) -> Result<(Listeners, Addresses), StartError> {
    let listeners = Listeners::bind(config, listener).await?;
    let addresses = Addresses::of(config, &listeners);
    if config.node.name.is_empty() {
        let uname = rustix::system::uname();
        let host = uname.nodename().to_string_lossy();
        config.node.name = format!("{host}_{}", addresses.public.port());
    }
    Ok((listeners, addresses))
}

/// Starts the consumers, with an API that counts what they execute. One whose queue cannot be used ends the start.
async fn start_consumers(
    config: &Config,
    node: &Arc<Node>,
    report_failure: watch::Sender<Option<ServerError>>,
) -> Result<(Option<Arc<Consumers>>, Option<Arc<Api>>), StartError> {
    let api = Arc::new(Api::new(node.clone(), config.api_options()));
    let consumers = Consumers::start(&config.consumers, &api, node.uid(), move |error| {
        tracing::error!(%error, "a consumer has ended for good");
        report_failure.send_replace(Some(ServerError::Consumer(Arc::new(error))));
    });
    let consumers = consumers.await.map_err(StartError::Consumer)?.map(Arc::new);
    let api = consumers.is_some().then_some(api);
    Ok((consumers, api))
}

/// Gives the node the fetchers of JWKS documents for both kinds of tokens.
fn fetch_keys(node: &Node, fetchers: Option<[Arc<KeyFetcher>; 2]>) {
    if let Some([of_token, of_subscription]) = fetchers {
        node.fetch_keys_with(of_token, of_subscription);
    }
}

/// The fetchers of JWKS documents for both kinds of tokens; `None` if no endpoint is configured.
fn fetchers(config: &Config) -> Result<Option<[Arc<KeyFetcher>; 2]>, StartError> {
    let client = &config.client;
    let subscription = &client.subscription_token;
    let has_endpoint = |token: &TokenSection| !token.jwks_public_endpoint.is_empty();
    let is_used = has_endpoint(&client.token) || subscription.enabled && has_endpoint(subscription);
    if !is_used {
        return Ok(None);
    }
    let fetcher = |token: &TokenSection, key| {
        let fetcher = KeyFetcher::new(&token.jwks.tls).map(Arc::new);
        fetcher.map_err(|source| StartError::Tls { key, source })
    };
    Ok(Some([
        fetcher(&client.token, "client.token.jwks.tls")?,
        fetcher(subscription, "client.subscription_token.jwks.tls")?,
    ]))
}

/// The certificates that an authority issues, if the configuration asks for them, and TLS of the listeners.
async fn start_tls(config: &Config) -> Result<(Option<Acme>, ListenersTls), StartError> {
    let options = &config.http_server.tls_autocert;
    if !options.enabled {
        return Ok((None, ListenersTls::start(config.tls_sections(), None)?));
    }
    let listener = bind::for_challenges(options).await.map_err(StartError::Acme)?;
    let acme = Acme::open(options, listener).map_err(StartError::Acme)?;
    let tls = ListenersTls::start(config.tls_sections(), Some(acme.resolver()))?;
    Ok((Some(acme), tls))
}

/// A rate that does not change keeps what was taken from it.
fn limits(config: &Config, current: Option<&AdmissionLimits>) -> AdmissionLimits {
    let client = &config.client;
    let rate = Arc::new(ConnectionRate::new(client.connection_rate_limit, Instant::now()));
    let rate_now = current.map(|current| &current.rate).filter(|current| current.is_same(&rate));
    AdmissionLimits {
        allowed_origins: Some(AllowedOrigins::new(&client.allowed_origins)),
        connection_limit: client.connection_limit,
        rate: rate_now.cloned().unwrap_or(rate),
        overload: current.map(|current| current.overload.clone()).unwrap_or_default(),
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

/// The server API by its protocols, of which HTTP is the first.
type Apis = Vec<(&'static str, Arc<Api>)>;

/// The server API by its protocols, and the service of the listener for gRPC.
fn apis(
    config: &Config,
    node: &Arc<Node>,
    shards: &Arc<Shards>,
    consuming: Option<Arc<Api>>,
) -> (Apis, Option<GrpcService>) {
    let mut apis = vec![("http", Arc::new(Api::new(node.clone(), config.api_options())))];
    apis.extend(consuming.map(|api| ("consuming", api)));
    let options = &config.grpc_api;
    let grpc = options.enabled.then(|| {
        let api = Arc::new(Api::new(node.clone(), config.grpc_api_options()));
        apis.push(("grpc", api.clone()));
        GrpcService::new(GrpcApi::new(api), shards.clone(), options.reflection)
    });
    (apis, grpc)
}

/// Added to `shutdown.timeout` for the last turns of the shards.
const GRACE: Duration = Duration::from_millis(250);

/// The part of `shutdown.timeout` over which closes are spread; the rest is for peers that reply late.
const SPREAD_SHARE: f64 = 0.75;
