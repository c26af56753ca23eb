//! The routes: the real-time endpoints, the API, and the operator's pages.
//! In: the configuration and the parts of a running server → out: one root_service, or one for clients and one for the rest.
//! Uses axum; never contains behaviour of an endpoint beyond a few lines.
//! Changed here: paths and their handlers. The handshake lives in `upgrade`, streams in `response_stream`, API methods in `api`.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{ConnectInfo, Query, Request, State},
    http::{HeaderMap, StatusCode, Uri, header, request},
    response::{Html, IntoResponse, Response},
    routing::{MethodRouter, any, get},
};
use fanwire_api::{Api, http::HttpApi};
use fanwire_node::{Hello, Node, Uplink};
use fanwire_protocol::Encoding;
use fanwire_telemetry::LogThrottle;
use serde::Serialize;

use super::{
    api_service::ApiService,
    debug,
    emulation::{self, EmulationEndpoint},
    plain_request::{PlainEndpoint, PlainRequests},
    response_stream::{self, StreamEndpoint},
    root_service::RootService,
    unidirectional,
    upgrade::{ConnectionSetup, Endpoint},
};
use crate::shard::{RequestOutcome, Transport};
use crate::{config::Config, engine::Engine, metrics::Metrics, readiness::Readiness};
use fanwire_fanout::{Opening, Realtime};

/// Supported subprotocols (client protocol §1).
pub const SUBPROTOCOLS: &[&str] = &[PROTOBUF, Encoding::Json.subprotocol()];
const PROTOBUF: &str = Encoding::Protobuf.subprotocol();

/// The parts of a server that handlers use.
pub struct Parts {
    pub endpoint: Endpoint<Realtime>,
    /// Of unidirectional WebSockets.
    pub uni_websocket: Endpoint<Realtime>,
    pub node: Arc<Node>,
    pub api: Arc<Api>,
    pub metrics: Arc<Metrics>,
    pub engine: Engine,
    pub(crate) readiness: Arc<Readiness>,
    /// A command line that publishes to the demo page's channel.
    pub demo_curl: String,
}

/// The services of the listeners.
pub struct Services {
    /// For clients.
    pub public: RootService,
    /// For backends and operators, if they have a listener of their own (`http_server.internal_port`).
    pub internal: Option<RootService>,
}

pub fn services(config: &Config, parts: Parts) -> Services {
    let api = (!config.http_api.disabled).then(|| api_service(&parts));
    let pages = pages(config, &parts);
    let [realtime, uni_websocket] = [parts.endpoint, parts.uni_websocket].map(|endpoint| {
        let user_id_header = config.client.user_id_http_header.clone();
        Arc::new(RealtimeEndpoint { endpoint, user_id_header })
    });
    let shards = Arc::clone(&realtime.endpoint.shards);
    let parts = ClientParts {
        uni_websocket,
        node: parts.node,
        metrics: parts.metrics,
        demo_curl: parts.demo_curl,
    };
    let ClientRoutes { router: public, plain: endpoints } = clients(config, realtime, parts);
    let plain_requests = PlainRequests { shards, endpoints, local_hosts_only: config.development };
    let root_service = |router, api_service| RootService {
        local_hosts_only: config.development,
        ..with_api(router, api_service)
    };
    let for_clients = |router, api_service| RootService {
        plain_requests: Some(Arc::new(plain_requests)),
        http2_cleartext: config.http_server.h2c_external,
        ..root_service(router, api_service)
    };
    if !config.http_server.is_split() {
        return Services { public: for_clients(public.merge(pages), api), internal: None };
    }
    let (public_api, internal_api) =
        if config.http_api.external { (api, None) } else { (None, api) };
    Services {
        public: for_clients(public, public_api),
        internal: Some(root_service(pages, internal_api)),
    }
}

fn api_service(parts: &Parts) -> ApiService {
    let http_api = HttpApi::new(parts.api.clone());
    ApiService {
        stream_path: http_api.stream_path(),
        http_api,
        shards: parts.endpoint.shards.clone(),
        log_throttle: LogThrottle::default(),
    }
}

/// A root_service with the API, if given. The API's paths are also routes of axum, so that no page can take one and other
/// methods get 405.
fn with_api(router: Router, api_service: Option<ApiService>) -> RootService {
    let Some(api_service) = api_service.map(Arc::new) else {
        return RootService::pages(router);
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

/// The routes of clients.
#[derive(Default)]
pub(super) struct ClientRoutes {
    router: Router,
    /// The endpoints whose plain requests shards read, with their paths.
    plain: Vec<(String, Arc<dyn PlainEndpoint>)>,
}

impl ClientRoutes {
    pub(super) fn add(
        &mut self,
        path: &str,
        route: MethodRouter,
        endpoint: Arc<dyn PlainEndpoint>,
    ) {
        self.router = std::mem::take(&mut self.router).route(path, route);
        self.plain.push((path.to_owned(), endpoint));
    }
}

/// The parts that pages and endpoints for clients use.
struct ClientParts {
    uni_websocket: Arc<RealtimeEndpoint>,
    node: Arc<Node>,
    metrics: Arc<Metrics>,
    demo_curl: String,
}

fn clients(config: &Config, realtime: Arc<RealtimeEndpoint>, parts: ClientParts) -> ClientRoutes {
    let mut routes = ClientRoutes::default();
    unidirectional::add_routes(&mut routes, config, &realtime, parts.uni_websocket);
    if !config.websocket.disabled {
        let websocket = any(websocket).with_state(Arc::clone(&realtime));
        routes.add(&config.websocket.handler_prefix, websocket, Arc::clone(&realtime) as _);
    }
    add_streams(&mut routes, config, realtime, parts.node);
    if config.demo.enabled {
        routes.router = routes.router.merge(demo(config, parts.metrics, &parts.demo_curl));
    }
    routes
}

/// HTTP streams and event streams, and the path of their commands.
fn add_streams(
    routes: &mut ClientRoutes,
    config: &Config,
    realtime: Arc<RealtimeEndpoint>,
    node: Arc<Node>,
) {
    let kinds =
        [(Transport::HttpStream, &config.http_stream), (Transport::EventStream, &config.sse)];
    for (transport, options) in kinds.into_iter().filter(|(_, options)| options.enabled) {
        let endpoint = Arc::new(StreamEndpoint {
            realtime: Arc::clone(&realtime),
            transport,
            body_bytes_max: options.max_request_body_size,
            connect_responses: None,
            compression: options.compression,
        });
        let serve = any(response_stream::serve).with_state(Arc::clone(&endpoint));
        routes.add(&options.handler_prefix, serve, endpoint);
    }
    if config.http_stream.enabled || config.sse.enabled {
        let body_bytes_max = config.emulation.max_request_body_size;
        let endpoint = Arc::new(EmulationEndpoint { realtime, node, body_bytes_max });
        let serve = any(emulation::serve).with_state(Arc::clone(&endpoint));
        routes.add(&config.emulation.handler_prefix, serve, endpoint);
    }
}

fn pages(config: &Config, parts: &Parts) -> Router {
    let mut router = Router::new();
    if config.health.enabled {
        let prefix = config.health.handler_prefix.trim_end_matches('/');
        let ready = (parts.readiness.clone(), parts.engine.clone());
        router = router
            .route(&config.health.handler_prefix, get(health).with_state(parts.engine.clone()))
            .route(&format!("{prefix}/ready"), get(ready_health).with_state(ready))
            .route(&format!("{prefix}/live"), get(live_health).with_state(parts.readiness.clone()));
    }
    if config.prometheus.enabled {
        let metrics = parts.metrics.clone();
        router =
            router.route(&config.prometheus.handler_prefix, get(prometheus).with_state(metrics));
    }
    if config.debug.enabled {
        router = router.merge(debug::routes(&config.debug.handler_prefix));
    }
    if config.swagger.enabled {
        let document = Bytes::from(config.http_api.api.openapi());
        let answer =
            move || async move { ([(header::CONTENT_TYPE, "application/json")], document) };
        router = router.route(&config.swagger.handler_prefix, get(answer));
    }
    router
}

pub(super) struct RealtimeEndpoint {
    pub(super) endpoint: Endpoint<Realtime>,
    pub(super) user_id_header: String,
}

/// Query options of the real-time endpoint (client protocol §1). Unknown ones are ignored; of a repeated one the first counts.
struct ConnectQuery(Vec<(String, String)>);

impl ConnectQuery {
    fn of(uri: &Uri) -> Self {
        Self(Query::try_from_uri(uri).map(|Query(options)| options).unwrap_or_default())
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.0.iter().find(|(given, _)| given == name).is_some_and(|(_, given)| given == value)
    }
}

async fn websocket(State(realtime): State<Arc<RealtimeEndpoint>>, request: Request) -> Response {
    realtime.endpoint.upgrade(request, |head, subprotocol| realtime.websocket(head, subprotocol))
}

impl PlainEndpoint for RealtimeEndpoint {
    fn answer(
        &self,
        head: &request::Parts,
        _body: &[u8],
        peer: SocketAddr,
    ) -> Option<RequestOutcome<Opening>> {
        let setup = |head: &request::Parts, subprotocol| self.websocket(head, subprotocol);
        self.endpoint.answer(head, peer, setup)
    }
}

impl RealtimeEndpoint {
    /// How the session of a WebSocket begins.
    fn websocket(
        &self,
        head: &request::Parts,
        subprotocol: Option<&'static str>,
    ) -> ConnectionSetup<Opening> {
        let query = ConnectQuery::of(&head.uri);
        let is_binary = match subprotocol {
            Some(chosen) => chosen == PROTOBUF,
            None => query.is("format", "protobuf") || query.is("cf_protocol", "protobuf"),
        };
        let hello = Hello {
            encoding: if is_binary { Encoding::Protobuf } else { Encoding::Json },
            frame_ping: query.is("cf_ws_frame_ping_pong", "true"),
            transport: "websocket",
            uplink: Uplink::Connection,
            user: user_of(&head.headers, &self.user_id_header),
        };
        ConnectionSetup { hello: hello.into(), is_binary, message: Vec::new() }
    }
}

/// The user in the trusted header. `None` if it is empty or repeated, because then a client may have sent one of them.
pub(super) fn user_of(headers: &HeaderMap, header: &str) -> Option<String> {
    if header.is_empty() {
        return None;
    }
    let mut values = headers.get_all(header).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    value.to_str().ok().filter(|user| !user.is_empty()).map(str::to_owned)
}

/// 200, or 503 with the reason while calls of the engine fail.
async fn health(State(engine): State<Engine>) -> Response {
    health_response(engine.failure().map(|reason| ("engine", reason)).into_iter().collect())
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

async fn prometheus(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, TYPE)], metrics.text())
}

/// The demo page and the figures it shows.
fn demo(config: &Config, metrics: Arc<Metrics>, curl: &str) -> Router {
    let prefix = config.demo.handler_prefix.as_str();
    let escaped =
        curl.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let page = include_str!("../../assets/demo.html")
        .replace("{{websocket}}", &config.websocket.handler_prefix)
        .replace("{{links}}", &demo_links(config))
        .replace("{{curl}}", &escaped);
    let stats = format!("{}/stats.json", prefix.trim_end_matches('/'));
    Router::new()
        .route(prefix, get(|| async move { Html(page) }))
        .route(&stats, get(demo_stats).with_state(metrics))
}

/// Links to the other pages of the same listener, and to the documentation.
fn demo_links(config: &Config) -> String {
    let is_here = !config.http_server.is_split();
    let pages = [
        (config.prometheus.enabled && is_here, &config.prometheus.handler_prefix, "Metrics"),
        (config.health.enabled && is_here, &config.health.handler_prefix, "Health"),
        (config.swagger.enabled && is_here, &config.swagger.handler_prefix, "Server API"),
    ];
    let pages = pages.iter().filter(|(is_served, ..)| *is_served);
    let pages = pages.map(|(_, path, name)| format!("<a href=\"{path}\">{name}</a>"));
    let docs = format!("<a href=\"{DOCS}\">Documentation</a>");
    std::iter::once(docs).chain(pages).collect::<Vec<_>>().join(" ")
}

const DOCS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/tree/main/docs");

#[derive(Serialize)]
struct DemoStats {
    payload_bytes: u64,
    wire_bytes: u64,
    deliveries: u64,
    connections: usize,
}

async fn demo_stats(State(metrics): State<Arc<Metrics>>) -> Json<DemoStats> {
    let sent = metrics.sent();
    Json(DemoStats {
        payload_bytes: sent.payload_bytes,
        wire_bytes: sent.wire_bytes,
        deliveries: metrics.deliveries(),
        connections: metrics.connections(),
    })
}
