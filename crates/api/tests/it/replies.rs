//! Golden replies of each method, for valid and invalid requests.
//! In: path and body. Out: the whole reply as text.
//! Uses the test harness only.
//! Replies that depend on subscribers are in `control`, the messages of subscribers in `delivery`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fanwire_api::{ApiOptions, BATCH_COMMANDS_MAX, BROADCAST_CHANNELS_MAX};
use fanwire_node::{Meters, Node};
use fanwire_telemetry::{Reading, ReadingKind};
use serde_json::{Value, json};

use crate::harness::{Answer, Harness, KEY, node_options, ok, plain};

async fn check(path: &str, body: &str, expect: Answer) {
    let answer = Harness::new().post(path, body.to_owned()).await;
    assert_eq!(answer, expect, "{path} {body}");
}

const BAD_REQUEST: &str = r#"{"error":{"code":107,"message":"bad request"}}"#;
const UNKNOWN_CHANNEL: &str = r#"{"error":{"code":102,"message":"unknown channel"}}"#;
const NOT_FOUND: &str = r#"{"error":{"code":104,"message":"not found"}}"#;
const EMPTY: &str = r#"{"result":{}}"#;

#[tokio::test]
async fn publish_answers_by_the_table() {
    let rows = [
        (r#"{"channel":"a","data":{}}"#, EMPTY),
        (r#"{"channel":"a","data":null}"#, EMPTY),
        (r#"{"channel":"a","data":[1, 2]}"#, EMPTY),
        (r#"{"channel":"a","data":"x","tags":{"k":"v"},"skip_history":true,"delta":true}"#, EMPTY),
        (r#"{"channel":"a","data":1,"version":18446744073709551615,"version_epoch":"e"}"#, EMPTY),
        (r#"{"channel":"a","data":1,"tags":null,"b64data":null,"idempotency_key":null}"#, EMPTY),
        (r#"{"channel":"a","data":1,"unknown":{"x":[1]}}"#, EMPTY),
        (r#"{"channel":"a","b64data":"AAE="}"#, EMPTY),
        (r#"{"channel":"blob:a","b64data":""}"#, EMPTY),
        (r#"{"channel":"blob:a"}"#, EMPTY),
        (r#"{"channel":"object:a","data":{"x":1}}"#, EMPTY),
        (r#"{"channel":"object:a","data":[]}"#, BAD_REQUEST),
        (r#"{"channel":"a"}"#, BAD_REQUEST),
        (r#"{"channel":"a","b64data":"AAE"}"#, BAD_REQUEST),
        (r#"{"channel":"a","data":1,"b64data":"%"}"#, BAD_REQUEST),
        (r#"{"data":{}}"#, BAD_REQUEST),
        (r#"{"channel":"","data":{}}"#, BAD_REQUEST),
        (r#"{"channel":null,"data":{}}"#, BAD_REQUEST),
        (r#"{}"#, BAD_REQUEST),
        (r#"{"channel":"nowhere:a","data":{}}"#, UNKNOWN_CHANNEL),
    ];
    for (body, expect) in rows {
        check("/api/publish", body, ok(expect)).await;
    }
}

#[tokio::test]
async fn broadcast_answers_each_channel_in_order() {
    let rows = [
        (r#"{"channels":["a"],"data":{}}"#, r#"{"result":{"responses":[{"result":{}}]}}"#),
        (
            r#"{"channels":["a","","nowhere:a","object:a","chat:a"],"data":1}"#,
            concat!(
                r#"{"result":{"responses":[{"result":{}},{"error":{"code":107,"message":"bad request"}},"#,
                r#"{"error":{"code":102,"message":"unknown channel"}},"#,
                r#"{"error":{"code":107,"message":"bad request"}},{"result":{}}]}}"#,
            ),
        ),
        (r#"{"channels":[],"data":{}}"#, BAD_REQUEST),
        (r#"{"data":{}}"#, BAD_REQUEST),
        (r#"{"channels":["a"],"b64data":"!"}"#, BAD_REQUEST),
    ];
    for (body, expect) in rows {
        check("/api/broadcast", body, ok(expect)).await;
    }
}

#[tokio::test]
async fn disconnect_accepts_codes_that_a_close_frame_may_have() {
    let rows = [
        (r#"{"user":"42"}"#, EMPTY),
        (r#"{}"#, EMPTY),
        (r#"{"user":"42","disconnect":null,"whitelist":["c"],"client":"x","session":"s"}"#, EMPTY),
        (r#"{"user":"42","disconnect":{}}"#, EMPTY),
        (r#"{"user":"42","disconnect":{"code":3014,"reason":"state invalidated"}}"#, EMPTY),
        (r#"{"user":"42","disconnect":{"code":4999,"reason":"x"}}"#, EMPTY),
        (r#"{"user":"42","disconnect":{"code":999}}"#, BAD_REQUEST),
        (r#"{"user":"42","disconnect":{"code":1005}}"#, BAD_REQUEST),
        (r#"{"user":"42","disconnect":{"code":5000}}"#, BAD_REQUEST),
        (r#"{"user":"42","disconnect":{"code":70000}}"#, BAD_REQUEST),
    ];
    for (body, expect) in rows {
        check("/api/disconnect", body, ok(expect)).await;
    }
}

#[tokio::test]
async fn unsubscribe_checks_the_namespace_of_a_given_channel_only() {
    let rows = [
        (r#"{"user":"42","channel":"chat:a"}"#, EMPTY),
        (r#"{"user":"42","channel":""}"#, EMPTY),
        (r#"{"user":"42"}"#, EMPTY),
        (r#"{"user":"42","channel":"nowhere:a"}"#, UNKNOWN_CHANNEL),
    ];
    for (body, expect) in rows {
        check("/api/unsubscribe", body, ok(expect)).await;
    }
}

#[tokio::test]
async fn channels_and_info_accept_an_empty_body() {
    check("/api/channels", "", ok(r#"{"result":{"channels":{}}}"#)).await;
    check("/api/channels", r#"{"pattern":null}"#, ok(r#"{"result":{"channels":{}}}"#)).await;
    for body in ["", "{}", r#"{"unknown":1}"#] {
        let answer = Harness::new().post("/api/info", body).await;
        let uid_at = r#"{"result":{"nodes":[{"uid":""#.len();
        let uid = &answer.body[uid_at..uid_at + 36];
        let expect = format!(
            concat!(
                r#"{{"result":{{"nodes":[{{"uid":"{}","name":"harness","version":"1.2.3","num_clients":0,"#,
                r#""num_users":0,"num_channels":0,"num_subs":0}}]}}}}"#,
            ),
            uid
        );
        assert_eq!(answer, ok(&expect), "{body}");
    }
}

#[tokio::test]
async fn info_returns_the_metrics_of_the_last_interval() {
    struct Total(AtomicU32);
    impl Meters for Total {
        fn read(&self) -> Vec<Reading> {
            let value = f64::from(self.0.fetch_add(3, Relaxed));
            vec![Reading {
                name: "client_commands.method.publish".into(),
                kind: ReadingKind::Total,
                value,
            }]
        }
    }
    let node = Node::new(node_options()).expect("the options are valid");
    node.summarise(Arc::new(Total(AtomicU32::new(7))));
    let harness =
        Harness::around(node.clone(), ApiOptions { key: KEY.into(), ..ApiOptions::default() });
    let start = Instant::now();
    node.tick(start);
    let at_start = harness.post("/api/info", "{}").await.body;
    assert!(at_start.contains(r#""client_commands.method.publish":7.0"#), "{at_start}");
    node.tick(start + Duration::from_secs(60));
    let info: Value =
        serde_json::from_str(&harness.post("/api/info", "{}").await.body).expect("JSON");
    let theirs = "centrifugo.client.command_duration_seconds.count.method.publish";
    let items = json!({"client_commands.method.publish": 3.0, theirs: 3.0});
    let expect = json!({"interval": 60.0, "items": items});
    assert_eq!(info["result"]["nodes"][0]["metrics"], expect);
}

#[tokio::test]
async fn rpc_has_no_function() {
    check("/api/rpc", r#"{"method":"f","params":{}}"#, ok(NOT_FOUND)).await;
    check("/api/rpc", r#"{"params":{}}"#, ok(BAD_REQUEST)).await;
}

#[tokio::test]
async fn methods_of_other_channel_kinds_refuse_streams() {
    let names = [
        "map_publish",
        "map_remove",
        "map_read_state",
        "map_read_stream",
        "map_stats",
        "map_clear",
        "shared_poll_publish",
    ];
    for name in names {
        let path = format!("/api/{name}");
        check(&path, r#"{"channel":"a","key":"k","data":{}}"#, ok(BAD_REQUEST)).await;
        check(&path, r#"{"channel":"chat:a"}"#, ok(BAD_REQUEST)).await;
        check(&path, "{}", ok(BAD_REQUEST)).await;
        check(&path, r#"{"channel":"nowhere:a","key":"k"}"#, ok(UNKNOWN_CHANNEL)).await;
        let wrong = "Bad Request: channel: invalid type: integer `1`, expected a string at line 1 column 12";
        check(&path, r#"{"channel":1}"#, plain(400, wrong)).await;
        let batch = format!(r#"{{"commands":[{{"{name}":{{"channel":"nowhere:a","key":"k"}}}}]}}"#);
        check("/api/batch", &batch, ok(&format!(r#"{{"replies":[{UNKNOWN_CHANNEL}]}}"#))).await;
    }
}

#[tokio::test]
async fn lists_at_their_limit_pass_and_longer_ones_are_refused() {
    let rows = [
        ("broadcast", r#"{"data":1,"channels":["#, r#""a""#, BROADCAST_CHANNELS_MAX),
        ("batch", r#"{"commands":["#, "null", BATCH_COMMANDS_MAX),
    ];
    for (method, head, item, max) in rows {
        let mut harness = Harness::new();
        harness.subscriber(0, "42", &["a"]);
        let body = |items: usize| format!("{head}{}]}}", vec![item; items].join(","));
        let path = format!("/api/{method}");
        assert_eq!(harness.post(&path, body(max + 1)).await, ok(BAD_REQUEST), "{method}");
        assert_eq!(harness.post(&path, body(3 * max)).await, ok(BAD_REQUEST), "{method}");
        assert!(harness.messages_of(0).is_empty(), "{method}");
        let most = harness.post(&path, body(max)).await;
        assert!(most.status == 200 && most.body.len() > 10 * max, "{method}");
    }
}
