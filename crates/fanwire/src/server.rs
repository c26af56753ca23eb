//! Starting and stopping a whole server.
//! In: a configuration → out: a bound address, running shards and HTTP services; and their shutdown.
//! Uses every other module; contains no behaviour of its own.
//! Changed here: the order of start and stop. The parts live in their modules.

mod bind;

use std::{
    fmt, io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use fanwire_api::Api;
use fanwire_auth::{OptionsError, TokenOptions};
use fanwire_brokers::redis::RedisError;
use fanwire_node::{Node, ShardId};
use fanwire_protocol::Disconnect;
use tokio::{sync::watch, task::JoinHandle, time::MissedTickBehavior};

use crate::{
    Builder, Handle, Hooks, Rooms, compression,
    engine::{Engine, EngineError},
    example,
    http::routes,
    jwks::Fetcher,
    metrics::{Metrics, Reloads, Sources},
    readiness::Readiness,
};
use bind::{Bound, bind};
use fanwire_config::{Config, TlsOptions};
use fanwire_edge::{
    AdmissionLimits, AllowedOrigins, ClientParts, ConnectionRate, ListenerSettings, Refusals,
    SharedLimits, TlsAcceptor, descriptors, listener, settings as endpoints,
};
use fanwire_fanout::{Contexts, EncodeWorker, Realtime, RealtimeCounters, ShardInbox, Shards};
use fanwire_shard::{self as shard, Budget, DecodeFailures};
use fanwire_tls::{Acme, AcmeError, HandshakeCounts, ListenersTls, SectionError, TlsError};

/// A running server. Dropping it leaves its threads running; call [`Server::shutdown`].
///
/// It starts threads, raises the process's soft limit of descriptors to the hard limit, and aborts the process when a shard
/// panics, because the clients of that shard would hang.
pub struct Server {
    addresses: Addresses,
    node: Arc<Node>,
    shards: Arc<Shards>,
    api: Arc<Api>,
    contexts: Arc<Contexts>,
    limits: SharedLimits,
    tls: ListenersTls,
    http: JoinHandle<()>,
    background_tasks: [JoinHandle<()>; 3],
    /// Orders and renews certificates.
    renewals: Option<JoinHandle<()>>,
    stop: watch::Sender<bool>,
    readiness: Arc<Readiness>,
    reloads: Arc<Reloads>,
    shutdown_timeout: Duration,
    drain_interval: Duration,
    /// The limit of open files.
    descriptors: usize,
}

/// Why a server did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// An option of the node is wrong; names the key, the value and valid values.
    Options(OptionsError),
    /// The configured Redis cannot be used; names its address and the remedy.
    Redis(RedisError),
    /// `http_server.address` or `internal_address` cannot be resolved.
    Address { key: &'static str, value: String, source: io::Error },
    /// The address is in use, or not of this machine. `keys` is the common prefix of its configuration keys.
    Bind { keys: &'static str, address: SocketAddr, source: io::Error },
    /// A `tls` section is invalid; `key` is its name.
    Tls { key: &'static str, source: TlsError },
    /// A key of `http_server.tls_autocert` is invalid, or its folder or address cannot be used.
    Acme(AcmeError),
    /// Threads or pollers could not be created.
    Shards(io::Error),
    /// The listener that the program passed cannot be used.
    Listener(io::Error),
    /// The threads of the HTTP side could not be created.
    Runtime(io::Error),
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

    async fn start_with(builder: Builder) -> Result<Self, StartError> {
        let Builder { config, listener, hooks, rooms } = builder;
        enable_profiles(&config);
        let descriptors = descriptors::raise();
        let (acme, tls) = start_tls(&config).await?;
        let (public, internal) = bind(&config, listener).await?;
        let addresses = Addresses::of(&config, &public, internal.as_ref());
        let fetchers = fetchers(&config)?;
        let (engine, node) = Engine::start(&config).await?;
        attach(&node, hooks, rooms.as_ref(), fetchers);
        let contexts = Arc::new(compression::contexts(&config));
        node.prepare_with(contexts.clone());
        let (realtime_counters, decode_failures, readiness) = Default::default();
        let shards = start_shards(&config, &node, &contexts, &decode_failures, &realtime_counters)
            .map_err(StartError::Shards)?;
        let api = Arc::new(Api::new(node.clone(), config.http_api.api.clone()));
        let (refusals, reloads) = (Arc::<Refusals>::default(), Arc::<Reloads>::default());
        let sources = Sources {
            node: node.clone(),
            shards: shards.clone(),
            realtime_counters,
            contexts: contexts.clone(),
            api: api.clone(),
            engine: engine.clone(),
            refusals: refusals.clone(),
            tls: tls.clone(),
            tls_handshakes: Arc::default(),
            certificates: acme.as_ref().map(Acme::certificates),
            rooms,
            reloads: Arc::clone(&reloads),
        };
        let acceptors = acceptors(&tls, &sources.tls_handshakes);
        let metrics = Arc::new(Metrics::new(sources));
        let background_tasks = background_tasks(&node, &contexts, &metrics, &shards, &readiness);
        let limits = limits(&config, None).shared();
        let admission = || endpoints::admission(&config, &limits, descriptors, &refusals);
        let endpoints =
            endpoints::websockets(&config, &shards, contexts.memory(), &decode_failures, admission);
        let parts = routes::Parts {
            clients: ClientParts { endpoints, node: node.clone() },
            shards: shards.clone(),
            api: api.clone(),
            metrics,
            engine,
            readiness: readiness.clone(),
            demo_curl: demo_curl(&config, addresses.api),
        };
        let (stop, stopped) = watch::channel(false);
        let services = routes::services(&config, parts);
        let http2 = config.http_server.h2c_external;
        let serving = serve((public, internal), (acceptors, http2), services, descriptors, stopped);
        let http = tokio::spawn(serving);
        let renewals = acme.map(|acme| tokio::spawn(acme.run()));
        Ok(Self {
            addresses,
            node,
            shards,
            api,
            contexts,
            limits,
            tls,
            http,
            background_tasks,
            renewals,
            stop,
            readiness,
            reloads,
            shutdown_timeout: config.shutdown_timeout,
            drain_interval: config.drain_interval,
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
        let certificates = self.tls.read_again(config)?;
        let policies = self.contexts.policies();
        let reloaded =
            self.node.reload(config.node.clone(), |id, namespace| policies.set(id, namespace));
        reloaded.map_err(StartError::Options)?;
        self.tls.replace(certificates);
        let limits = limits(config, Some(&self.limits.read()));
        *self.limits.write() = Arc::new(limits);
        self.api.set_keys(&config.http_api.api);
        Ok(())
    }

    /// The errors of [`start`](Self::start) that can be found without a socket: invalid certificates.
    pub fn check(config: &Config) -> Vec<StartError> {
        let engine = Engine::check(config).map(StartError::from);
        let autocert = &config.http_server.tls_autocert;
        let acme = autocert.enabled.then(|| Acme::check(autocert)).and_then(Result::err);
        let errors = fetchers(config).err().into_iter().chain(acme.map(StartError::Acme));
        let sections = ListenersTls::check(config).0.into_iter().map(StartError::from);
        errors.chain(engine).chain(sections).collect()
    }

    /// What is valid and may still fail: certificates of the listeners that end soon, or have ended.
    pub fn warnings(config: &Config) -> Vec<String> {
        ListenersTls::check(config).1
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

    /// The calls of the server for the program around it.
    pub fn handle(&self) -> Handle {
        Handle::new(self.node.clone(), self.shards.clone())
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
        if !self.drain_interval.is_zero() {
            let stop = shard::Stop {
                spread: self.drain_interval,
                is_exact: true,
                timeout: self.drain_interval + self.shutdown_timeout,
            };
            let shards = self.shards.clone();
            // A panic there aborts the process.
            let _ = tokio::task::spawn_blocking(move || shards.stop(stop)).await;
        }
        self.api.close();
        self.node.leave_cluster();
        self.background_tasks.iter().chain(&self.renewals).for_each(JoinHandle::abort);
        let _ = self.stop.send(true);
        let stop = shard::Stop {
            spread: self.shutdown_timeout.mul_f64(SPREAD_SHARE),
            is_exact: false,
            timeout: self.shutdown_timeout,
        };
        let shards = self.shards.clone();
        let closing = tokio::task::spawn_blocking(move || shards.stop(stop));
        let all = async { (self.http.await, closing.await) };
        if tokio::time::timeout(self.shutdown_timeout + GRACE, all).await.is_err() {
            tracing::warn!("shutdown.timeout passed before every connection was closed");
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

fn enable_profiles(config: &Config) {
    if config.debug.enabled && !fanwire_profile::heap::enable() {
        tracing::warn!("debug.enabled: this build has no heap profile, only a CPU profile");
    }
}

fn background_tasks(
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

/// Gives a node the hooks of the program and the fetchers of keys, and rooms their node.
fn attach(
    node: &Arc<Node>,
    hooks: Hooks,
    rooms: Option<&Rooms>,
    fetchers: Option<[Arc<Fetcher>; 2]>,
) {
    if let Some([of_token, of_subscription]) = fetchers {
        node.fetch_keys_with(of_token, of_subscription);
    }
    node.hook(hooks.into_node_hooks(rooms));
    rooms.into_iter().for_each(|rooms| rooms.attach(node));
}

/// The fetchers of JWKS documents for both kinds of tokens; `None` if no endpoint is configured.
fn fetchers(config: &Config) -> Result<Option<[Arc<Fetcher>; 2]>, StartError> {
    let (token, subscription) = (&config.node.client.token, &config.node.client.subscription_token);
    let has_endpoint = |token: &TokenOptions| !token.jwks_public_endpoint.is_empty();
    if !has_endpoint(token) && !subscription.as_ref().is_some_and(has_endpoint) {
        return Ok(None);
    }
    let fetcher = |tls: &TlsOptions, key| {
        Fetcher::new(tls).map(Arc::new).map_err(|source| StartError::Tls { key, source })
    };
    let client = &config.client;
    Ok(Some([
        fetcher(&client.token_jwks_tls, "client.token.jwks.tls")?,
        fetcher(&client.subscription_token_jwks_tls, "client.subscription_token.jwks.tls")?,
    ]))
}

/// The certificates that an authority issues, if the configuration asks for them, and TLS of the listeners.
async fn start_tls(config: &Config) -> Result<(Option<Acme>, ListenersTls), StartError> {
    let options = &config.http_server.tls_autocert;
    if !options.enabled {
        return Ok((None, ListenersTls::start(config, None)?));
    }
    let listener = bind::for_challenges(options).await.map_err(StartError::Acme)?;
    let acme = Acme::open(options, listener).map_err(StartError::Acme)?;
    let tls = ListenersTls::start(config, Some(acme.resolver()))?;
    Ok((Some(acme), tls))
}

/// The command line on the demo page. That page is public, so it contains the API key in development mode only.
fn demo_curl(config: &Config, address: SocketAddr) -> String {
    let line = example::curl(config, address, example::DEMO);
    match &*config.http_api.api.key {
        key if config.development || key.is_empty() => line,
        key => line.replace(key, "<http_api.key>"),
    }
}

fn start_shards(
    config: &Config,
    node: &Arc<Node>,
    contexts: &Arc<Contexts>,
    decode_failures: &Arc<DecodeFailures>,
    realtime_counters: &Arc<parking_lot::Mutex<Vec<RealtimeCounters>>>,
) -> io::Result<Arc<Shards>> {
    let (hub_node, realtime_counters) = (node.clone(), realtime_counters.clone());
    let (settings, contexts) =
        (settings(config, contexts.memory(), decode_failures.clone()), contexts.clone());
    let encode_worker = EncodeWorker::start()?;
    let joins_pushes = config.uni_websocket.join_push_messages;
    let shards = Shards::start(&settings, move |number| {
        let shard = ShardId(u16::try_from(number).expect("fewer than 65,536 shards"));
        let realtime =
            Realtime::new(hub_node.clone(), shard, contexts.clone(), encode_worker.clone())
                .join_pushes(joins_pushes);
        realtime_counters.lock().push(realtime.counters());
        realtime
    })?;
    for inbox in shards.inboxes() {
        node.attach(Arc::new(ShardInbox(inbox.clone())));
    }
    Ok(shards)
}

fn settings(
    config: &Config,
    memory: &Arc<Budget>,
    decode_failures: Arc<DecodeFailures>,
) -> shard::ShardSettings {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let websocket = &config.websocket;
    let message_bytes_max = websocket.message_size_limit;
    shard::ShardSettings {
        shards: if config.shards == 0 { cores() } else { config.shards },
        queue_bytes_max: config.node.client.queue_max_size,
        slow_close: (Disconnect::SLOW.code, "slow"),
        last_message: fanwire_fanout::last_message,
        write_timeout: websocket.write_timeout,
        write_delay: config.client.write_delay,
        reply_without_queue: config.client.reply_without_queue,
        compression_min_bytes: websocket.compression_min_size,
        compression_level: websocket.compression_level,
        compression_verify: websocket.compression_verify,
        dedicated: shard::DedicatedSettings {
            window_bits: websocket.compression_dedicated.window_bits,
            memory_level: websocket.compression_dedicated.memory_level,
            level: websocket.compression_level,
            strategy: websocket.compression_dedicated.strategy,
            memory: memory.clone(),
        },
        decode_failures,
        message_bytes_max,
        inflated_bytes_max: match websocket.decompressed_message_size_limit {
            0 => message_bytes_max.saturating_mul(10),
            limit => limit,
        },
        fragments_max: websocket.fragments_max,
        uni_websocket: endpoints::uni_websocket_settings(&config.uni_websocket),
    }
}

/// A rate that does not change keeps what was taken from it.
fn limits(config: &Config, current: Option<&AdmissionLimits>) -> AdmissionLimits {
    let client = &config.client;
    let rate = Arc::new(ConnectionRate::new(client.connection_rate_limit, Instant::now()));
    let current = current.map(|current| &current.rate).filter(|current| current.is_same(&rate));
    AdmissionLimits {
        allowed_origins: Some(AllowedOrigins::new(&client.allowed_origins)),
        connection_limit: client.connection_limit,
        rate: current.cloned().unwrap_or(rate),
    }
}

/// The bound addresses by their users.
struct Addresses {
    public: SocketAddr,
    internal: SocketAddr,
    api: SocketAddr,
}

impl Addresses {
    fn of(config: &Config, public: &Bound, internal: Option<&Bound>) -> Self {
        let (public, internal) = (public.address, internal.unwrap_or(public).address);
        Self { public, internal, api: if config.http_api.external { public } else { internal } }
    }
}

/// What performs the handshakes of both listeners.
fn acceptors(tls: &ListenersTls, counts: &Arc<HandshakeCounts>) -> [Option<TlsAcceptor>; 2] {
    [&tls.clients, &tls.internal]
        .map(|tls| tls.clone().map(|tls| TlsAcceptor::new(tls, Arc::clone(counts))))
}

async fn serve(
    (public, internal): (Bound, Option<Bound>),
    ([tls, internal_tls], http2_cleartext): ([Option<TlsAcceptor>; 2], bool),
    services: routes::Services,
    descriptors: usize,
    stopped: watch::Receiver<bool>,
) {
    let internal = internal.zip(services.internal);
    let slots = descriptors::for_http(descriptors, 1 + usize::from(internal.is_some()));
    let plain_requests = Some(services.plain_requests);
    let settings = ListenerSettings { tls, plain_requests, http2_cleartext, slots };
    let clients = listener::serve(public.listener, settings, services.public, stopped.clone());
    match internal {
        None => clients.await,
        Some((Bound { listener, .. }, root_service)) => {
            let tls = internal_tls;
            let settings = ListenerSettings { tls, slots, ..ListenerSettings::default() };
            let internal = listener::serve(listener, settings, root_service, stopped);
            tokio::join!(clients, internal);
        }
    }
}

const TICK_INTERVAL: Duration = Duration::from_secs(1);

/// Added to `shutdown.timeout` for the last turns of the shards.
const GRACE: Duration = Duration::from_millis(250);

/// The part of `shutdown.timeout` over which closes are spread; the rest is for peers that reply late.
const SPREAD_SHARE: f64 = 0.75;

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Options(error) => error.fmt(f),
            StartError::Redis(error) => error.fmt(f),
            StartError::Address { key, value, source } => write!(
                f,
                "{key} = {value:?} cannot be resolved ({source}): use an IP address or a name that resolves"
            ),
            StartError::Bind { keys, address, source }
                if source.kind() == io::ErrorKind::AddrInUse =>
            {
                write!(
                    f,
                    "{keys}port = {}: {address} is in use by another process: stop it, or choose another port (0 = any free port)",
                    address.port()
                )
            }
            StartError::Bind { keys, address, source } => write!(
                f,
                "{keys}address and {keys}port: cannot listen on {address} ({source}): use an address of this machine and a port you may bind"
            ),
            StartError::Tls { key, source } => write!(f, "{key}.{source}"),
            StartError::Acme(error) => error.fmt(f),
            StartError::Shards(error) => write!(f, "cannot start the shards: {error}"),
            StartError::Listener(error) => write!(f, "cannot use the given listener: {error}"),
            StartError::Runtime(error) => write!(f, "cannot start the threads for HTTP: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<SectionError> for StartError {
    fn from(SectionError { key, source }: SectionError) -> Self {
        Self::Tls { key, source }
    }
}

impl From<EngineError> for StartError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Options(error) => Self::Options(error),
            EngineError::Redis(error) => Self::Redis(error),
            EngineError::Tls { key, source } => Self::Tls { key, source },
        }
    }
}
