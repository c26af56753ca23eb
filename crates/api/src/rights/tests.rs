//! Tests of rights: which commands a key permits.
//! In: rights of keys, commands → out: errors, counts.
//! Uses a node without clients. Never: HTTP, gRPC.
//! A right of a key gets a test here.

use fanwire_node::{Node, options::Options};

use super::*;
use crate::{ApiKeyOptions, ApiOptions, Method};

fn api() -> Api {
    Api::new(Node::new(Options::default()).expect("valid"), ApiOptions::default())
}

fn rights(methods: &[&str], namespaces: &[&str]) -> ApiKeyOptions {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let methods = texts(methods);
    let namespaces = texts(namespaces);
    ApiKeyOptions { key: "secret".into(), methods, namespaces, ..ApiKeyOptions::default() }
}

fn command(method: Method, json: &str) -> Command {
    method.decode(json).expect("a command")
}

#[test]
fn a_key_permits_its_methods_and_the_channels_of_its_namespaces() {
    let api = api();
    let publisher = KeyHolder::new("shop", rights(&["publish", "broadcast"], &["shop", ""]));
    let reader = KeyHolder::new("reader", rights(&["info", "channels"], &["shop"]));
    let free = KeyHolder::new("free", rights(&[], &[]));
    let maps = KeyHolder::new("maps", rights(&[], &["shop"]));
    for (caller, method, json, expected) in [
        (&publisher, Method::Publish, r#"{"channel":"shop:1","data":1}"#, true),
        (&publisher, Method::Publish, r#"{"channel":"$shop:1","data":1}"#, true),
        (&publisher, Method::Publish, r#"{"channel":"news","data":1}"#, true),
        (&publisher, Method::Publish, r#"{"channel":"chat:1","data":1}"#, false),
        (&publisher, Method::Broadcast, r#"{"channels":["shop:1","chat:1"],"data":1}"#, false),
        (&publisher, Method::Info, "{}", false),
        (&publisher, Method::MapStats, r#"{"channel":"shop:1"}"#, false),
        (&maps, Method::MapPublish, r#"{"channel":"shop:1","key":"k","data":1}"#, true),
        (&maps, Method::MapClear, r#"{"channel":"chat:1"}"#, false),
        (&maps, Method::MapRemove, r#"{"channel":"chat:1","key":"k"}"#, false),
        (&maps, Method::MapReadState, r#"{"channel":"chat:1"}"#, false),
        (&maps, Method::MapReadStream, r#"{"channel":"chat:1"}"#, false),
        (&maps, Method::MapStats, r#"{"channel":"chat:1"}"#, false),
        (&maps, Method::SharedPollPublish, r#"{"channel":"shop:1"}"#, true),
        (&maps, Method::SharedPollPublish, r#"{"channel":"chat:1"}"#, false),
        (&reader, Method::Info, "{}", true),
        (&reader, Method::Publish, r#"{"channel":"shop:1","data":1}"#, false),
        (&free, Method::Disconnect, r#"{"user":"1"}"#, true),
        (&free, Method::Unsubscribe, r#"{"user":"1"}"#, true),
    ] {
        let admitted = caller.admit(&api.node, command(method, json), Instant::now());
        assert_eq!(admitted.is_ok(), expected, "{} {json}", caller.name);
        assert!(admitted.is_ok() || admitted == Err(ApiError::PERMISSION_DENIED));
    }
    assert_eq!(publisher.counts(), [7, 4, 0]);
    // An empty channel stands for all of them.
    let limited = KeyHolder::new("limited", rights(&[], &["", "shop"]));
    let all = command(Method::Unsubscribe, r#"{"user":"1"}"#);
    assert_eq!(limited.admit(&api.node, all, Instant::now()), Err(ApiError::PERMISSION_DENIED));
}

#[tokio::test]
async fn a_batch_runs_what_is_permitted_and_answers_103_for_the_rest() {
    let api = api();
    let caller = KeyHolder::new("shop", rights(&["info", "batch"], &[]));
    let batch = r#"{"commands":[{"info":{}},{"channels":{}},{"info":{}}]}"#;
    let admitted =
        caller.admit(&api.node, command(Method::Batch, batch), Instant::now()).expect("a batch");
    let Ok(Outcome::Batch(reply)) = api.run(admitted).await else { panic!("a batch") };
    let json = serde_json::to_value(reply).expect("JSON");
    assert_eq!(json["replies"][1]["error"]["code"], 103, "{json}");
    assert!(json["replies"][0]["info"].is_object() && json["replies"][2]["info"].is_object());
    assert_eq!(caller.counts(), [3, 1, 0]);
}
