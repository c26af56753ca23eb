//! A throttle for frequent events, logged once a minute: invalid records, refused commands, clients at a limit.
//! In: an event of some kind, and the time → out: whether to log it, and how often it occurred.
//! Uses a small lock. Never: writes the log, a clock of its own.
//! Changed here: how often. The text of a line is where the event occurs.

use std::fmt;
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use parking_lot::Mutex;

/// Counts events by kind between two log lines of that kind.
#[derive(Debug, Default)]
pub struct LogThrottle(Mutex<HashMap<String, EventState>>);

#[derive(Debug, Default)]
struct EventState {
    cases: u64,
    at: Option<Instant>,
}

/// The number of events since the last log line of this kind. As text it is the end of a log line, empty for one
/// event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats(u64);

impl LogThrottle {
    /// Counts an event of a kind. Returns the count if the event is to be logged.
    pub fn record(&self, kind: &str, now: Instant) -> Option<Repeats> {
        let mut kinds = self.0.lock();
        let kind = if kinds.len() < KINDS_MAX || kinds.contains_key(kind) { kind } else { "" };
        let event = kinds.entry_ref(kind).or_default();
        event.cases += 1;
        if event.at.is_some_and(|at| now.saturating_duration_since(at) < INTERVAL) {
            return None;
        }
        event.at = Some(now);
        Some(Repeats(std::mem::take(&mut event.cases)))
    }
}

impl fmt::Display for Repeats {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => Ok(()),
            more => write!(out, "; {more} times since this was last logged"),
        }
    }
}

/// Between two log lines of the same kind.
const INTERVAL: Duration = Duration::from_secs(60);

/// Kinds with a count of their own; all further kinds share one. Redis has some twenty error codes.
const KINDS_MAX: usize = 64;

#[cfg(test)]
mod tests;
