//! A throttle for frequent events: invalid records, clients at a limit, refused commands.
//! In: an event of some kind, and the time → out: whether to log it, and how often it occurred.
//! Uses a small lock. Never: writes the log, a clock of its own.
//! Changed here: how often. The text of a line is where the event occurs.

use std::fmt;
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use parking_lot::Mutex;

/// Counts events by kind between two log lines of that kind.
#[derive(Debug)]
pub struct LogThrottle {
    /// Between two log lines of the same kind.
    interval: Duration,
    /// Lines of all kinds in one interval.
    lines_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kinds: HashMap<String, EventState>,
    /// The begin of an interval, and the lines in it.
    begin: Option<Instant>,
    lines: usize,
}

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
    /// For refusals of single requests, which clients can cause at any rate: a line per kind in 10 s, and at most 90
    /// lines a minute in all.
    pub fn for_refusals() -> Self {
        Self::new(REFUSAL_INTERVAL, REFUSAL_LINES_MAX)
    }

    fn new(interval: Duration, lines_max: usize) -> Self {
        Self { interval, lines_max, state: Mutex::default() }
    }

    /// Counts an event of a kind. Returns the count if the event is to be logged.
    pub fn record(&self, kind: &str, now: Instant) -> Option<Repeats> {
        let mut state = self.state.lock();
        let kinds = &mut state.kinds;
        let kind = if kinds.len() < KINDS_MAX || kinds.contains_key(kind) { kind } else { "" };
        let event = kinds.entry_ref(kind).or_default();
        event.cases += 1;
        let is_recent = |at: Option<Instant>| {
            at.is_some_and(|at| now.saturating_duration_since(at) < self.interval)
        };
        if is_recent(event.at) {
            return None;
        }
        if !is_recent(state.begin) {
            (state.begin, state.lines) = (Some(now), 0);
        }
        if state.lines == self.lines_max {
            return None;
        }
        state.lines += 1;
        let event = state.kinds.entry_ref(kind).or_default();
        event.at = Some(now);
        Some(Repeats(std::mem::take(&mut event.cases)))
    }
}

/// A line per kind and minute.
impl Default for LogThrottle {
    fn default() -> Self {
        Self::new(Duration::from_secs(60), KINDS_MAX + 1)
    }
}

impl Repeats {
    /// The number of events, this one included.
    pub fn count(self) -> u64 {
        self.0
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

const REFUSAL_INTERVAL: Duration = Duration::from_secs(10);

/// In one [`REFUSAL_INTERVAL`].
const REFUSAL_LINES_MAX: usize = 15;

/// Kinds with a count of their own; all further kinds share one. Redis has some twenty error codes.
const KINDS_MAX: usize = 64;

#[cfg(test)]
mod tests;
