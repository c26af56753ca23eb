//! Calls by gRPC against the same calls by HTTP, on two nodes with the same calls before; keys, modes, pieces of streams.
//! In: a table of calls. Out: equal answers, statuses.
//! Uses `HttpApi` and `GrpcApi` over nodes in memory; never a socket.
//! Changed here: tests of `grpc.rs`. A call that both forms must answer equally is a row of `CALLS`.

use std::net::Ipv4Addr;
use std::time::Duration;

use axum::body::Body;
use fanwire_node::options::{
    DataFormat, MapMode, MapOptions, Namespace, NamespacePollOptions, SubscriptionType,
};
use fanwire_node::shared_poll::PollMode;
use fanwire_node::{Node, Options};
use http::{HeaderName, Request};
use proptest::prelude::*;
use prost_reflect::{DynamicMessage, Value};
use serde_json::Value as Json;

use super::*;
use crate::ApiOptions;
use crate::http::HttpApi;
use crate::protobuf::frame;
use crate::protobuf::tests::{bytes, descriptor, dynamic};

const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

/// Methods with their parameters, in the order in which both nodes get them.
const CALLS: &[(&str, &str)] = &[
    ("Publish", r#"{"channel":"a","data":{"a":1}}"#),
    ("Publish", r#"{"data":{}}"#),
    ("Publish", r#"{"channel":"a"}"#),
    ("Publish", r#"{"channel":"none:a","data":{}}"#),
    ("Publish", r#"{"channel":"a","b64data":"?"}"#),
    ("Publish", r#"{"channel":"a","data":1,"delivery":"never"}"#),
    ("Publish", r#"{"channel":"a","data":1,"place":{"x":1,"y":2}}"#),
    ("Publish", r#"{"channel":"kept:a","data":[1],"tags":{"k":"v"}}"#),
    ("Publish", r#"{"channel":"kept:a","b64data":"AAEC","idempotency_key":"once"}"#),
    ("Publish", r#"{"channel":"kept:a","b64data":"AAEC","idempotency_key":"once"}"#),
    ("Publish", r#"{"channel":"kept:a","data":2,"skip_history":true}"#),
    ("Broadcast", r#"{"channels":["a","kept:a","none:a",""],"data":"x"}"#),
    ("Broadcast", r#"{"data":"x"}"#),
    ("Subscribe", r#"{"channel":"a","user":"u","override":{"presence":{"value":true}}}"#),
    ("Subscribe", r#"{"channel":"a","user":"u","expire_at":1}"#),
    ("Subscribe", r#"{"user":"u"}"#),
    ("Unsubscribe", r#"{"channel":"a","user":"u"}"#),
    ("Unsubscribe", r#"{"channel":"none:a","user":"u"}"#),
    ("Disconnect", r#"{"user":"u","disconnect":{"code":4000,"reason":"r"},"whitelist":["a","b"]}"#),
    ("Disconnect", r#"{"user":"u","disconnect":{"code":99}}"#),
    ("Refresh", r#"{"user":"u","expired":true}"#),
    ("Presence", r#"{"channel":"here:a"}"#),
    ("Presence", r#"{"channel":"here:a","limit":10}"#),
    ("Presence", r#"{"channel":"here:a","limit":10001}"#),
    ("Presence", r#"{"channel":"here:a","cursor":"x"}"#),
    ("Presence", r#"{"channel":"a"}"#),
    ("Presence", "{}"),
    ("PresenceStats", r#"{"channel":"here:a"}"#),
    ("PresenceStats", r#"{"channel":"none:a"}"#),
    ("History", r#"{"channel":"kept:a","limit":1,"reverse":true}"#),
    ("History", r#"{"channel":"kept:a"}"#),
    ("History", r#"{"channel":"kept:a","limit":-1,"since":{"offset":1,"epoch":"x"}}"#),
    ("History", r#"{"channel":"a","limit":1}"#),
    ("HistoryRemove", r#"{"channel":"kept:a"}"#),
    ("HistoryRemove", r#"{"channel":"a"}"#),
    ("Channels", "{}"),
    ("Channels", r#"{"pattern":"*","limit":1,"cursor":"a"}"#),
    ("Channels", r#"{"limit":10001}"#),
    ("Channels", r#"{"pattern":"[a"}"#),
    ("RPC", r#"{"method":"m","params":{"a":1}}"#),
    ("RPC", "{}"),
    ("Connections", r#"{"user":"u"}"#),
    ("Connections", r#"{"user":"u","limit":10,"cursor":"x"}"#),
    ("Connections", r#"{"user":"u","limit":10001}"#),
    ("Connections", r#"{"user":"u","expression":"e"}"#),
    ("UpdateUserStatus", r#"{"users":["u"],"state":"s"}"#),
    ("UpdateUserStatus", "{}"),
    ("GetUserStatus", r#"{"users":["unknown"]}"#),
    ("DeleteUserStatus", r#"{"users":["u"]}"#),
    ("BlockUser", r#"{"user":"b"}"#),
    ("BlockUser", r#"{"user":"b","expire_at":-1}"#),
    ("UnblockUser", r#"{"user":"b"}"#),
    ("RevokeToken", r#"{"uid":"t"}"#),
    ("RevokeToken", "{}"),
    ("InvalidateUserTokens", r#"{"user":"b","issued_before":5,"channel":"a"}"#),
    ("SetView", r#"{"client":"x","channel":"a","view":{}}"#),
    ("Snapshot", r#"{"node":"none"}"#),
    ("Snapshot", r#"{"node":"none","limit":5000}"#),
    ("Rebalance", r#"{"rate":5}"#),
    ("Rebalance", r#"{"node":"none"}"#),
    ("Evacuate", "{}"),
    ("Evacuate", r#"{"node":"none","percent":50,"rate":1}"#),
    ("Evacuate", r#"{"node":"none","percent":101}"#),
    ("ConnectionLog", r#"{"user":"none","limit":5}"#),
    ("ConnectionLog", r#"{"client":"x","limit":500}"#),
    ("ConnectionLog", "{}"),
    ("PublicationReport", r#"{"report":"00000000000000ff"}"#),
    ("PublicationReport", r#"{"report":"x"}"#),
    ("HotLists", r#"{"limit":101}"#),
    ("ClusterClock", "{}"),
    ("NodeConfig", r#"{"all":true}"#),
    ("Dump", "{}"),
    ("DebugFor", r#"{"users":["u"],"addresses":["10.0.0.1"],"seconds":0}"#),
    ("DebugFor", r#"{"addresses":["no address"]}"#),
    ("DebugFor", r#"{"channels":["a"],"seconds":86401}"#),
    ("Disconnect", r#"{"all_users":true,"label_filter":{"key":"a","cmp":"eq","val":"b"}}"#),
    (
        "Unsubscribe",
        r#"{"all_users":true,"channel":"a","label_filter":{"op":"not","nodes":[{"key":"a","cmp":"wrong"}]}}"#,
    ),
    ("Append", r#"{"channel":"kept:b","key":"k","data":"text","at":0}"#),
    ("Append", r#"{"channel":"kept:b","key":"k","data":"text","at":0,"final":true}"#),
    ("Append", r#"{"channel":"kept:b","key":"k","data":"more"}"#),
    ("Append", r#"{"channel":"kept:b","key":"f","data":{"t":"x","n":1},"append_field":"t"}"#),
    ("Append", r#"{"channel":"kept:b","key":"g","data":"late","at":7}"#),
    ("Append", r#"{"channel":"kept:b","data":"no key"}"#),
    ("Append", r#"{"channel":"a","key":"k","data":""}"#),
    ("MapPublish", r#"{"channel":"a","key":"k","data":1,"score":-5}"#),
    ("MapRemove", r#"{"channel":"none:a"}"#),
    ("MapReadState", r#"{"channel":"a","limit":5}"#),
    ("MapReadStream", "{}"),
    ("MapStats", r#"{"channel":"a"}"#),
    ("MapClear", r#"{"channel":"a"}"#),
    ("MapPublish", r#"{"channel":"board:a","key":"k","data":1,"tags":{"t":"1"},"version":3}"#),
    ("MapPublish", r#"{"channel":"board:a","key":"k","data":1,"version":3}"#),
    ("MapPublish", r#"{"channel":"board:a","key":"k","data":2,"key_mode":"if_new"}"#),
    (
        "MapPublish",
        r#"{"channel":"board:a","key":"k","data":2,"expected_offset":0,"expected_epoch":"ABCDEFGH"}"#,
    ),
    ("MapReadState", r#"{"channel":"board:a","limit":-1}"#),
    ("MapReadState", r#"{"channel":"board:a","limit":1,"key":"k","revision_epoch":"ABCDEFGH"}"#),
    ("MapStats", r#"{"channel":"board:a"}"#),
    (
        "MapRemove",
        r#"{"channel":"board:a","key":"k","expected_offset":7,"expected_epoch":"ABCDEFGH"}"#,
    ),
    ("MapRemove", r#"{"channel":"board:a","key":"k","idempotency_key":"i"}"#),
    ("MapReadStream", r#"{"channel":"board:a","limit":-1,"reverse":true}"#),
    ("MapReadStream", r#"{"channel":"board:a","limit":2,"since_offset":9}"#),
    ("SharedPollPublish", r#"{"channel":"a","version":7}"#),
    ("SharedPollPublish", r#"{"channel":"polled:a","key":"k","data":1,"version":7,"epoch":"e"}"#),
    ("SharedPollPublish", r#"{"channel":"polled:a","key":"k","data":1}"#),
    (
        "Batch",
        r#"{"commands":[{"publish":{"channel":"a","data":{}}},{"presence":{"channel":"here:a"}},{},
            {"publish":{"channel":"none:a","data":{}}},{"map_stats":{"channel":"a"}},{"history":{"channel":"kept:a"}},
            {"unsubscribe":{"user":"u"}},{"rpc":{"method":"m"}}],"parallel":true}"#,
    ),
    ("Batch", r#"{"commands":[]}"#),
];

fn api(options: ApiOptions) -> Arc<Api> {
    let mut of_node = Options::default();
    let namespace = |name: &str| Namespace {
        name: name.to_owned(),
        publication_data_format: DataFormat::Unset,
        ..Namespace::default()
    };
    of_node.channel.namespaces = vec![
        Namespace {
            history_size: 10,
            history_ttl: Duration::from_secs(60),
            publication_data_format: DataFormat::Binary,
            ..namespace("kept")
        },
        Namespace { presence: true, ..namespace("here") },
        Namespace {
            subscription_type: SubscriptionType::Map,
            map: MapOptions { mode: MapMode::Persistent, ..MapOptions::default() },
            ..namespace("board")
        },
        Namespace {
            subscription_type: SubscriptionType::SharedPoll,
            shared_poll: NamespacePollOptions {
                mode: PollMode::Versioned,
                publish_enabled: true,
                ..NamespacePollOptions::default()
            },
            ..namespace("polled")
        },
    ];
    of_node.shared_poll.hmac_secret_key = "a secret of tests".into();
    Arc::new(Api::new(Node::new(of_node).expect("valid options"), options))
}

fn grpc_api(key: &str, error_mode: ErrorMode) -> GrpcApi {
    let insecure = key.is_empty();
    GrpcApi::new(api(ApiOptions { key: key.into(), insecure, error_mode, ..Default::default() }))
}

fn metadata(rows: &[(&'static str, &str)]) -> HeaderMap {
    let rows = rows.iter().map(|(name, value)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).expect("ASCII"))
    });
    rows.collect()
}

async fn call(api: &GrpcApi, method: &str, message: &[u8]) -> Result<Vec<u8>, GrpcError> {
    let method = api.method(&format!("{SERVICE}{method}")).expect("a method");
    api.call(method, &HeaderMap::new(), message, PEER, &KeyHolder::default()).await
}

async fn post(api: &HttpApi, method: &str, body: &str) -> (u16, Json) {
    let path = format!("/api/{}", protobuf::rpc(method).expect("a method").method.name());
    let request = Request::post(&path).body(Body::from(body.to_owned())).expect("a request");
    let route = api.route(&path).expect("a path");
    let request = api.read(route, request, PEER).await.expect("a request");
    let response = api.answer(request).await;
    let json = serde_json::from_slice(response.body()).expect("JSON");
    (response.status().as_u16(), json)
}

/// Empties what differs between nodes: epochs, times of dumps and of changes.
fn without_epochs(json: &mut Json) {
    match json {
        Json::Object(fields) => {
            fields.remove("epoch");
            fields.remove("unix");
            fields.remove("time");
            fields.values_mut().for_each(without_epochs);
        }
        Json::Array(items) => items.iter_mut().for_each(without_epochs),
        _ => {}
    }
}

fn clear_epochs(message: &mut DynamicMessage) {
    message.clear_field_by_name("epoch");
    message.clear_field_by_name("unix");
    message.clear_field_by_name("time");
    message.fields_mut().for_each(|(_, value)| match value {
        Value::Message(message) => clear_epochs(message),
        Value::List(items) => items.iter_mut().for_each(|item| {
            item.as_message_mut().into_iter().for_each(clear_epochs);
        }),
        _ => {}
    });
}

#[tokio::test]
async fn both_forms_answer_equally() {
    let grpc = grpc_api("", ErrorMode::Body);
    let http = HttpApi::new(api(ApiOptions { insecure: true, ..Default::default() }));
    for (method, parameters) in CALLS {
        let json: Json = serde_json::from_str(parameters).expect("JSON");
        let (_, mut expect) = post(&http, method, parameters).await;
        without_epochs(&mut expect);
        let response = call(&grpc, method, &bytes(&format!("{method}Request"), &json)).await;
        let descriptor = descriptor(&format!("{method}Response"));
        let mut message = DynamicMessage::decode(descriptor.clone(), &*response.expect("OK"))
            .expect("a response");
        clear_epochs(&mut message);
        let expect = prost::Message::encode_to_vec(&dynamic(&descriptor, &expect));
        let expect = DynamicMessage::decode(descriptor, &expect[..]).expect("a message");
        assert_eq!(message, expect, "{method} {parameters}");
    }
    let calls = Method::ALL.map(|method| (method, grpc.api().counters().of(method).calls));
    for (method, calls) in calls.into_iter().filter(|(method, _)| *method != Method::Info) {
        assert!(calls > 0, "{} is in the table", method.name());
        assert_eq!(calls, http.api().counters().of(method).calls, "{}", method.name());
    }
}

#[tokio::test]
async fn in_transport_mode_errors_are_statuses_with_details() {
    let grpc = grpc_api("", ErrorMode::Transport);
    let options =
        ApiOptions { insecure: true, error_mode: ErrorMode::Transport, ..Default::default() };
    let http = HttpApi::new(api(options));
    for (method, parameters) in CALLS {
        let json: Json = serde_json::from_str(parameters).expect("JSON");
        let (status, body) = post(&http, method, parameters).await;
        let outcome = call(&grpc, method, &bytes(&format!("{method}Request"), &json)).await;
        let Err(error) = outcome else {
            assert_eq!(status, 200, "{method} {parameters}");
            continue;
        };
        assert_ne!(*method, "Batch");
        let row = ApiError::TABLE.into_iter().find(|row| body["code"] == row.code);
        let row = row.expect("a known code");
        assert_eq!((status, error.code), (row.http_status, row.grpc_status), "{method}");
        assert_eq!(body["message"], *error.message);
        let packed = bytes("Error", &body);
        assert!(error.details.ends_with(&packed), "{method} {:x?}", error.details);
    }
    let grpc = grpc_api("", ErrorMode::Body);
    let method = grpc.method(&format!("{SERVICE}Publish")).expect("a method");
    let check = async |value, is_error| {
        let metadata = metadata(&[("x-centrifugo-error-mode", value)]);
        let outcome = grpc.call(method, &metadata, b"", PEER, &KeyHolder::default()).await;
        assert_eq!(outcome.is_err(), is_error, "{value}");
    };
    check("transport", true).await;
    check("other", false).await;
}

#[tokio::test]
async fn a_batch_that_is_refused_as_a_whole_is_a_status() {
    let grpc = grpc_api("", ErrorMode::Body);
    let info = b"\x0a\x02\x6a\x00";
    let error = call(&grpc, "Batch", &info.repeat(crate::BATCH_COMMANDS_MAX + 1)).await;
    let error = error.expect_err("a status");
    assert_eq!((error.code, &*error.message), (3, "bad request"));
    assert_eq!(call(&grpc, "Batch", b"").await, Ok(Vec::new()), "no list is an empty one");
}

#[test]
fn the_key_must_be_exact() {
    let check = |key, rows: &[(&'static str, &str)], code| {
        let outcome = grpc_api(key, ErrorMode::Body).authorize(&metadata(rows), "Publish", PEER);
        assert_eq!(outcome.err().map(|error| error.code), code, "{rows:?}");
    };
    check("k", &[("authorization", "apikey k")], None);
    check("k", &[("authorization", "apikey K")], Some(UNAUTHENTICATED));
    check("k", &[("authorization", "Apikey k")], Some(UNAUTHENTICATED));
    check("k", &[("authorization", "apikey  k")], Some(UNAUTHENTICATED));
    check("k", &[("authorization", "apikey ")], Some(UNAUTHENTICATED));
    check("k", &[("x-api-key", "k")], Some(UNAUTHENTICATED));
    check("k", &[], Some(UNAUTHENTICATED));
    check("", &[], None);
    let api = grpc_api("", ErrorMode::Body);
    api.api().set_closing(true);
    let error = api.authorize(&HeaderMap::new(), "Publish", PEER).expect_err("it stops");
    assert_eq!(error.code, UNAVAILABLE);
}

#[tokio::test]
async fn other_paths_have_no_method_and_other_bytes_no_answer() {
    let api = grpc_api("", ErrorMode::Body);
    for path in ["/centrifugal.centrifugo.api.CentrifugoApi/DeviceRegister", "/x", "", STREAM_PATH]
    {
        assert!(api.method(path).is_none(), "{path}");
    }
    let error = call(&api, "Publish", b"\x0a\x05a").await.expect_err("it is cut off");
    assert_eq!(error.code, INTERNAL);
    assert_eq!(error.message, "the request message is invalid: the message is cut off");
    assert_eq!(api.api().counters().refusals().malformed, 1);
}

fn framed(messages: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    messages.iter().for_each(|message| frame(message, &mut out));
    out
}

#[test]
fn invalid_messages_end_a_stream_after_those_before_them() {
    let check = |body: &[u8], messages: usize, code| {
        let mut splitter = grpc_api("", ErrorMode::Body).messages();
        splitter.bytes_max = 3;
        let found = splitter.push(Bytes::copy_from_slice(body)).len();
        splitter.end();
        let failure = splitter.failure().map(|error| error.code);
        assert_eq!((found, failure), (messages, code), "{body:x?}");
        assert_eq!(splitter.push(framed(&[b"a"]).into()).len(), usize::from(code.is_none()));
    };
    check(b"", 0, None);
    check(&framed(&[b"", b"abc"]), 2, None);
    check(&framed(&[b"a", b"abcd", b"a"]), 1, Some(RESOURCE_EXHAUSTED));
    check(b"\0\0\0\0\x01a\x01\0\0\0\0", 1, Some(UNIMPLEMENTED));
    check(b"\0\xff\xff\xff\xff", 0, Some(RESOURCE_EXHAUSTED));
    check(b"\0\0\0\0\x02a", 0, Some(INTERNAL));
    check(b"\0\0", 0, Some(INTERNAL));
}

proptest! {
    #[test]
    fn the_pieces_of_a_stream_do_not_matter(sizes in prop::collection::vec(0..9_usize, 0..6), piece in 1..20_usize) {
        let messages: Vec<Vec<u8>> = sizes.iter().map(|size| vec![7; *size]).collect();
        let body = framed(&messages.iter().map(|message| &message[..]).collect::<Vec<_>>());
        let mut splitter = grpc_api("", ErrorMode::Body).messages();
        let pieces = body.chunks(piece).flat_map(|piece| splitter.push(Bytes::copy_from_slice(piece)));
        let found: Vec<Line> = pieces.collect();
        let expect: Vec<Line> = messages.into_iter().map(|message| Line::Message(message.into())).collect();
        prop_assert_eq!(found, expect);
    }
}

#[tokio::test]
async fn commands_of_a_stream_are_answered_in_their_order() {
    let api = grpc_api("", ErrorMode::Body);
    let command = |json: &str| bytes("Command", &serde_json::from_str(json).expect("JSON"));
    let commands = [
        command(r#"{"publish":{"channel":"a","data":1}}"#),
        b"\xff".to_vec(),
        command(r#"{"presence":{"channel":"here:a"}}"#),
        command("{}"),
    ];
    let commands = commands.map(|bytes| Line::Message(bytes.into()));
    let (answers, left) = api.api().answer_lines(commands.into(), &KeyHolder::default()).await;
    assert!(left.is_empty());
    let reply = |json: &str| bytes("Reply", &serde_json::from_str(json).expect("JSON"));
    let expect = [
        reply(r#"{"publish":{}}"#),
        reply(
            r#"{"error":{"code":107,"message":"bad request","cause":"the message is not a valid Command"}}"#,
        ),
        reply(r#"{"presence":{}}"#),
        reply(
            r#"{"error":{"code":104,"message":"not found","cause":"the command names no method of the API"}}"#,
        ),
    ];
    assert_eq!(answers, framed(&expect.each_ref().map(|reply| &reply[..])));
}
