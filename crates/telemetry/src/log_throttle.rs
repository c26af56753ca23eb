//! What may happen often and is said in the log once a minute: foreign bytes, refusals, clients at a limit.
//! In: an event of some kind, and the time → out: whether it is to be said, and how often it happened.
//! Uses a small lock. Never: writes the log, a clock of its own.
//! Changed here: how often. What is said stands where it record.

use std::fmt;
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use parking_lot::Mutex;

/// Counts events by kind between two lines about them.
#[derive(Debug, Default)]
pub struct LogThrottle(Mutex<HashMap<String, EventState>>);

#[derive(Debug, Default)]
struct EventState {
    cases: u64,
    at: Option<Instant>,
}

/// How many cases there were since the last one that was said. Written, it is the end of a line, and nothing for one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats(u64);

impl LogThrottle {
    /// One more case of a kind, and whether it is to be said.
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

/// Between two lines about the same.
const INTERVAL: Duration = Duration::from_secs(60);

/// Kinds that are event apart; Redis has some twenty codes of errors.
const KINDS_MAX: usize = 64;

#[cfg(test)]
mod tests;
