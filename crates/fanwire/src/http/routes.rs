//! The routes of the listeners: those of clients, the API, and the operator's pages.
//! In: the configuration and the parts of a running server → out: one root_service, or one for clients and one for the rest.
//! Uses axum; never contains behaviour of an endpoint beyond a few lines.
//! Changed here: paths of pages and their handlers. The endpoints of clients live in `edge`, API methods in `api`.

use std::{collections::BTreeMap, future::ready, net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{Html, IntoResponse, Response},
    routing::{any, get},
};
use fanwire_api::{Api, http::HttpApi};
use fanwire_config::{Config, example};
use fanwire_consumers::{ConsumerMonitor, ConsumerStats};
use fanwire_durable::{DurableStreams, HttpConnections};
use fanwire_edge::{
    ClientParts, ClientRoutes, HttpReaders, Networks, PlainRequests, TrustedProxies, UniGrpcService,
};
use fanwire_fanout::Shards;
use fanwire_metrics::{RequestCounts, ServerMetrics};
use fanwire_proxy::{CircuitState, EventProxies};
use fanwire_telemetry::{LogThrottle, TextFormat};
use tokio::sync::watch;

use super::{
    admin,
    api_service::{ApiService, no_page},
    plain_publish::PlainPublish,
    root_service::RootService,
};
use crate::{engine::Engine, readiness::Readiness, stats::ServerStats};

/// The parts of a server that handlers use.
pub(crate) struct Parts {
    pub clients: ClientParts,
    pub shards: Arc<Shards>,
    pub api: Arc<Api>,
    pub metrics: Arc<ServerMetrics>,
    pub health: HealthParts,
    pub(crate) readiness: Arc<Readiness>,
    /// A command line that publishes to the demo page's channel.
    pub demo_curl: String,
}

/// The services of the listeners.
pub(crate) struct Services {
    /// The service for clients.
    pub public: RootService,
    /// The requests to the public listener that shards serve.
    pub plain_requests: Arc<PlainRequests>,
    /// The service for backends and operators, if they have a listener of their own (`http_server.internal_port`).
    pub internal: Option<RootService>,
    /// The service for unidirectional gRPC, if it has a listener.
    pub uni_grpc: Option<UniGrpcService>,
    pub durable: Option<Arc<DurableStreams>>,
}

/// The services; `stopped` becomes true when the server stops.
pub(crate) fn services(config: &Config, parts: Parts, stopped: watch::Receiver<bool>) -> Services {
    let api = (!config.http_api.disabled).then(|| Arc::new(api_service(&parts)));
    let mut pages = pages(config, &parts);
    let local_hosts_only = config.development;
    let node = Arc::clone(&parts.clients.node);
    let ClientRoutes { mut router, plain: mut endpoints, uni_grpc, readers } =
        ClientRoutes::new(&config.client_endpoints(), parts.clients);
    let connections = stream_connections(config, readers);
    let durable = DurableStreams::start(&config.durable_streams, &node, &parts.api, connections);
    let requests = parts.metrics.requests();
    if config.serves_demo() {
        router = router.merge(demo(config, parts.metrics, &parts.demo_curl));
    }
    if let Some(durable) = &durable {
        durable.close_with(stopped);
        router = router.merge(durable.router());
    }
    let has_public_api = !config.http_server.is_split() || config.http_api.external;
    let public_api = api.as_ref().filter(|_| has_public_api);
    if let (Some(api), Engine::Memory(_)) = (public_api, &parts.health.engine) {
        let publish = PlainPublish { api: api.clone(), requests: requests.clone() };
        endpoints.push((api.http_api.publish_path(), Arc::new(publish)));
    }
    let plain_requests = Arc::new(PlainRequests {
        shards: parts.shards,
        endpoints,
        stream_path: public_api.map(|api| api.stream_path.clone()),
        local_hosts_only,
        trusted_proxies: trusted_proxies(config),
    });
    if config.admin.enabled {
        let admin = admin::routes(&config.admin, HttpApi::new(parts.api));
        let is_public = config.admin.external || !config.http_server.is_split();
        let listener = if is_public { &mut router } else { &mut pages };
        *listener = std::mem::take(listener).merge(admin);
    }
    let root_service = |router, api| RootService {
        local_hosts_only,
        requests: requests.clone(),
        ..with_api(router, api)
    };
    if !config.http_server.is_split() {
        let public = root_service(router.merge(pages), api);
        return Services { public, plain_requests, internal: None, uni_grpc, durable };
    }
    let (public_api, internal_api) =
        if config.http_api.external { (api, None) } else { (None, api) };
    Services {
        public: root_service(router, public_api),
        plain_requests,
        internal: Some(root_service(pages, internal_api)),
        uni_grpc,
        durable,
    }
}

/// The command line on the demo page. That page is public, so it contains the API key in development mode only.
pub(crate) fn demo_curl(config: &Config, address: SocketAddr) -> String {
    let line = example::curl(config, address, example::DEMO);
    match &*config.http_api.key {
        key if config.development || key.is_empty() => line,
        key => line.replace(key, "<http_api.key>"),
    }
}

/// Clients and connections of requests to Durable Streams.
fn stream_connections(config: &Config, readers: HttpReaders) -> HttpConnections {
    let readers = Arc::new(readers);
    let counting = Arc::clone(&readers);
    HttpConnections {
        scheme: if config.http_server.tls.enabled { "https" } else { "http" },
        client: Box::new(move |headers| readers.client(headers, "durable_streams")),
        begin_long_response: Box::new(move |extensions| counting.begin_long_response(extensions)),
    }
}

/// Counts of requests by the paths that have a handler, if they are counted.
pub(crate) fn request_counts(config: &Config) -> Option<Arc<RequestCounts>> {
    let admin = format!("{}/admin", config.admin.handler_prefix.trim_end_matches('/'));
    let paths = [
        &config.websocket.handler_prefix,
        &config.http_stream.handler_prefix,
        &config.sse.handler_prefix,
        &config.uni_websocket.handler_prefix,
        &config.uni_http_stream.handler_prefix,
        &config.uni_sse.handler_prefix,
        &config.http_api.handler_prefix,
        &config.health.handler_prefix,
        &config.prometheus.handler_prefix,
        &config.swagger.handler_prefix,
        &config.debug.handler_prefix,
        &config.demo.handler_prefix,
        &config.emulation.handler_prefix,
        &config.durable_streams.handler_prefix,
        &admin,
    ];
    let counts = || RequestCounts::new(paths.map(Clone::clone));
    config.prometheus.instrument_http_handlers.then(counts).map(Arc::new)
}

/// The proxies that say who a client is. `check` of the configuration has refused what is no network.
pub(crate) fn trusted_proxies(config: &Config) -> TrustedProxies {
    let options = &config.http_server;
    TrustedProxies {
        networks: Networks::parse(&options.trusted_proxies).unwrap_or_default(),
        proxy_protocol: options.proxy_protocol,
    }
}

fn api_service(parts: &Parts) -> ApiService {
    let http_api = HttpApi::new(parts.api.clone());
    ApiService {
        stream_path: http_api.stream_path(),
        http_api,
        shards: parts.shards.clone(),
        log_throttle: LogThrottle::default(),
    }
}

/// A root_service with the API, if given. Other paths get 404 (RFC 6455 §4.2.2d). The API's paths are also routes of axum, so that no page can take one and other
/// methods get 405.
fn with_api(router: Router, api_service: Option<Arc<ApiService>>) -> RootService {
    let Some(api_service) = api_service else {
        return RootService::pages(
            router.fallback(|method: Method, uri: Uri| ready(no_page(&method, uri.path()))),
        );
    };
    let refuse = any(refuse_route).with_state(api_service.clone());
    let router = api_service.http_api.paths().fold(router, |router, path| {
        // axum needs braces doubled to match them literally.
        router.route(&path.replace('{', "{{").replace('}', "}}"), refuse.clone())
    });
    let router = router.fallback_service(refuse);
    RootService { api_service: Some(api_service), ..RootService::pages(router) }
}

async fn refuse_route(
    State(api_service): State<Arc<ApiService>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    api_service.refuse_route(request.method(), request.uri().path(), peer)
}

fn pages(config: &Config, parts: &Parts) -> Router {
    let mut router = Router::new();
    if config.health.enabled {
        let prefix = config.health.handler_prefix.trim_end_matches('/');
        let state = parts.health.clone();
        let ready = (parts.readiness.clone(), parts.health.engine.clone());
        router = router
            .route(&config.health.handler_prefix, get(health).with_state(state))
            .route(&format!("{prefix}/ready"), get(ready_health).with_state(ready))
            .route(&format!("{prefix}/live"), get(live_health).with_state(parts.readiness.clone()));
    }
    if config.prometheus.enabled {
        let metrics = parts.metrics.clone();
        router =
            router.route(&config.prometheus.handler_prefix, get(prometheus).with_state(metrics));
    }
    if config.debug.enabled {
        router = router.merge(fanwire_profile::routes(&config.debug.handler_prefix));
    }
    if config.swagger.enabled {
        let document = Bytes::from(config.api_options().openapi());
        let answer =
            move || async move { ([(header::CONTENT_TYPE, "application/json")], document) };
        router = router.route(&config.swagger.handler_prefix, get(answer));
    }
    router
}

/// The parts of a server that health reports on.
#[derive(Clone)]
pub(crate) struct HealthParts {
    pub engine: Engine,
    pub proxies: Option<EventProxies>,
    pub consumers: Option<ConsumerMonitor>,
}

/// 200, or 503 with the reason while calls of the engine fail. A backend of an event proxy that is down, and a consumer that
/// has lost its queue, are named and do not change the status: clients are served.
async fn health(State(parts): State<HealthParts>) -> Response {
    let HealthParts { engine, proxies, consumers } = parts;
    let failed = engine.failure().map(|reason| ("engine", reason));
    let status = match failed {
        Some(_) => StatusCode::SERVICE_UNAVAILABLE,
        None => StatusCode::OK,
    };
    let stats = proxies.map(|proxies| proxies.stats()).unwrap_or_default();
    let down: Vec<&str> = stats
        .iter()
        .filter(|proxy| proxy.circuit != CircuitState::Closed)
        .map(|proxy| &*proxy.key)
        .collect();
    let down = (!down.is_empty()).then(|| ("proxies", format!("down: {}", down.join(", "))));
    let consumers = consumers.map(|consumers| consumers.stats()).unwrap_or_default();
    let lost = |one: ConsumerStats| Some(format!("{}: {}", one.name, one.failure?));
    let lost: Vec<String> = consumers.into_iter().filter_map(lost).collect();
    let lost = (!lost.is_empty()).then(|| ("consumers", lost.join("; ")));
    let reasons: BTreeMap<_, _> = failed.into_iter().chain(down).chain(lost).collect();
    (status, Json(reasons)).into_response()
}

/// 200, or 503 with what keeps new clients away: a shutdown, the engine, a shard that does not turn.
async fn ready_health(State((readiness, engine)): State<(Arc<Readiness>, Engine)>) -> Response {
    health_response(readiness.not_ready(engine.failure()))
}

/// 200, or 503 when only a restart helps.
async fn live_health(State(readiness): State<Arc<Readiness>>) -> Response {
    health_response(readiness.not_live())
}

fn health_response(reasons: BTreeMap<&'static str, String>) -> Response {
    let is_healthy = reasons.is_empty();
    let status = if is_healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(reasons)).into_response()
}

async fn prometheus(
    State(metrics): State<Arc<ServerMetrics>>,
    headers: HeaderMap,
) -> impl IntoResponse {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let format = TextFormat::accepted(accept.unwrap_or_default());
    ([(header::CONTENT_TYPE, format.content_type())], metrics.text(format))
}

/// The demo page and the figures it shows.
fn demo(config: &Config, metrics: Arc<ServerMetrics>, curl: &str) -> Router {
    let prefix = config.demo.handler_prefix.as_str();
    let escaped =
        curl.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let page = include_str!("../../assets/demo.html")
        .replace("{{websocket}}", &config.websocket.handler_prefix)
        .replace("{{links}}", &demo_links(config))
        .replace("{{curl}}", &escaped);
    let stats = format!("{}/stats.json", prefix.trim_end_matches('/'));
    let page: Arc<str> = page.into();
    let show = move || {
        let page = Arc::clone(&page);
        async move { demo_page(&page) }
    };
    Router::new().route(prefix, get(show)).route(&stats, get(demo_stats).with_state(metrics))
}

/// The page, whose own script alone may run.
fn demo_page(page: &str) -> impl IntoResponse + use<> {
    let nonce = format!("{:032x}", rand::random::<u128>());
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:; \
         connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let page = page.replace("<script>", &format!("<script nonce=\"{nonce}\">"));
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(page))
}

/// Links to the other pages of the same listener, and to the documentation.
fn demo_links(config: &Config) -> String {
    let is_here = !config.http_server.is_split();
    let pages = [
        (config.prometheus.enabled && is_here, &config.prometheus.handler_prefix, "Metrics"),
        (config.health.enabled && is_here, &config.health.handler_prefix, "Health"),
        (config.swagger.enabled && is_here, &config.swagger.handler_prefix, "Server API"),
    ]
    .into_iter()
    .filter(|(is_served, ..)| *is_served)
    .map(|(_, path, name)| format!("<a href=\"{path}\">{name}</a>"));
    let docs = format!("<a href=\"{DOCS}\">Documentation</a>");
    std::iter::once(docs).chain(pages).collect::<Vec<_>>().join(" ")
}

const DOCS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/tree/main/docs");

async fn demo_stats(State(metrics): State<Arc<ServerMetrics>>) -> Json<ServerStats> {
    Json(ServerStats::of(&metrics))
}
