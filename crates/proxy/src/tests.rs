//! Tests of proxies against backends that answer in every wrong way, and of what a call carries.
//! In: canned answers on real sockets → out: the decision of a hook, the request that the backend got.
//! Uses the hooks as a node does. Never: a node.
//! Changed here: cases of calls. The meaning of fields is tested in `answer`, headers in `backend`.

use std::future;
use std::time::Duration;

use crate::options::{Proxies, ProxyOptions, StatusMeaning, StatusTransform};
use bytes::Bytes;
use fanwire_broker::map::KeyMode;
use fanwire_node::hooks::{
    ConnectEvent, MapEvent, MapGrant, PollEvent, PublishEvent, PublishGrant, Rejection, RpcEvent,
    SubscribeEvent, SubscribeGrant,
};
use fanwire_node::options::ProxyRoute;
use fanwire_node::shared_poll::{PollAnswer, PollItem};
use fanwire_protocol::{ClientInfo, Disconnect, ErrorCode, ProtocolError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time;

use super::*;

/// The treatment of a connection after its request was read.
#[derive(Clone)]
enum Then {
    /// Writes these bytes and keeps the connection.
    Write(Vec<u8>),
    /// Writes these bytes and closes.
    WriteAndClose(Vec<u8>),
    /// Writes a byte a second of an endless body.
    Trickle,
    /// Nothing, for ever.
    Wait,
}

fn json(body: &str) -> Then {
    let length = body.len();
    Then::Write(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes())
}

fn status(line: &str) -> Then {
    Then::Write(format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n").into_bytes())
}

/// Starts a backend; returns its URL and the requests it gets.
async fn backend(then: Then) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/centrifugo", listener.local_addr().expect("bound"));
    let (sender, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, then.clone(), sender.clone()));
        }
    });
    (url, requests)
}

async fn serve(
    mut socket: tokio::net::TcpStream,
    then: Then,
    sender: mpsc::UnboundedSender<String>,
) {
    while let Some(request) = read_request(&mut socket).await {
        let _ = sender.send(request);
        match &then {
            Then::Write(bytes) => socket.write_all(bytes).await.expect("the proxy reads"),
            Then::WriteAndClose(bytes) => {
                let _ = socket.write_all(bytes).await;
                return;
            }
            Then::Trickle => {
                let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
                socket.write_all(head).await.expect("the proxy reads");
                while socket.write_all(b" ").await.is_ok() {
                    let _ = time::timeout(Duration::from_secs(1), future::pending::<()>()).await;
                }
                return;
            }
            Then::Wait => future::pending().await,
        }
    }
}

/// The next request with its body; `None` at the end of the connection.
async fn read_request(socket: &mut tokio::net::TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().expect("a number")) {
                return Some(text);
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

fn options(endpoint: String) -> ProxyOptions {
    ProxyOptions {
        endpoint,
        timeout: Duration::from_millis(500),
        in_flight_max: 8,
        queue_max: 8,
        ..ProxyOptions::default()
    }
}

/// Proxies with these options for every kind of event.
fn proxies(options: ProxyOptions) -> EventProxies {
    let all = Proxies {
        connect: Some(options.clone()),
        refresh: Some(options.clone()),
        subscribe: options.clone(),
        publish: options.clone(),
        sub_refresh: options.clone(),
        rpc: options.clone(),
        map_publish: options.clone(),
        map_remove: options.clone(),
        shared_poll_refresh: options,
        ..Proxies::default()
    };
    let made = EventProxies::new(&all, Handle::current());
    made.expect("the options are good").expect("there are endpoints")
}

fn client() -> ClientInfo {
    ClientInfo { user: "u\"1\u{7}".into(), client: "c".into(), ..ClientInfo::default() }
}

fn route() -> ProxyRoute {
    ProxyRoute { proxy: Some("default".into()), ..ProxyRoute::default() }
}

async fn subscribe(proxies: &EventProxies) -> Result<Option<SubscribeGrant>, Rejection> {
    let context = Arc::default();
    let event = SubscribeEvent::new(client(), context, "room:1".into(), Bytes::new());
    proxies.hooks().subscribe.expect("there is one").call(event, route()).await
}

fn unavailable<T: fmt::Debug>(decided: Result<T, Rejection>) -> String {
    match decided {
        Err(Rejection::Unavailable(cause)) => cause.into_owned(),
        other => panic!("not unavailable: {other:?}"),
    }
}

#[tokio::test]
async fn a_subscribe_is_granted_by_an_empty_result_and_by_none() {
    for body in ["{}", r#"{"result":null}"#, r#"{"result":{}}"#, r#"{"result":{"allow":["x"]}}"#] {
        let (url, mut requests) = backend(json(body)).await;
        let granted = subscribe(&proxies(options(url))).await.expect("granted");
        let grant = SubscribeGrant { ignores_request: true, ..SubscribeGrant::default() };
        assert_eq!(granted, Some(grant), "{body}");
        let request = requests.recv().await.expect("one request");
        let (head, body) = request.split_once("\r\n\r\n").expect("a body");
        assert!(head.starts_with("POST /centrifugo HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("content-type: application/json"), "{head}");
        let expected = r#"{"client":"c","encoding":"json","user":"u\"1\u0007","channel":"room:1"}"#;
        assert_eq!(body, expected);
    }
}

#[tokio::test]
async fn what_is_no_answer_is_unavailable_with_its_cause() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"res".to_vec();
    let long = format!("{{\"result\":{{\"data\":\"{}\"}}}}", "x".repeat(10 << 20));
    let cases = [
        (status("204 No Content"), "status 204"),
        (status("301 Moved\r\nLocation: /other"), "status 301"),
        (status("500 Internal Server Error"), "status 500"),
        (json("<html>"), "no response"),
        (json("null"), "no response"),
        (json("[]"), "no response"),
        (json(""), "no response"),
        (json("{\"result\":{\"info\":1,\"data\":\"\u{fffd}\"}"), "no response"),
        (json(r#"{"result":{"b64data":"%%%"}}"#), "not base64"),
        (Then::WriteAndClose(half), "did not answer"),
        (Then::WriteAndClose(Vec::new()), "did not answer"),
        (Then::WriteAndClose(b"not HTTP\r\n\r\n".to_vec()), "did not answer"),
        (json(&long), "did not answer"),
        (Then::Wait, "in time"),
        (Then::Trickle, "in time"),
    ];
    for (then, cause) in cases {
        let (url, _requests) = backend(then).await;
        let decided = subscribe(&proxies(options(url))).await;
        let text = unavailable(decided);
        assert!(text.contains(cause), "{cause}: {text}");
    }
}

async fn poll(proxies: &EventProxies) -> Result<Option<PollAnswer>, Rejection> {
    let keys = vec![("a".into(), 7), ("b".into(), 0)];
    let event = PollEvent { channel: "prices".into(), keys };
    proxies.hooks().shared_poll_refresh.expect("there is one").call(event, route()).await
}

#[tokio::test]
async fn a_poll_asks_for_keys_and_takes_what_the_backend_says() {
    let items = r#"{"key":"a","data":{"p":1},"version":8},{"key":"b","removed":true,"data":null}"#;
    let body = format!(r#"{{"result":{{"items":[{items}],"epoch":"e"}}}}"#);
    let (url, mut requests) = backend(json(&body)).await;
    let answer = poll(&proxies(options(url))).await.expect("an answer").expect("a result");
    let value =
        PollItem { key: "a".into(), data: r#"{"p":1}"#.into(), version: 8, is_removed: false };
    let removal = PollItem { key: "b".into(), is_removed: true, ..PollItem::default() };
    assert_eq!(answer, PollAnswer { items: vec![value, removal], epoch: "e".into() });
    let request = requests.recv().await.expect("one request");
    let (_, body) = request.split_once("\r\n\r\n").expect("a body");
    assert_eq!(body, r#"{"channel":"prices","items":[{"key":"a","version":7},{"key":"b"}]}"#);
}

#[tokio::test]
async fn a_poll_that_fails_or_has_a_very_long_answer_has_no_answer() {
    let long =
        format!(r#"{{"result":{{"items":[{{"key":"a","data":"{}"}}]}}}}"#, "x".repeat(100 << 20));
    let cases = [
        (json(&long), "did not answer"),
        (json(r#"{"items":[]}"#), "no response"),
        (status("500 Internal Server Error"), "status 500"),
        (Then::Wait, "in time"),
    ];
    for (then, cause) in cases {
        let (url, _requests) = backend(then).await;
        let text = unavailable(poll(&proxies(options(url))).await);
        assert!(text.contains(cause), "{cause}: {text}");
    }
    let (url, _requests) = backend(json(r#"{"error":{"code":1000,"message":"no"}}"#)).await;
    let refused = poll(&proxies(options(url))).await;
    assert!(matches!(refused, Err(Rejection::Error(error)) if error.code == 1000));
}

#[tokio::test]
async fn bytes_that_are_no_utf_8_are_no_response() {
    let body = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"result\":\"\xff\xfe\"}".to_vec();
    let (url, _requests) = backend(Then::Write(body)).await;
    assert!(unavailable(subscribe(&proxies(options(url))).await).contains("no response"));
}

#[tokio::test]
async fn a_disconnect_counts_before_an_error_and_that_before_a_result() {
    let (error, disconnect) = (r#"{"code":1000,"message":"no"}"#, r#"{"code":4500,"reason":"x"}"#);
    let all = format!(r#"{{"result":{{}},"error":{error},"disconnect":{disconnect}}}"#);
    let (url, _requests) = backend(json(&all)).await;
    let expected = Disconnect { code: 4500, reason: "x".into() };
    assert_eq!(subscribe(&proxies(options(url))).await, Err(expected.into()));
    let (url, _requests) = backend(json(&format!(r#"{{"result":{{}},"error":{error}}}"#))).await;
    let expected = ProtocolError { code: 1000, message: "no".into(), temporary: false };
    assert_eq!(subscribe(&proxies(options(url))).await, Err(expected.into()));
}

#[tokio::test]
async fn a_status_has_the_meaning_of_its_transform() {
    let (url, _requests) = backend(status("404 Not Found")).await;
    let to = StatusMeaning::Error { code: 404, message: "none".into(), temporary: true };
    let mut with = options(url);
    with.http.status_to_code_transforms = vec![StatusTransform { status_code: 404, to }];
    let expected = ProtocolError { code: 404, message: "none".into(), temporary: true };
    assert_eq!(subscribe(&proxies(with)).await, Err(expected.into()));
}

#[tokio::test]
async fn nothing_listens_and_the_server_starts_all_the_same() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    drop(listener);
    let proxies = proxies(options(url));
    assert!(unavailable(subscribe(&proxies).await).contains("did not answer"));
    let stats = proxies.stats();
    let stats = stats.iter().find(|proxy| !proxy.calls.is_empty()).expect("a failed call");
    assert_eq!(stats.calls[0].failures, [("transport", 1)]);
    assert_eq!((stats.in_flight, stats.waiting), (0, 0));
}

#[tokio::test]
async fn without_a_name_or_with_a_token_there_is_no_call() {
    let hooks = proxies(options("http://127.0.0.1:1/".into())).hooks();
    let event = SubscribeEvent::default();
    let none = ProxyRoute::default;
    assert_eq!(hooks.subscribe.expect("there is one").call(event, none()).await, Ok(None));
    let mut event = ConnectEvent::default();
    event.token = "t".into();
    assert_eq!(hooks.connect.expect("there is one").call(event, none()).await, Ok(None));
}

#[tokio::test]
async fn rpc_in_base64_and_publish_with_options() {
    let (url, mut requests) = backend(json(r#"{"result":{"b64data":"eyJhIjoxfQ=="}}"#)).await;
    let hooks = proxies(ProxyOptions { binary_encoding: true, ..options(url) }).hooks();
    let data = Bytes::from_static(b"\xff");
    let event = RpcEvent::new(client(), Arc::default(), "m".into(), data);
    let answer = hooks.rpc.expect("there is one").call(event, route()).await;
    assert_eq!(answer, Ok(Some(Bytes::from_static(br#"{"a":1}"#))));
    let request = requests.recv().await.expect("one request");
    assert!(
        request
            .ends_with(r#""encoding":"binary","user":"u\"1\u0007","method":"m","b64data":"/w=="}"#),
        "{request}"
    );
    let body = r#"{"result":{"skip_history":true,"tags":{"a":"b"},"idempotency_key":"k","delta":true,"version":7,"version_epoch":"e"}}"#;
    let (url, _requests) = backend(json(body)).await;
    let event = PublishEvent::new(client(), Arc::default(), "a".into(), "{}".into());
    let publish = proxies(options(url)).hooks().publish.expect("there is one");
    let granted = publish.call(event, route()).await;
    let expected = PublishGrant {
        data: None,
        tags: [("a".to_owned(), "b".to_owned())].into(),
        idempotency_key: "k".into(),
        skip_history: true,
        delta: true,
        version: 7,
        version_epoch: "e".into(),
        is_processed: false,
    };
    assert_eq!(granted, Ok(Some(expected)));
}

fn map_event(data: &'static str) -> MapEvent {
    let command = PublishEvent::new(client(), Arc::default(), "m".into(), data.into());
    MapEvent::new(command, "k".into())
}

#[tokio::test]
async fn an_empty_result_permits_the_change_of_the_client() {
    let (url, mut requests) = backend(json("{}")).await;
    let hooks = proxies(options(url)).hooks();
    let publish = hooks.map_publish.expect("there is one").call(map_event("{}"), route()).await;
    assert_eq!(publish, Ok(Some(MapGrant::default())));
    let request = requests.recv().await.expect("one request");
    let expected = r#""encoding":"json","user":"u\"1\u0007","channel":"m","key":"k","data":{}}"#;
    assert!(request.ends_with(expected), "{request}");
    let removal = hooks.map_remove.expect("there is one").call(map_event(""), route()).await;
    assert_eq!(removal, Ok(Some(MapGrant::default())));
    let request = requests.recv().await.expect("one request");
    let expected = r#""encoding":"json","user":"u\"1\u0007","channel":"m","key":"k"}"#;
    assert!(request.ends_with(expected), "{request}");
}

#[tokio::test]
async fn a_backend_changes_the_change_of_a_map() {
    let body = r#"{"result":{"key":"l","b64data":"WzFd","tags":{"a":"b"},"key_mode":"if_exists","idempotency_key":"i",
        "delta":true,"version":7,"version_epoch":"e","score":3,"stream_data":{}}}"#;
    let (url, _requests) = backend(json(body)).await;
    let publish = proxies(options(url)).hooks().map_publish.expect("there is one");
    let expected = MapGrant {
        key: Some("l".into()),
        data: Some("[1]".into()),
        tags: [("a".to_owned(), "b".to_owned())].into(),
        idempotency_key: "i".into(),
        version: 7,
        version_epoch: "e".into(),
        key_mode: KeyMode::IfExists,
        expected: None,
        delta: true,
    };
    assert_eq!(publish.call(map_event("{}"), route()).await, Ok(Some(expected)));
    let (url, _requests) = backend(json(r#"{"result":{"key_mode":"never"}}"#)).await;
    let publish = proxies(options(url)).hooks().map_publish.expect("there is one");
    let text = unavailable(publish.call(map_event("{}"), route()).await);
    assert!(text.contains("key_mode"), "{text}");
}

#[tokio::test]
async fn a_payload_that_is_no_json_is_refused_without_base64() {
    let hooks = proxies(options("http://127.0.0.1:1/".into())).hooks();
    let data = Bytes::from_static(b"\xff");
    let event = RpcEvent::new(client(), Arc::default(), String::new(), data);
    let decided = hooks.rpc.expect("there is one").call(event, route()).await;
    assert_eq!(decided, Err(Rejection::Error(ErrorCode::BAD_REQUEST.into())));
}

#[tokio::test]
async fn a_thousand_connects_while_the_backend_stalls_are_all_answered_in_time() {
    let (url, mut requests) = backend(Then::Wait).await;
    let proxies = proxies(options(url));
    let connect = proxies.hooks().connect.expect("there is one");
    let started = std::time::Instant::now();
    let calls: Vec<_> =
        (0..1_000).map(|_| connect.call(ConnectEvent::default(), route())).collect();
    for call in calls {
        unavailable(call.await);
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let mut called = 0;
    while requests.try_recv().is_ok() {
        called += 1;
    }
    assert!((1..=16).contains(&called), "{called} calls in flight, twice at most in this time");
}

#[tokio::test]
async fn a_backend_that_is_down_is_not_called_and_then_probed() {
    let (url, mut requests) = backend(status("503 Service Unavailable")).await;
    let proxies = proxies(options(url));
    for _ in 0..20 {
        unavailable(subscribe(&proxies).await);
    }
    let text = unavailable(subscribe(&proxies).await);
    assert!(text.contains("backend is down"), "{text}");
    let open = proxies.stats().iter().filter(|one| one.circuit == CircuitState::Open).count();
    assert_eq!(open, 1);
    let mut called = 0;
    while requests.try_recv().is_ok() {
        called += 1;
    }
    assert_eq!(called, 20);
}
