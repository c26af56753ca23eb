//! The test harness: an API and its router over a node with one shard, whose connections are records in memory.
//! In: requests and client commands as text. Out: answers, and the messages of each connection.
//! Uses axum's router as a service (no sockets) and the node's hub with an `Outbox` that records.
//! The options that all tests share are set here.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use fanwire_api::http::HttpApi;
use fanwire_api::{Api, ApiOptions};
use fanwire_node::options::{
    AreaOptions, DataFormat, MapMode, MapOptions, Namespace, NamespacePollOptions, Options,
    SubscriptionType,
};
use fanwire_node::protocol::{Disconnect, Encoding};
use fanwire_node::shared_poll::PollMode;
use fanwire_node::{
    Broadcast, CommandSource, ConnectionInfo, ConnectionKey, DeltaMode, Hub, Inbox, Node, Notice,
    Outbox, SubscriptionIndex,
};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

pub(crate) const KEY: &str = "secret";

pub(crate) const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4000);

pub(crate) struct Harness {
    pub(crate) api: Arc<Api>,
    router: Router,
    shard: Mutex<Shard>,
    notices: Arc<Notices>,
}

/// The only shard, with the messages of its connections.
struct Shard {
    hub: Hub,
    messages: Messages,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    pub(crate) body: String,
}

impl Answer {
    /// The text of a 400 for a malformed body; panics for any other answer.
    pub(crate) fn malformed(&self) -> &str {
        let is_plain = self.content_type == "text/plain; charset=utf-8";
        assert!(self.status == StatusCode::BAD_REQUEST && is_plain, "{self:?}");
        let text = self.body.strip_prefix("Bad Request: ").expect("a malformed body");
        assert!(!text.is_empty() && text.len() < 400, "{self:?}");
        text
    }
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with(ApiOptions { key: KEY.into(), ..ApiOptions::default() })
    }

    pub(crate) fn with(options: ApiOptions) -> Self {
        Self::around(Node::new(node_options()).expect("the options are valid"), options)
    }

    /// A harness with the given node.
    pub(crate) fn around(node: Arc<Node>, options: ApiOptions) -> Self {
        let notices = Arc::new(Notices::default());
        let shard = node.attach(Arc::<Notices>::clone(&notices));
        let shard =
            Shard { hub: Hub::new(Arc::clone(&node), shard), messages: Messages::default() };
        let api = Arc::new(Api::new(node, options));
        let http_api = Arc::new(HttpApi::new(Arc::clone(&api)));
        let paths = http_api.paths().filter(|path| *path != http_api.stream_path());
        let router = paths.fold(Router::new(), |router, path| {
            let route = http_api.route(&path).expect("a path of the API");
            let http_api = Arc::clone(&http_api);
            let answer = async move |request: Request<Body>| {
                let answer = match http_api.read(route, request, PEER).await {
                    Ok(asked) => http_api.answer(asked).await,
                    Err(refused) => refused,
                };
                answer.map(Body::from)
            };
            router.route(&path, post(answer))
        });
        Self { api, router, shard: Mutex::new(shard), notices }
    }

    /// A POST with the right key.
    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Answer {
        self.send(request(path).header("X-API-Key", KEY).body(body.into()).expect("valid")).await
    }

    /// Sends a request as [`send_whole`](Self::send_whole) does, and removes the causes of errors: only their own tests compare them.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let answer = self.send_whole(request).await;
        Answer { body: without_causes(&answer.body), ..answer }
    }

    /// Runs the shard until the answer is ready.
    pub(crate) async fn send_whole(&self, request: Request<Body>) -> Answer {
        let mut response = pin!(self.router.clone().oneshot(request));
        let response = poll_fn(|context| {
            let polled = response.as_mut().poll(context);
            if polled.is_pending() {
                self.deliver_pushes();
            }
            polled
        });
        let response = response.await.expect("routers do not fail");
        let status = response.status();
        let content_type = response.headers().get("content-type");
        let content_type = content_type.map_or("", |value| value.to_str().expect("ASCII"));
        let content_type = content_type.to_owned();
        let bytes = response.into_body().collect().await.expect("bodies in memory").to_bytes();
        let body = String::from_utf8(bytes.to_vec()).expect("replies are text");
        Answer { status, content_type, body }
    }

    /// A connected client of `user` that subscribed to `channels`; returns its client id.
    pub(crate) fn subscriber(&mut self, index: u32, user: &str, channels: &[&str]) -> String {
        let now = Instant::now();
        let key = ConnectionKey { index, generation: 0 };
        let user = (!user.is_empty()).then(|| user.to_owned());
        let hello = ConnectionInfo {
            encoding: Encoding::Json,
            frame_ping: false,
            transport: "websocket",
            command_source: CommandSource::Connection,
            user,
            last_event_id: None,
            headers: Vec::new(),
        };
        let Shard { hub, messages } = self.shard.get_mut().expect("no panics");
        hub.open(key, hello, now);
        hub.receive(key, br#"{"id":1,"connect":{}}"#, now, messages);
        for channel in channels {
            let subscribe = format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}"}}}}"#);
            hub.receive(key, subscribe.as_bytes(), now, messages);
        }
        let replies = messages.take(index);
        assert_eq!(replies.len(), 1 + channels.len(), "{replies:?}");
        assert!(!replies.iter().any(|reply| reply.contains("error")), "{replies:?}");
        let (_, id) = replies[0].split_once(r#""client":""#).expect("a connect reply");
        id[..36].to_owned()
    }

    /// Sends a command of a connection; returns the messages it receives at once.
    pub(crate) fn command(&mut self, index: u32, command: &str) -> Vec<String> {
        let key = ConnectionKey { index, generation: 0 };
        let Shard { hub, messages } = self.shard.get_mut().expect("no panics");
        hub.receive(key, command.as_bytes(), Instant::now(), messages);
        messages.take(index)
    }

    /// Opens a connection that has not sent a command.
    pub(crate) fn open(&mut self, index: u32) {
        let key = ConnectionKey { index, generation: 0 };
        let transport = "websocket";
        let hello = ConnectionInfo {
            encoding: Encoding::Json,
            frame_ping: false,
            transport,
            command_source: CommandSource::Connection,
            user: None,
            last_event_id: None,
            headers: Vec::new(),
        };
        self.shard.get_mut().expect("no panics").hub.open(key, hello, Instant::now());
    }

    /// Delivers pending pushes, and returns the messages of `index` since the last call.
    pub(crate) fn messages_of(&mut self, index: u32) -> Vec<String> {
        self.deliver_pushes();
        self.shard.get_mut().expect("no panics").messages.take(index)
    }

    /// Delivers pending pushes.
    fn deliver_pushes(&self) {
        let Shard { hub, messages } = &mut *self.shard.lock().expect("no panics");
        for notice in std::mem::take(&mut *self.notices.0.lock().expect("no panics")) {
            hub.notice(notice, Instant::now(), messages);
        }
    }
}

/// A JSON body whose errors have no `cause`.
fn without_causes(body: &str) -> String {
    let mut parts = body.split(r#","cause":""#);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| whole.push_str(part.split_once('"').expect("a text ends").1));
    whole
}

/// A POST without any key.
pub(crate) fn request(path: &str) -> http::request::Builder {
    Request::builder().method("POST").uri(path)
}

/// A JSON answer with status 200.
pub(crate) fn ok(body: &str) -> Answer {
    json(200, body)
}

pub(crate) fn json(status: u16, body: &str) -> Answer {
    answer(status, "application/json", body)
}

pub(crate) fn plain(status: u16, body: &str) -> Answer {
    answer(status, "text/plain; charset=utf-8", body)
}

fn answer(status: u16, content_type: &str, body: &str) -> Answer {
    let status = StatusCode::from_u16(status).expect("a valid status");
    Answer { status, content_type: content_type.to_owned(), body: body.to_owned() }
}

pub(crate) fn node_options() -> Options {
    let mut options =
        Options { name: "harness".into(), version: "1.2.3".into(), ..Options::default() };
    options.client.insecure = true;
    options.client.insecure_skip_token_signature_verify = true;
    options.shared_poll.hmac_secret_key = "a secret of tests".into();
    let namespace = |name: &str, publication_data_format| Namespace {
        name: name.to_owned(),
        publication_data_format,
        ..Namespace::default()
    };
    options.channel.namespaces = vec![
        namespace("chat", DataFormat::Unset),
        namespace("object", DataFormat::JsonObject),
        namespace("blob", DataFormat::Binary),
        Namespace {
            history_size: 3,
            history_ttl: Duration::from_secs(60),
            ..namespace("kept", DataFormat::Binary)
        },
        Namespace { presence: true, ..namespace("here", DataFormat::Unset) },
        Namespace {
            areas: AreaOptions { tile_size: 10, tiles_max: 9, rings: Vec::new() },
            ..namespace("world", DataFormat::Unset)
        },
        Namespace { allow_positioning: true, ..namespace("stream", DataFormat::Unset) },
        Namespace {
            subscription_type: SubscriptionType::Map,
            map: MapOptions {
                mode: MapMode::Recoverable,
                key_ttl: Duration::from_secs(3600),
                stream_size: 5,
                entries_max: 3,
                bytes_max: 10_000,
                ..MapOptions::default()
            },
            ..namespace("board", DataFormat::Binary)
        },
        Namespace {
            subscription_type: SubscriptionType::SharedPoll,
            shared_poll: NamespacePollOptions {
                mode: PollMode::Versioned,
                publish_enabled: true,
                ..NamespacePollOptions::default()
            },
            ..namespace("polled", DataFormat::Binary)
        },
        Namespace {
            subscription_type: SubscriptionType::Map,
            map: MapOptions {
                mode: MapMode::Ephemeral,
                key_ttl: Duration::from_secs(3600),
                ..MapOptions::default()
            },
            ..namespace("cursors", DataFormat::Json)
        },
    ];
    options
}

#[derive(Default)]
struct Notices(Mutex<Vec<Notice>>);

impl Inbox for Notices {
    fn push(&self, notice: Notice) {
        self.0.lock().expect("no panics").push(notice);
    }
}

/// The messages of each connection, as text; a disconnect is `close CODE REASON`.
#[derive(Default)]
pub(crate) struct Messages(BTreeMap<u32, Vec<String>>);

impl Messages {
    fn take(&mut self, index: u32) -> Vec<String> {
        self.0.remove(&index).unwrap_or_default()
    }

    fn note(&mut self, index: u32, text: String) {
        self.0.entry(index).or_default().push(text);
    }
}

impl Outbox for Messages {
    fn send(&mut self, connection: ConnectionKey, message: &[u8]) {
        self.note(connection.index, String::from_utf8(message.to_vec()).expect("JSON is text"));
    }

    fn deliver(
        &mut self,
        connection: u32,
        _: SubscriptionIndex,
        broadcast: &Arc<Broadcast>,
        _: DeltaMode,
    ) {
        let message = broadcast.message(Encoding::Json).expect("data is JSON");
        self.note(connection, String::from_utf8(message.to_vec()).expect("JSON is text"));
    }

    fn ping(&mut self, _: ConnectionKey) {}

    fn disconnect(&mut self, connection: ConnectionKey, disconnect: &Disconnect) {
        let text = format!("close {} {}", disconnect.code, disconnect.reason);
        self.note(connection.index, text);
    }
}
