//! Event proxies: the application's backend decides about events of clients, over HTTP or gRPC (docs/proxies.md).
//! In: events from the node's hooks → out: calls to backends, at most so many at a time; their answers as decisions.
//! Uses the HTTP client of `tls`, tonic's codec. Never: sessions, channels; a shard never waits for a call.
//! Changed here: which proxies there are. `hooks` turns events into calls, `answer` answers into decisions, `limiter` and
//! `circuit` bound the calls, `http` and `grpc` send them.
#![forbid(unsafe_code)]

mod answer;
mod backend;
mod circuit;
mod event;
mod grpc;
mod hooks;
mod http;
mod limiter;
mod options;
mod proxy;
mod stats;
mod streams;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fanwire_node::Node;
use fanwire_node::options::ProxyChoice;
use fanwire_tls::{Http2, PoolOptions, TlsError};
use tokio::runtime::Handle;

pub use circuit::CircuitState;
pub use event::EventKind;
pub use options::{
    GrpcProxyOptions, HttpProxyOptions, Proxies, ProxyOptions, StatusMeaning, StatusTransform,
    grpc_authority,
};
use proxy::Proxy;
pub use stats::{CallStats, DURATION_BOUNDS_US, ProxyStats};
use streams::OpenStreams;

/// The event proxies of a server.
#[derive(Clone)]
pub struct EventProxies(Arc<ProxyTable>);

struct ProxyTable {
    runtime: Handle,
    connect: Option<Arc<Proxy>>,
    refresh: Option<Arc<Proxy>>,
    /// Subscribe proxies by the names that namespaces have for them; the next six are alike.
    subscribe: ProxiesByName,
    publish: ProxiesByName,
    sub_refresh: ProxiesByName,
    rpc: ProxiesByName,
    shared_poll: ProxiesByName,
    map_publish: ProxiesByName,
    map_remove: ProxiesByName,
    /// Proxies of subscription streams by name.
    streams_by_name: ProxiesByName,
    streams: Arc<OpenStreams>,
}

/// Proxies of one kind of event.
type ProxiesByName = BTreeMap<Arc<str>, Arc<Proxy>>;

/// A proxy that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// The endpoint of this proxy is no URL.
    #[error("the endpoint of the event proxy {proxy} is no URL")]
    Endpoint { proxy: String },
    /// TLS options of this proxy.
    #[error("TLS of the event proxy {proxy}: {source}")]
    Tls { proxy: String, source: TlsError },
    /// A header or a key of metadata of this proxy has a form that no request may have.
    #[error("the event proxy {proxy} has a static header {header:?}, which no request may have")]
    Header { proxy: String, header: String },
}

impl EventProxies {
    /// Makes the proxies that have an endpoint; `None` if there are none. They connect when they are called first.
    ///
    /// # Errors
    /// See [`ProxyError`].
    pub fn new(options: &Proxies, runtime: Handle) -> Result<Option<Self>, ProxyError> {
        let one = |key: &str, name: &str, options: &ProxyOptions| {
            let has_endpoint = !options.endpoint.is_empty();
            has_endpoint.then(|| Proxy::new(key, name, options)).transpose()
        };
        let connection = |key, options: &Option<ProxyOptions>| {
            let options = options.as_ref();
            let made = options.map(|options| one(key, ProxyChoice::DEFAULT, options));
            Ok(made.transpose()?.flatten())
        };
        let mut named = ProxiesByName::new();
        for (name, options) in &options.named {
            let proxy = one(&format!("proxies[{name}]"), name, options)?;
            named.extend(proxy.map(|proxy| (name.as_str().into(), proxy)));
        }
        let with_default = |key, options| {
            let default = one(key, ProxyChoice::DEFAULT, options)?
                .map(|proxy| (ProxyChoice::DEFAULT.into(), proxy));
            Ok(named.clone().into_iter().chain(default).collect())
        };
        let table = ProxyTable {
            runtime,
            connect: connection("client.proxy.connect", &options.connect)?,
            refresh: connection("client.proxy.refresh", &options.refresh)?,
            subscribe: with_default("channel.proxy.subscribe", &options.subscribe)?,
            publish: with_default("channel.proxy.publish", &options.publish)?,
            sub_refresh: with_default("channel.proxy.sub_refresh", &options.sub_refresh)?,
            rpc: with_default("rpc.proxy", &options.rpc)?,
            shared_poll: with_default(
                "channel.proxy.shared_poll_refresh",
                &options.shared_poll_refresh,
            )?,
            map_publish: with_default("channel.proxy.map_publish", &options.map_publish)?,
            map_remove: with_default("channel.proxy.map_remove", &options.map_remove)?,
            streams_by_name: with_default(
                "channel.proxy.subscribe_stream",
                &options.subscribe_stream,
            )?,
            streams: Arc::default(),
        };
        let is_empty = table.all().next().is_none();
        Ok((!is_empty).then(|| Self(Arc::new(table))))
    }

    /// The error of [`new`](Self::new), which needs no runtime.
    pub fn check(options: &Proxies) -> Option<ProxyError> {
        let fault = |(key, options): (String, &ProxyOptions)| {
            let has_endpoint = !options.endpoint.is_empty();
            has_endpoint.then(|| Proxy::new(&key, ProxyChoice::DEFAULT, options).err()).flatten()
        };
        options.iter().find_map(fault)
    }

    /// Gives subscription streams the node to which they send; before the first connection.
    pub fn attach(&self, node: &Arc<Node>) {
        self.0.streams.attach(node);
    }

    /// The numbers of each proxy that was called, or failed to be.
    pub fn stats(&self) -> Vec<ProxyStats> {
        self.0.all().map(|proxy| proxy.stats()).collect()
    }
}

impl ProxyTable {
    /// Every proxy once.
    fn all(&self) -> impl Iterator<Item = &Arc<Proxy>> {
        let of_clients =
            [&self.subscribe, &self.publish, &self.sub_refresh, &self.rpc, &self.streams_by_name];
        let by_name =
            of_clients.into_iter().chain([&self.shared_poll, &self.map_publish, &self.map_remove]);
        let defaults = by_name.filter_map(|map| map.get(ProxyChoice::DEFAULT));
        let named = self.rpc.iter().filter(|(name, _)| &***name != ProxyChoice::DEFAULT);
        let of_connections = [&self.connect, &self.refresh].into_iter().flatten();
        of_connections.chain(defaults).chain(named.map(|(_, proxy)| proxy))
    }
}

impl fmt::Debug for EventProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventProxies")
    }
}

/// Connections of a proxy: as many idle ones as Centrifugo keeps, for a shorter time than Node's servers keep theirs (5 s), because
/// a request that meets the close of its connection fails.
const POOL: PoolOptions = PoolOptions {
    idle_per_host_max: 255,
    idle_timeout: Duration::from_secs(4),
    http2: Http2::Negotiated,
};

#[cfg(test)]
mod tests;
