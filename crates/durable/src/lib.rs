//! Durable Streams: the channels of one namespace as append-only streams over HTTP (docs/durable-streams.md).
//! In: PUT, POST, GET, HEAD, DELETE below a prefix → out: responses; publications and histories of channels.
//! Uses `node` for content, `api` for keys. Never: sessions, shards, sockets.
//! Changed here: what a request passes before its method. Rules of streams are in `stream`, methods in `writes` and `reads`.
#![forbid(unsafe_code)]

mod access;
mod content;
mod header;
mod lifetime;
mod live;
mod offset;
mod options;
mod reads;
mod request;
mod response;
mod saved;
mod sse;
mod storage;
mod stream;
mod table;
mod writes;

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::response::Response;
use axum::routing::any;
use fanwire_api::Api;
use fanwire_api::http::HttpApi;
use fanwire_node::{ConnectionInfo, Node};
use http::{Extensions, HeaderMap, Method, Request};
use percent_encoding::percent_decode_str;
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval};

use live::LiveLimits;
pub use options::DurableOptions;
use response::ErrorResponse;
use table::StreamTable;

/// The streams of a server.
pub struct DurableStreams {
    options: DurableOptions,
    /// Text before the name of a stream: in a path, and in the name of its channel.
    path_prefix: String,
    channel_prefix: String,
    node: Arc<Node>,
    http_api: HttpApi,
    table: StreamTable,
    connections: HttpConnections,
    live: LiveLimits,
    /// Blocks or revocations have changed.
    revoked: Notify,
    is_closing: watch::Sender<bool>,
}

/// The facts about requests and their connections that the server around the streams has.
pub struct HttpConnections {
    /// `http` or `https`, for the address of a new stream.
    pub scheme: &'static str,
    /// The client of a request, as if it opened a connection; or a text for who sent it.
    pub client: Box<FindClient>,
    /// Begins a response that lasts, to a request with these extensions: until the result is dropped it counts as a client, and
    /// not as a request, and the end of its peer ends it. `None` when there are too many clients.
    pub begin_long_response: Box<BeginLongResponse>,
}

type FindClient = dyn Fn(&HeaderMap) -> Result<ConnectionInfo, String> + Send + Sync;
type BeginLongResponse = dyn Fn(&Extensions) -> Option<LongResponse> + Send + Sync;

/// Kept while a response lasts.
pub type LongResponse = Box<dyn Any + Send + Sync>;

impl DurableStreams {
    /// The streams of a node, with `api` for the keys of requests; `None` unless `durable_streams.enabled`. Must run inside a
    /// tokio runtime, which then removes expired streams.
    pub fn start(
        options: &DurableOptions,
        node: &Arc<Node>,
        api: &Arc<Api>,
        connections: HttpConnections,
    ) -> Option<Arc<Self>> {
        if !options.enabled {
            return None;
        }
        let options = options.clone();
        let boundary = &node.options().channel.namespace_boundary;
        let streams = Arc::new(Self {
            path_prefix: format!("/{}", options.handler_prefix.trim_matches('/')),
            channel_prefix: format!("{}{boundary}", options.namespace),
            node: node.clone(),
            http_api: HttpApi::new(api.clone()),
            table: StreamTable::new(options.max_streams),
            connections,
            live: LiveLimits::new(options.max_live_reads, options.max_live_reads_per_user),
            revoked: Notify::new(),
            is_closing: watch::Sender::new(false),
            options,
        });
        let observing = Arc::downgrade(&streams);
        node.channels().observe(move |channel| {
            if let Some(streams) = observing.upgrade() {
                streams.notice(channel);
            }
        });
        let expiring = Arc::downgrade(&streams);
        tokio::spawn(async move {
            let mut tick = interval(EXPIRY_INTERVAL);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut known = 0;
            loop {
                tick.tick().await;
                let Some(streams) = expiring.upgrade() else { return };
                streams.remove_expired(storage::now_ms());
                let changes = streams.node.revocations().changes();
                if changes != known {
                    known = changes;
                    streams.revoked.notify_waiters();
                }
            }
        });
        Some(streams)
    }

    /// The routes of all streams.
    pub fn router(self: &Arc<Self>) -> Router {
        let path = format!("{}/{{*name}}", self.path_prefix.trim_end_matches('/'));
        Router::new().route(&path, any(respond).with_state(self.clone()))
    }

    /// Answers waiting reads and ends responses in SSE when `stop` becomes true, because the process shuts down.
    pub fn close_with(&self, mut stop: watch::Receiver<bool>) {
        let is_closing = self.is_closing.clone();
        tokio::spawn(async move {
            // It also ends without a sender, with the process.
            let _ = stop.wait_for(|stop| *stop).await;
            is_closing.send_replace(true);
        });
    }

    async fn answer(self: &Arc<Self>, request: Request<Body>) -> Result<Response, ErrorResponse> {
        if *self.is_closing.borrow() {
            return Err(ErrorResponse::new(503, "the server stops"));
        }
        let channel = self.channel(request.uri().path())?;
        let (head, body) = request.into_parts();
        let request = Request::from_parts(head, ());
        let permit = self.authorize(&request, &channel).await?;
        let (head, ()) = request.into_parts();
        match head.method {
            Method::PUT => self.put(&channel, &head, body).await,
            Method::POST => self.post(&channel, &head, body).await,
            Method::GET => self.get(&channel, &head, permit).await,
            Method::HEAD => self.head(&channel),
            Method::DELETE => self.delete(&channel),
            _ => Err(ErrorResponse::new(405, "a stream has no such method")
                .with(http::header::ALLOW, response::METHODS)),
        }
    }

    /// The channel of a path.
    fn channel(&self, path: &str) -> Result<String, ErrorResponse> {
        let name = path.strip_prefix(self.path_prefix.trim_end_matches('/')).unwrap_or(path);
        let name = percent_decode_str(name.trim_start_matches('/')).decode_utf8();
        let name =
            name.map_err(|_| response::bad_request("the name of the stream is not UTF-8"))?;
        if name.split('/').next() == Some(RESERVED) {
            return Err(ErrorResponse::new(404, "this server has no subscriptions of streams"));
        }
        let channel = format!("{}{name}", self.channel_prefix);
        if channel.len() > self.node.options().channel.max_length {
            return Err(response::bad_request("the name is longer than channel.max_length"));
        }
        self.node.channels().check(&channel).map_err(ErrorResponse::of_channel)?;
        Ok(channel)
    }
}

async fn respond(State(streams): State<Arc<DurableStreams>>, request: Request<Body>) -> Response {
    if request.method() == Method::OPTIONS {
        return response::preflight(request.headers().get("access-control-request-headers"));
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0);
    streams.answer(request).await.unwrap_or_else(|refusal| {
        if let Some(peer) = peer.filter(|_| refusal.is_mistake()) {
            let ErrorResponse { status, text, .. } = &refusal;
            streams.http_api.record_refused(*status, "durable_streams", text, peer);
        }
        refusal.into_response()
    })
}

/// How often expired streams are looked for, which a request finds by itself, and revocations of readers that wait.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(200);
/// First part of names that the protocol keeps for itself.
const RESERVED: &str = "__ds";

#[cfg(test)]
mod tests;
