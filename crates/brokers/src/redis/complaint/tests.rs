//! Tests of complaints: how often they are made, which keys and which remedies they name.
//! In: commands, refusals as Redis sends them, times → out: words.
//! Uses the parser of the crate `redis`. Never: clocks, connections.
//! A new remedy is a row here.

use redis::{Value, cmd, parse_redis_value};

use super::*;

#[test]
fn what_happens_often_is_said_once_a_minute_by_kind() {
    let (seldom, start) = (Seldom::default(), Instant::now());
    let at = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(seldom.happens("a", at(0)), Some(Cases(1)));
    assert_eq!(seldom.happens("b", at(1)), Some(Cases(1)), "another kind");
    for seconds in [0, 30, 59] {
        assert_eq!(seldom.happens("a", at(seconds)), None);
    }
    let later = seldom.happens("a", at(60)).expect("a minute later");
    assert_eq!(
        (later, later.to_string().as_str()),
        (Cases(4), "; 4 cases since this was said last")
    );
    assert_eq!(Cases(1).to_string(), "");
    let said = (0..1000).filter_map(|kind| seldom.happens(&format!("kind {kind}"), at(60)));
    assert_eq!(said.count(), KINDS_MAX - 2 + 1, "the kinds are bounded");
}

#[test]
fn commands_are_described_by_their_keys() {
    let mut script = cmd("EVALSHA");
    script.arg("0123").arg(2).arg("p.stream.{:a}").arg("p.meta.{:a}").arg("secret");
    assert_eq!(described(&script), "a script on p.stream.{:a}, p.meta.{:a}");
    let mut publish = cmd("PUBLISH");
    publish.arg("p.feed.{:a}").arg("secret");
    assert_eq!(described(&publish), "PUBLISH p.feed.{:a}");
    assert_eq!(described(&cmd("TIME")), "TIME");
    assert_eq!(described(&Cmd::new()), "");
}

#[test]
fn refusals_have_remedies() {
    let rows = [
        ("WRONGTYPE Operation against a key holding the wrong kind of value", "delete that key"),
        ("ERR Error running script (call to f_0): @user_script:3: WRONGTYPE Operation", "delete"),
        ("ERR hash value is not an integer", "engine.redis.prefix"),
        ("NOPERM this user has no permissions", "engine.redis.user"),
        ("OOM command not allowed when used memory > 'maxmemory'.", "maxmemory"),
        ("BUSY Redis is busy running a script", ""),
    ];
    for (text, expected) in rows {
        let Ok(Value::ServerError(error)) = parse_redis_value(format!("-{text}\r\n").as_bytes())
        else {
            panic!("{text}")
        };
        let said = remedy(&error);
        assert!(
            said.contains(expected) && said.is_empty() == expected.is_empty(),
            "{text}: {said}"
        );
    }
}
