//! What is served where: the real-time endpoint, the API, and the operator's pages.
//! In: the configuration and the parts of a running server → out: one router, or one for clients and one for the others.
//! Uses axum; never contains behaviour of an endpoint beyond a few lines.
//! Changed here: paths, and who sits behind them. The handshake lives in `upgrade`, API methods in `api`.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Query, Request, State},
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::{any, get, post},
};
use fanwire_api::{
    Api,
    http::{Face, Place},
};
use fanwire_node::Hello;
use fanwire_protocol::Encoding;
use serde::Serialize;

use super::upgrade::{Endpoint, Welcome};
use crate::{
    config::Config,
    engine::Engine,
    metrics::Metrics,
    realtime::{Realtime, Shards},
    shard::INBOX_BYTES_MAX,
};

/// Subprotocols in the words of the client protocol (§1).
pub const SUBPROTOCOLS: &[&str] = &[PROTOBUF, "centrifuge-json"];
const PROTOBUF: &str = "centrifuge-protobuf";

/// The parts that requests reach.
pub struct Parts {
    pub endpoint: Endpoint<Realtime>,
    pub api: Arc<Api>,
    pub metrics: Arc<Metrics>,
    pub engine: Engine,
    /// A ready command line that publishes to the demo page's channel.
    pub demo_curl: String,
}

/// What is served, by who may reach it.
pub struct Routers {
    /// For clients.
    pub public: Router,
    /// For backends and operators, where they have a listener of their own (`http_server.internal_port`).
    pub internal: Option<Router>,
}

pub fn routers(config: &Config, parts: Parts) -> Routers {
    let api = api(config, &parts);
    let pages = pages(config, &parts);
    let public = clients(config, parts);
    match config.http_server.is_split() {
        false => Routers { public: public.merge(api).merge(pages), internal: None },
        true if config.http_api.external => {
            Routers { public: public.merge(api), internal: Some(pages) }
        }
        true => Routers { public, internal: Some(api.merge(pages)) },
    }
}

fn clients(config: &Config, parts: Parts) -> Router {
    let mut router = Router::new();
    if !config.websocket.disabled {
        let endpoint = Arc::new(RealtimeEndpoint {
            endpoint: parts.endpoint,
            user_id_header: config.client.user_id_http_header.clone(),
        });
        router =
            router.route(&config.websocket.handler_prefix, any(websocket).with_state(endpoint));
    }
    if config.demo.enabled {
        router = router.merge(demo(config, parts.metrics, &parts.demo_curl));
    }
    router
}

fn api(config: &Config, parts: &Parts) -> Router {
    let mut router = Router::new();
    if config.http_api.disabled {
        return router;
    }
    let face = Arc::new(Face::new(parts.api.clone()));
    for (path, place) in face.paths() {
        let (face, shards) = (face.clone(), parts.endpoint.shards.clone());
        router = router.route(&path, post(move |request| patiently(face, shards, place, request)));
    }
    router
}

fn pages(config: &Config, parts: &Parts) -> Router {
    let mut router = Router::new();
    if config.health.enabled {
        let health = get(health).with_state(parts.engine.clone());
        router = router.route(&config.health.handler_prefix, health);
    }
    if config.prometheus.enabled {
        let metrics = parts.metrics.clone();
        router =
            router.route(&config.prometheus.handler_prefix, get(prometheus).with_state(metrics));
    }
    if config.swagger.enabled {
        let document = Bytes::from(config.http_api.api.openapi());
        let answer =
            move || async move { ([(header::CONTENT_TYPE, "application/json")], document) };
        router = router.route(&config.swagger.handler_prefix, get(answer));
    }
    router
}

struct RealtimeEndpoint {
    endpoint: Endpoint<Realtime>,
    user_id_header: String,
}

/// Query options of the real-time endpoint (client protocol §1); unknown ones are ignored, of one given twice the first counts.
struct ConnectQuery(Vec<(String, String)>);

impl ConnectQuery {
    fn of(request: &Request) -> Self {
        Self(Query::try_from_uri(request.uri()).map(|Query(options)| options).unwrap_or_default())
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.0.iter().find(|(given, _)| given == name).is_some_and(|(_, given)| given == value)
    }
}

async fn websocket(State(realtime): State<Arc<RealtimeEndpoint>>, request: Request) -> Response {
    let query = ConnectQuery::of(&request);
    realtime.endpoint.upgrade(request, |request, subprotocol| {
        let is_binary = match subprotocol {
            Some(chosen) => chosen == PROTOBUF,
            None => query.is("format", "protobuf") || query.is("cf_protocol", "protobuf"),
        };
        let hello = Hello {
            encoding: if is_binary { Encoding::Protobuf } else { Encoding::Json },
            frame_ping: query.is("cf_ws_frame_ping_pong", "true"),
            transport: "websocket",
            user: user_of(request, &realtime.user_id_header),
        };
        Welcome { hello, is_binary }
    })
}

fn user_of(request: &Request<Body>, header: &str) -> Option<String> {
    if header.is_empty() {
        return None;
    }
    request.headers().get(header)?.to_str().ok().map(str::to_owned)
}

/// 200 and nothing, or 503 and why: then calls fail that need the engine.
async fn health(State(engine): State<Engine>) -> Response {
    match engine.trouble() {
        None => Json(serde_json::json!({})).into_response(),
        Some(trouble) => {
            let body = Json(serde_json::json!({ "engine": trouble }));
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
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
        .replace("{{curl}}", &escaped);
    let stats = format!("{}/stats.json", prefix.trim_end_matches('/'));
    Router::new()
        .route(prefix, get(|| async move { Html(page) }))
        .route(&stats, get(demo_stats).with_state(metrics))
}

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
        deliveries: sent.messages,
        connections: metrics.connections(),
    })
}

/// Back-pressure: a publisher that is faster than the shards waits here instead of filling their inboxes. And an end to
/// requests whose body does not come, so that a slow peer holds a task for a bounded time only. A layer of the router would
/// cost each call as much as all that is done for it in memory.
async fn patiently(
    face: Arc<Face>,
    shards: Arc<Shards>,
    place: Place,
    request: Request,
) -> Response {
    let answer = async {
        while shards.backlog_bytes() > INBOX_BYTES_MAX {
            tokio::time::sleep(BACKLOG_PAUSE).await;
        }
        face.answer(place, request).await
    };
    match tokio::time::timeout(REQUEST_TIMEOUT, answer).await {
        Ok(response) => response,
        Err(_) => {
            (StatusCode::REQUEST_TIMEOUT, "the request did not come in time\n").into_response()
        }
    }
}

/// Read timeout of a whole API request (Centrifugo: 30 s).
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A shard drains its whole inbox in a few milliseconds.
const BACKLOG_PAUSE: Duration = Duration::from_millis(1);
