//! Application errors are reported in the body or in the status.
//! In: the configured mode and the header of a request. Out: status and body.
//! Uses the test harness only.
//! The rows of codes, texts and statuses are compared here with those of Centrifugo.

use fanwire_api::{ApiError, ApiOptions, ErrorMode};

use crate::harness::{Answer, Harness, KEY, json, ok, request};

const UNKNOWN: &str = r#"{"channel":"nowhere:a","data":{}}"#;
const IN_BODY: &str = r#"{"error":{"code":102,"message":"unknown channel"}}"#;
const IN_STATUS: &str = r#"{"code":102,"message":"unknown channel"}"#;

fn harness(error_mode: ErrorMode) -> Harness {
    Harness::with(ApiOptions { key: KEY.into(), error_mode, ..ApiOptions::default() })
}

async fn publish(harness: &Harness, mode_header: Option<&str>) -> Answer {
    let mut request = request("/api/publish").header("X-API-Key", KEY);
    if let Some(mode) = mode_header {
        request = request.header("X-Centrifugo-Error-Mode", mode);
    }
    harness.send(request.body(UNKNOWN.into()).expect("valid")).await
}

#[tokio::test]
async fn the_header_selects_transport_mode_only() {
    let body = harness(ErrorMode::Body);
    assert_eq!(publish(&body, None).await, ok(IN_BODY));
    assert_eq!(publish(&body, Some("body")).await, ok(IN_BODY));
    assert_eq!(publish(&body, Some("TRANSPORT")).await, ok(IN_BODY));
    assert_eq!(publish(&body, Some("transport")).await, json(404, IN_STATUS));
    let transport = harness(ErrorMode::Transport);
    assert_eq!(publish(&transport, None).await, json(404, IN_STATUS));
    assert_eq!(publish(&transport, Some("body")).await, json(404, IN_STATUS));
}

#[tokio::test]
async fn each_error_has_its_status_and_nothing_around_it_in_transport_mode() {
    let harness = harness(ErrorMode::Transport);
    let rows = [
        ("publish", UNKNOWN, 404, IN_STATUS),
        ("rpc", r#"{"method":"f"}"#, 404, r#"{"code":104,"message":"not found"}"#),
        ("publish", "{}", 400, r#"{"code":107,"message":"bad request"}"#),
        ("map_stats", r#"{"channel":"a"}"#, 400, r#"{"code":107,"message":"bad request"}"#),
        ("presence", r#"{"channel":"a"}"#, 400, r#"{"code":108,"message":"not available"}"#),
    ];
    for (method, body, status, expect) in rows {
        let answer = harness.post(&format!("/api/{method}"), body).await;
        assert_eq!(answer, json(status, expect), "{method} {body}");
    }
    // Plain text errors do not depend on the mode, and the legacy path has one mode only.
    let broken = harness.post("/api/publish", "{").await;
    assert_eq!(broken.malformed(), "EOF while parsing an object at line 1 column 1");
    let legacy = format!(r#"{{"method":"publish","params":{UNKNOWN}}}"#);
    assert_eq!(harness.post("/api", legacy).await, ok(IN_BODY));
}

#[tokio::test]
async fn results_are_the_same_in_both_modes() {
    let harness = harness(ErrorMode::Transport);
    let published = harness.post("/api/publish", r#"{"channel":"a","data":{}}"#).await;
    assert_eq!(published, ok(r#"{"result":{}}"#));
}

#[tokio::test]
async fn items_keep_their_errors_inside_a_200_also_in_transport_mode() {
    let harness = harness(ErrorMode::Transport);
    let batch = harness.post("/api/batch", format!(r#"{{"commands":[{{"publish":{UNKNOWN}}}]}}"#));
    assert_eq!(batch.await, ok(&format!(r#"{{"replies":[{IN_BODY}]}}"#)));
    let broadcast = harness.post("/api/broadcast", r#"{"channels":["nowhere:a"],"data":{}}"#);
    assert_eq!(broadcast.await, ok(&format!(r#"{{"result":{{"responses":[{IN_BODY}]}}}}"#)));
}

#[test]
fn every_code_has_its_own_text_and_status() {
    let expect = [
        (100, "internal server error", 500),
        (102, "unknown channel", 404),
        (103, "permission denied", 403),
        (104, "not found", 404),
        (107, "bad request", 400),
        (108, "not available", 400),
        (111, "too many requests", 429),
        (112, "unrecoverable position", 416),
        (113, "conflict", 409),
    ];
    let rows = ApiError::TABLE.map(|row| (row.code, row.message, row.http_status));
    assert_eq!(rows, expect);
}

#[test]
fn codes_of_the_client_protocol_become_100() {
    use fanwire_node::protocol::ErrorCode;
    let check = |code: ErrorCode, expect| assert_eq!(ApiError::from(code), expect, "{code}");
    check(ErrorCode::UNKNOWN_CHANNEL, ApiError::UNKNOWN_CHANNEL);
    check(ErrorCode::METHOD_NOT_FOUND, ApiError::NOT_FOUND);
    check(ErrorCode::CONCURRENT_PAGINATION, ApiError::CONFLICT);
    check(ErrorCode::PERMISSION_DENIED, ApiError::INTERNAL);
}
