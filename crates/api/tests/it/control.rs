//! Methods that act on connections or count them: subscribe, unsubscribe, refresh, disconnect, channels, info.
//! In: requests over HTTP. Out: the messages of connections, and counts after the request.
//! Uses the test harness with a hub and its in-memory connections.
//! The selection of connections by a target is tested in the node.

use std::sync::Arc;
use std::time::Instant;

use fanwire_api::ApiOptions;
use fanwire_broker::{
    Answer, RevocationChange, RevocationCursor, RevocationListener, RevocationPage, RevocationStore,
};
use fanwire_node::{Node, NodeParts};

use crate::harness::{Harness, KEY, node_options, ok};

const DONE: &str = r#"{"result":{}}"#;
const FORGOTTEN: &str = r#"{"result":{"forgotten_at_restart":true}}"#;

fn harness() -> Harness {
    let mut harness = Harness::new();
    harness.subscriber(0, "42", &["chat:a", "b"]);
    harness.subscriber(1, "43", &["chat:a"]);
    harness
}

#[tokio::test]
async fn disconnect_closes_the_users_connections_with_the_given_code() {
    let rows = [
        (r#"{"user":"42"}"#, "close 3503 force disconnect"),
        (
            r#"{"user":"42","disconnect":{"code":3014,"reason":"state invalidated"}}"#,
            "close 3014 state invalidated",
        ),
        (r#"{"user":"42","disconnect":{"code":4501}}"#, "close 4501 force disconnect"),
        (r#"{"user":"42","Disconnect":{"code":4001,"reason":"gocent"}}"#, "close 4001 gocent"),
        (r#"{"user":"42","disconnect":{"reason":"x"}}"#, "close 3503 force disconnect"),
    ];
    for (body, expect) in rows {
        let mut harness = harness();
        assert_eq!(harness.post("/api/disconnect", body).await, ok(DONE));
        assert_eq!(harness.messages_of(0), [expect], "{body}");
        assert!(harness.messages_of(1).is_empty(), "{body}");
    }
}

#[tokio::test]
async fn disconnect_skips_whitelisted_clients_in_both_spellings() {
    for key in ["whitelist", "ClientWhitelist"] {
        let mut harness = Harness::new();
        let spared = harness.subscriber(0, "42", &["b"]);
        let body = format!(r#"{{"user":"42","Disconnect":null,"{key}":["{spared}"]}}"#);
        assert_eq!(harness.post("/api/disconnect", body).await, ok(DONE));
        assert!(harness.messages_of(0).is_empty(), "{key}");
        let absent = format!(r#"{{"user":"42","{key}":null}}"#);
        assert_eq!(harness.post("/api/disconnect", absent).await, ok(DONE));
        assert_eq!(harness.messages_of(0), ["close 3503 force disconnect"], "{key}");
    }
}

#[tokio::test]
async fn disconnect_without_a_matching_connection_is_no_error() {
    let mut harness = harness();
    for body in [r#"{"user":"44"}"#, r#"{}"#, r#"{"user":"42","client":"no-such-client"}"#] {
        assert_eq!(harness.post("/api/disconnect", body).await, ok(DONE));
        assert!(harness.messages_of(0).is_empty(), "{body}");
    }
}

#[tokio::test]
async fn unsubscribe_ends_one_channel_or_all_with_code_2000() {
    let push = |channel: &str| {
        format!(
            r#"{{"push":{{"channel":"{channel}","unsubscribe":{{"code":2000,"reason":"server unsubscribe"}}}}}}"#
        )
    };
    let mut one = harness();
    assert_eq!(one.post("/api/unsubscribe", r#"{"user":"42","channel":"chat:a"}"#).await, ok(DONE));
    assert_eq!(one.messages_of(0), [push("chat:a")]);
    assert!(one.messages_of(1).is_empty());

    let mut all = harness();
    assert_eq!(all.post("/api/unsubscribe", r#"{"user":"42"}"#).await, ok(DONE));
    let mut messages = all.messages_of(0);
    messages.sort();
    assert_eq!(messages, [push("b"), push("chat:a")]);
}

/// The messages of the connections of user 42 after a subscribe.
async fn subscribed(body: &str) -> Vec<String> {
    let mut harness = harness();
    assert_eq!(harness.post("/api/subscribe", body.to_owned()).await, ok(DONE), "{body}");
    assert!(harness.messages_of(1).is_empty(), "{body}");
    harness.messages_of(0)
}

fn subscribe_push(channel: &str, fields: &str) -> String {
    format!(r#"{{"push":{{"channel":"{channel}","subscribe":{{{fields}}}}}}}"#)
}

#[tokio::test]
async fn subscribe_subscribes_connections_and_sends_data() {
    let rows = [
        (r#"{"user":"42","channel":"new"}"#, ""),
        (r#"{"user":"42","channel":"new","data":{"a": [1]}}"#, r#""data":{"a": [1]}"#),
        (r#"{"user":"42","channel":"new","data":null,"info":null,"override":null}"#, ""),
        (r#"{"user":"42","channel":"new","data":1,"b64data":"WzJd"}"#, r#""data":[2]"#),
        (r#"{"user":"42","channel":"new","expire_at":0,"recover_since":null}"#, ""),
        (r#"{"user":"42","channel":"new","expire_at":9999999999}"#, ""),
    ];
    for (body, fields) in rows {
        assert_eq!(subscribed(body).await, [subscribe_push("new", fields)], "{body}");
    }
}

#[tokio::test]
async fn subscribe_without_a_new_subscriber_is_no_error() {
    for body in [
        r#"{"user":"42","channel":"b"}"#,
        r#"{"user":"44","channel":"new"}"#,
        r#"{"channel":"new"}"#,
        r#"{"user":"42","channel":"new","session":"unknown"}"#,
        r#"{"user":"42","channel":"new","client":"no-such-client"}"#,
    ] {
        assert!(subscribed(body).await.is_empty(), "{body}");
    }
}

#[tokio::test]
async fn subscribe_refuses_invalid_requests() {
    let unknown = r#"{"error":{"code":102,"message":"unknown channel"}}"#;
    let bad = r#"{"error":{"code":107,"message":"bad request"}}"#;
    let rows = [
        (r#"{"user":"42"}"#, bad),
        (r#"{"user":"42","channel":"nowhere:a"}"#, unknown),
        (r#"{"user":"42","channel":"new","b64data":"?"}"#, bad),
        (r#"{"user":"42","channel":"new","b64info":"?"}"#, bad),
        (r#"{"user":"42","channel":"new","expire_at":1}"#, bad),
    ];
    let mut harness = harness();
    for (body, error) in rows {
        assert_eq!(harness.post("/api/subscribe", body).await, ok(error), "{body}");
    }
    assert!(harness.messages_of(0).is_empty());
}

#[tokio::test]
async fn subscribe_recovers_since_a_position_and_overrides_the_namespace() {
    let mut harness = harness();
    for data in 1..=3 {
        harness.post("/api/publish", format!(r#"{{"channel":"kept:a","data":{data}}}"#)).await;
    }
    let body = r#"{"user":"42","channel":"kept:a","recover_since":{"offset":1},
        "override":{"force_recovery":{"value":true},"presence":{"value":true},"join_leave":{}},"info":{"seat":7}}"#;
    assert_eq!(harness.post("/api/subscribe", body).await, ok(DONE));
    let messages = harness.messages_of(0);
    assert!(messages[0].contains(r#""offset":1,"positioned":true"#), "{messages:?}");
    assert!(messages[1].contains(r#""data":2,"offset":2"#) && messages[2].contains(r#""data":3"#));
    assert_eq!(messages.len(), 3, "{messages:?}");
}

#[tokio::test]
async fn subscribe_sends_its_info_to_others() {
    let mut harness = harness();
    let body = r#"{"user":"42","channel":"here:a","info":1,"b64info":"eyJzZWF0Ijo3fQ=="}"#;
    assert_eq!(harness.post("/api/subscribe", body).await, ok(DONE));
    assert_eq!(harness.messages_of(0).len(), 1);
    let presence = harness.post("/api/presence", r#"{"channel":"here:a"}"#).await.body;
    assert!(presence.contains(r#""chan_info":{"seat":7}"#), "{presence}");
}

#[tokio::test]
async fn refresh_sends_a_push_or_closes_connections() {
    let rows = [
        (r#"{"user":"42"}"#, vec![r#"{"push":{"refresh":{}}}"#]),
        (r#"{"user":"42","info":{"a":1},"expire_at":0}"#, vec![r#"{"push":{"refresh":{}}}"#]),
        (r#"{"user":"42","expired":true}"#, vec!["close 3005 connection expired"]),
        (r#"{"user":"42","expired":true,"client":"no-such-client"}"#, vec![]),
        (r#"{"user":"44","expired":true}"#, vec![]),
        (r#"{"user":"42","session":"unknown"}"#, vec![]),
    ];
    for (body, messages) in rows {
        let mut harness = harness();
        assert_eq!(harness.post("/api/refresh", body).await, ok(DONE), "{body}");
        assert_eq!(harness.messages_of(0), messages, "{body}");
        assert!(harness.messages_of(1).is_empty(), "{body}");
    }
}

#[tokio::test]
async fn channels_lists_those_with_subscribers_by_pattern() {
    let rows = [
        (r#"{}"#, r#"{"b":{"num_clients":1},"chat:a":{"num_clients":2}}"#),
        (r#"{"pattern":"*"}"#, r#"{"b":{"num_clients":1},"chat:a":{"num_clients":2}}"#),
        (r#"{"pattern":"chat:*"}"#, r#"{"chat:a":{"num_clients":2}}"#),
        (r#"{"pattern":"{b,c}"}"#, r#"{"b":{"num_clients":1}}"#),
        (r#"{"pattern":"x*"}"#, "{}"),
    ];
    let harness = harness();
    for (body, channels) in rows {
        let expect = format!(r#"{{"result":{{"channels":{channels}}}}}"#);
        assert_eq!(harness.post("/api/channels", body).await, ok(&expect), "{body}");
    }
    let bad = harness.post("/api/channels", r#"{"pattern":"["}"#).await;
    assert_eq!(bad, ok(r#"{"error":{"code":107,"message":"bad request"}}"#));
}

#[tokio::test]
async fn info_counts_connections_users_channels_and_subscriptions() {
    let mut harness = harness();
    harness.subscriber(2, "43", &[]);
    let answer = harness.post("/api/info", "{}").await.body;
    let counts = r#""num_clients":3,"num_users":2,"num_channels":2,"num_subs":3}]}}"#;
    assert!(answer.ends_with(counts), "{answer}");
}

#[tokio::test]
async fn a_blocked_user_is_disconnected_and_invalid_changes_are_refused() {
    let mut harness = harness();
    assert_eq!(harness.post("/api/block_user", r#"{"user":"42"}"#).await, ok(FORGOTTEN));
    assert_eq!(harness.messages_of(0), ["close 3507 permission denied"]);
    assert!(harness.messages_of(1).is_empty());
    let bad_request = r#"{"error":{"code":107,"message":"bad request"}}"#;
    for (path, body, expect) in [
        ("block_user", r#"{"user":"42","expire_at":0}"#, FORGOTTEN),
        ("block_user", r#"{"user":"42","expire_at":9999999999}"#, FORGOTTEN),
        ("block_user", r#"{"user":"42","expire_at":-1}"#, bad_request),
        ("block_user", r#"{"user":"42","expire_at":1}"#, bad_request),
        ("block_user", r#"{"user":""}"#, bad_request),
        ("unblock_user", r#"{"user":"42"}"#, DONE),
        ("unblock_user", r#"{"user":"no such user"}"#, DONE),
        ("unblock_user", "{}", bad_request),
        ("revoke_token", r#"{"uid":"7","expire_at":9999999999}"#, FORGOTTEN),
        ("revoke_token", r#"{"uid":"7","expire_at":1}"#, bad_request),
        ("revoke_token", "{}", bad_request),
        ("invalidate_user_tokens", r#"{"user":"42","issued_before":5,"channel":"a"}"#, FORGOTTEN),
        ("invalidate_user_tokens", r#"{"user":"42"}"#, FORGOTTEN),
        ("invalidate_user_tokens", r#"{"user":"42","expire_at":1}"#, bad_request),
        ("invalidate_user_tokens", r#"{"channel":"a"}"#, bad_request),
    ] {
        assert_eq!(harness.post(&format!("/api/{path}"), body).await, ok(expect), "{path} {body}");
    }
}

/// Stores nothing, as far as a caller knows.
struct Stored;

impl RevocationStore for Stored {
    fn listen(&self, _: RevocationListener) {}

    fn change(&self, _: &RevocationChange, _: Instant) -> Answer<()> {
        Answer::now(Ok(()))
    }

    fn page(&self, _: RevocationCursor) -> Answer<RevocationPage> {
        Answer::now(Ok(RevocationPage::default()))
    }
}

#[tokio::test]
async fn a_block_that_is_stored_has_an_empty_result() {
    let parts = NodeParts { revocations: Some(Arc::new(Stored)), ..NodeParts::default() };
    let node = Node::with_parts(node_options(), Instant::now(), 0, parts);
    let node = node.expect("good options");
    let harness = Harness::around(node, ApiOptions { key: KEY.into(), ..ApiOptions::default() });
    for (path, body) in [
        ("block_user", r#"{"user":"42"}"#),
        ("unblock_user", r#"{"user":"42"}"#),
        ("revoke_token", r#"{"uid":"7"}"#),
        ("invalidate_user_tokens", r#"{"user":"42"}"#),
    ] {
        assert_eq!(harness.post(&format!("/api/{path}"), body).await, ok(DONE), "{path}");
    }
}

#[tokio::test]
async fn connections_describes_each_connection_of_a_user() {
    let mut harness = Harness::new();
    let client = harness.subscriber(0, "42", &["b", "chat:a"]);
    harness.subscriber(1, "43", &["b"]);
    let answer = harness.post("/api/connections", r#"{"user":"42","expression":""}"#).await;
    let (before, after) = answer.body.split_once(r#""connected_at_ms":"#).expect("a time");
    assert_eq!(
        before,
        format!(
            r#"{{"result":{{"connections":{{"{client}":{{"transport":"websocket","protocol":"json","user":"42","node":"harness","state":{{"channels":{{"b":{{}},"chat:a":{{}}}}}},"#
        )
    );
    assert!(after.ends_with(r#","ping_pong_latency_ms":-1}}}}"#), "{after}");
    for (body, expect) in [
        (r#"{"user":"44"}"#, r#"{"result":{"connections":{}}}"#),
        ("{}", r#"{"error":{"code":107,"message":"bad request"}}"#),
        (r#"{"label_filter":{"key":"a","cmp":"ex"}}"#, r#"{"result":{"connections":{}}}"#),
        (
            r#"{"user":"42","label_filter":{"key":"a"}}"#,
            r#"{"error":{"code":107,"message":"bad request"}}"#,
        ),
        (
            r#"{"user":"42","expression":"true"}"#,
            r#"{"error":{"code":108,"message":"not available"}}"#,
        ),
    ] {
        assert_eq!(harness.post("/api/connections", body).await, ok(expect), "{body}");
    }
}

#[tokio::test]
async fn snapshot_lists_the_nodes_and_then_the_connections_of_one() {
    let node = Node::new(node_options()).expect("good options");
    node.set_event_seq(7);
    let mut harness =
        Harness::around(node.clone(), ApiOptions { key: KEY.into(), ..ApiOptions::default() });
    let clients = [harness.subscriber(0, "42", &["a", "b"]), harness.subscriber(1, "43", &[])];
    let nodes = harness.post("/api/snapshot", "{}").await;
    let uid = node.uid().to_owned();
    assert_eq!(nodes, ok(&format!(r#"{{"result":{{"nodes":[{{"node":"{uid}","seq":7}}]}}}}"#)));
    let ask =
        |start: u64, limit: u32| format!(r#"{{"node":"{uid}","start":{start},"limit":{limit}}}"#);
    let first = harness.post("/api/snapshot", ask(0, 1)).await;
    let client = format!(r#"{{"client":"{}","user":"42","channels":["a","b"]}}"#, clients[0]);
    assert_eq!(first, ok(&format!(r#"{{"result":{{"clients":[{client}],"next":1}}}}"#)));
    let second = harness.post("/api/snapshot", ask(1, 1)).await;
    let client = format!(r#"{{"client":"{}","user":"43"}}"#, clients[1]);
    assert_eq!(second, ok(&format!(r#"{{"result":{{"clients":[{client}]}}}}"#)));
    for (body, code) in [
        (ask(2, 1), None),
        (ask(u64::MAX, 1), None),
        (ask(0, 1001), Some(107)),
        (r#"{"node":"another"}"#.to_owned(), Some(104)),
    ] {
        let reply: serde_json::Value =
            serde_json::from_str(&harness.post("/api/snapshot", body).await.body).expect("JSON");
        assert_eq!(reply["error"]["code"].as_u64(), code);
        assert!(reply["result"].get("clients").is_none());
    }
}

#[tokio::test]
async fn an_invalid_label_filter_is_refused_before_anything_is_done() {
    let mut harness = Harness::new();
    harness.subscriber(0, "42", &["b"]);
    for method in ["subscribe", "unsubscribe", "disconnect", "refresh"] {
        for (filter, expect) in [
            (r#"{"op":"and"}"#, r#"{"error":{"code":107,"message":"bad request"}}"#),
            (r#"{"key":"a","cmp":"eq","val":"b"}"#, DONE),
        ] {
            let body = format!(r#"{{"channel":"c","all_users":true,"label_filter":{filter}}}"#);
            let answer = harness.post(&format!("/api/{method}"), body).await;
            assert_eq!(answer, ok(expect), "{method} {filter}");
        }
    }
    let answer = harness.post("/api/connections", r#"{"user":"42"}"#).await;
    assert!(answer.body.contains(r#"{"channels":{"b":{}}}"#), "{}", answer.body);
}

#[tokio::test]
async fn a_status_has_the_last_state_and_says_who_is_online() {
    let mut harness = Harness::new();
    harness.subscriber(0, "42", &[]);
    let update = r#"{"users":["43","44"],"state":"busy"}"#;
    assert_eq!(harness.post("/api/update_user_status", update).await, ok(DONE));
    assert_eq!(harness.post("/api/delete_user_status", r#"{"users":["44"]}"#).await, ok(DONE));
    let answer = harness.post("/api/get_user_status", r#"{"users":["44","42","43"]}"#).await;
    let reply: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
    let statuses = reply["result"]["statuses"].as_array().expect("a list");
    let fields = statuses.iter().map(|status| {
        let has = |name: &str| status.get(name).is_some();
        (status["user"].as_str(), has("active"), has("online"), status["state"].as_str())
    });
    assert_eq!(
        fields.collect::<Vec<_>>(),
        [
            (Some("44"), false, false, None),
            (Some("42"), false, true, None),
            (Some("43"), true, false, Some("busy")),
        ]
    );
    let users = |count: usize| format!(r#"{{"users":["{}"]}}"#, vec!["u"; count].join(r#"",""#));
    let long = format!(r#"{{"users":["42"],"state":"{}"}}"#, "x".repeat(1025));
    assert_eq!(harness.post("/api/update_user_status", users(1000)).await, ok(DONE));
    for body in ["{}".to_owned(), r#"{"users":[""]}"#.to_owned(), users(1001), long] {
        let answer = harness.post("/api/update_user_status", body.clone()).await;
        assert!(answer.body.contains(r#""code":107"#), "{body}");
    }
}
