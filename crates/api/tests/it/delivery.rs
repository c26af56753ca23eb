//! Publications as subscribers receive them: the same bytes, tags, decoded base64, no repeats.
//! In: publishes over HTTP. Out: the pushes of a connection, as text.
//! Uses the test harness with a hub and its in-memory connections.
//! The encoding of pushes itself is tested in `protocol`.

use fanwire_node::protocol::JSON_DEPTH_MAX;

use crate::harness::{Harness, ok};

async fn check(request: &str, pushed: &[&str]) {
    let mut harness = Harness::new();
    harness.subscriber(0, "42", &["a", "chat:b"]);
    let path = if request.contains("channels") { "/api/broadcast" } else { "/api/publish" };
    assert_eq!(harness.post(path, request.to_owned()).await.status, 200, "{request}");
    assert_eq!(harness.messages_of(0), pushed, "{request}");
}

#[tokio::test]
async fn data_arrives_as_the_bytes_that_were_sent() {
    let values = [
        r#"{"b":1,"a":2,"b":3}"#,
        r#"{ "spaced" :  [1 ,2 ] }"#,
        "\"\\u00e9\\/é😀\"",
        "1.50e+02",
        "12345678901234567890123456789",
        "null",
        "[]",
    ];
    for value in values {
        let request = format!(r#"{{"data": {value} ,"channel":"a"}}"#);
        check(&request, &[&format!(r#"{{"push":{{"channel":"a","pub":{{"data":{value}}}}}}}"#)])
            .await;
    }
}

/// Requests that publish data nested this deep, by every path.
fn nested(depth: usize) -> (String, [(&'static str, String); 4]) {
    let deep = "[".repeat(depth) + &"]".repeat(depth);
    let publish = format!(r#"{{"channel":"a","data":{deep}}}"#);
    let requests = [
        ("/api/publish", publish.clone()),
        ("/api/broadcast", format!(r#"{{"channels":["a"],"data":{deep}}}"#)),
        ("/api/batch", format!(r#"{{"commands":[{{"publish":{publish}}}]}}"#)),
        ("/api", format!(r#"{{"method":"publish","params":{publish}}}"#)),
    ];
    (deep, requests)
}

/// No code of ours recurses into the data: at 100,000 levels a test's stack has some 20 bytes for each.
#[tokio::test]
async fn deeply_nested_data_arrives_by_every_path_and_what_clients_cannot_read_is_refused() {
    let mut harness = Harness::new();
    harness.subscriber(0, "42", &["a"]);
    let (deep, requests) = nested(JSON_DEPTH_MAX);
    for (path, body) in requests {
        assert_eq!(harness.post(path, body).await.status, 200, "{path}");
        let pushed = format!(r#"{{"push":{{"channel":"a","pub":{{"data":{deep}}}}}}}"#);
        assert!(harness.messages_of(0) == [pushed], "{path}");
    }
    for depth in [JSON_DEPTH_MAX + 1, 100_000] {
        for (path, body) in nested(depth).1 {
            let answer = harness.post(path, body).await;
            assert!(answer.body.contains(r#""code":107"#), "{path}: {}", answer.body);
            assert!(harness.messages_of(0).is_empty(), "{path}");
        }
    }
}

#[tokio::test]
async fn base64_is_used_instead_of_data_and_tags_are_delivered() {
    check(
        r#"{"channel":"a","data":{},"b64data":"eyJ4IjoxfQ==","tags":{"k":"v"}}"#,
        &[r#"{"push":{"channel":"a","pub":{"data":{"x":1},"tags":{"k":"v"}}}}"#],
    )
    .await;
}

#[tokio::test]
async fn a_broadcast_reaches_each_channel_once() {
    check(
        r#"{"channels":["a","nowhere:x","chat:b","c"],"data":7}"#,
        &[
            r#"{"push":{"channel":"a","pub":{"data":7}}}"#,
            r#"{"push":{"channel":"chat:b","pub":{"data":7}}}"#,
        ],
    )
    .await;
}

#[tokio::test]
async fn refused_publications_are_not_delivered() {
    check(r#"{"channel":"a","b64data":"!"}"#, &[]).await;
    check(r#"{"channel":"a"}"#, &[]).await;
}

#[tokio::test]
async fn a_repeat_with_the_same_idempotency_key_is_not_sent_again() {
    let mut harness = Harness::new();
    harness.subscriber(0, "42", &["a", "b"]);
    let publish = |channel: &str, data: u32, key: &str| {
        let body = format!(r#"{{"channel":"{channel}","data":{data},"idempotency_key":"{key}"}}"#);
        harness.post("/api/publish", body)
    };
    let rows = [("a", 1, "k"), ("a", 2, "k"), ("b", 3, "k"), ("a", 4, "l"), ("a", 5, "")];
    for (channel, data, key) in rows {
        assert_eq!(publish(channel, data, key).await, ok(r#"{"result":{}}"#));
    }
    let data: Vec<String> = harness.messages_of(0);
    let expect = [("a", 1), ("b", 3), ("a", 4), ("a", 5)].map(|(channel, n)| {
        format!(r#"{{"push":{{"channel":"{channel}","pub":{{"data":{n}}}}}}}"#)
    });
    assert_eq!(data, expect);
}

#[tokio::test]
async fn exclude_client_excludes_one_connection_in_all_channels() {
    let mut harness = Harness::new();
    let ids = [0, 1].map(|index| harness.subscriber(index, "42", &["a", "chat:b"]));
    let spared = &ids[1];
    let requests = [
        ("/api/publish", format!(r#"{{"channel":"a","data":1,"exclude_client":"{spared}"}}"#)),
        (
            "/api/broadcast",
            format!(r#"{{"channels":["chat:b"],"data":2,"exclude_client":"{spared}"}}"#),
        ),
        ("/api/publish", r#"{"channel":"a","data":3,"exclude_client":""}"#.to_owned()),
    ];
    for (path, request) in requests {
        let answer = harness.post(path, request.clone()).await;
        assert!(!answer.body.contains("error"), "{request}: {}", answer.body);
    }
    let messages = [
        r#"{"push":{"channel":"a","pub":{"data":1}}}"#,
        r#"{"push":{"channel":"chat:b","pub":{"data":2}}}"#,
        r#"{"push":{"channel":"a","pub":{"data":3}}}"#,
    ];
    assert_eq!(harness.messages_of(0), messages);
    assert_eq!(harness.messages_of(1), messages[2..]);
}

#[tokio::test]
async fn an_invalid_exclude_client_is_107_and_nothing_is_published() {
    let requests = [
        r#"{"channel":"a","data":1,"exclude_client":"42"}"#,
        r#"{"channels":["a"],"data":1,"exclude_client":"42"}"#,
    ];
    for request in requests {
        check(request, &[]).await;
    }
}

#[tokio::test]
async fn an_unknown_delivery_and_latest_in_a_stream_are_107_and_nothing_is_published() {
    let mut harness = Harness::new();
    harness.subscriber(0, "42", &["a", "stream:a"]);
    for (path, request) in [
        ("/api/publish", r#"{"channel":"a","data":1,"delivery":"newest"}"#),
        ("/api/broadcast", r#"{"channels":["a"],"data":1,"delivery":"newest"}"#),
        ("/api/publish", r#"{"channel":"stream:a","data":1,"delivery":"latest"}"#),
    ] {
        let answer = harness.post(path, request).await;
        assert_eq!(answer, ok(r#"{"error":{"code":107,"message":"bad request"}}"#), "{request}");
    }
    assert!(harness.messages_of(0).is_empty());
    for request in [
        r#"{"channel":"a","data":1,"delivery":"latest"}"#,
        r#"{"channel":"stream:a","data":1,"delivery":"reliable"}"#,
    ] {
        assert_eq!(harness.post("/api/publish", request).await.body, r#"{"result":{}}"#);
    }
    assert_eq!(harness.messages_of(0).len(), 2);
}

#[tokio::test]
async fn a_place_selects_the_viewers_of_its_tile_and_impossible_ones_are_107() {
    let mut harness = Harness::new();
    harness.subscriber(0, "42", &["a"]);
    let view = r#"{"view":{"x":5,"y":5,"radius":3}}"#;
    let subscribe = format!(r#"{{"id":9,"subscribe":{{"channel":"world:w","data":{view}}}}}"#);
    assert_eq!(harness.command(0, &subscribe), [r#"{"id":9,"subscribe":{}}"#]);
    for (place, data) in [
        (r#"{"x":9,"y":1}"#, 1),
        (r#"{"x":11,"y":1}"#, 2),
        (r#"{"x":1,"layer":1}"#, 3),
        ("null", 4),
    ] {
        let request = format!(r#"{{"channel":"world:w","data":{data},"place":{place}}}"#);
        assert_eq!(harness.post("/api/publish", request).await, ok(r#"{"result":{}}"#), "{place}");
    }
    let messages =
        [1, 4].map(|data| format!(r#"{{"push":{{"channel":"world:w","pub":{{"data":{data}}}}}}}"#));
    assert_eq!(harness.messages_of(0), messages);
    for (channel, place) in
        [("world:w", r#"{"x":1e300}"#), ("a", "{}"), ("world:w", "7"), ("world:w", r#"{"x":"1"}"#)]
    {
        let request = format!(r#"{{"channel":"{channel}","data":1,"place":{place}}}"#);
        let answer = harness.post("/api/publish", request).await;
        assert!(answer.status == 400 || answer.body.contains("107"), "{place}: {}", answer.body);
    }
    assert!(harness.messages_of(0).is_empty());
}

#[tokio::test]
async fn set_view_moves_what_a_client_sees_and_impossible_ones_are_107() {
    let mut harness = Harness::new();
    let client = harness.subscriber(0, "42", &["world:w"]);
    let set = |view: &str| format!(r#"{{"client":"{client}","channel":"world:w","view":{view}}}"#);
    let answer = harness.post("/api/set_view", set(r#"{"x":25,"y":5,"radius":3}"#)).await;
    assert_eq!(answer, ok(r#"{"result":{}}"#));
    assert!(harness.messages_of(0).is_empty());
    for (x, data) in [(5, 1), (25, 2)] {
        let place = format!(r#"{{"channel":"world:w","data":{data},"place":{{"x":{x},"y":5}}}}"#);
        assert_eq!(harness.post("/api/publish", place).await, ok(r#"{"result":{}}"#));
    }
    let expected = [r#"{"push":{"channel":"world:w","pub":{"data":2}}}"#];
    assert_eq!(harness.messages_of(0), expected);
    let bad_request = r#"{"error":{"code":107,"message":"bad request"}}"#;
    let wrong = [
        set("{}"),
        set("null"),
        set(r#"{"x":1,"y":2,"radius":-1}"#),
        set(r#"{"x":1,"y":2,"radius":1000}"#),
        r#"{"client":"42","channel":"world:w","view":{"x":1,"y":2,"radius":1}}"#.to_owned(),
        format!(r#"{{"client":"{client}","channel":"a","view":{{"x":1,"y":2,"radius":1}}}}"#),
        format!(r#"{{"client":"{client}","view":{{"x":1,"y":2,"radius":1}}}}"#),
        "{}".to_owned(),
    ];
    for request in wrong {
        let answer = harness.post("/api/set_view", request.clone()).await;
        assert_eq!(answer, ok(bad_request), "{request}");
    }
}
