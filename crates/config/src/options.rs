//! `Config`, the configuration of a server: a section for each section of the file, a field for each key.
//! In: values of the rows → out: plain data.
//! Uses the options of the crates that obey a whole section. Never: parses or checks a value.
//! Changed here: the list of sections, and small ones. The fields have the names of their keys, which a test compares.

mod admin;
mod api;
mod channel;
mod client;
mod engine;
mod http_server;
mod parts;
mod websocket;

use std::collections::BTreeMap;
use std::time::Duration;

use fanwire_cluster::RebalanceOptions;
use fanwire_consumers::ConsumerOptions;
use fanwire_durable::DurableOptions;
use fanwire_edge::{
    EmulationOptions, GrpcListenerOptions, ShedOptions, StreamOptions, UniStreamOptions,
    UniWebsocketOptions,
};
use fanwire_events::EventsOptions;

use fanwire_policy::options::{DebugForOptions, SharedPollOptions, UserStatusOptions};
use fanwire_proxy::ProxyOptions;

pub use admin::AdminOptions;
pub use api::{GrpcApiOptions, HttpApiOptions};
pub use channel::{ChannelProxies, ChannelSection, PingOptions, RpcSection};
pub use client::{
    ClientProxies, ClientRateLimits, ClientSection, ConnectCodeOptions, JwksOptions, TokenSection,
};
pub use engine::{EngineKind, EngineMemoryOptions, EngineOptions, MapBrokerKind, MapBrokerOptions};
pub use http_server::HttpServerOptions;
pub use websocket::{DedicatedOptions, WebsocketOptions};

/// Configuration of a server. `Config::default()` equals an empty file; programs assign to its fields,
/// which have the names of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    pub http_server: HttpServerOptions,
    pub log: LogOptions,
    pub engine: EngineOptions,
    pub map_broker: MapBrokerOptions,
    pub recorder: RecorderOptions,
    pub client: ClientSection,
    pub channel: ChannelSection,
    pub rpc: RpcSection,
    pub user_status: UserStatusOptions,
    pub shared_poll: SharedPollOptions,
    pub node: NodeOptions,
    pub cluster: ClusterSection,
    pub websocket: WebsocketOptions,
    pub http_api: HttpApiOptions,
    pub grpc_api: GrpcApiOptions,
    pub http_stream: StreamOptions,
    pub sse: StreamOptions,
    pub emulation: EmulationOptions,
    pub uni_websocket: UniWebsocketOptions,
    pub uni_sse: UniStreamOptions,
    pub uni_http_stream: UniStreamOptions,
    pub uni_grpc: GrpcListenerOptions,
    pub health: EndpointOptions,
    pub prometheus: PrometheusOptions,
    pub compatibility: CompatibilityOptions,
    pub opentelemetry: OpentelemetryOptions,
    pub swagger: EndpointOptions,
    /// Profiles of the running server.
    pub debug: EndpointOptions,
    pub demo: EndpointOptions,
    pub admin: AdminOptions,
    /// Event proxies that namespaces choose by name.
    pub proxies: BTreeMap<String, ProxyOptions>,
    /// Reports of clients and channels to a backend.
    pub events: EventsOptions,
    /// Channels as streams over HTTP.
    pub durable_streams: DurableOptions,
    /// Consumers of message queues by name.
    pub consumers: BTreeMap<String, ConsumerOptions>,
    pub shed: ShedOptions,
    pub shutdown: ShutdownOptions,
    /// Threads that own connections; 0 = one per core.
    pub shards: usize,
    /// Path of the file with the process id while the server runs; "" = none.
    pub pid_file: String,
    /// Without any configuration: loopback only, no credentials needed.
    pub development: bool,
}

/// `log.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// One of `none`, `trace`, `debug`, `info`, `warn`, `error`, `fatal`.
    pub level: String,
    /// Path of a file to append to; "" = stderr.
    pub file: String,
    /// One of `auto`, `json`, `text`.
    pub format: String,
    /// Subjects whose events are logged.
    pub debug_for: DebugForOptions,
}

/// `recorder.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Bytes of the flight recorder, for the newest connections; 0 = nothing is recorded.
    pub memory_max: usize,
    /// Folder of files with the logs of connections that ended; "" = none.
    pub path: String,
    /// Bytes of these files.
    pub disk_max: u64,
}

/// `node.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeOptions {
    /// Name of this node; "" = the server makes one of its host and port.
    pub name: String,
    /// Interval of the metrics that `info` shows; at least a second.
    pub info_metrics_aggregate_interval: Duration,
}

/// `cluster.*`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterSection {
    pub rebalance: RebalanceOptions,
}

/// One HTTP endpoint that can be switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointOptions {
    pub enabled: bool,
    pub handler_prefix: String,
}

/// `prometheus.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrometheusOptions {
    pub enabled: bool,
    pub handler_prefix: String,
    /// HTTP requests are counted.
    pub instrument_http_handlers: bool,
}

/// `compatibility.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompatibilityOptions {
    /// Metrics have the names of Centrifugo, too.
    pub centrifugo_metrics: bool,
}

/// `opentelemetry.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpentelemetryOptions {
    /// Traces are sent.
    pub enabled: bool,
    /// Calls of the server API are spans.
    pub api: bool,
    /// Messages of consumers are spans.
    pub consuming: bool,
}

/// `shutdown.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShutdownOptions {
    /// How long a graceful shutdown may take.
    pub timeout: Duration,
    /// Before it, connections are closed evenly over this time; zero = not.
    pub drain_interval: Duration,
}

impl Config {
    /// Before any row has spoken.
    pub(crate) fn blank() -> Self {
        Self {
            http_server: HttpServerOptions::default(),
            log: LogOptions::default(),
            engine: EngineOptions::default(),
            map_broker: MapBrokerOptions::default(),
            recorder: RecorderOptions::default(),
            client: ClientSection::default(),
            channel: ChannelSection::default(),
            rpc: RpcSection::default(),
            user_status: UserStatusOptions::default(),
            shared_poll: SharedPollOptions::default(),
            node: NodeOptions::default(),
            cluster: ClusterSection::default(),
            websocket: WebsocketOptions::default(),
            http_api: HttpApiOptions::default(),
            grpc_api: GrpcApiOptions::default(),
            http_stream: StreamOptions::default(),
            sse: StreamOptions::default(),
            emulation: EmulationOptions::default(),
            uni_websocket: UniWebsocketOptions::default(),
            uni_sse: UniStreamOptions::default(),
            uni_http_stream: UniStreamOptions::default(),
            uni_grpc: GrpcListenerOptions::default(),
            health: EndpointOptions::default(),
            prometheus: PrometheusOptions::default(),
            compatibility: CompatibilityOptions::default(),
            opentelemetry: OpentelemetryOptions::default(),
            swagger: EndpointOptions::default(),
            debug: EndpointOptions::default(),
            demo: EndpointOptions::default(),
            admin: AdminOptions::default(),
            proxies: BTreeMap::new(),
            events: EventsOptions::default(),
            durable_streams: DurableOptions::default(),
            consumers: BTreeMap::new(),
            shed: ShedOptions::default(),
            shutdown: ShutdownOptions::default(),
            shards: 0,
            pid_file: String::new(),
            development: false,
        }
    }
}
