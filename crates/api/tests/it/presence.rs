//! presence and presence_stats: whole replies, with client ids replaced by user ids.
//! In: bodies. Out: replies as text.
//! Uses the test harness, whose namespace `here` keeps presence.
//! Presence during subscriptions is tested in the node.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::harness::{Harness, ok};

async fn check(harness: &Harness, method: &str, body: &str, expect: &str) {
    let answer = harness.post(&format!("/api/{method}"), body.to_owned()).await;
    assert_eq!(answer, ok(expect), "{method} {body}");
}

#[tokio::test]
async fn members_are_returned_by_client_id() {
    let mut harness = Harness::new();
    for (index, user) in ["ada", "bob", "ada"].into_iter().enumerate() {
        harness.subscriber(index as u32, user, &["here:a", "chat:a"]);
    }
    let answer = harness.post("/api/presence", r#"{"channel":"here:a"}"#).await;
    let reply: Value = serde_json::from_str(&answer.body).expect("JSON");
    let presence = reply["result"]["presence"].as_object().expect("an object");
    assert_eq!(presence.len(), 3);
    let mut users: Vec<_> = presence.values().map(|info| info["user"].clone()).collect();
    users.sort_by_key(Value::to_string);
    assert_eq!(users, ["ada", "ada", "bob"]);
    for (client, info) in presence {
        let fields: Vec<_> = info.as_object().expect("an object").keys().collect();
        assert_eq!(fields, ["client", "user"]);
        assert_eq!(info["client"], client.as_str());
    }
    let stats = r#"{"result":{"num_clients":3,"num_users":2}}"#;
    check(&harness, "presence_stats", r#"{"channel":"here:a"}"#, stats).await;
}

/// An unsigned token, for a node that does not check signatures.
fn unsigned(claims: &str) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.", part(r#"{"alg":"HS256"}"#), part(claims))
}

#[tokio::test]
async fn infos_of_tokens_are_returned_byte_for_byte() {
    let mut harness = Harness::new();
    let connection = unsigned(r#"{"sub":"ada","info":{ "name": "Ada"}}"#);
    let subscription = unsigned(r#"{"sub":"ada","channel":"here:a","b64info":"AAEC/w=="}"#);
    harness.open(0);
    let messages =
        harness.command(0, &format!(r#"{{"id":1,"connect":{{"token":"{connection}"}}}}"#));
    let (_, rest) = messages[0].split_once(r#""client":""#).expect("a connect reply");
    let client = rest[..36].to_owned();
    let subscribe =
        format!(r#"{{"id":2,"subscribe":{{"channel":"here:a","token":"{subscription}"}}}}"#);
    assert_eq!(harness.command(0, &subscribe), [r#"{"id":2,"subscribe":{}}"#]);
    // Bytes that are not JSON are omitted.
    let ada = format!(r#"{{"user":"ada","client":"{client}","conn_info":{{ "name": "Ada"}}}}"#);
    let expect = format!(r#"{{"result":{{"presence":{{"{client}":{ada}}}}}}}"#);
    check(&harness, "presence", r#"{"channel":"here:a"}"#, &expect).await;

    harness.command(0, r#"{"id":3,"publish":{"channel":"kept:a","data":1}}"#);
    let history = harness.post("/api/history", r#"{"channel":"kept:a","limit":1}"#).await;
    let stored = format!(r#"{{"data":1,"info":{ada},"offset":1}}"#);
    let head = format!(r#"{{"result":{{"publications":[{stored}],"epoch":""#);
    assert!(history.body.starts_with(&head), "{} {head}", history.body);
}

#[tokio::test]
async fn an_empty_channel_has_an_empty_object_and_zeros() {
    let harness = Harness::new();
    check(&harness, "presence", r#"{"channel":"here:b"}"#, r#"{"result":{"presence":{}}}"#).await;
    let zeros = r#"{"result":{"num_clients":0,"num_users":0}}"#;
    check(&harness, "presence_stats", r#"{"channel":"here:b","limit":1}"#, zeros).await;
    let batch = concat!(
        r#"{"commands":[{"presence":{"channel":"here:b"}},{"presence":{"channel":"a"}},"#,
        r#"{"presence_stats":{"channel":"here:b"}}]}"#,
    );
    let replies = concat!(
        r#"{"replies":[{"presence":{"presence":{}}},"#,
        r#"{"error":{"code":108,"message":"not available"}},"#,
        r#"{"presence_stats":{"num_clients":0,"num_users":0}}]}"#,
    );
    check(&harness, "batch", batch, replies).await;
}

#[tokio::test]
async fn invalid_requests_are_refused_with_their_code() {
    let harness = Harness::new();
    let rows = [
        ("{}", 107, "bad request"),
        (r#"{"channel":""}"#, 107, "bad request"),
        (r#"{"channel":"nowhere:a"}"#, 102, "unknown channel"),
        (r#"{"channel":"chat:a"}"#, 108, "not available"),
    ];
    for method in ["presence", "presence_stats"] {
        for (body, code, message) in rows {
            let error = format!(r#"{{"error":{{"code":{code},"message":"{message}"}}}}"#);
            check(&harness, method, body, &error).await;
        }
    }
}
