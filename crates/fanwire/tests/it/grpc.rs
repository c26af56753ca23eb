//! gRPC over real sockets: the listeners, and a stream of commands whose client is slow.
//! In: servers with `grpc_api` or `uni_grpc`, hyper's client → out: responses, statuses in trailers, errors of a start.
//! Uses the client of `http2`; messages are written by hand.
//! Changed here: expectations of `grpc` and of `edge::clients::uni_grpc`. Real libraries call them in `tests/interop/python`.

use std::{convert::Infallible, time::Duration};

use axum::body::{Body, Bytes};
use fanwire::{EmbeddedServer, Server, config::Config};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use tokio::{
    net::TcpStream,
    sync::{mpsc, watch},
    time::timeout,
};

use crate::{
    client::{Client, start},
    http2::connection,
};

/// Their replies are more than the windows of the client hold.
const COUNT: usize = 60_000;

const PUBLISH: &str = "centrifugal.centrifugo.api.CentrifugoApi/Publish";

fn with_grpc(config: &mut Config) {
    config.grpc_api.enabled = true;
    config.grpc_api.address = "127.0.0.1".to_owned();
    config.grpc_api.port = 0;
    config.grpc_api.key = "key".into();
}

async fn call(server: &Server, path: &str, kind: &str, body: Body) -> Response<Incoming> {
    let address = server.grpc_api_address().expect("it is enabled");
    let socket = TcpStream::connect(address).await.expect("it listens");
    let request = Request::post(format!("http://{address}/{path}"));
    let request = request.header("content-type", kind).header("authorization", "apikey key");
    let mut sender = connection(socket).await;
    sender.send_request(request.body(body).expect("a request")).await.expect("a response")
}

/// A message behind its prefix: uncompressed, and shorter than 256 bytes.
fn framed(message: &[u8]) -> Vec<u8> {
    [&[0, 0, 0, 0, message.len() as u8], message].concat()
}

/// The body of a response, and its status.
async fn ended(response: Response<Incoming>) -> (Vec<u8>, String) {
    let body = response.into_body().collect().await.expect("a body");
    let status = body.trailers().and_then(|trailers| trailers.get("grpc-status")).cloned();
    let status = status.expect("a status").to_str().expect("text").to_owned();
    (body.to_bytes().to_vec(), status)
}

#[tokio::test]
async fn a_call_publishes_and_its_status_is_in_the_trailers() {
    let server = start(with_grpc).await;
    let mut subscriber = Client::subscribed(server.address(), "", "a").await;
    let message = framed(b"\x0a\x01a\x12\x017");
    let response = call(&server, PUBLISH, "application/grpc+proto", message.into()).await;
    assert_eq!(ended(response).await, (framed(b"\x12\x00"), "0".to_owned()));
    assert_eq!(subscriber.next_text().await, r#"{"push":{"channel":"a","pub":{"data":7}}}"#);
    let response = call(&server, PUBLISH, "application/json", Body::empty()).await;
    assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    // A body that says its message is longer, and one that ends within its prefix.
    for (body, status) in [(&b"\0\0\0\0\x09a"[..], "13"), (b"\0\0", "13"), (b"\0\xff\0\0\0", "11")]
    {
        let response = call(&server, PUBLISH, "application/grpc", body.into()).await;
        let (headers, code) = (response.headers().clone(), headers_or_trailers(response).await);
        assert_eq!(code, status, "{body:x?} {headers:?}");
    }
    drop(subscriber);
    server.shutdown().await;
}

#[tokio::test]
async fn a_reload_changes_the_key() {
    let mut config = Config::default();
    let server = start(|used| {
        with_grpc(used);
        config.clone_from(used);
    })
    .await;
    let publishes = async || {
        let message = framed(b"\x0a\x01a\x12\x017");
        headers_or_trailers(call(&server, PUBLISH, "application/grpc", message.into()).await).await
    };
    assert_eq!(publishes().await, "0");
    config.grpc_api.key = "other".into();
    server.reload(&config).expect("a good configuration");
    assert_eq!(publishes().await, "16", "unauthenticated");
    config.grpc_api.key = "key".into();
    server.reload(&config).expect("a good configuration");
    assert_eq!(publishes().await, "0");
    server.shutdown().await;
}

async fn headers_or_trailers(response: Response<Incoming>) -> String {
    match response.headers().get("grpc-status") {
        Some(status) => status.to_str().expect("text").to_owned(),
        None => ended(response).await.1,
    }
}

#[tokio::test]
async fn commands_wait_while_their_replies_are_not_read() {
    let server = start(with_grpc).await;
    let (commands, received) = mpsc::channel::<Bytes>(1);
    let path = "fanwire.api.FanwireApi/CommandStream";
    let response = call(&server, path, "application/grpc", Body::new(frames(received))).await;
    // Commands without a method, whose replies are longer: the client reads none of them, and the windows fill.
    let (progress, mut sent) = watch::channel(0);
    let sending = tokio::spawn(async move {
        for number in 1..=COUNT {
            commands.send(framed(b"").into()).await.expect("the stream goes on");
            progress.send_replace(number);
        }
    });
    while matches!(timeout(Duration::from_secs(1), sent.changed()).await, Ok(Ok(()))) {}
    assert!(*sent.borrow() < COUNT, "the client waits for its window");
    let (replies, status) = ended(response).await;
    sending.await.expect("all were sent");
    let one = 5 + usize::from(replies[4]);
    assert_eq!((replies.len() / one, replies.len() % one, status), (COUNT, 0, "0".to_owned()));
    server.shutdown().await;
}

/// A body of frames of DATA that come one by one.
fn frames(
    mut received: mpsc::Receiver<Bytes>,
) -> StreamBody<impl futures_util::Stream<Item = Result<Frame<Bytes>, Infallible>>> {
    StreamBody::new(futures_util::stream::poll_fn(move |context| {
        received.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }))
}

#[test]
fn a_port_in_use_names_its_key() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = other.local_addr().expect("bound").port();
    let at = || "127.0.0.1".to_owned();
    type Set<'a> = &'a dyn Fn(&mut Config);
    let listeners: [(&str, Set<'_>); 2] = [
        ("grpc_api.port", &|config| {
            let options = &mut config.grpc_api;
            (options.enabled, options.address, options.port) = (true, at(), port);
        }),
        ("uni_grpc.port", &|config| {
            let options = &mut config.uni_grpc;
            (options.enabled, options.address, options.port) = (true, at(), port);
        }),
    ];
    for (key, set) in listeners {
        let mut config = Config::default();
        config.http_server.address = at();
        config.http_server.port = 0;
        set(&mut config);
        let error = EmbeddedServer::start(config).err().expect("the port is in use");
        assert!(error.to_string().starts_with(&format!("{key} = {port}: ")), "{error}");
    }
}
