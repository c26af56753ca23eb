//! What the log says about commands that Redis refused.
//! In: commands, replies → out: what was refused and what to do about it.
//! Pure. Never: writes the log; how often it is said lives in `node::seldom`.
//! Change here: the words of a remedy. What is counted lives in `health.rs`.

use redis::{Arg, Cmd, ServerError};

/// What a command does to which keys, as far as its first arguments say.
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

/// What to do about a refusal; "" where Redis says it itself, or nobody knows. Before 7.0 the refusal of a command inside a
/// script stands in an error of another name.
pub(crate) fn hint(error: &ServerError) -> &'static str {
    let details = error.details().unwrap_or_default();
    let is = |code: &str| error.code() == code || error.code() == "ERR" && details.contains(code);
    HINTS.iter().find(|(code, _)| is(code)).map_or("", |(_, hint)| hint)
}

/// By code, or by what stands in an error without one.
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
