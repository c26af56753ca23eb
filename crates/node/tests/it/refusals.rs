//! Log lines of refused commands and of connections that the server ends, and their causes in close frames.
//! In: dialogues, and a log that stores its lines → out: the fields of each line, and how many lines there are.
//! Uses: `world`, `script`, tokens. Never: what a refusal leads to, which other tests check.
//! Changed here: tests of what a line contains. How often lines are written is tested in the crate `telemetry`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Once};

use fanwire_node::{DEBUG_FOR_TARGET, Options};
use parking_lot::Mutex;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber, field, span};

use crate::tokens::{SECRET, connect, guarded, subscribe, token};
use crate::world::{World, options};

pub(crate) type Line = BTreeMap<String, String>;

/// Plays a dialogue and returns the lines of the log, from this level on.
pub(crate) fn logged(level: Level, options: Options, play: impl FnOnce(&mut World)) -> Vec<Line> {
    // An event that another thread writes first, without a log, would be switched off for all threads now and then.
    QUIET.call_once(|| tracing::subscriber::set_global_default(Quiet).expect("the only one"));
    let log = Log { level, lines: Arc::default() };
    let lines = Arc::clone(&log.lines);
    tracing::subscriber::with_default(log, || play(&mut World::new(options)));
    let lines = lines.lock();
    lines.clone()
}

fn check(line: &Line, expect: &[(&str, &str)]) {
    for (name, value) in expect {
        assert_eq!(line.get(*name).map(String::as_str), Some(*value), "{name} of {line:?}");
    }
}

#[test]
fn a_connect_without_a_token_names_the_key_to_set() {
    let cause = "no token, and client.allow_anonymous_connect_without_token is off";
    let lines = logged(Level::INFO, guarded(|_| {}), |world| {
        world.play(&format!(
            "ada opens\n ada > {{\"id\":1,\"connect\":{{}}}}\n ada x 3501 bad request: {cause}"
        ));
    });
    check(&lines[0], &[("level", "INFO"), ("message", "refused a command"), ("count", "1")]);
    check(&lines[0], &[("command", "connect"), ("code", "3501"), ("error", "bad request")]);
    check(&lines[0], &[("cause", cause)]);
    assert_eq!(lines.len(), 1, "the disconnect is part of the same line: {lines:?}");
}

#[test]
fn a_refused_subscribe_names_client_user_and_channel() {
    let lines = logged(Level::INFO, guarded(|_| {}), |world| {
        world.open("ada", crate::script::hello(""));
        world.say("ada", &connect(r#"{"sub":"42"}"#));
        world.say("ada", r#"{"id":2,"subscribe":{"channel":"news"}}"#);
        world.say("ada", r#"{"id":3,"publish":{"channel":"news","data":{}}}"#);
        let client = world.id("ada").to_owned();
        assert_eq!(client.len(), 36);
    });
    let cause = "allow_subscribe_for_client of the namespace is off, and the client sent no subscription token";
    check(&lines[0], &[("command", "subscribe"), ("code", "103"), ("channel", "news")]);
    check(&lines[0], &[("user", "42"), ("cause", cause)]);
    assert_eq!(lines[0]["client"].len(), 36, "{lines:?}");
    check(&lines[1], &[("command", "publish"), ("code", "103"), ("channel", "news")]);
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[test]
fn a_refused_token_has_the_reason_of_check_token_and_is_never_logged() {
    let own = token(r#"{"sub":"42","exp":1}"#);
    let forged = format!("{}A", token(r#"{"sub":"42"}"#));
    let lines = logged(Level::TRACE, guarded(|_| {}), |world| {
        for (name, token) in [("ada", &own), ("bob", &forged)] {
            world.open(name, crate::script::hello(""));
            world.say(name, &format!(r#"{{"id":1,"connect":{{"token":"{token}"}}}}"#));
        }
        assert!(world.heard("ada").is_some_and(|reply| reply.contains("109")));
        let reason = "x 3500 invalid token: the token has a wrong signature";
        assert_eq!(world.heard("bob").as_deref(), Some(reason));
    });
    let cause = format!(
        "the token is expired or not yet valid: it expired {} s ago (exp is 1)",
        crate::world::UNIX - 1
    );
    let refused: Vec<_> =
        lines.iter().filter(|line| line["message"] == "refused a command").collect();
    check(refused[0], &[("code", "109"), ("cause", &cause), ("user", "42")]);
    let wrong = [("code", "3500"), ("cause", "the token has a wrong signature"), ("user", "42")];
    check(refused[1], &wrong);
    let text = format!("{lines:?}");
    assert!(!text.contains("eyJ") && !text.contains(SECRET), "{text}");
}

#[test]
fn a_subscription_token_of_another_channel_is_named() {
    let lines = logged(Level::INFO, guarded(|_| {}), |world| {
        world.open("ada", crate::script::hello(""));
        world.say("ada", &connect(r#"{"sub":"42"}"#));
        world.say("ada", &subscribe("news", r#"{"sub":"42","channel":"sport"}"#));
    });
    let cause = "the token is for another channel, user or client";
    check(&lines[0], &[("code", "3500"), ("cause", cause), ("channel", "news")]);
}

#[test]
fn at_info_there_is_one_line_per_kind_in_ten_seconds_and_at_debug_every_refusal() {
    let play = |world: &mut World| {
        world.open("ada", crate::script::hello(""));
        world.say("ada", &connect(r#"{"sub":"42"}"#));
        for id in 2..52 {
            world.say("ada", &format!(r#"{{"id":{id},"subscribe":{{"channel":"news"}}}}"#));
        }
        world.wait(std::time::Duration::from_secs(10));
        world.say("ada", r#"{"id":60,"subscribe":{"channel":"news"}}"#);
    };
    let lines = logged(Level::INFO, guarded(|_| {}), play);
    let counts: Vec<_> = lines.iter().map(|line| line["count"].as_str()).collect();
    assert_eq!(counts, ["1", "50"]);
    let lines = logged(Level::DEBUG, guarded(|_| {}), play);
    let refused = lines.iter().filter(|line| line["message"] == "refused a command");
    assert_eq!(refused.count(), 51);
}

#[test]
fn texts_from_outside_are_escaped_and_cut() {
    let hostile = format!(r#"{}{}"#, "\\u001b[2J\\n", "x".repeat(1 << 14));
    let lines = logged(Level::INFO, guarded(|_| {}), |world| {
        world.open("ada", crate::script::hello(""));
        let claims = format!(r#"{{"sub":"{hostile}"}}"#).replace("\\\\", "\\");
        world.say("ada", &connect(&claims));
        world.say("ada", &format!(r#"{{"id":2,"subscribe":{{"channel":"{hostile}"}}}}"#));
    });
    assert!(lines[0]["user"].starts_with("\\u{1b}[2J\\u{a}xxx"), "{lines:?}");
    for name in ["user", "channel"] {
        assert!(lines[0][name].chars().count() < 200, "{lines:?}");
        assert!(!lines[0][name].contains(char::is_control), "{lines:?}");
    }
}

#[test]
fn a_connection_that_the_server_ends_has_a_line_with_client_and_cause() {
    let lines = logged(Level::INFO, options(|_| {}), |world| {
        world.play("ada opens");
        world.wait(std::time::Duration::from_secs(60));
        world.connected("bob", crate::script::hello(""));
        world.keeps_silent("bob");
        world.wait(std::time::Duration::from_secs(120));
    });
    check(
        &lines[0],
        &[("message", "disconnected a client"), ("code", "3502"), ("reason", "stale")],
    );
    let cause = "the client did not answer a ping within client.pong_timeout";
    check(&lines[1], &[("code", "3012"), ("cause", cause)]);
    assert_eq!(lines[1]["client"].len(), 36);
}

#[test]
fn what_is_not_refused_is_logged_at_debug_alone() {
    let play = |world: &mut World| {
        world.connected("ada", crate::script::hello(""));
        world.say("ada", r#"{"id":2,"subscribe":{"channel":"news"}}"#);
        world.publish("news", "{}");
        world.close("ada");
    };
    assert_eq!(logged(Level::INFO, options(|_| {}), play), [], "nothing per connection");
    let lines = logged(Level::DEBUG, options(|_| {}), play);
    let told = |line: &Line| (line["message"].clone(), line.get("command").cloned());
    let told: Vec<_> = lines.iter().map(told).collect();
    let command = |name: &str| ("command".to_owned(), Some(name.to_owned()));
    let event = |name: &str| (name.to_owned(), None);
    let connect = command("connect");
    let subscribe = command("subscribe");
    assert_eq!(told, [connect, event("connect"), subscribe, event("subscribe"), event("close")]);
}

#[test]
fn what_the_protocol_forbids_has_a_cause() {
    let cases = [
        (r#"{"id":1,"subscribe":{"channel":"news"}}"#, "the first command must be connect"),
        ("nonsense", "the message is not a command in the JSON or Protobuf protocol"),
        (r#"{"connect":{}}"#, "the command has no id"),
    ];
    for (command, cause) in cases {
        World::new(options(|_| {}))
            .play(&format!("ada opens\n ada > {command}\n ada x 3501 bad request: {cause}"));
    }
    let connected = [
        (r#"{"id":2,"connect":{}}"#, "3501 bad request: the client is connected already"),
        (r#"{"id":2,"chanel":{}}"#, "3501 bad request: the command has none of the known requests"),
        (r#"{"id":2,"subscribe":{}}"#, "3501 bad request: the command names no channel"),
    ];
    for (command, reason) in connected {
        let mut world = World::new(options(|_| {}));
        world.connected("ada", crate::script::hello(""));
        world.play(&format!("ada > {command}\n ada x {reason}"));
    }
}

static QUIET: Once = Once::new();

/// Keeps every event switched on, and stores none.
struct Quiet;

impl Subscriber for Quiet {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn event(&self, _: &Event<'_>) {}

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Stores the events from a level on.
struct Log {
    level: Level,
    lines: Arc<Mutex<Vec<Line>>>,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level || metadata.target() == DEBUG_FOR_TARGET
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::from([("level".to_owned(), event.metadata().level().to_string())]);
        event.record(&mut Fields(&mut line));
        self.lines.lock().push(line);
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
