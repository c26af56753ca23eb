//! Tests of the endpoint over a node in this process: access, limits, waiting, content of other origins.
//! In: requests to the router → out: responses; publications of the node.
//! Uses a router without sockets; a test waits for a response, never for a time. Never: shards.
//! Changed here: what the published suite does not test. Rules are tested in their modules.

mod hooks;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use fanwire_api::{Api, ApiKeyOptions};
use fanwire_auth::{
    ConnectionToken, HmacAlgorithm, Lifetime, SubscriptionToken, sign_hmac_connection,
    sign_hmac_subscription,
};
use fanwire_broker::Position;
use fanwire_node::hooks::Hooks;
use fanwire_node::protocol::Publication;
use fanwire_node::{Node, NodeParts, RevocationChange, RevocationKind};
use fanwire_testing::wait_for_async;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use tokio::task::JoinHandle;
use tower::util::ServiceExt as _;

use crate::DurableStreams;
use crate::storage::now_ms;
use crate::stream::StreamState;

mod server_options;

use server_options::{Settings, connections};

struct Server {
    node: Arc<Node>,
    streams: Arc<DurableStreams>,
    router: Router,
    is_full: Arc<AtomicBool>,
}

type Headers<'a> = &'a [(&'a str, &'a str)];

const JSON: (&str, &str) = ("content-type", "application/json");

impl Server {
    fn start(change: impl FnOnce(&mut Settings)) -> Self {
        Self::start_with(Hooks::default(), change)
    }

    fn start_with(hooks: Hooks, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::open();
        change(&mut settings);
        let parts = NodeParts { hooks, ..NodeParts::default() };
        let node = Node::with_parts(settings.node, Instant::now(), now_ms(), parts);
        let node = node.expect("valid options");
        let api = Arc::new(Api::new(node.clone(), settings.api));
        let is_full = Arc::default();
        let connections = connections(&is_full);
        let streams = DurableStreams::start(&settings.streams, &node, &api, connections);
        let streams = streams.expect("enabled");
        Self { node, router: streams.router(), streams, is_full }
    }

    async fn send(
        &self,
        method: &str,
        name: &str,
        headers: Headers<'_>,
        body: impl Into<Body>,
    ) -> Response {
        let mut request = Request::builder().method(method).uri(format!("/v1/stream/{name}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).expect("a request");
        self.router.clone().oneshot(request).await.expect("a router never fails")
    }

    async fn status(
        &self,
        method: &str,
        name: &str,
        headers: Headers<'_>,
        body: &'static str,
    ) -> u16 {
        self.send(method, name, headers, body).await.status().as_u16()
    }

    async fn text(&self, name: &str) -> String {
        text(self.send("GET", name, &[], "").await).await
    }

    fn publish(&self, channel: &str, data: &'static str) {
        let publication =
            Publication { data: Bytes::from_static(data.as_bytes()), ..Publication::default() };
        let published =
            self.node.channels().publish(channel, publication, Default::default(), Instant::now());
        assert!(published.ready().expect("memory is ready").is_ok());
    }

    /// Begins a live read and returns when it waits.
    async fn wait(&self, query: &str, headers: &[(&str, &str)]) -> JoinHandle<Response> {
        let free = self.streams.live.places.available_permits();
        let mut request = Request::get(format!("/v1/stream/{query}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        let reading = tokio::spawn(self.router.clone().oneshot(request));
        let places = &self.streams.live.places;
        wait_for_async(async || places.available_permits() < free, Duration::from_secs(30)).await;
        tokio::spawn(async { reading.await.expect("no panic").expect("a router never fails") })
    }
}

async fn text(response: Response) -> String {
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    String::from_utf8(body.to_vec()).expect("UTF-8")
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().expect("ASCII"))
}

#[tokio::test]
async fn values_of_a_stream_are_publications_and_publications_are_values() {
    let server = Server::start(|_| {});
    assert_eq!(server.status("PUT", "a", &[JSON], "[1,[2]]").await, 201);
    server.publish("log:a", "{\"of\":\"api\"}");
    assert_eq!(server.status("POST", "a", &[JSON], "3").await, 204);
    assert_eq!(server.text("a").await, "[1,[2],{\"of\":\"api\"},3]");
    let page = fanwire_node::Page::default();
    let history = server.node.channels().history("log:a", &page, Instant::now());
    let stored = history.ready().expect("memory is ready").expect("a history").publications;
    let stored: Vec<_> = stored.iter().map(|one| (one.offset, &one.data[..])).collect();
    assert_eq!(stored, [(1, &b"1"[..]), (2, b"[2]"), (3, b"{\"of\":\"api\"}"), (4, b"3")]);
}

#[tokio::test]
async fn a_channel_with_a_history_is_a_stream_of_json() {
    let server = Server::start(|_| {});
    assert_eq!(server.status("GET", "a", &[], "").await, 404);
    server.publish("log:a", "1");
    assert_eq!(server.text("a").await, "[1]");
    server.publish("log:b", "1");
    assert_eq!(server.status("PUT", "b", &[("content-type", "text/plain")], "2").await, 201);
    assert_eq!(server.text("b").await, "12");
}

#[tokio::test]
async fn a_later_stream_of_a_name_does_not_answer_offsets_of_an_earlier_one() {
    let server = Server::start(|_| {});
    server.send("PUT", "a", &[JSON], "[1,2]").await;
    let old = header(&server.send("GET", "a", &[], "").await, "stream-next-offset").to_owned();
    assert_eq!(server.status("DELETE", "a", &[], "").await, 204);
    assert_eq!(server.status("DELETE", "a", &[], "").await, 404);
    server.send("PUT", "a", &[JSON], "[3]").await;
    assert_eq!(server.text("a").await, "[3]");
    assert_eq!(
        server.text(&format!("a?offset={old}")).await,
        "[3]",
        "its end is the beginning of the next one"
    );
    let before = old.replacen("02_", "01_", 1);
    assert_eq!(server.status("GET", &format!("a?offset={before}"), &[], "").await, 410);
    let beyond = old.replacen("02_", "99_", 1);
    assert_eq!(server.status("GET", &format!("a?offset={beyond}"), &[], "").await, 400);
}

#[tokio::test]
async fn content_that_the_history_dropped_is_gone() {
    let server = Server::start(|settings| settings.node.channel.namespaces[0].history_size = 2);
    let first = server.send("PUT", "a", &[JSON], "[1]").await;
    let first = header(&first, "stream-next-offset").to_owned();
    server.send("POST", "a", &[JSON], "[2,3,4]").await;
    assert_eq!(server.status("GET", &format!("a?offset={first}"), &[], "").await, 410);
    assert_eq!(server.text("a?offset=-1").await, "[3,4]", "the oldest that is kept");
}

#[tokio::test]
async fn no_host_of_another_machine_gets_into_a_location() {
    let server = Server::start(|_| {});
    for (number, (host, expect)) in [
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("localhost", "http://localhost"),
        ("[::1]:80", "http://[::1]:80"),
        ("chat.example", ""),
        ("203.0.113.7:80", ""),
        ("127.0.0.1.example", ""),
        ("localhost.example:1", ""),
        ("", ""),
        ("a b", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let name = number.to_string();
        let created = server.send("PUT", &name, &[JSON, ("host", host)], "[1]").await;
        assert_eq!(header(&created, "location"), format!("{expect}/v1/stream/{name}"), "{host}");
    }
}

#[tokio::test]
async fn a_reader_of_events_holds_no_more_than_a_piece() {
    let server = Server::start(|_| {});
    let values = (0..50).map(|number| format!("\"{number:020000}\""));
    let values = format!("[{}]", values.collect::<Vec<_>>().join(","));
    assert_eq!(server.send("PUT", "a", &[JSON], values.clone()).await.status(), 201);
    let mut body = server.send("GET", "a?offset=-1&live=sse", &[], "").await.into_body();
    let mut received = String::new();
    while !received.contains("\"upToDate\":true") {
        let piece = body.frame().await.expect("not the end").expect("an open stream");
        let piece = piece.into_data().expect("data");
        assert!(piece.len() < 70_000, "{} bytes", piece.len());
        received.push_str(str::from_utf8(&piece).expect("UTF-8"));
    }
    let events = received.lines().filter_map(|line| line.strip_prefix("data:["));
    let events = events.map(|line| line.trim_end_matches(']')).collect::<Vec<_>>();
    assert_eq!(format!("[{}]", events.join(",")), values, "nothing is missing");
}

#[tokio::test]
async fn writes_need_a_key_and_reads_a_key_or_a_token() {
    let server = Server::start(|settings| {
        settings.streams.insecure = false;
        let methods = vec!["history".to_owned()];
        let reader = ApiKeyOptions { key: "reader".into(), methods, ..ApiKeyOptions::default() };
        settings.api.keys.insert("reader".into(), reader);
    });
    let key = ("x-api-key", "key");
    let token = |channel| {
        let token = SubscriptionToken { user: "ann", channel, ..SubscriptionToken::default() };
        sign_hmac_subscription("secret", HmacAlgorithm::Hs256, &token).expect("valid claims")
    };
    let (own, other) = (token("log:a"), token("log:b"));
    assert_eq!(server.status("PUT", "a", &[JSON], "[1]").await, 401);
    assert_eq!(server.status("PUT", "a", &[JSON, ("x-api-key", "wrong")], "[1]").await, 401);
    assert_eq!(server.status("PUT", "a", &[JSON, ("x-api-key", "reader")], "[1]").await, 403);
    assert_eq!(server.status("PUT", "a", &[JSON, key], "[1]").await, 201);
    let bearer = format!("Bearer {own}");
    assert_eq!(server.status("POST", "a", &[JSON, ("authorization", &bearer)], "[1]").await, 401);
    assert_eq!(server.status("DELETE", "a", &[("x-api-key", "reader")], "").await, 403);
    let refused = text(server.send("GET", "a", &[], "").await).await;
    assert!(refused.contains("X-API-Key") && refused.contains("Bearer TOKEN"), "{refused}");
    assert_eq!(server.status("GET", "a?token=x", &[], "").await, 401);
    assert_eq!(server.status("GET", "a", &[("x-api-key", "reader")], "").await, 200);
    assert_eq!(server.status("GET", "a", &[("authorization", &bearer)], "").await, 200);
    assert_eq!(server.status("HEAD", &format!("a?token={own}"), &[], "").await, 200);
    assert_eq!(server.status("GET", &format!("a?token={other}"), &[], "").await, 403);
}

#[tokio::test]
async fn streams_producers_readers_and_bodies_are_limited_by_name() {
    let server = Server::start(|settings| {
        let options = &mut settings.streams;
        (options.max_streams, options.max_producers) = (1, 1);
        (options.max_live_reads, options.max_request_body_size) = (1, 10);
    });
    assert_eq!(server.status("PUT", "a", &[JSON], "").await, 201);
    let many = server.send("PUT", "b", &[JSON], "").await;
    assert_eq!(many.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(text(many).await.contains("durable_streams.max_streams"));
    let of = |id| [JSON, ("producer-id", id), ("producer-epoch", "0"), ("producer-seq", "0")];
    assert_eq!(server.status("POST", "a", &of("x"), "1").await, 200);
    assert_eq!(server.status("POST", "a", &of("y"), "1").await, 429);
    assert_eq!(server.status("POST", "a", &[JSON], "[1,2,3,4,5]").await, 413);
    let waiting = server.wait("a?offset=now&live=long-poll", &[]).await;
    assert_eq!(server.status("GET", "a?offset=now&live=sse", &[], "").await, 429);
    server.publish("log:a", "2");
    assert_eq!(text(waiting.await.unwrap()).await, "[2]");
    assert_eq!(server.text("a").await, "[1,2]", "what was refused left nothing");
}

#[tokio::test]
async fn a_waiting_read_ends_with_its_stream_and_with_the_server() {
    let server =
        Server::start(|settings| settings.streams.long_poll_timeout = Duration::from_secs(3600));
    server.send("PUT", "a", &[JSON], "[1]").await;
    let waiting = server.wait("a?offset=now&live=long-poll", &[]).await;
    assert_eq!(server.status("POST", "a", &[("stream-closed", "true")], "").await, 204);
    let closed = waiting.await.unwrap();
    assert_eq!((closed.status().as_u16(), header(&closed, "stream-closed")), (204, "true"));

    server.send("PUT", "b", &[JSON], "").await;
    let waiting = server.wait("b?offset=now&live=long-poll", &[]).await;
    server.send("DELETE", "b", &[], "").await;
    assert_eq!(waiting.await.unwrap().status(), StatusCode::NOT_FOUND);

    server.send("PUT", "c", &[JSON], "").await;
    let waiting = server.wait("c?offset=now&live=long-poll", &[]).await;
    let events = server.send("GET", "c?offset=-1&live=sse", &[], "").await;
    let stop = tokio::sync::watch::Sender::new(false);
    server.streams.close_with(stop.subscribe());
    stop.send_replace(true);
    let ended = waiting.await.unwrap();
    assert_eq!((ended.status().as_u16(), header(&ended, "stream-up-to-date")), (204, "true"));
    assert!(text(events).await.starts_with("event: control\ndata:{"));
    assert_eq!(server.status("GET", "c", &[], "").await, 503);
}

#[tokio::test]
async fn an_expired_stream_is_removed_without_a_request() {
    let server = Server::start(|_| {});
    server.send("PUT", "a", &[JSON, ("stream-ttl", "1")], "[1]").await;
    let waiting = server.wait("a?offset=now&live=long-poll", &[]).await;
    server.streams.remove_expired(u64::MAX);
    assert_eq!(waiting.await.unwrap().status(), StatusCode::NOT_FOUND);
    assert!(server.streams.table.find("log:a").is_none());
    assert_eq!(server.status("GET", "a", &[], "").await, 404);
}

#[tokio::test]
async fn a_publication_of_the_api_restarts_the_window_of_a_lifetime() {
    let server = Server::start(|_| {});
    for (name, is_published) in [("a", true), ("b", false)] {
        server.send("PUT", name, &[JSON, ("stream-ttl", "3600")], "[1]").await;
        let entry = server.streams.table.find(&format!("log:{name}")).expect("a stream");
        let config = entry.state.lock().config().clone();
        *entry.state.lock() = StreamState::new(config, Position::default(), 0);
        entry.published_ms.store(0, Relaxed);
        if is_published {
            server.publish("log:a", "2");
        }
        server.streams.table.look_again(&entry, Some(0));
        server.streams.remove_expired(now_ms());
        assert_eq!(server.streams.table.find(&entry.channel).is_some(), is_published);
        let status = if is_published { 200 } else { 404 };
        assert_eq!(server.status("GET", name, &[], "").await, status, "last used in 1970");
    }
}

#[tokio::test]
async fn a_refusal_says_what_would_be_right() {
    let server = Server::start(|_| {});
    server.send("PUT", "a", &[JSON], "[1]").await;
    let requests: &[(&str, &str, Headers<'_>, &str)] = &[
        ("PUT", "a", &[], "Content-Type application/json"),
        ("PUT", "a", &[JSON, ("stream-ttl", "5")], "another Stream-TTL"),
        ("PUT", "a", &[JSON, ("stream-closed", "true")], "Stream-Closed false"),
        ("GET", "a?offset=5", &[], "Stream-Next-Offset"),
        ("GET", "b", &[], "PUT creates it"),
    ];
    for (method, name, headers, right) in requests {
        let said = text(server.send(method, name, headers, "").await).await;
        assert!(said.contains(right), "{method} {name}: {said}");
    }
}

#[tokio::test]
async fn impossible_names_and_methods_are_refused() {
    let server = Server::start(|_| {});
    for name in ["%FF", "%00%C3", &"a".repeat(300)] {
        assert_eq!(server.status("PUT", name, &[JSON], "").await, 400, "{name}");
    }
    assert_eq!(server.status("PUT", "__ds/subscriptions", &[JSON], "").await, 404);
    assert_eq!(server.status("PUT", "a%2Fb/c%20d", &[JSON], "[1]").await, 201);
    assert_eq!(server.text("a/b/c%20d").await, "[1]", "one name in two forms");
    assert_eq!(server.status("PUT", "%C3%BC", &[JSON], "").await, 201, "as the API names channels");
    let refused = server.send("PATCH", "a", &[], "").await;
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert!(header(&refused, "allow").contains("DELETE"));
    let preflight =
        server.send("OPTIONS", "a", &[("access-control-request-headers", "x-api-key")], "").await;
    assert_eq!(header(&preflight, "access-control-allow-headers"), "x-api-key");
}

#[tokio::test]
async fn a_format_of_the_namespace_holds_for_each_value_before_one_is_stored() {
    let server = Server::start(|settings| {
        settings.node.channel.namespaces[0].publication_data_format =
            fanwire_node::options::DataFormat::JsonObject;
    });
    assert_eq!(server.status("PUT", "a", &[JSON], "[{},1]").await, 400);
    assert_eq!(server.status("GET", "a", &[], "").await, 404, "nothing was created");
    server.publish("log:b", "{}");
    assert_eq!(server.status("PUT", "b", &[JSON], "[1]").await, 400);
    assert_eq!(server.text("b").await, "[{}]", "what others published stays");
    server.send("PUT", "a", &[JSON], "[{}]").await;
    assert_eq!(server.status("POST", "a", &[JSON], "[{},1]").await, 400);
    assert_eq!(server.text("a").await, "[{}]");
}

/// A server whose namespace is open to users, who are named by the header x-user.
fn open_to_users(hooks: Hooks, change: impl FnOnce(&mut Settings)) -> Server {
    Server::start_with(hooks, |settings| {
        settings.streams.insecure = false;
        settings.streams.sse_timeout = Duration::from_secs(3600);
        settings.streams.long_poll_timeout = Duration::from_secs(3600);
        let log = &mut settings.node.channel.namespaces[0];
        log.allow_subscribe_for_client = true;
        log.allow_history_for_subscriber = true;
        change(settings);
    })
}

#[tokio::test]
async fn a_block_ends_open_reads_before_they_get_more() {
    let server = open_to_users(Hooks::default(), |_| {});
    server.publish("log:a", "1");
    let user = ("x-user", "ann");
    let mut events = server.send("GET", "a?offset=-1&live=sse", &[user], "").await.into_body();
    let first =
        events.frame().await.expect("an event").expect("no error").into_data().expect("data");
    assert!(first.starts_with(b"event: data\ndata:[1]"));
    let waiting = server.wait("a?offset=now&live=long-poll", &[user]).await;
    let change = RevocationChange { subject: "ann".to_owned(), ..RevocationChange::default() };
    let now = Instant::now();
    let blocked = server.node.revocations().revoke(RevocationKind::BlockUser, change, now, 1);
    assert!(blocked.is_ok());
    server.publish("log:a", "2");
    assert!(events.frame().await.is_none(), "the response ends");
    assert_eq!(waiting.await.expect("no panic").status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn a_block_or_the_end_of_a_token_ends_a_read_that_gets_nothing() {
    let server = open_to_users(Hooks::default(), |_| {});
    server.publish("log:a", "1");
    let unix = server.node.unix(Instant::now());
    let lifetime = Lifetime::Until(unix + 600);
    let token = ConnectionToken { user: "bob", lifetime, ..ConnectionToken::default() };
    let token = sign_hmac_connection("secret", HmacAlgorithm::Hs256, &token).expect("valid claims");
    let start = tokio::time::Instant::now();
    let query = format!("a?offset=now&live=long-poll&token={token}");
    assert_eq!(server.status("GET", &query, &[], "").await, 401);
    assert_eq!(start.elapsed().as_secs().div_ceil(10), 60);
    let ann = [("x-user", "ann")];
    let waiting = server.send("GET", "a?offset=now&live=long-poll", &ann, "");
    let block = async {
        let change = RevocationChange { subject: "ann".to_owned(), ..RevocationChange::default() };
        let now = Instant::now();
        let blocked = server.node.revocations().revoke(RevocationKind::BlockUser, change, now, 1);
        assert!(blocked.is_ok());
    };
    let within = Duration::from_secs(1);
    let (ended, ()) = tokio::join!(tokio::time::timeout(within, waiting), block);
    assert_eq!(ended.expect("in time").status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn a_silent_response_in_sse_has_comments() {
    let server = Server::start(|settings| settings.streams.sse_timeout = Duration::from_secs(40));
    server.send("PUT", "a", &[JSON], "").await;
    let events = text(server.send("GET", "a?offset=now&live=sse", &[], "").await).await;
    let (control, comments) = events.split_once("\n\n").expect("a control event");
    assert!(control.starts_with("event: control"), "{events}");
    assert_eq!(comments, ":\n\n:\n\n");
}

#[tokio::test]
async fn live_reads_of_one_user_are_limited_and_those_of_others_are_not_counted() {
    let server = open_to_users(Hooks::default(), |settings| {
        settings.streams.max_live_reads_per_user = 2;
        settings.node.client.allow_anonymous_connect_without_token = true;
        settings.node.channel.namespaces[0].allow_subscribe_for_anonymous = true;
        settings.node.channel.namespaces[0].allow_history_for_anonymous = true;
    });
    server.publish("log:a", "1");
    let mut open = Vec::new();
    let live = "a?offset=now&live=sse";
    for _ in 0..2 {
        open.push(server.send("GET", live, &[("x-user", "ann")], "").await);
    }
    let many = server.send("GET", live, &[("x-user", "ann")], "").await;
    assert_eq!(many.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(text(many).await.contains("durable_streams.max_live_reads_per_user"));
    assert_eq!(server.status("GET", "a", &[("x-user", "ann")], "").await, 200, "it does not wait");
    for other in [("x-user", "bob"), ("x-api-key", "key"), ("x-nobody", "")] {
        for _ in 0..if other.1 == "bob" { 2 } else { 3 } {
            let response = server.send("GET", live, &[other], "").await;
            assert_eq!(response.status(), StatusCode::OK, "{other:?}");
            open.push(response);
        }
    }
    open.clear();
    assert_eq!(server.status("GET", live, &[("x-user", "ann")], "").await, 200);
    server.is_full.store(true, Relaxed);
    assert_eq!(server.status("GET", live, &[("x-user", "ann")], "").await, 503);
}

#[tokio::test]
async fn streams_that_were_only_read_take_no_place_and_end_with_their_history() {
    let server = Server::start(|settings| settings.streams.max_streams = 1);
    for name in ["a", "b", "c"] {
        server.publish(&format!("log:{name}"), "1");
        assert_eq!(server.text(name).await, "[1]");
    }
    assert_eq!(server.status("PUT", "d", &[JSON], "[1]").await, 201);
    assert_eq!(server.status("PUT", "a", &[JSON], "").await, 429, "a PUT takes one");
    assert_eq!(server.status("DELETE", "d", &[], "").await, 204);
    assert_eq!(server.status("PUT", "a", &[JSON], "").await, 200);
    let waiting = server.wait("c?offset=now&live=long-poll", &[]).await;
    for name in ["a", "b", "c"] {
        let removed = server.node.channels().remove_history(&format!("log:{name}"), Instant::now());
        assert!(removed.ready().expect("memory is ready").is_ok());
    }
    server.streams.remove_expired(now_ms() + 3_600_000);
    let is_known = |name: &str| server.streams.table.find(&format!("log:{name}")).is_some();
    assert_eq!(["a", "b", "c"].map(is_known), [true, false, true], "put, read, and read now");
    assert_eq!(server.status("GET", "b", &[], "").await, 404);
    server.publish("log:c", "2");
    assert_eq!(text(waiting.await.unwrap()).await, "[2]");
    server.publish("log:b", "3");
    assert_eq!(server.text("b").await, "[3]");
}

#[tokio::test]
async fn readers_of_json_do_not_get_what_is_none() {
    let server = Server::start(|settings| {
        settings.streams.long_poll_timeout = Duration::from_secs(3600);
    });
    server.publish("log:a", "1");
    server.publish("log:a", "2],\"x\":[");
    server.publish("log:a", "3");
    assert_eq!(server.text("a").await, "[1,3]");
    let events = "a?offset=-1&live=sse";
    let mut events = server.send("GET", events, &[], "").await.into_body();
    let first =
        events.frame().await.expect("an event").expect("no error").into_data().expect("data");
    assert!(first.starts_with(b"event: data\ndata:[1,3]\n\n"), "{first:?}");
    drop(events);
    let waiting = server.wait("a?offset=now&live=long-poll", &[]).await;
    server.publish("log:a", "}");
    server.publish("log:a", "5");
    assert_eq!(text(waiting.await.unwrap()).await, "[5]");
    assert!(server.node.channels().left_out() >= 3);
    server.send("PUT", "text", &[("content-type", "text/plain")], "{").await;
    assert_eq!(server.text("text").await, "{", "other streams may have any bytes");
    server.publish("log:last", "{");
    let none = server.send("GET", "last", &[], "").await;
    assert_eq!(header(&none, "stream-up-to-date"), "true");
    assert_eq!(text(none).await, "[]");
}

#[tokio::test]
async fn content_that_is_nested_too_deep_is_refused() {
    let server = Server::start(|_| {});
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let status =
        async |levels| server.send("PUT", "a", &[JSON], nested(levels)).await.status().as_u16();
    assert_eq!(status(514).await, 400, "an array around a value of 513 levels");
    assert_eq!(status(513).await, 201);
}

#[tokio::test]
async fn a_stream_goes_on_in_another_program() {
    let old = Server::start(|_| {});
    let producer = [JSON, ("producer-id", "p"), ("producer-epoch", "0"), ("producer-seq", "0")];
    old.send("PUT", "a", &[JSON, ("stream-ttl", "60")], "").await;
    assert_eq!(old.send("POST", "a", &producer, "[1]").await.status(), StatusCode::OK);
    let new = Server::start(|_| {});
    assert!(new.streams.take_over(&old.streams.save()));
    let repeated = new.send("POST", "a", &producer, "[1]").await;
    assert_eq!(repeated.status(), StatusCode::NO_CONTENT, "it is known already");
    let other_type = new.send("POST", "a", &[("content-type", "text/plain")], "x").await;
    assert_eq!(other_type.status(), StatusCode::CONFLICT);
    assert_eq!(
        new.send("PUT", "a", &[JSON, ("stream-ttl", "60")], "").await.status(),
        StatusCode::OK
    );
    assert!(!new.streams.take_over(b"no table"));
}
