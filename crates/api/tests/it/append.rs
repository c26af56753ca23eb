//! append: pieces of messages that grow, and what is refused with the remedy in its error.
//! In: bodies. Out: whole replies, and publications of a subscriber.
//! Uses the test harness, whose namespace `kept` keeps history; waits for publications, never for a time.
//! Rules of pieces that need no API are tested in `fanwire_broker`.

use std::time::Duration;

use fanwire_testing::wait_for_async;
use serde_json::{Value, json};

use crate::harness::{Harness, KEY, request};

/// Posts; returns the result, or the error.
async fn post(harness: &Harness, method: &str, body: impl ToString) -> Value {
    let path = format!("/api/{method}");
    let request = request(&path).header("X-API-Key", KEY).body(body.to_string().into());
    let answer = harness.send_whole(request.expect("a valid request")).await;
    let mut reply: Value = serde_json::from_str(&answer.body).expect("a reply is JSON");
    let name = if reply.get("error").is_some() { "error" } else { "result" };
    reply[name].take()
}

/// Appends to message `k` of `kept:a`.
async fn append(harness: &Harness, fields: Value) -> Value {
    let mut body = json!({"channel": "kept:a", "key": "k"});
    for (name, value) in fields.as_object().expect("fields") {
        body[name] = value.clone();
    }
    post(harness, "append", body).await
}

/// Asserts the code of an error, and that its cause says `remedy`.
async fn check_error(harness: &Harness, fields: Value, code: u32, remedy: &str) {
    let error = append(harness, fields.clone()).await;
    assert_eq!(error["code"], code, "{fields}: {error}");
    assert!(error["cause"].as_str().is_some_and(|text| text.contains(remedy)), "{error}");
}

/// Data of the stored publications.
async fn stored(harness: &Harness) -> Vec<String> {
    let body = r#"{"channel":"kept:a","limit":100}"#;
    let request = request("/api/history").header("X-API-Key", KEY).body(body.into());
    let body = harness.send_whole(request.expect("a valid request")).await.body;
    let data = body.split(r#"{"data":"#).skip(1).filter_map(|rest| rest.split_once(r#","offset""#));
    data.map(|(data, _)| data.to_owned()).collect()
}

/// Waits until the only stored publication is this.
async fn wait_for(harness: &Harness, data: &str) {
    let attempt = async || {
        let stored = stored(harness).await;
        if stored == [data] { Ok(()) } else { Err(stored) }
    };
    wait_for_async(attempt, Duration::from_secs(10)).await;
}

#[tokio::test]
async fn a_text_grows_and_is_published_as_a_whole() {
    let harness = Harness::new();
    let first = append(&harness, json!({"data": "Once ", "at": 0})).await;
    assert_eq!((&first["offset"], &first["length"]), (&json!(1), &json!(5)));
    let second = append(&harness, json!({"data": "upon ", "at": 5})).await;
    assert_eq!((&second["offset"], &second["length"]), (&json!(1), &json!(10)), "it waits");
    wait_for(&harness, r#""Once upon ""#).await;
    let again = append(&harness, json!({"data": "upon ", "at": 5})).await;
    assert_eq!(again["duplicate"], true, "{again}");
    let last = append(&harness, json!({"data": "a time", "at": 10, "final": true})).await;
    assert_eq!((&last["offset"], &last["length"]), (&json!(3), &json!(16)));
    assert_eq!(stored(&harness).await, [r#""Once upon a time""#]);
    let history = post(&harness, "history", json!({"channel": "kept:a", "limit": 9})).await;
    assert_eq!(history["publications"][0]["tags"], json!({"key": "k", "final": "true"}));
}

#[tokio::test]
async fn one_field_grows_and_the_others_are_replaced() {
    let harness = Harness::new();
    let fields = |data: &str| {
        let body = r#"{"channel":"kept:a","key":"k","append_field":"text","data":DATA}"#;
        body.replace("DATA", data)
    };
    post(&harness, "append", fields(r#"{"n": 1e400,"text":"a\u00e9","who":"bot"}"#)).await;
    post(&harness, "append", fields(r#"{"text":"\n\ud83d\ude00"}"#)).await;
    wait_for(&harness, r#"{"n":1e400,"who":"bot","text":"aé\n😀"}"#).await;
    let last = fields(r#"{"done":true}"#).replace("\"key\"", "\"final\":true,\"key\"");
    assert_eq!(post(&harness, "append", last).await["length"], 8);
    assert_eq!(stored(&harness).await, [r#"{"done":true,"text":"aé\n😀"}"#]);
}

#[tokio::test]
async fn a_wrong_piece_is_refused_with_the_remedy_and_nothing_is_lost() {
    let harness = Harness::new();
    let check = async |fields, code, remedy| check_error(&harness, fields, code, remedy).await;
    check(json!({"data": "x", "at": 3}), 113, "expected at 0").await;
    append(&harness, json!({"data": "Grüße", "at": 0})).await;
    for at in [3, 8, u64::MAX] {
        check(json!({"data": "x", "at": at}), 113, "expected at 7").await;
    }
    check(json!({"data": "grüße", "at": 0}), 113, "expected at 7").await;
    check(json!({"data": 5}), 107, "not a JSON string").await;
    check(json!({"data": {"text": "x"}}), 107, "not a JSON string").await;
    check(json!({"data": {"text": "x"}, "append_field": "text"}), 107, "append_field").await;
    check(json!({"data": {"text": 5}, "append_field": "text"}), 107, "is not a string").await;
    check(json!({"data": "x", "append_field": "text"}), 107, "not an object").await;
    check(json!({"data": "x", "key": ""}), 107, "key").await;
    check(json!({"data": "x", "key": "k".repeat(256)}), 107, "255").await;
    check(json!({"data": "x", "channel": ""}), 107, "channel").await;
    check(json!({"data": "x", "channel": "chat:a"}), 108, "history").await;
    check(json!({"data": "x", "channel": "none:a"}), 102, "namespace").await;
    check(json!({"data": "x".repeat(70_000)}), 107, "append_message_size_max").await;
    append(&harness, json!({"data": "!", "at": 7, "final": true})).await;
    check(json!({"data": "x"}), 113, "final, use another key; its length is 8").await;
    assert_eq!(stored(&harness).await, [r#""Grüße!""#]);
}

#[tokio::test]
async fn half_a_character_is_refused() {
    let harness = Harness::new();
    append(&harness, json!({"data": "a"})).await;
    for (field, data) in [
        ("", r#""\ud83d""#),
        ("", r#""\ude00b""#),
        ("t", r#"{"t":"\ud83d"}"#),
        ("t", r#"{"t":"x","u":"\ud83"}"#),
    ] {
        let body =
            format!(r#"{{"channel":"kept:a","key":"k","append_field":"{field}","data":{data}}}"#);
        let request = request("/api/append").header("X-API-Key", KEY).body(body.clone().into());
        let answer = harness.send_whole(request.expect("valid")).await;
        let is_refused = answer.body.contains("whole characters") || answer.status == 400;
        assert!(is_refused, "{body}: {answer:?}");
    }
    let half = b"{\"channel\":\"kept:a\",\"key\":\"k\",\"data\":\"\xc3\"}".to_vec();
    let request = request("/api/append").header("X-API-Key", KEY).body(half.into());
    assert_eq!(harness.send_whole(request.expect("valid")).await.status, 400);
    assert_eq!(stored(&harness).await, [r#""a""#]);
}

#[tokio::test]
async fn the_number_of_open_messages_has_a_limit_by_name() {
    let harness = Harness::new();
    let open =
        async |number: u32| append(&harness, json!({"key": number.to_string(), "data": "x"})).await;
    for number in 0..100 {
        assert_eq!(open(number).await["length"], 1);
    }
    for number in 100..100_000 {
        if number < 300 || number % 1000 == 0 {
            let error = open(number).await;
            assert_eq!(error["code"], 111, "{error}");
            assert!(error.to_string().contains("append_messages_max"), "{error}");
        }
    }
    assert_eq!(append(&harness, json!({"key": "7", "data": "y"})).await["length"], 2);
    append(&harness, json!({"key": "7", "data": "", "final": true})).await;
    assert_eq!(open(100).await["length"], 1);
}

#[tokio::test]
async fn two_backends_append_to_one_key_and_each_is_told_what_is_right() {
    let harness = Harness::new();
    let mut lengths = [0_u64; 2];
    let mut conflicts = 0;
    for round in 0..50 {
        let at = lengths[round % 2];
        let reply = append(&harness, json!({"data": format!("{round};"), "at": at})).await;
        let length = match reply["code"].as_u64() {
            None => reply["length"].as_u64(),
            Some(_) => {
                conflicts += 1;
                let text = reply["cause"].as_str().expect("a text");
                text.rsplit(' ').next().and_then(|length| length.parse().ok())
            }
        };
        lengths[round % 2] = length.expect("the right length");
    }
    assert!(conflicts > 10, "{conflicts}");
    append(&harness, json!({"data": "", "final": true})).await;
    let text: String = serde_json::from_str(&stored(&harness).await[0]).expect("a string");
    let pieces = text.matches(';').count();
    assert_eq!(pieces, 50 - conflicts, "{text}");
}
