//! Causes in errors of the API, and the log lines of refused requests and failed calls.
//! In: requests, and a log that stores its lines. Out: bodies with causes, fields of lines.
//! Uses the test harness only.
//! Codes and statuses are tested with the methods.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use tracing::{Event, Level, Metadata, Subscriber, field, span};

use crate::harness::{Harness, KEY, request};

type Line = BTreeMap<String, String>;

/// Sends requests, each with a path, a key and a body. Returns the bodies of the responses and the lines of the log.
async fn sent(level: Level, requests: &[(&str, &str, &str)]) -> (Vec<String>, Vec<Line>) {
    let harness = Harness::new();
    let log = Log { level, lines: Arc::default() };
    let lines = Arc::clone(&log.lines);
    let _guard = tracing::subscriber::set_default(log);
    let mut bodies = Vec::new();
    for (path, key, body) in requests {
        let body = Body::from((*body).to_owned());
        let request = request(path).header("X-API-Key", *key).body(body).expect("valid");
        bodies.push(harness.send_whole(request).await.body);
    }
    let lines = lines.lock().expect("no panics").clone();
    (bodies, lines)
}

fn check(line: &Line, expect: &[(&str, &str)]) {
    for (name, value) in expect {
        assert_eq!(line.get(*name).map(String::as_str), Some(*value), "{name} of {line:?}");
    }
}

#[tokio::test]
async fn error_107_names_the_field() {
    let cases = [
        (
            "publish",
            r#"{"chanel":"a","data":{}}"#,
            "channel is missing or empty, expected its name",
        ),
        ("history", "{}", "channel is missing or empty, expected its name"),
        (
            "publish",
            r#"{"channel":"a","b64data":"?"}"#,
            "b64data is not standard base64 with padding",
        ),
        (
            "publish",
            r#"{"channel":"a","data":1,"delivery":"now"}"#,
            "delivery is neither reliable nor latest",
        ),
        (
            "broadcast",
            r#"{"data":1}"#,
            "channels is missing, empty or too long, expected 1 to 100,000 names",
        ),
    ];
    for (method, body, cause) in cases {
        let path = format!("/api/{method}");
        let (bodies, _) = sent(Level::ERROR, &[(&path, KEY, body)]).await;
        let expect =
            format!(r#"{{"error":{{"code":107,"message":"bad request","cause":"{cause}"}}}}"#);
        assert_eq!(bodies, [expect], "{method} {body}");
    }
}

#[tokio::test]
async fn a_failed_call_is_logged_with_channel_user_address_and_cause() {
    let body = r#"{"channel":"nowhere:a\u001b[2J","user":"42","data":"private"}"#;
    let (_, lines) = sent(Level::INFO, &[("/api/subscribe", KEY, body)]).await;
    let cause = "channel.namespaces has no namespace with the name before the boundary";
    check(
        &lines[0],
        &[("message", "an API call failed"), ("method", "subscribe"), ("code", "102")],
    );
    check(&lines[0], &[("cause", cause), ("channel", "nowhere:a\\u{1b}[2J"), ("user", "42")]);
    check(&lines[0], &[("address", "127.0.0.1:4000"), ("count", "1")]);
    assert!(!format!("{lines:?}").contains("private"), "{lines:?}");
}

#[tokio::test]
async fn a_wrong_key_is_logged_and_neither_key_is() {
    let wrong = ("/api/publish", "wrong-key", "{}");
    let (bodies, lines) = sent(Level::INFO, &[wrong; 20]).await;
    assert!(bodies[0].contains("http_api.key") && bodies[0].contains("X-API-Key"), "{bodies:?}");
    check(&lines[0], &[("message", "refused an API request"), ("status", "401")]);
    assert_eq!(lines.len(), 1, "one line in ten seconds: {lines:?}");
    let text = format!("{bodies:?}{lines:?}");
    assert!(!text.contains("wrong-key") && !text.contains(&format!("{KEY:?}")), "{text}");
    let (_, lines) = sent(Level::DEBUG, &[wrong; 20]).await;
    assert_eq!(lines.len(), 20, "at debug each of them");
}

#[tokio::test]
async fn errors_inside_a_batch_are_logged() {
    let body = r#"{"commands":[{"publish":{"data":1}},{"publsh":{}}]}"#;
    let (bodies, lines) = sent(Level::INFO, &[("/api/batch", KEY, body)]).await;
    assert!(
        bodies[0].contains(r#""cause":"the command names no method of the API""#),
        "{bodies:?}"
    );
    check(&lines[0], &[("method", "batch"), ("code", "107")]);
    check(&lines[1], &[("method", "batch"), ("code", "104")]);
}

#[tokio::test]
async fn a_call_that_succeeds_is_not_logged() {
    let publish = ("/api/publish", KEY, r#"{"channel":"a","data":{}}"#);
    assert_eq!(sent(Level::TRACE, &[publish]).await.1, []);
}

/// Stores the events from a level on.
struct Log {
    level: Level,
    lines: Arc<Mutex<Vec<Line>>>,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::new();
        event.record(&mut Fields(&mut line));
        self.lines.lock().expect("no panics").push(line);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The fields of an event; texts without quotes.
struct Fields<'a>(&'a mut Line);

impl field::Visit for Fields<'_> {
    fn record_debug(&mut self, field: &field::Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &field::Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}
