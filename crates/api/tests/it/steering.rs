//! Methods that act on connections or count them: disconnect, unsubscribe, channels, info.
//! In: requests over HTTP. Out: what connections were told, and what is counted afterwards.
//! Uses the test bench with a hub and its in-memory connections.
//! Which connections match a target is tested in full in the node.

use crate::room::{Room, ok};

const DONE: &str = r#"{"result":{}}"#;

fn room() -> Room {
    let mut room = Room::new();
    room.subscriber(0, "42", &["chat:a", "b"]);
    room.subscriber(1, "43", &["chat:a"]);
    room
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
        let mut room = room();
        assert_eq!(room.post("/api/disconnect", body).await, ok(DONE));
        assert_eq!(room.heard_by(0), [expect], "{body}");
        assert!(room.heard_by(1).is_empty(), "{body}");
    }
}

#[tokio::test]
async fn disconnect_of_nobody_is_no_error() {
    let mut room = room();
    for body in [r#"{"user":"44"}"#, r#"{}"#, r#"{"user":"42","client":"no-such-client"}"#] {
        assert_eq!(room.post("/api/disconnect", body).await, ok(DONE));
        assert!(room.heard_by(0).is_empty(), "{body}");
    }
}

#[tokio::test]
async fn unsubscribe_ends_one_channel_or_all_with_code_2000() {
    let push = |channel: &str| {
        format!(
            r#"{{"push":{{"channel":"{channel}","unsubscribe":{{"code":2000,"reason":"server unsubscribe"}}}}}}"#
        )
    };
    let mut one = room();
    assert_eq!(one.post("/api/unsubscribe", r#"{"user":"42","channel":"chat:a"}"#).await, ok(DONE));
    assert_eq!(one.heard_by(0), [push("chat:a")]);
    assert!(one.heard_by(1).is_empty());

    let mut all = room();
    assert_eq!(all.post("/api/unsubscribe", r#"{"user":"42"}"#).await, ok(DONE));
    let mut heard = all.heard_by(0);
    heard.sort();
    assert_eq!(heard, [push("b"), push("chat:a")]);
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
    let room = room();
    for (body, channels) in rows {
        let expect = format!(r#"{{"result":{{"channels":{channels}}}}}"#);
        assert_eq!(room.post("/api/channels", body).await, ok(&expect), "{body}");
    }
    let bad = room.post("/api/channels", r#"{"pattern":"["}"#).await;
    assert_eq!(bad, ok(r#"{"error":{"code":107,"message":"bad request"}}"#));
}

#[tokio::test]
async fn info_counts_connections_users_channels_and_subscriptions() {
    let mut room = room();
    room.subscriber(2, "43", &[]);
    let answer = room.post("/api/info", "{}").await.body;
    let counts = r#""num_clients":3,"num_users":2,"num_channels":2,"num_subs":3}]}}"#;
    assert!(answer.ends_with(counts), "{answer}");
}
