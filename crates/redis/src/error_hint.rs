//! Hints for log lines about commands that Redis refused.
//! In: commands, replies → out: a description of the command and a remedy.
//! Pure. Never: writes the log; `LogThrottle` of the crate `telemetry` limits how often.
//! Changed here: the text of a hint. `health.rs` counts refusals.

use redis::{Arg, Cmd, ServerError};

/// The command and its keys, as far as its first arguments show them.
pub(crate) fn describe_command(command: &Cmd) -> String {
    let mut arguments = command.args_iter().map(|argument| match argument {
        Arg::Simple(text) => String::from_utf8_lossy(text),
        _ => "?".into(),
    });
    let name = arguments.next().unwrap_or_default();
    if name != "EVALSHA" {
        let first = arguments.next().unwrap_or_default();
        return format!("{name} {first}").trim_end().to_owned();
    }
    let count = arguments.nth(1).and_then(|count| count.parse().ok()).unwrap_or(0);
    let keys: Vec<_> = arguments.take(count).collect();
    format!("a script on {}", keys.join(", "))
}

/// A remedy for a refusal; "" where the error text is enough. Before 7.0, the refusal of a command inside a script is
/// part of an `ERR` error.
pub(crate) fn hint(error: &ServerError) -> &'static str {
    let details = error.details().unwrap_or_default();
    let is = |code: &str| error.code() == code || error.code() == "ERR" && details.contains(code);
    HINTS.iter().find(|(code, _)| is(code)).map_or("", |(_, hint)| hint)
}

/// Remedies by error code, or by text in an error without a code.
const HINTS: [(&str, &str); 6] = [
    ("WRONGTYPE", NOT_OURS),
    ("is not an integer", NOT_OURS),
    ("NOPERM", ": let engine.redis.user do that"),
    ("OOM", ": raise its maxmemory"),
    ("MISCONF", ": see its own log"),
    ("NOREPLICAS", ": its min-replicas-to-write wants more replicas"),
];
const NOT_OURS: &str = ": another program keeps something under one of these names; delete that key, or give one of the two \
                        programs another prefix (engine.redis.prefix)";

#[cfg(test)]
mod tests;
