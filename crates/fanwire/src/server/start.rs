//! The start of a server, step by step.
//! In: a configuration, and what the program gives besides → out: a server whose parts all run.
//! Uses the other modules of `server`, which start one part each.
//! Changed here: the order of the start, and which part gets which other one.

use std::{sync::Arc, time::Instant};

use fanwire_config::Config;
use fanwire_consumers::{Consumers, StartPhase};
use fanwire_edge::{
    AdmissionLimits, AllowedOrigins, ClientParts, ConnectionRate, SharedLimits, descriptors,
    settings as endpoints,
};
use fanwire_fanout::Contexts;
use fanwire_metrics::{Reloads, ServerMetrics, Sources};
use fanwire_node::{Node, NodeParts};
use fanwire_tls::{Acme, ListenersTls};
use fanwire_traces::TraceExporter;
use tokio::{sync::watch, task::JoinHandle};

use super::{
    Addresses, Server,
    apis::{Apis, Consuming},
    backends::Backends,
    bind,
    bind::Listeners,
    hand_over,
    hand_over::MovedStores,
    http_side::{Acceptors, HttpServices, HttpSide},
    shards::RunningShards,
    tasks::{Handshakes, Observed, background_tasks, begin_consumers, outgoing},
};
use crate::{
    Builder, closed_logs::ClosedLogWriter, compression, engine::Engine, error::StartError,
    http::routes, readiness::Readiness, shedding::Shedding, takeover::Takeover,
};

/// The parts of a server that run before clients are let in.
struct Parts {
    config: Config,
    engine: Engine,
    node: Arc<Node>,
    contexts: Arc<Contexts>,
    running: RunningShards,
    backends: Backends,
    consumers: Option<Arc<Consumers>>,
    apis: Apis,
    tls: ListenersTls,
    acme: Option<Acme>,
    handshakes: Handshakes,
    limits: SharedLimits,
    readiness: Arc<Readiness>,
    reloads: Arc<Reloads>,
    /// The limit of open files.
    descriptors: usize,
}

/// Starts all parts: what can fail first, then the node on its engine, the shards, and at the end what lets clients in.
///
/// With a takeover it takes the connections of the other program before it lets clients in.
pub(super) async fn start(
    builder: Builder,
    takeover: &mut Option<Takeover>,
) -> Result<Server, StartError> {
    let Builder { mut config, listener, hooks, rooms, .. } = builder;
    let inherited = takeover.as_mut().map(Takeover::inherited).unwrap_or_default();
    let engine_before = inherited.engine.as_deref();
    if engine_before.is_some_and(|kind| kind != config.engine.kind.name()) {
        return Err(StartError::EngineChanged);
    }
    let descriptors = prepare_process(&config);
    let acme = open_acme(&config).await?;
    let tls = ListenersTls::start(config.tls_sections(), acme.as_ref().map(Acme::resolver))?;
    let listeners = Listeners::bind(&config, listener, inherited.listeners).await?;
    let addresses = Addresses::of(&config, &listeners);
    name_node(&mut config, &addresses);
    let backends = Backends::new(&config, rooms)?;
    let closed_logs = ClosedLogWriter::start(&config)?;
    let contexts = compression::contexts(&config);

    let node_parts = NodeParts {
        prepare: Some(contexts.clone()),
        hooks: backends.hooks(hooks),
        keep_closed_log: closed_logs.as_ref().map(ClosedLogWriter::keep),
        uid: inherited.node,
        ..NodeParts::default()
    };
    let (engine, node) = Engine::start(&config, node_parts, inherited.snapshot_lock).await?;
    let obstacle = hand_over::obstacle(&engine, &backends);
    backends.attach(&node);
    let traces = traces(&config, &node)?;
    let consuming = Consuming::start(&config, &node).await?;
    let running = RunningShards::start(&config, &node, &contexts)?;
    let parts = Parts {
        apis: Apis::new(&config, &node, &consuming),
        limits: limits(&config, &node, None).shared(),
        handshakes: Handshakes::default(),
        readiness: Arc::default(),
        reloads: Arc::default(),
        consumers: consuming.consumers,
        config,
        engine,
        node,
        contexts,
        running,
        backends,
        tls,
        acme,
        descriptors,
    };

    let metrics = parts.metrics();
    let background_tasks = parts.background_tasks(&metrics);
    let (stop, stopped) = watch::channel(false);
    let services = routes::services(&parts.config, parts.routes(&metrics, &addresses), stopped);
    let grpc_service = parts.apis.grpc_service(&parts.config, &parts.running.shards);
    let stores = MovedStores { engine: parts.engine.clone(), durable: services.durable.clone() };
    let services = HttpServices::new(services, grpc_service);
    let http_side = Arc::new(parts.http_side(listeners, services));
    let is_taken_over = hand_over::take_everything(takeover, &parts.running.shards, &stores).await;
    let snapshots = stores.engine.snapshots();
    let before = snapshots.as_ref().map_or(0, |snapshots| snapshots.connections_before());
    let consumers = parts.consumers;
    let mut outgoing = outgoing(parts.acme, traces);
    match &consumers {
        Some(consumers) if is_taken_over => consumers.enter(StartPhase::ClientsBack),
        Some(consumers) => outgoing.push(begin_consumers(consumers, &parts.node, before)),
        None => {}
    }
    Ok(Server {
        addresses,
        node: parts.node,
        shards: parts.running.shards,
        apis: parts.apis,
        contexts: parts.contexts,
        limits: parts.limits,
        tls: parts.tls,
        http: http_side.begin(),
        http_side,
        background_tasks,
        consumers,
        failure: consuming.failure,
        metrics,
        closed_logs,
        snapshots: snapshots.map(|snapshots| (snapshots.clone(), snapshots.run())),
        outgoing,
        stop,
        readiness: parts.readiness,
        reloads: parts.reloads,
        shutdown: parts.config.shutdown,
        stores,
        obstacle,
        descriptors,
    })
}

impl Parts {
    fn metrics(&self) -> Arc<ServerMetrics> {
        let snapshots = self.engine.snapshots();
        let rooms = self.backends.rooms.clone();
        Arc::new(ServerMetrics::new(Sources {
            node: self.node.clone(),
            shards: self.running.shards.clone(),
            realtime_counters: self.running.realtime_counters.clone(),
            contexts: self.contexts.clone(),
            apis: self.apis.named(),
            redis: self.engine.redis(),
            refusals: self.handshakes.refusals.clone(),
            overload: self.limits.read().overload.clone(),
            tls: self.tls.clone(),
            tls_handshakes: self.handshakes.tls.clone(),
            certificates: self.acme.as_ref().map(Acme::certificates),
            rooms: rooms.map(|rooms| Box::new(move || rooms.totals()) as _),
            proxies: self.backends.proxies.clone(),
            events: self.backends.events.clone(),
            consumers: self.consumers.as_ref().map(|consumers| consumers.monitor()),
            reloads: self.reloads.clone(),
            snapshots: snapshots.map(|snapshots| Box::new(move || snapshots.readings()) as _),
            requests: routes::request_counts(&self.config),
            has_centrifugo_names: self.config.compatibility.centrifugo_metrics,
        }))
    }

    fn background_tasks(&self, metrics: &Arc<ServerMetrics>) -> [JoinHandle<()>; 4] {
        let shedding = Shedding::new(&self.config.shed, &self.limits);
        let observed = Observed::new(&self.node, &self.running.shards, &self.readiness, shedding);
        background_tasks(&self.node, &self.contexts, metrics, &self.handshakes, observed)
    }

    /// The parts that the handlers of requests use.
    fn routes(&self, metrics: &Arc<ServerMetrics>, addresses: &Addresses) -> routes::Parts {
        let demo = self.config.serves_demo();
        let refusals = &self.handshakes.refusals;
        let admission = || endpoints::admission(&self.limits, demo, self.descriptors, refusals);
        let endpoints = endpoints::websockets(
            &self.config.client_endpoints(),
            &self.running.shards,
            self.contexts.memory(),
            &self.running.decode_failures,
            admission,
        );
        routes::Parts {
            clients: ClientParts { endpoints, node: self.node.clone() },
            shards: self.running.shards.clone(),
            api: self.apis.http.clone(),
            metrics: metrics.clone(),
            health: routes::HealthParts {
                engine: self.engine.clone(),
                proxies: self.backends.proxies.clone(),
                consumers: self.consumers.as_ref().map(|consumers| consumers.monitor()),
            },
            readiness: self.readiness.clone(),
            demo_curl: routes::demo_curl(&self.config, addresses.api),
        }
    }

    fn http_side(&self, listeners: Listeners, services: HttpServices) -> HttpSide {
        let acceptors = Acceptors::new(&self.tls, &self.handshakes.tls);
        HttpSide::new(&self.config, listeners, acceptors, services, self.descriptors)
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

pub(super) fn too_many_clients(config: &Config, descriptors: usize) -> Option<String> {
    let limit = config.client.connection_limit;
    let of_clients = descriptors::for_clients(descriptors);
    (limit > of_clients).then(|| {
        format!(
            "client.connection_limit is {limit}, but there are descriptors for {of_clients} clients: raise the limit of this \
             process (ulimit -Hn, LimitNOFILE= of a unit)"
        )
    })
}

/// Gives a node without a name the name of the host and its port.
fn name_node(config: &mut Config, addresses: &Addresses) {
    if config.node.name.is_empty() {
        let uname = rustix::system::uname();
        let host = uname.nodename().to_string_lossy();
        config.node.name = format!("{host}_{}", addresses.public.port());
    }
}

/// The sender of traces, if the configuration asks for one.
fn traces(config: &Config, node: &Arc<Node>) -> Result<Option<TraceExporter>, StartError> {
    let exporter = config.opentelemetry.enabled.then(|| TraceExporter::start(node));
    exporter.transpose().map_err(StartError::Traces)
}

/// The certificates that an authority issues, if the configuration asks for them.
async fn open_acme(config: &Config) -> Result<Option<Acme>, StartError> {
    let options = &config.http_server.tls_autocert;
    if !options.enabled {
        return Ok(None);
    }
    let listener = bind::for_challenges(options).await.map_err(StartError::Acme)?;
    Acme::open(options, listener).map(Some).map_err(StartError::Acme)
}

/// A rate that does not change keeps what was taken from it.
pub(super) fn limits(
    config: &Config,
    node: &Node,
    current: Option<&AdmissionLimits>,
) -> AdmissionLimits {
    let client = &config.client;
    let rate = Arc::new(ConnectionRate::new(client.connection_rate_limit, Instant::now()));
    let rate_now = current.map(|current| &current.rate).filter(|current| current.is_same(&rate));
    AdmissionLimits {
        allowed_origins: Some(AllowedOrigins::new(&client.allowed_origins)),
        connection_limit: client.connection_limit,
        rate: rate_now.cloned().unwrap_or(rate),
        addresses: node.channels().usage().addresses().clone(),
        overload: current.map(|current| current.overload.clone()).unwrap_or_default(),
    }
}
