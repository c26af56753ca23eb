//! What the log says about bytes that are none of ours and about commands that Redis refused, and how often.
//! In: commands, replies, the time → out: what was refused and what to do about it; whether it is time to say so.
//! Uses a small lock. Never: writes the log.
//! Change here: the words of a remedy. What is counted lives in `health.rs`.

use std::fmt;
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use parking_lot::Mutex;
use redis::{Arg, Cmd, ServerError};

/// What may happen often and is said once a minute, by kind.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<HashMap<String, Told>>);

#[derive(Debug, Default)]
struct Told {
    cases: u64,
    at: Option<Instant>,
}

/// How many cases there were since the last one that was said; that one is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cases(u64);

impl Seldom {
    /// One more case of a kind, and whether it is to be said.
    pub(crate) fn happens(&self, kind: &str, now: Instant) -> Option<Cases> {
        let mut kinds = self.0.lock();
        let kind = if kinds.len() < KINDS_MAX || kinds.contains_key(kind) { kind } else { "" };
        let told = kinds.entry_ref(kind).or_default();
        told.cases += 1;
        if told.at.is_some_and(|at| now.saturating_duration_since(at) < INTERVAL) {
            return None;
        }
        told.at = Some(now);
        Some(Cases(std::mem::take(&mut told.cases)))
    }
}

impl fmt::Display for Cases {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => Ok(()),
            more => write!(out, "; {more} cases since this was said last"),
        }
    }
}

/// What a command does to which keys, as far as its first arguments say.
pub(crate) fn described(command: &Cmd) -> String {
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
pub(crate) fn remedy(error: &ServerError) -> &'static str {
    let details = error.details().unwrap_or_default();
    let is = |code: &str| error.code() == code || error.code() == "ERR" && details.contains(code);
    REMEDIES.iter().find(|(code, _)| is(code)).map_or("", |(_, remedy)| remedy)
}

/// By code, or by what stands in an error without one.
const REMEDIES: [(&str, &str); 6] = [
    ("WRONGTYPE", NOT_OURS),
    ("is not an integer", NOT_OURS),
    ("NOPERM", ": let engine.redis.user do that"),
    ("OOM", ": raise its maxmemory"),
    ("MISCONF", ": see its own log"),
    ("NOREPLICAS", ": its min-replicas-to-write wants more replicas"),
];
const NOT_OURS: &str = ": another program keeps something under one of these names; delete that key, or give one of the two \
                        programs another prefix (engine.redis.prefix)";
/// Between two lines about the same.
const INTERVAL: Duration = Duration::from_secs(60);
/// Kinds that are told apart; Redis has some twenty codes.
const KINDS_MAX: usize = 64;

#[cfg(test)]
mod tests;
