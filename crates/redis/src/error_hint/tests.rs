//! Tests of error hints: keys and remedies.
//! In: commands, refusals as Redis sends them → out: texts.
//! Uses the parser of the crate `redis`. Never: connections.
//! A new hint is a row here.

use redis::{Value, cmd, parse_redis_value};

use super::*;

#[test]
fn commands_are_described_by_their_keys() {
    let mut script = cmd("EVALSHA");
    script.arg("0123").arg(2).arg("p.stream.{:a}").arg("p.meta.{:a}").arg("secret");
    assert_eq!(describe_command(&script), "a script on p.stream.{:a}, p.meta.{:a}");
    let mut publish = cmd("PUBLISH");
    publish.arg("p.feed.{:a}").arg("secret");
    assert_eq!(describe_command(&publish), "PUBLISH p.feed.{:a}");
    assert_eq!(describe_command(&cmd("TIME")), "TIME");
    assert_eq!(describe_command(&Cmd::new()), "");
}

#[test]
fn refusals_have_hints() {
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
        let found_hint = hint(&error);
        assert!(
            found_hint.contains(expected) && found_hint.is_empty() == expected.is_empty(),
            "{text}: {found_hint}"
        );
    }
}
