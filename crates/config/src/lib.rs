//! The configuration of a server: Centrifugo v6's keys, read from file, environment and flags into one `Config`.
//! In: a path, environment pairs, flags → out: `Config` and findings, or an error that names file, key, value and remedy.
//! Uses node and api options. Reads one file; never the process environment, the clock or the network.
//! A key is a row in `keys`; kinds of values live in `key`, precedence in `settings`, wording in `finding`.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fanwire_auth::Secret;

mod admin;
mod apply;
mod autocert;
mod catalog;
mod consumers;
pub mod document;
mod durable;
mod duration;
mod engine;
mod environment;
mod events;
pub mod example;
mod file;
mod finding;
mod grpc;
mod in_force;
mod key;
mod keys;
mod nearest;
mod networks;
mod proxy;
mod reload;
mod renamed;
mod rules;
mod settings;
pub mod time;
mod transforms;

#[cfg(test)]
mod tests;

pub use admin::AdminOptions;
pub use autocert::AutocertOptions;
pub use catalog::{Entry, Section, entries, find, sections};
pub use consumers::{
    ConsumerKind, ConsumerOptions, JetStreamOptions, KafkaOptions, OutboxOptions,
    PublicationDataMode, RedisStreamOptions,
};
pub use durable::DurableOptions;
pub use events::{EVENT_TYPES, EventsHttpOptions, EventsOptions, EventsRedisStreamOptions};
pub use file::{FileError, Format};
pub use finding::{Finding, Problem, Severity, Source};
pub use grpc::{GrpcApiOptions, GrpcListenerOptions};
pub use in_force::ValueInForce;
pub use key::{Key, Kind, Misfit, Support, Value, Weight};
pub use networks::Networks;
pub use proxy::{
    GrpcProxyOptions, HttpProxyOptions, Proxies, ProxyOptions, StatusMeaning, StatusTransform,
};
pub use reload::{LoadedConfig, Reload};
pub use renamed::{is_configuration, renamed};
pub use transforms::{ConnectCodeResponse, StatusAndBody, Transforms};

/// Configuration of a server. `Config::default()` equals an empty file; programs assign to its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    pub http_server: HttpServerOptions,
    pub log: LogOptions,
    pub engine: EngineOptions,
    /// Part of `client.*` that applies before a session exists; the rest is in `node`.
    pub client: ClientShellOptions,
    pub node: fanwire_policy::options::Options,
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
    pub prometheus: EndpointOptions,
    /// Metrics have the names of Centrifugo, too.
    pub centrifugo_metrics: bool,
    /// HTTP requests are counted.
    pub instrument_http_handlers: bool,
    /// Traces are sent.
    pub opentelemetry: bool,
    pub swagger: EndpointOptions,
    /// Profiles of the running server.
    pub debug: EndpointOptions,
    pub demo: EndpointOptions,
    pub admin: AdminOptions,
    pub proxies: Proxies,
    /// Reports of clients and channels to a backend.
    pub events: EventsOptions,
    /// Channels as streams over HTTP.
    pub durable_streams: DurableOptions,
    /// Consumers of message queues by name.
    pub consumers: BTreeMap<String, ConsumerOptions>,
    /// How long a graceful shutdown may take.
    pub shutdown_timeout: Duration,
    /// Before it, connections are closed evenly over this time; zero = not.
    pub drain_interval: Duration,
    /// Threads that own connections; 0 = one per core.
    pub shards: usize,
    /// Path of the file with the process id while the server runs; "" = none.
    pub pid_file: String,
    /// Folder of files with the logs of connections that ended; "" = none.
    pub recorder_path: String,
    /// Bytes of these files.
    pub recorder_disk_max: u64,
    /// Without any configuration: loopback only, no credentials needed.
    pub development: bool,
}

/// `http_server.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpServerOptions {
    /// Address or host name to listen on; "" = all addresses.
    pub address: String,
    /// 0 lets the system choose one.
    pub port: u16,
    /// Address of the operator's and backends' endpoints; "" = `address`.
    pub internal_address: String,
    /// Their port, a number as text; "" = `port`.
    pub internal_port: String,
    /// Serve HTTP/2 without TLS to clients.
    pub h2c_external: bool,
    /// Addresses and networks of proxies that say who the client is.
    pub trusted_proxies: Vec<String>,
    /// Proxies begin each connection with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// TLS of both listeners, without automatic certificates.
    pub tls: ServerTlsOptions,
    /// The internal listener is without it.
    pub tls_external: bool,
    /// TLS of the internal listener, instead of `tls`.
    pub internal_tls: ServerTlsOptions,
    /// Automatic certificates of both listeners, instead of `tls`.
    pub tls_autocert: AutocertOptions,
}

impl HttpServerOptions {
    /// Whether those endpoints have a listener of their own; the same address and port written twice is one listener.
    pub fn is_split(&self) -> bool {
        let address = match self.internal_address.as_str() {
            "" => &self.address,
            address => address,
        };
        let port = self.internal_port.parse().unwrap_or(self.port);
        (address, port) != (self.address.as_str(), self.port)
    }

    /// TLS of the listener for clients.
    pub fn client_tls(&self) -> Option<ServerTlsSection<'_>> {
        let is_used = self.tls.enabled && !self.tls_autocert.enabled;
        is_used.then_some(("http_server.tls", &self.tls))
    }

    /// Whether the internal listener shows automatic certificates, as the one for clients does.
    pub fn has_internal_autocert(&self) -> bool {
        let has_other = self.is_split() && (self.internal_tls.enabled || self.tls_external);
        self.tls_autocert.enabled && !has_other
    }

    /// TLS of the listener with the operator's and backends' endpoints.
    pub fn internal_tls(&self) -> Option<ServerTlsSection<'_>> {
        match self.is_split() {
            true if self.internal_tls.enabled => {
                Some(("http_server.internal_tls", &self.internal_tls))
            }
            true if self.tls_external => None,
            _ => self.client_tls(),
        }
    }
}

/// A section `tls` of a listener, with its name.
pub type ServerTlsSection<'a> = (&'static str, &'a ServerTlsOptions);

/// A section `tls` of a listener. Each PEM is a text, that text in base64, or the path of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTlsOptions {
    pub enabled: bool,
    /// The server's certificate, and those that signed it.
    pub cert_pem: String,
    /// Its private key.
    pub key_pem: Secret,
    /// Authorities of clients' certificates, which then are required; "" = none is asked for.
    pub client_ca_pem: String,
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
}

/// `engine.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineOptions {
    pub kind: EngineKind,
    pub redis: EngineRedisOptions,
}

/// Store that publications, history and presence of all nodes share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// Memory of this process: there is one node.
    #[default]
    Memory,
    /// Redis: nodes with the same Redis are one server.
    Redis,
}

impl EngineKind {
    /// Kinds by their names in `engine.type`.
    pub(crate) const NAMED: [(&'static str, Self); 2] =
        [("memory", Self::Memory), ("redis", Self::Redis)];

    /// The name in `engine.type`.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, kind)| *kind == self).expect("every kind has a name").0
    }
}

/// `engine.redis.*`
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EngineRedisOptions {
    /// `host:port` or `redis://…`; of several each channel belongs to one.
    pub address: Vec<String>,
    /// Instead of it: some nodes of a Cluster; of several Clusters each channel belongs to one.
    pub cluster_address: Vec<String>,
    /// `host:port`; empty = no Sentinels.
    pub sentinel_address: Vec<String>,
    /// Name of the master at the Sentinels. Several names have commas between them; each channel belongs to one of them.
    pub sentinel_master_name: String,
    pub sentinel_user: String,
    pub sentinel_password: Secret,
    pub sentinel_client_name: String,
    /// TLS of connections to the Sentinels.
    pub sentinel_tls: TlsOptions,
    /// TLS of connections to the Redis.
    pub tls: TlsOptions,
    /// "" = as the address says.
    pub user: String,
    /// "" = as the address says.
    pub password: Secret,
    /// 0 = as the address says.
    pub db: u32,
    pub prefix: String,
    pub client_name: String,
    pub connect_timeout: Duration,
    pub io_timeout: Duration,
    /// Replicas that must have a write; 0 = none.
    pub wait_replicas: u32,
    pub wait_timeout: Duration,
    pub command_connections: usize,
    pub pubsub_connections: usize,
}

/// Without secrets.
impl std::fmt::Debug for EngineRedisOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineRedisOptions").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// `client.*`, the part that is decided before a session exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientShellOptions {
    /// Patterns with `*`; empty = only requests without an `Origin` header.
    pub allowed_origins: Vec<String>,
    /// Connections of this server; 0 = unlimited. More get 503.
    pub connection_limit: usize,
    /// New connections per second; 0 = unlimited. More get 503.
    pub connection_rate_limit: usize,
    /// Messages of a connection wait so long for others; zero = until the end of a turn.
    pub write_delay: Duration,
    /// Replies do not wait.
    pub reply_without_queue: bool,
    /// Header of a trusted proxy that carries the user id; "" = none.
    pub user_id_http_header: String,
    /// TLS of connections to `client.token.jwks_public_endpoint`.
    pub token_jwks_tls: TlsOptions,
    /// TLS of connections to `client.subscription_token.jwks_public_endpoint`.
    pub subscription_token_jwks_tls: TlsOptions,
}

/// A section `tls` of a connection to somebody else. Each PEM is a text, that text in base64, or the path of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Obey the rest; else servers are verified with the authorities that the system believes.
    pub enabled: bool,
    /// Authorities to believe instead of the system's; "" = those.
    pub server_ca_pem: String,
    /// Certificate to show; "" = none.
    pub cert_pem: String,
    /// Its private key.
    pub key_pem: Secret,
    /// Name the server's certificate must have; "" = that of the address.
    pub server_name: String,
    /// Believe any certificate.
    pub insecure_skip_verify: bool,
}

/// `websocket.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebsocketOptions {
    pub disabled: bool,
    pub handler_prefix: String,
    /// Answer offers of permessage-deflate.
    pub compression: bool,
    /// Bytes; shorter messages go out uncompressed.
    pub compression_min_size: usize,
    /// 1 (fastest) to 9 (smallest).
    pub compression_level: u8,
    /// Answer offers of Apple's NSURLSession too.
    pub compression_apple: bool,
    /// Bytes for the histories of channels, for compressors of single connections, and for windows of clients.
    pub compression_memory_max: usize,
    /// Inflate every compressed frame before it is sent, and compare.
    pub compression_verify: bool,
    pub compression_dedicated: DedicatedOptions,
    /// Window of our own messages at most, 9 to 15.
    pub server_max_window_bits: u8,
    /// Messages of clients may refer to earlier ones, at the cost of a window for each connection.
    pub client_context_takeover: bool,
    /// Window of a client that lets the server choose, 9 to 15.
    pub client_max_window_bits: u8,
    /// Decline offers that do not let the server choose.
    pub require_client_max_window_bits: bool,
    /// Bytes of one incoming message on the wire; longer → close 1009.
    pub message_size_limit: usize,
    /// Bytes of one incoming message after inflating; 0 = ten times `message_size_limit`.
    pub decompressed_message_size_limit: usize,
    /// Fragments of one incoming message.
    pub fragments_max: u32,
    /// How long a write may make no progress before the connection is closed.
    pub write_timeout: Duration,
}

/// `websocket.compression_dedicated.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DedicatedOptions {
    /// A compressor for each connection that allows it, instead of frames shared between connections.
    pub enabled: bool,
    /// 9 to 15.
    pub window_bits: u8,
    /// 1 to 9.
    pub memory_level: u8,
    pub strategy: fanwire_deflate::Strategy,
}

/// `http_api.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpApiOptions {
    /// Removes the server API altogether.
    pub disabled: bool,
    /// Leaves it on the port of clients when there is an internal one.
    pub external: bool,
    pub api: fanwire_api::ApiOptions,
}

/// `http_stream.*` and `sse.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamOptions {
    pub enabled: bool,
    pub handler_prefix: String,
    /// Bytes; longer → 413.
    pub max_request_body_size: usize,
    /// Compresses bodies for clients that accept it.
    pub compression: bool,
}

/// `emulation.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmulationOptions {
    pub handler_prefix: String,
    /// Bytes; longer → 413.
    pub max_request_body_size: usize,
}

/// `uni_websocket.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniWebsocketOptions {
    pub enabled: bool,
    pub handler_prefix: String,
    /// Answer offers of permessage-deflate.
    pub compression: bool,
    /// Bytes; shorter messages go out uncompressed.
    pub compression_min_size: usize,
    /// 1 (fastest) to 9 (smallest).
    pub compression_level: u8,
    /// Bytes of one incoming message on the wire; longer → close 1009.
    pub message_size_limit: usize,
    /// Bytes of one incoming message after inflating; 0 = ten times `message_size_limit`.
    pub decompressed_message_size_limit: usize,
    /// How long a write may make no progress before the connection is closed.
    pub write_timeout: Duration,
    /// Pushes for one connection that leave together are one message.
    pub join_push_messages: bool,
    /// Connections end without a disconnect push.
    pub disable_disconnect_push: bool,
    /// Connections end without a close frame.
    pub disable_closing_handshake: bool,
}

/// `uni_sse.*` and `uni_http_stream.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniStreamOptions {
    pub enabled: bool,
    pub handler_prefix: String,
    /// Bytes; longer → 413.
    pub max_request_body_size: usize,
    /// Compress bodies for clients that accept gzip or deflate.
    pub compression: bool,
    pub connect_code_to_http_response: ConnectResponseOptions,
}

/// `connect_code_to_http_response.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectResponseOptions {
    /// The response begins when connect is decided; a refused one has a status.
    pub enabled: bool,
    /// Codes without a row get 500.
    pub transforms: Vec<ConnectCodeResponse>,
}

/// One HTTP endpoint that can be switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointOptions {
    pub enabled: bool,
    pub handler_prefix: String,
}

/// Reads the configuration: flags win over environment, environment over file, file over defaults.
///
/// `environment` holds all variables of the process; those that begin with `FANWIRE_` or `CENTRIFUGO_`
/// are looked at, and of two that mean the same key Fanwire's wins. `flags` are dotted keys with values
/// written as in the environment. Where nothing is configured, the result is development mode (`Config::development`).
///
/// # Errors
/// The file cannot be read or parsed, or at least one finding is an error; then all findings are in it.
pub fn load(
    file: Option<&Path>,
    environment: impl Iterator<Item = (String, String)>,
    flags: &[(String, String)],
) -> Result<(Config, Vec<Finding>), ConfigError> {
    assemble(file::tree(file)?, environment, flags)
}

/// `load` after the file was read.
fn assemble(
    file: Option<file::FileTree<'_>>,
    environment: impl Iterator<Item = (String, String)>,
    flags: &[(String, String)],
) -> Result<(Config, Vec<Finding>), ConfigError> {
    let (settings, findings) = collect(file, environment, flags, false);
    finish(&settings, findings)
}

/// The settings of all sources. `is_closed`: without any configuration there is no development mode.
fn collect(
    file: Option<file::FileTree<'_>>,
    environment: impl Iterator<Item = (String, String)>,
    flags: &[(String, String)],
    is_closed: bool,
) -> (settings::Settings, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut settings = settings::Settings { is_closed, ..settings::Settings::default() };
    let is_configured = file.is_some();
    if let Some((path, tree)) = file {
        settings.add_file(path, tree, &mut findings);
    }
    settings.add_environment(environment, &mut findings);
    settings.add_flags(flags, &mut findings);
    settings.rename_former(&mut findings);
    if !is_configured {
        settings.assume_development(&findings);
    }
    (settings, findings)
}

/// Makes the configuration of settings, with these and further findings.
fn finish(
    settings: &settings::Settings,
    mut findings: Vec<Finding>,
) -> Result<(Config, Vec<Finding>), ConfigError> {
    let config = apply::apply(settings, &mut findings);
    rules::check(&config, settings, &mut findings);
    findings.sort_by_key(|finding| finding.severity);
    match findings.first() {
        Some(worst) if worst.severity == Severity::Error => Err(ConfigError::Findings(findings)),
        _ => Ok((config, findings)),
    }
}

/// Why there is no configuration.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read, or is not what its name says.
    File(FileError),
    /// All findings, errors first; there is at least one error.
    Findings(Vec<Finding>),
    /// A reload whose values are valid together, but not with the running values of these keys, which a restart changes.
    NeedsRestart(Vec<String>),
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConfigError::File(error) => error.fmt(f),
            ConfigError::Findings(findings) => {
                let errors = findings.iter().filter(|found| found.severity == Severity::Error);
                let lines: Vec<String> = errors.map(Finding::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
            ConfigError::NeedsRestart(keys) => write!(
                f,
                "the configuration is valid, but a running server cannot change to it: other new values depend on {}, \
                 which need a restart",
                keys.join(", ")
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

impl From<FileError> for ConfigError {
    fn from(error: FileError) -> Self {
        ConfigError::File(error)
    }
}

impl Config {
    /// Before any row has spoken.
    fn blank() -> Self {
        Self {
            http_server: HttpServerOptions::default(),
            log: LogOptions::default(),
            engine: EngineOptions::default(),
            client: ClientShellOptions::default(),
            // The server names itself when it knows its port.
            node: fanwire_policy::options::Options {
                name: String::new(),
                ..fanwire_policy::options::Options::default()
            },
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
            prometheus: EndpointOptions::default(),
            centrifugo_metrics: false,
            instrument_http_handlers: false,
            opentelemetry: false,
            swagger: EndpointOptions::default(),
            debug: EndpointOptions::default(),
            demo: EndpointOptions::default(),
            admin: AdminOptions::default(),
            proxies: Proxies::default(),
            events: EventsOptions::default(),
            durable_streams: DurableOptions::default(),
            consumers: BTreeMap::new(),
            shutdown_timeout: Duration::ZERO,
            drain_interval: Duration::ZERO,
            shards: 0,
            pid_file: String::new(),
            recorder_path: String::new(),
            recorder_disk_max: 0,
            development: false,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        apply::apply(&settings::Settings::default(), &mut Vec::new())
    }
}
