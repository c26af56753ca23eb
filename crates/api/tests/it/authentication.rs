//! Authentication and limits: keys in three places, insecure mode, methods and paths, the body limit, shutdown.
//! In: requests with all kinds of credentials. Out: statuses, and plain text for refused requests.
//! Uses the test harness only.
//! The replies of methods are tested in `replies`.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use fanwire_api::{ApiKeyOptions, ApiOptions, RequestErrorCounts};
use hyper::body::{Frame, SizeHint};

use crate::harness::{Harness, KEY, ok, plain, request};

/// A body with a known length whose bytes never arrive.
struct PendingBody {
    length: u64,
}

impl HttpBody for PendingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

const UNAUTHORIZED: &str = "Unauthorized: send http_api.key of the server in the header X-API-Key, or as Authorization: apikey KEY";

const TOO_LARGE: &str = "Payload Too Large: http_api.max_request_body_size is 1000 bytes";

const CHANNELS: &str = r#"{"result":{"channels":{}}}"#;

fn with_key(key: &str) -> Harness {
    Harness::with(ApiOptions { key: key.into(), ..ApiOptions::default() })
}

async fn check(harness: &Harness, headers: &[(&str, &str)], query: &str, is_accepted: bool) {
    let mut request = request(&format!("/api/channels{query}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = harness.send(request.body(Body::from("{}")).expect("valid")).await;
    let expect = if is_accepted { ok(CHANNELS) } else { plain(401, UNAUTHORIZED) };
    assert_eq!(answer, expect, "{headers:?} {query}");
}

#[tokio::test]
async fn the_key_is_read_from_header_authorization_or_query_in_this_order() {
    let harness = with_key("k1");
    let check = async |headers: &[(&str, &str)], query, expect| {
        check(&harness, headers, query, expect).await;
    };
    check(&[("X-API-Key", "k1")], "", true).await;
    check(&[("x-api-key", "k1")], "", true).await;
    check(&[("Authorization", "apikey k1")], "", true).await;
    check(&[("Authorization", "ApiKey k1")], "", true).await;
    check(&[], "?api_key=k1", true).await;
    check(&[], "?x=%20&api_key=k%31&y", true).await;

    check(&[], "", false).await;
    check(&[("X-API-Key", "")], "", false).await;
    check(&[("X-API-Key", "k2")], "", false).await;
    check(&[("X-API-Key", "k1x")], "", false).await;
    check(&[("X-API-Key", "K1")], "", false).await;
    check(&[("X-API-Key", "apikey k1")], "", false).await;
    check(&[("Authorization", "k1")], "", false).await;
    check(&[("Authorization", "Bearer k1")], "", false).await;
    check(&[("Authorization", "apikey k1 k1")], "", false).await;
    check(&[("Authorization", "apikey \u{e9}")], "", false).await;
    check(&[], "?api_key=", false).await;
    check(&[], "?api_key=k2", false).await;
    check(&[], "?API_KEY=k1", false).await;
}

#[tokio::test]
async fn of_several_keys_a_wrong_header_beats_a_right_authorization_but_not_the_query() {
    let harness = with_key("k1");
    check(&harness, &[("X-API-Key", "k2"), ("Authorization", "apikey k1")], "", false).await;
    check(&harness, &[("X-API-Key", "k1"), ("Authorization", "apikey k2")], "", true).await;
    check(&harness, &[("X-API-Key", ""), ("Authorization", "apikey k1")], "", true).await;
    check(&harness, &[("X-API-Key", "k2")], "?api_key=k1", true).await;
    check(&harness, &[("Authorization", "apikey k2")], "?api_key=k1", true).await;
    check(&harness, &[("X-API-Key", "k2"), ("X-API-Key", "k1")], "", false).await;
    check(&harness, &[], "?api_key=k2&api_key=k1", false).await;
}

#[tokio::test]
async fn an_empty_configured_key_accepts_no_request() {
    let harness = with_key("");
    check(&harness, &[], "", false).await;
    check(&harness, &[("X-API-Key", "")], "?api_key=", false).await;
    check(&harness, &[("Authorization", "apikey ")], "", false).await;
    check(&harness, &[("X-API-Key", "k1")], "", false).await;
}

#[tokio::test]
async fn insecure_accepts_every_request() {
    let harness = Harness::with(ApiOptions { insecure: true, ..ApiOptions::default() });
    check(&harness, &[], "", true).await;
    check(&harness, &[("X-API-Key", "wrong")], "", true).await;
}

#[tokio::test]
async fn other_http_methods_get_405_and_unknown_paths_404() {
    let harness = Harness::new();
    for method in ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"] {
        let request = request("/api/publish").method(method).body(Body::empty()).expect("valid");
        assert_eq!(harness.send(request).await.status, 405, "{method}");
    }
    for path in ["/api/connection", "/api/push_user", "/api/Publish", "/api/publish/", "/publish"] {
        assert_eq!(harness.post(path, "{}").await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_prefix_is_configurable() {
    for (prefix, path) in [("/v1/api/", "/v1/api/info"), ("api", "/api/info"), ("/", "/info")] {
        let options = ApiOptions {
            insecure: true,
            handler_prefix: prefix.to_owned(),
            ..ApiOptions::default()
        };
        assert_eq!(Harness::with(options).post(path, "{}").await.status, 200, "{prefix}");
    }
}

#[tokio::test]
async fn bodies_over_the_limit_get_413_and_those_at_the_limit_pass() {
    let text = |bytes: usize| {
        let shell = r#"{"channel":"a","data":""}"#.len();
        format!(r#"{{"channel":"a","data":"{}"}}"#, "x".repeat(bytes - shell))
    };
    let options = ApiOptions { insecure: true, body_bytes_max: 1000, ..ApiOptions::default() };
    let harness = Harness::with(options);
    assert_eq!(harness.post("/api/publish", text(1000)).await, ok(r#"{"result":{}}"#));
    assert_eq!(harness.post("/api/publish", text(1001)).await, plain(413, TOO_LARGE));
    assert_eq!(harness.post("/api", text(1_000_000)).await, plain(413, TOO_LARGE));
    assert_eq!(harness.api.counters().refusals().too_large, 2);
}

#[tokio::test]
async fn a_too_large_content_length_gets_413_at_once() {
    let options = ApiOptions { insecure: true, body_bytes_max: 1000, ..ApiOptions::default() };
    let harness = Harness::with(options);
    let announce =
        |length| request("/api/publish").body(Body::new(PendingBody { length })).expect("valid");
    for length in [1001, 17_179_869_184, u64::MAX] {
        let answer = harness.send(announce(length)).await;
        assert_eq!(answer, plain(413, TOO_LARGE), "{length}");
    }
    assert_eq!(harness.api.counters().refusals().too_large, 3);
    let strangers = Harness::new().send(announce(1001)).await;
    assert_eq!(strangers, plain(401, UNAUTHORIZED));
}

#[tokio::test]
async fn a_body_may_arrive_in_pieces() {
    let options = ApiOptions { insecure: true, body_bytes_max: 1000, ..ApiOptions::default() };
    let harness = Harness::with(options);
    let text = format!(r#"{{"channel":"kept:a","data":"{}"}}"#, "x".repeat(900));
    for size in [1, 7, 400, 1000] {
        let pieces: Vec<_> = text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
        let pieces = pieces.into_iter().map(Ok::<_, Infallible>);
        let body = Body::from_stream(futures_util::stream::iter(pieces));
        let answer = harness.post("/api/publish", body).await;
        assert!(answer.body.starts_with(r#"{"result":{"offset":"#), "{answer:?}");
    }
    for size in [1, 7, 400] {
        let pieces = vec![Ok::<_, Infallible>("x".repeat(size)); 1000 / size + 1];
        let body = Body::from_stream(futures_util::stream::iter(pieces));
        assert_eq!(harness.post("/api/publish", body).await, plain(413, TOO_LARGE));
    }
}

#[tokio::test]
async fn an_incomplete_body_is_malformed() {
    let harness = Harness::new();
    let parts = [Ok("{}"), Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof))];
    let body = Body::from_stream(futures_util::stream::iter(parts));
    assert_eq!(harness.post("/api/channels", body).await.malformed(), "the body is incomplete");
    assert_eq!(harness.api.counters().refusals().malformed, 1);
}

#[tokio::test]
async fn a_closing_server_answers_503() {
    let harness = Harness::new();
    harness.api.set_closing(true);
    assert_eq!(
        harness.post("/api/info", "{}").await,
        plain(503, "Service Unavailable: the server stops")
    );
    assert_eq!(
        harness.post("/api", "{}").await,
        plain(503, "Service Unavailable: the server stops")
    );
}

#[tokio::test]
async fn a_request_without_a_key_is_refused_before_its_body_is_read() {
    let harness = Harness::new();
    let body = Body::from("x".repeat(64 * 1024 * 1024));
    let answer = harness.send(request("/api/publish").body(body).expect("valid")).await;
    assert_eq!(answer, plain(401, UNAUTHORIZED));
    let expect = RequestErrorCounts { unauthorized: 1, malformed: 0, too_large: 0 };
    assert_eq!(harness.api.counters().refusals(), expect);
}

#[tokio::test]
async fn a_named_key_is_limited_to_its_methods_and_namespaces() {
    let rights = ApiKeyOptions {
        key: "shop's".into(),
        methods: vec!["publish".to_owned(), "batch".to_owned()],
        namespaces: vec!["shop".to_owned()],
        ..ApiKeyOptions::default()
    };
    let options = ApiOptions {
        key: KEY.into(),
        keys: [("shop".to_owned(), rights)].into(),
        ..ApiOptions::default()
    };
    let harness = Harness::with(options);
    let code = async |path: &str, body: &str| {
        let request = request(path).header("X-API-Key", "shop's");
        let answer = harness.send(request.body(Body::from(body.to_owned())).expect("valid")).await;
        let body: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
        body["error"]["code"].as_u64()
    };
    assert_eq!(code("/api/publish", r#"{"channel":"shop:1","data":1}"#).await, Some(102));
    assert_eq!(code("/api/publish", r#"{"channel":"news","data":1}"#).await, Some(103));
    assert_eq!(code("/api/channels", "{}").await, Some(103));
    assert_eq!(code("/api", r#"{"method":"info","params":{}}"#).await, Some(103));
    let counts: Vec<_> =
        harness.api.callers().iter().map(|one| (one.name.clone(), one.counts())).collect();
    assert_eq!(counts, [("default".to_owned(), [0, 0, 0]), ("shop".to_owned(), [4, 3, 0])]);
}
