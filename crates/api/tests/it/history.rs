//! history, history_remove and the positions in publish results: whole replies, with the random epoch replaced by EPOCH.
//! In: bodies. Out: replies as text.
//! Uses the test harness, whose namespace `kept` stores three publications of any bytes.
//! History of clients is tested in the node.

use crate::harness::{Harness, json, request};

/// Posts and compares, with the epoch of the reply replaced by EPOCH.
async fn check(harness: &Harness, method: &str, body: &str, expect: &str) {
    let answer = harness.post(&format!("/api/{method}"), body.to_owned()).await;
    let text = match answer.body.split_once(r#""epoch":""#) {
        Some((before, rest)) => {
            let (epoch, after) = rest.split_once('"').expect("a text ends");
            assert!(epoch.len() == 8, "{epoch}");
            format!("{before}\"epoch\":\"EPOCH\"{after}")
        }
        None => answer.body,
    };
    assert_eq!((answer.status.as_u16(), text.as_str()), (200, expect), "{method} {body}");
}

/// A harness whose channel `kept:a` was published to four times.
async fn harness() -> Harness {
    let harness = Harness::new();
    for number in 1..=4 {
        let body =
            format!(r#"{{"channel":"kept:a","data":{{"n": {number}}},"tags":{{"k":"{number}"}}}}"#);
        let expect = format!(r#"{{"result":{{"offset":{number},"epoch":"EPOCH"}}}}"#);
        check(&harness, "publish", &body, &expect).await;
    }
    harness
}

#[tokio::test]
async fn history_answers_by_the_table() {
    let harness = harness().await;
    let page = |publications: &str| {
        format!(r#"{{"result":{{"publications":[{publications}],"epoch":"EPOCH","offset":4}}}}"#)
    };
    let stored = |n| format!(r#"{{"data":{{"n": {n}}},"offset":{n},"tags":{{"k":"{n}"}}}}"#);
    let all = [2, 3, 4].map(stored).join(",");
    let rows = [
        ("", String::new()),
        (r#","limit":0"#, String::new()),
        (r#","limit":-1"#, all.clone()),
        (r#","limit":100"#, all),
        (r#","limit":1"#, stored(2)),
        (r#","limit":1,"reverse":true"#, stored(4)),
        (r#","limit":1,"since":{"offset":3}"#, stored(4)),
        (r#","limit":-1,"since":{"offset":3,"epoch":""},"reverse":true"#, stored(2)),
        (r#","limit":-1,"since":{"offset":18446744073709551615}"#, String::new()),
        (r#","limit":-1,"since":{"offset":6},"reverse":true"#, String::new()),
        (r#","limit":-1,"since":null,"reverse":null"#, [2, 3, 4].map(stored).join(",")),
    ];
    for (rest, publications) in rows {
        check(
            &harness,
            "history",
            &format!(r#"{{"channel":"kept:a"{rest}}}"#),
            &page(&publications),
        )
        .await;
    }
}

#[tokio::test]
async fn invalid_requests_are_refused_with_their_code() {
    let harness = harness().await;
    let error = |code, message| format!(r#"{{"error":{{"code":{code},"message":"{message}"}}}}"#);
    let rows = [
        ("history", r#"{"limit":1}"#, error(107, "bad request")),
        ("history", r#"{"channel":"nowhere:a"}"#, error(102, "unknown channel")),
        ("history", r#"{"channel":"chat:a"}"#, error(108, "not available")),
        (
            "history",
            r#"{"channel":"kept:a","since":{"offset":1,"epoch":"x"}}"#,
            error(112, "unrecoverable position"),
        ),
        ("history", r#"{"channel":"kept:a","since":{},"reverse":true}"#, error(107, "bad request")),
        ("history_remove", r#"{}"#, error(107, "bad request")),
        ("history_remove", r#"{"channel":"nowhere:a"}"#, error(102, "unknown channel")),
        ("history_remove", r#"{"channel":"chat:a"}"#, error(108, "not available")),
    ];
    for (method, body, expect) in rows {
        check(&harness, method, body, &expect).await;
    }
}

#[tokio::test]
async fn a_foreign_epoch_is_status_416_in_transport_mode() {
    let request = request("/api/history")
        .header("X-API-Key", crate::harness::KEY)
        .header("X-Centrifugo-Error-Mode", "transport")
        .body(r#"{"channel":"kept:a","since":{"offset":1,"epoch":"x"}}"#.into())
        .expect("valid");
    let expect = json(416, r#"{"code":112,"message":"unrecoverable position"}"#);
    assert_eq!(harness().await.send(request).await, expect);
}

#[tokio::test]
async fn removal_keeps_the_offset() {
    let harness = harness().await;
    check(&harness, "history_remove", r#"{"channel":"kept:a"}"#, r#"{"result":{}}"#).await;
    let empty = r#"{"result":{"publications":[],"epoch":"EPOCH","offset":4}}"#;
    check(&harness, "history", r#"{"channel":"kept:a","limit":-1}"#, empty).await;
}

#[tokio::test]
async fn versions_skip_history_and_keys_affect_offsets() {
    let harness = Harness::new();
    let position = |offset| format!(r#"{{"result":{{"offset":{offset},"epoch":"EPOCH"}}}}"#);
    let rows = [
        (r#""version":5"#, position(1)),
        (r#""version":5"#, position(1)),
        (r#""skip_history":true"#, r#"{"result":{}}"#.to_owned()),
        (r#""version":1,"version_epoch":"new""#, position(2)),
        (r#""idempotency_key":"key""#, position(3)),
        (r#""tags":{}"#, position(4)),
        (r#""idempotency_key":"key""#, position(3)),
    ];
    for (how, expect) in rows {
        check(&harness, "publish", &format!(r#"{{"channel":"kept:a","data":1,{how}}}"#), &expect)
            .await;
    }
}

#[tokio::test]
async fn a_payload_that_is_not_json_is_returned_in_base64() {
    let harness = Harness::new();
    let first = r#"{"result":{"offset":1,"epoch":"EPOCH"}}"#;
    check(&harness, "publish", r#"{"channel":"kept:b","b64data":"AAEC/w=="}"#, first).await;
    let history = r#"{"history":{"channel":"kept:b","limit":1}}"#;
    let batch =
        format!(r#"{{"commands":[{history},{{"history_remove":{{"channel":"kept:b"}}}}]}}"#);
    let stored = r#"{"b64data":"AAEC/w==","offset":1}"#;
    let expect = format!(
        r#"{{"replies":[{{"history":{{"publications":[{stored}],"epoch":"EPOCH","offset":1}}}},{{"history_remove":{{}}}}]}}"#
    );
    check(&harness, "batch", &batch, &expect).await;
}
