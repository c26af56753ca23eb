//! Tests of calls over gRPC against a server of the `h2` crate: unary calls, streams one way and both, wrong ends.
//! In: canned messages and statuses → out: decisions of hooks, what the backend got.
//! Uses the hooks as a node does. Never: tonic's server.
//! Changed here: cases of gRPC. Those of HTTP are in `tests` of the crate.

use std::sync::Arc;
use std::time::Duration;

use crate::options::{Proxies, ProxyOptions};
use bytes::{BufMut, Bytes, BytesMut};
use fanwire_node::hooks::{
    ClientReport, MapEvent, PollEvent, PublishEvent, PublishGrant, Rejection, SubscribeEvent,
};
use fanwire_node::shared_poll::{PollAnswer, PollItem};
use fanwire_node::{hooks::Hooks, hooks::RpcEvent, options::ProxyRoute};
use fanwire_protocol::proxy as pb;
use fanwire_protocol::{ClientInfo, ErrorCode};
use h2::server::SendResponse;
use prost::Message;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::EventProxies;

/// The answer of a backend to one request.
#[derive(Clone)]
struct Script {
    /// Messages, each in a frame of its own.
    messages: Vec<Vec<u8>>,
    /// `grpc-status` of the trailers; `None` = the stream stays open.
    status: Option<&'static str>,
}

/// A request: path, metadata `x-a`, and the messages until now.
struct Got {
    path: String,
    metadata: String,
    messages: mpsc::UnboundedReceiver<Bytes>,
}

async fn backend(script: Script) -> (String, mpsc::UnboundedReceiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let (sender, got) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (script, sender) = (script.clone(), sender.clone());
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(socket).await.expect("HTTP/2");
                while let Some(Ok((request, respond))) = connection.accept().await {
                    tokio::spawn(serve(request, respond, script.clone(), sender.clone()));
                }
            });
        }
    });
    (address, got)
}

async fn serve(
    request: http::Request<h2::RecvStream>,
    mut respond: SendResponse<Bytes>,
    script: Script,
    sender: mpsc::UnboundedSender<Got>,
) {
    let (head, mut body) = request.into_parts();
    let (received, messages) = mpsc::unbounded_channel();
    let metadata = head.headers.get("x-a").map_or("", |value| value.to_str().expect("ASCII"));
    let path = head.uri.path().to_owned();
    let _ = sender.send(Got { path, metadata: metadata.to_owned(), messages });
    let response = http::Response::builder().header("content-type", "application/grpc");
    let response = response.body(()).expect("static headers");
    let mut stream = respond.send_response(response, false).expect("the client waits");
    for message in &script.messages {
        let mut frame = BytesMut::new();
        frame.put_u8(0);
        frame.put_u32(message.len().try_into().expect("short"));
        frame.extend_from_slice(message);
        let _ = stream.send_data(frame.freeze(), false);
    }
    if let Some(status) = script.status {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", http::HeaderValue::from_static(status));
        let _ = stream.send_trailers(trailers);
    }
    let mut unread = BytesMut::new();
    while let Some(Ok(data)) = body.data().await {
        unread.extend_from_slice(&data);
        while unread.len() >= 5 {
            let length = u32::from_be_bytes(unread[1..5].try_into().expect("four")) as usize;
            if unread.len() < 5 + length {
                break;
            }
            let _ = received.send(unread.split_to(5 + length).freeze().slice(5..));
        }
    }
    drop(received);
    if script.status.is_none() {
        std::future::pending::<()>().await; // the stream stays open until the connection ends
    }
}

fn hooks(address: &str) -> Hooks {
    let mut options = ProxyOptions {
        endpoint: format!("grpc://{address}"),
        timeout: Duration::from_millis(500),
        in_flight_max: 8,
        queue_max: 8,
        ..ProxyOptions::default()
    };
    options.grpc.credentials_key = "X-A".to_owned();
    options.grpc.credentials_value = "secret".to_owned().into();
    let proxies = Proxies {
        rpc: options.clone(),
        shared_poll_refresh: options.clone(),
        map_remove: options.clone(),
        subscribe_stream: options,
        ..Proxies::default()
    };
    let made = EventProxies::new(&proxies, Handle::current()).expect("good options");
    made.expect("there are endpoints").hooks()
}

#[tokio::test]
async fn a_poll_is_a_unary_call_too() {
    let item = pb::SharedPollRefreshResultItem {
        key: "a".into(),
        data: "7".into(),
        version: 3,
        ..pb::SharedPollRefreshResultItem::default()
    };
    let result = pb::SharedPollRefreshResult { items: vec![item], epoch: "e".into() };
    let response = pb::SharedPollRefreshResponse { result: Some(result), error: None };
    let script = Script { messages: vec![response.encode_to_vec()], status: Some("0") };
    let (address, mut got) = backend(script).await;
    let keys = vec![("a".into(), 2)];
    let event = PollEvent { channel: "p".into(), keys };
    let hook = hooks(&address).shared_poll_refresh.expect("there is a proxy");
    let answer = hook.call(event, route()).await.expect("an answer").expect("a result");
    let item = PollItem { key: "a".into(), data: "7".into(), version: 3, ..PollItem::default() };
    assert_eq!(answer, PollAnswer { items: vec![item], epoch: "e".into() });
    let mut request = got.recv().await.expect("a request");
    assert_eq!(request.path, "/centrifugal.centrifugo.proxy.CentrifugoProxy/SharedPollRefresh");
    let message = request.messages.recv().await.expect("a message");
    let asked = pb::SharedPollRefreshRequest::decode(message).expect("a request");
    assert_eq!((asked.channel.as_str(), asked.items[0].version), ("p", 2));
}

#[tokio::test]
async fn a_removal_from_a_map_is_a_unary_call_too() {
    let result = pb::MapRemoveResult { key: "l".into(), ..pb::MapRemoveResult::default() };
    let response =
        pb::MapRemoveResponse { result: Some(result), ..pb::MapRemoveResponse::default() };
    let script = Script { messages: vec![response.encode_to_vec()], status: Some("0") };
    let (address, mut got) = backend(script).await;
    let command = PublishEvent::new(client(), Arc::default(), "m".into(), Bytes::new());
    let hook = hooks(&address).map_remove.expect("there is a proxy");
    let answer = hook.call(MapEvent::new(command, "k".into()), route()).await;
    let removal = answer.expect("an answer").expect("a result");
    assert_eq!(removal.key.as_deref(), Some("l"));
    let mut request = got.recv().await.expect("a request");
    assert_eq!(request.path, "/centrifugal.centrifugo.proxy.CentrifugoProxy/MapRemove");
    let message = request.messages.recv().await.expect("a message");
    let asked = pb::MapRemoveRequest::decode(message).expect("a request");
    let expected = pb::MapRemoveRequest {
        client: "c".into(),
        encoding: "json".into(),
        user: "42".into(),
        channel: "m".into(),
        key: "k".into(),
        ..pb::MapRemoveRequest::default()
    };
    assert_eq!(asked, expected);
}

fn client() -> ClientInfo {
    ClientInfo { user: "42".into(), client: "c".into(), ..ClientInfo::default() }
}

fn route() -> ProxyRoute {
    ProxyRoute { proxy: Some("default".into()), ..ProxyRoute::default() }
}

fn stream(is_bidirectional: bool) -> ProxyRoute {
    ProxyRoute { has_stream: true, is_bidirectional, ..route() }
}

fn subscribe_event() -> SubscribeEvent {
    SubscribeEvent::new(client(), Arc::default(), "a".into(), Bytes::new())
}

fn granted() -> Vec<u8> {
    let subscribe_response =
        Some(pb::SubscribeResponse { result: Some(Default::default()), ..Default::default() });
    pb::StreamSubscribeResponse { subscribe_response, publication: None }.encode_to_vec()
}

#[tokio::test]
async fn rpc_is_a_unary_call_with_credentials() {
    let result = Some(pb::RpcResult { data: "[1]".into(), b64data: String::new() });
    let answer = pb::RpcResponse { result, ..pb::RpcResponse::default() }.encode_to_vec();
    let (address, mut got) = backend(Script { messages: vec![answer], status: Some("0") }).await;
    let data = Bytes::from_static(b"\xff");
    let event = RpcEvent::new(client(), Arc::default(), "m".into(), data);
    let answer = hooks(&address).rpc.expect("there is one").call(event, route()).await;
    assert_eq!(answer, Ok(Some("[1]".into())));
    let mut got = got.recv().await.expect("one request");
    assert_eq!(got.path, "/centrifugal.centrifugo.proxy.CentrifugoProxy/RPC");
    assert_eq!(got.metadata, "secret");
    let message = got.messages.recv().await.expect("one message");
    let request = pb::RpcRequest::decode(message).expect("a request");
    let expected = pb::RpcRequest {
        client: "c".into(),
        encoding: "json".into(),
        user: "42".into(),
        method: "m".into(),
        data: Bytes::from_static(b"\xff"),
        ..pb::RpcRequest::default()
    };
    assert_eq!(request, expected);
}

#[tokio::test]
async fn a_status_other_than_ok_is_no_answer() {
    let (address, _got) = backend(Script { messages: Vec::new(), status: Some("13") }).await;
    let rpc = hooks(&address).rpc.expect("there is one");
    let answer = rpc.call(RpcEvent::default(), route()).await;
    assert!(
        matches!(&answer, Err(Rejection::Unavailable(cause)) if cause.contains("Internal")),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_stream_without_a_first_message_is_no_answer() {
    let (address, _got) = backend(Script { messages: Vec::new(), status: None }).await;
    let subscribe = hooks(&address).subscribe.expect("there is one");
    let answer = subscribe.call(subscribe_event(), stream(false)).await;
    assert!(
        matches!(&answer, Err(Rejection::Unavailable(cause)) if cause.contains("in time")),
        "{answer:?}"
    );
    let publication = Some(pb::Publication { data: "1".into(), ..Default::default() });
    let first = pb::StreamSubscribeResponse { publication, ..Default::default() }.encode_to_vec();
    let (address, _got) = backend(Script { messages: vec![first], status: None }).await;
    let subscribe = hooks(&address).subscribe.expect("there is one");
    let answer = subscribe.call(subscribe_event(), stream(false)).await;
    assert!(
        matches!(&answer, Err(Rejection::Unavailable(cause)) if cause.contains("subscribe_response")),
        "{answer:?}"
    );
}

#[tokio::test]
async fn publications_of_a_client_go_up_a_stream_both_ways() {
    let (address, mut got) = backend(Script { messages: vec![granted()], status: None }).await;
    let hooks = hooks(&address);
    let publish = hooks.publish.expect("there is one");
    let event =
        |data: &'static str| PublishEvent::new(client(), Arc::default(), "a".into(), data.into());
    let denied = Err(Rejection::Error(ErrorCode::PERMISSION_DENIED.into()));
    assert_eq!(publish.call(event("0"), stream(true)).await, denied, "not subscribed");
    let grant = hooks.subscribe.expect("there is one").call(subscribe_event(), stream(true)).await;
    let grant = grant.expect("granted").expect("decided");
    assert_eq!(grant.overrides.force_recovery, Some(false));
    let processed = PublishGrant { is_processed: true, ..PublishGrant::default() };
    assert_eq!(publish.call(event("1"), stream(true)).await, Ok(Some(processed)));
    let mut got = got.recv().await.expect("one request");
    assert!(got.path.ends_with("/SubscribeBidirectional"), "{}", got.path);
    let first = got.messages.recv().await.expect("the request");
    let first = pb::StreamSubscribeRequest::decode(first).expect("a message");
    assert_eq!(first.subscribe_request.expect("the request").channel, "a");
    let second = got.messages.recv().await.expect("the publication");
    let second = pb::StreamSubscribeRequest::decode(second).expect("a message");
    assert_eq!(second.publication.expect("a publication").data, "1");
    // The end of the subscription ends the stream.
    let report = hooks.report.expect("there is one");
    report(ClientReport::Unsubscribed { client: client(), channel: "a".into() });
    assert_eq!(got.messages.recv().await, None);
    assert_eq!(publish.call(event("2"), stream(true)).await, denied);
}

#[tokio::test]
async fn a_client_cannot_publish_into_a_stream_one_way() {
    let (address, _got) = backend(Script { messages: vec![granted()], status: None }).await;
    let hooks = hooks(&address);
    let grant = hooks.subscribe.expect("there is one").call(subscribe_event(), stream(false)).await;
    assert!(grant.expect("granted").is_some());
    let event = PublishEvent::new(client(), Arc::default(), "a".into(), Bytes::new());
    let refused = Err(Rejection::Error(ErrorCode::NOT_AVAILABLE.into()));
    let publish = hooks.publish.expect("there is one");
    assert_eq!(publish.call(event, stream(false)).await, refused);
}
