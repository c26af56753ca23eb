//! map_publish, map_remove, map_read_state, map_read_stream, map_stats, map_clear: replies, refusals, deliveries.
//! In: bodies. Out: whole replies, and pushes to a subscriber.
//! Uses the test harness, whose namespaces `board` (recoverable, three entries) and `cursors` (ephemeral) are maps. Never: expiry.
//! Rules of maps that need no API are tested in `fanwire_broker`.

use serde_json::{Value, json};

use crate::harness::{Harness, KEY, request};

/// Posts; returns the result, or the error.
async fn post(harness: &Harness, method: &str, body: Value) -> Value {
    let request = request(&format!("/api/{method}")).header("X-API-Key", KEY);
    let answer = harness.send_whole(request.body(body.to_string().into()).expect("valid")).await;
    let mut reply: Value = serde_json::from_str(&answer.body).expect("a reply is JSON");
    let name = if reply.get("error").is_some() { "error" } else { "result" };
    reply[name].take()
}

async fn set(harness: &Harness, key: &str, data: Value) -> Value {
    post(harness, "map_publish", json!({"channel": "board:1", "key": key, "data": data})).await
}

async fn state(harness: &Harness, query: Value) -> Value {
    let mut body = json!({"channel": "board:1", "limit": -1});
    merge(&mut body, query);
    let mut result = post(harness, "map_read_state", body).await;
    for entry in result["entries"].as_array_mut().into_iter().flatten() {
        let time = entry.as_object_mut().expect("an entry").remove("time");
        assert!(time.is_some_and(|time| time.as_i64() > Some(1_600_000_000_000)));
    }
    result
}

fn merge(body: &mut Value, fields: Value) {
    for (name, value) in fields.as_object().expect("fields") {
        body[name] = value.clone();
    }
}

/// Asserts the code of an error, and that its cause says `remedy`.
fn check_error(error: &Value, code: u32, remedy: &str) {
    assert_eq!(error["code"], code, "{error}");
    assert!(error["cause"].as_str().is_some_and(|text| text.contains(remedy)), "{error}");
}

#[tokio::test]
async fn keys_are_set_read_and_removed() {
    let harness = Harness::new();
    let first = set(&harness, "a", json!({"x": 1})).await;
    let epoch = first["epoch"].as_str().expect("an epoch").to_owned();
    assert_eq!(first, json!({"offset": 1, "epoch": epoch}));
    let binary = json!({"channel": "board:1", "key": "b", "b64data": "AAE=", "tags": {"t": "1"}});
    post(&harness, "map_publish", binary).await;
    let a = json!({"key": "a", "data": {"x": 1}, "offset": 1});
    let b = json!({"key": "b", "b64data": "AAE=", "tags": {"t": "1"}, "offset": 2});
    let all = json!({"entries": [a, b], "offset": 2, "epoch": epoch});
    assert_eq!(state(&harness, json!({})).await, all);
    let page = state(&harness, json!({"limit": 1})).await;
    assert_eq!(page, json!({"entries": [a], "offset": 2, "epoch": epoch, "cursor": "a"}));
    let next = state(&harness, json!({"limit": 1, "cursor": "a", "revision_epoch": epoch})).await;
    assert_eq!(next, json!({"entries": [b], "offset": 2, "epoch": epoch}));
    let position = json!({"entries": [], "offset": 2, "epoch": epoch});
    assert_eq!(state(&harness, json!({"limit": 0})).await, position);
    assert_eq!(state(&harness, json!({"key": "b"})).await["entries"], json!([b]));
    assert_eq!(state(&harness, json!({"key": "c"})).await["entries"], json!([]));
    let stats = json!({"num_keys": 2});
    assert_eq!(post(&harness, "map_stats", json!({"channel": "board:1"})).await, stats);

    let removed = post(&harness, "map_remove", json!({"channel": "board:1", "key": "b"})).await;
    assert_eq!(removed, json!({"offset": 3, "epoch": epoch}));
    let stream =
        json!({"channel": "board:1", "since_offset": 2, "since_epoch": epoch, "limit": -1});
    let mut stream = post(&harness, "map_read_stream", stream).await;
    stream["entries"][0].as_object_mut().expect("a change").remove("time");
    let removal = json!({"key": "b", "removed": true, "tags": {"t": "1"}, "offset": 3});
    assert_eq!(stream, json!({"entries": [removal], "offset": 3, "epoch": epoch}));

    assert_eq!(post(&harness, "map_clear", json!({"channel": "board:1"})).await, json!({}));
    let empty = state(&harness, json!({})).await;
    assert_eq!((&empty["entries"], &empty["offset"]), (&json!([]), &json!(0)));
    assert_ne!(empty["epoch"], epoch);
    let lost = state(&harness, json!({"revision_epoch": epoch})).await;
    assert_eq!(lost["code"], 112);
}

#[tokio::test]
async fn a_suppressed_change_says_why() {
    let harness = Harness::new();
    let first = set(&harness, "a", json!(1)).await;
    let epoch = &first["epoch"];
    let check = async |method: &str, fields: Value, offset: u64, reason: &str| {
        let mut body = json!({"channel": "board:1", "key": "a", "data": 2});
        merge(&mut body, fields);
        let mut expect = json!({"epoch": epoch, "suppressed": true, "suppress_reason": reason});
        if offset > 0 {
            expect["offset"] = json!(offset);
        }
        assert_eq!(post(&harness, method, body.clone()).await, expect, "{method} {body}");
    };
    check("map_publish", json!({"key_mode": "if_new"}), 1, "key_exists").await;
    check("map_publish", json!({"key_mode": "if_exists", "key": "b"}), 1, "key_not_found").await;
    let versioned = json!({"channel": "board:1", "key": "v", "data": 1, "version": 5});
    post(&harness, "map_publish", versioned).await;
    check("map_publish", json!({"key": "v", "version": 5}), 2, "version").await;
    let expected = |offset: u64| json!({"expected_offset": offset, "expected_epoch": epoch});
    check("map_publish", expected(2), 1, "position_mismatch").await;
    check("map_remove", expected(2), 1, "position_mismatch").await;
    let mut absent = expected(0);
    absent["key"] = json!("b");
    check("map_remove", absent, 0, "position_mismatch").await;
    check("map_remove", json!({"key": "b"}), 2, "key_not_found").await;
    let keyed = json!({"channel": "board:1", "key": "a", "data": 3, "idempotency_key": "k"});
    assert_eq!(post(&harness, "map_publish", keyed).await["offset"], 3);
    check("map_publish", json!({"idempotency_key": "k"}), 3, "idempotency").await;
    let mut swap = json!({"channel": "board:1", "key": "a", "data": 4});
    merge(&mut swap, expected(3));
    assert_eq!(post(&harness, "map_publish", swap).await, json!({"offset": 4, "epoch": epoch}));
}

#[tokio::test]
async fn a_position_that_is_no_longer_stored_is_112() {
    let harness = Harness::new();
    let first = set(&harness, "a", json!(0)).await;
    for number in 1..20 {
        set(&harness, "a", json!(number)).await;
    }
    let read = async |since: u64, epoch: &Value| {
        let body =
            json!({"channel": "board:1", "since_offset": since, "since_epoch": epoch, "limit": -1});
        post(&harness, "map_read_stream", body).await
    };
    for since in [0, 2, 14] {
        assert_eq!(read(since, &first["epoch"]).await["code"], 112, "since {since}");
    }
    let entries = |result: Value| result["entries"].as_array().map(Vec::len);
    assert_eq!(entries(read(15, &first["epoch"]).await), Some(5));
    assert_eq!(entries(read(0, &json!("")).await), Some(5), "no position to lose");
    assert_eq!(read(15, &json!("ABCDEFGH")).await["code"], 112);
    assert_eq!(read(15, &json!("no epoch")).await["code"], 112);
    let newest = json!({"channel": "board:1", "limit": 1, "reverse": true});
    let newest = post(&harness, "map_read_stream", newest).await;
    assert_eq!(newest["entries"][0]["offset"], 20);
}

#[tokio::test]
async fn an_ephemeral_map_has_no_positions() {
    let harness = Harness::new();
    let body = json!({"channel": "cursors:1", "key": "u1", "data": [1, 2]});
    assert_eq!(post(&harness, "map_publish", body.clone()).await, json!({}));
    let page = post(&harness, "map_read_state", json!({"channel": "cursors:1", "limit": 10})).await;
    assert_eq!((&page["offset"], &page["epoch"]), (&json!(0), &json!("")));
    assert_eq!(page["entries"][0]["data"], json!([1, 2]));
    let stream = post(&harness, "map_read_stream", json!({"channel": "cursors:1"})).await;
    assert_eq!(stream, json!({"entries": [], "offset": 0, "epoch": ""}));
    let mut expecting = body.clone();
    merge(&mut expecting, json!({"expected_offset": 0, "expected_epoch": "ABCDEFGH"}));
    check_error(&post(&harness, "map_publish", expecting).await, 107, "ephemeral");
    let mut versioned = body;
    versioned["version"] = json!(1);
    check_error(&post(&harness, "map_publish", versioned).await, 107, "ephemeral");
}

#[tokio::test]
async fn impossible_requests_are_refused() {
    let harness = Harness::new();
    let refused = async |fields: Value, code: u32, remedy: &str| {
        let mut body = json!({"channel": "board:1", "key": "a", "data": 1});
        merge(&mut body, fields);
        check_error(&post(&harness, "map_publish", body).await, code, remedy);
    };
    refused(json!({"channel": ""}), 107, "channel is missing").await;
    refused(json!({"key": ""}), 107, "1 to 255 bytes").await;
    refused(json!({"key": "é".repeat(128)}), 107, "1 to 255 bytes").await;
    refused(json!({"b64data": "%"}), 107, "base64").await;
    refused(json!({"key_mode": "new"}), 107, "if_new").await;
    refused(json!({"expected_epoch": "ABCDEFGH"}), 107, "expected_offset").await;
    refused(json!({"expected_offset": 1}), 107, "expected_epoch").await;
    refused(json!({"channel": "nowhere:1"}), 102, "namespace").await;
    refused(json!({"channel": "chat:1"}), 107, "subscription_type").await;
    refused(json!({"channel": "cursors:1", "b64data": "AAE="}), 107, "publication_data_format")
        .await;
    refused(json!({"b64data": "AAAA".repeat(30_000)}), 107, "map.bytes_max").await;
    let key = "k".repeat(255);
    assert_eq!(set(&harness, &key, json!(1)).await["offset"], 1, "a key of 255 bytes");
    assert_eq!(set(&harness, "\0é\u{2028}\"", json!(1)).await["offset"], 2, "any character");
    assert_eq!(set(&harness, "c", json!(1)).await["offset"], 3);
    let full = set(&harness, "d", json!(1)).await;
    check_error(&full, 111, "map.entries_max");
    for limit in [i64::from(i32::MIN), -1, i64::from(i32::MAX)] {
        assert_eq!(state(&harness, json!({"limit": limit})).await["offset"], 3);
    }
    for method in ["map_read_state", "map_read_stream"] {
        let body = json!({"channel": "board:1", "limit": 1_u64 << 31}).to_string();
        harness.post(&format!("/api/{method}"), body).await.malformed();
    }
    let made_up = state(&harness, json!({"cursor": "zzz", "limit": 1})).await;
    assert_eq!(made_up["entries"], json!([]));
}

#[tokio::test]
async fn maps_and_streams_refuse_the_requests_of_each_other() {
    let harness = Harness::new();
    for method in ["map_publish", "map_remove"] {
        let body = json!({"channel": "kept:1", "key": "a", "data": 1});
        assert_eq!(post(&harness, method, body).await["code"], 107, "{method}");
    }
    for method in ["map_read_state", "map_read_stream", "map_stats", "map_clear"] {
        assert_eq!(post(&harness, method, json!({"channel": "kept:1"})).await["code"], 107);
        assert_eq!(post(&harness, method, json!({"channel": "nowhere:1"})).await["code"], 102);
        assert_eq!(post(&harness, method, json!({})).await["code"], 107);
    }
    let rows = [
        ("publish", json!({"channel": "board:1", "data": 1}), 107),
        ("append", json!({"channel": "board:1", "key": "k", "data": "x"}), 107),
        ("history", json!({"channel": "board:1"}), 108),
        ("history_remove", json!({"channel": "board:1"}), 108),
    ];
    for (method, body, code) in rows {
        assert_eq!(post(&harness, method, body).await["code"], code, "{method}");
    }
    assert_eq!(state(&harness, json!({})).await["offset"], 0);
}

#[tokio::test]
async fn a_batch_changes_and_reads_maps() {
    let harness = Harness::new();
    let publish = json!({"map_publish": {"channel": "board:1", "key": "a", "data": 1}});
    let stats = json!({"map_stats": {"channel": "board:1"}});
    let wrong = json!({"map_stats": {"channel": "chat:1"}});
    let body = json!({"commands": [publish, stats, wrong]}).to_string();
    let answer = harness.post("/api/batch", body).await;
    let reply: Value = serde_json::from_str(&answer.body).expect("JSON");
    let replies = &reply["replies"];
    assert_eq!(replies[0]["map_publish"]["offset"], 1);
    assert_eq!(replies[1], json!({"map_stats": {"num_keys": 1}}));
    assert_eq!(replies[2]["error"]["code"], 107);
}
