//! Options of event proxies: where a client event is decided by the application's backend (docs/proxies.md).
//! In: nothing → out: the options of one proxy, and which proxies there are.
//! Uses values only. Never: calls a backend.
//! Changed here: an option of proxies, which also is a row of the crate `config` (`keys/proxy.rs`).

use std::collections::BTreeMap;
use std::time::Duration;

use fanwire_auth::Secret;
use fanwire_tls::TlsOptions;

/// The event proxies of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// `client.proxy.connect`; `None` unless `enabled`.
    pub connect: Option<ProxyOptions>,
    /// `client.proxy.refresh`; `None` unless `enabled`.
    pub refresh: Option<ProxyOptions>,
    /// `channel.proxy.subscribe`, which namespaces call `default`; so are the next six.
    pub subscribe: ProxyOptions,
    /// `channel.proxy.publish`
    pub publish: ProxyOptions,
    /// `channel.proxy.sub_refresh`
    pub sub_refresh: ProxyOptions,
    /// `channel.proxy.subscribe_stream`
    pub subscribe_stream: ProxyOptions,
    /// `channel.proxy.shared_poll_refresh`
    pub shared_poll_refresh: ProxyOptions,
    /// `channel.proxy.map_publish`
    pub map_publish: ProxyOptions,
    /// `channel.proxy.map_remove`
    pub map_remove: ProxyOptions,
    /// `rpc.proxy`, which rpc namespaces call `default`.
    pub rpc: ProxyOptions,
    /// `proxies[]` by name.
    pub named: BTreeMap<String, ProxyOptions>,
}

impl Proxies {
    /// Every proxy, with its section in the configuration.
    pub fn iter(&self) -> impl Iterator<Item = (String, &ProxyOptions)> {
        let defaults = [
            ("channel.proxy.subscribe", &self.subscribe),
            ("channel.proxy.publish", &self.publish),
            ("channel.proxy.sub_refresh", &self.sub_refresh),
            ("channel.proxy.subscribe_stream", &self.subscribe_stream),
            ("channel.proxy.shared_poll_refresh", &self.shared_poll_refresh),
            ("channel.proxy.map_publish", &self.map_publish),
            ("channel.proxy.map_remove", &self.map_remove),
            ("rpc.proxy", &self.rpc),
        ];
        let connect = self.connect.iter().map(|options| ("client.proxy.connect", options));
        let refresh = self.refresh.iter().map(|options| ("client.proxy.refresh", options));
        let sections = connect.chain(refresh).chain(defaults);
        let named = self.named.iter().map(|(name, one)| (format!("proxies[{name}]"), one));
        sections.map(|(key, options)| (key.to_owned(), options)).chain(named)
    }
}

/// One event proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyOptions {
    /// `http://` or `https://` = HTTP; others = gRPC, as `grpc://host:port`, `dns:///host:port` or `host:port`; "" = not set.
    pub endpoint: String,
    /// Time limit of a call, from the event to the last byte of the answer.
    pub timeout: Duration,
    /// Names of headers of the client's request that calls carry.
    pub http_headers: Vec<String>,
    /// Keys of metadata of gRPC clients that calls carry.
    pub grpc_metadata: Vec<String>,
    /// Names that calls carry from `headers` of the connect command.
    pub emulated_headers: Vec<String>,
    /// Payloads are sent as base64.
    pub binary_encoding: bool,
    /// Calls carry the `meta` of the connection.
    pub include_connection_meta: bool,
    /// Calls at a time; at least 1.
    pub in_flight_max: usize,
    /// Calls that wait for one of these to end; further ones fail at once.
    pub queue_max: usize,
    pub http: HttpProxyOptions,
    pub grpc: GrpcProxyOptions,
}

impl ProxyOptions {
    /// `host:port` of a gRPC service.
    pub fn grpc_authority(&self) -> &str {
        grpc_authority(&self.endpoint)
    }
}

/// The address that gRPC connects to, without the names of resolvers that its libraries for Go write in front.
pub fn grpc_authority(endpoint: &str) -> &str {
    if let Some(url) = endpoint.strip_prefix("grpc://") {
        return url.split(['/', '?', '#']).next().unwrap_or_default();
    }
    let resolved = RESOLVERS.iter().find_map(|resolver| endpoint.strip_prefix(resolver));
    resolved.unwrap_or(endpoint)
}

const RESOLVERS: [&str; 2] = ["dns:///", "passthrough:///"];

/// `*.http`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpProxyOptions {
    pub tls: TlsOptions,
    /// Headers of each call. Variables in their values are replaced already.
    pub static_headers: BTreeMap<String, String>,
    pub status_to_code_transforms: Vec<StatusTransform>,
}

/// `*.grpc`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrpcProxyOptions {
    pub tls: TlsOptions,
    /// Metadata of each call. Variables in their values are replaced already.
    pub static_metadata: BTreeMap<String, String>,
    /// One more key of metadata, "" = none, and its value.
    pub credentials_key: String,
    pub credentials_value: Secret,
    /// Messages are sent as gzip.
    pub compression: bool,
}

/// `*.http.status_to_code_transforms[]`: what a status other than 200 means to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusTransform {
    pub status_code: u16,
    pub to: StatusMeaning,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusMeaning {
    Error { code: u32, message: String, temporary: bool },
    Disconnect { code: u16, reason: String },
}
