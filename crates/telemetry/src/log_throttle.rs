//! A throttle for frequent events: invalid records, clients at a limit, refused commands.
//! In: an event of some kind, and the time → out: whether to log it, and how often it occurred.
//! Uses a small lock. Never: writes the log, a clock of its own.
//! Changed here: how often. The text of a line is where the event occurs.

use std::cmp::Reverse;
use std::fmt;
use std::net::IpAddr;
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
    causes: Tally,
    users: Tally,
    addresses: Tally,
}

/// An event with what its log line says of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RefusalEvent<'a> {
    pub kind: &'a str,
    pub cause: &'a str,
    /// "" = unknown.
    pub user: &'a str,
    pub address: Option<IpAddr>,
}

/// The events of a kind that were not logged by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burst {
    pub kind: String,
    pub count: u64,
    /// Causes with most events, as `name (count), name (count)`.
    pub causes: String,
    pub users: String,
    pub addresses: String,
}

/// Counts by name, of the names that occur most: when it is full, a new name takes over the smallest count, so that counts
/// may be too high and never too low (Metwally, Agrawal, El Abbadi: "space saving").
#[derive(Debug, Default)]
struct Tally(Vec<(String, u64)>);

impl Tally {
    /// Counts a name. Returns whether it was not counted before.
    fn add(&mut self, name: &str) -> bool {
        if let Some((_, count)) = self.0.iter_mut().find(|(known, _)| known == name) {
            *count += 1;
            return false;
        }
        if self.0.len() < TALLY_MAX {
            self.0.push((name.to_owned(), 1));
        } else if let Some(rarest) = self.0.iter_mut().min_by_key(|(_, count)| *count) {
            *rarest = (name.to_owned(), rarest.1 + 1);
        }
        true
    }

    /// The most frequent names, and forgets all.
    fn take(&mut self) -> String {
        self.0.sort_by_key(|(_, count)| Reverse(*count));
        let most = self.0.iter().take(SHOWN).map(|(name, count)| format!("{name} ({count})"));
        let text = most.collect::<Vec<_>>().join(", ");
        self.0.clear();
        text
    }
}

/// The number of events since the last log line of this kind. As text it is the end of a log line, empty for one
/// event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats(u64);

impl LogThrottle {
    /// Throttle for refusals of single requests, which clients can cause at any rate: a line per kind in 10 s, and at
    /// most 90 lines a minute in all.
    pub fn for_refusals() -> Self {
        Self::new(REFUSAL_INTERVAL, REFUSAL_LINES_MAX)
    }

    fn new(interval: Duration, lines_max: usize) -> Self {
        Self { interval, lines_max, state: Mutex::default() }
    }

    /// Counts an event of a kind. Returns the count if the event is to be logged.
    pub fn record(&self, kind: &str, now: Instant) -> Option<Repeats> {
        self.record_event(RefusalEvent { kind, ..RefusalEvent::default() }, now)
    }

    /// Counts an event as [`record`](Self::record) does. A cause that is new in the window of its kind is logged, too,
    /// up to [`CAUSES_LOGGED`] of them; [`ended`](Self::ended) returns the others.
    pub fn record_event(&self, event: RefusalEvent<'_>, now: Instant) -> Option<Repeats> {
        let mut state = self.state.lock();
        let RefusalEvent { kind, cause, user, address } = event;
        let kinds = &mut state.kinds;
        let kind = if kinds.len() < KINDS_MAX || kinds.contains_key(kind) { kind } else { "" };
        let event = kinds.entry_ref(kind).or_default();
        event.cases += 1;
        let has_new_cause = !cause.is_empty() && {
            let is_new = event.causes.add(cause);
            is_new && (2..=CAUSES_LOGGED).contains(&event.causes.0.len())
        };
        if !user.is_empty() {
            event.users.add(user);
        }
        if let Some(address) = address {
            event.addresses.add(&address.to_string());
        }
        let is_recent = |at: Option<Instant>| {
            at.is_some_and(|at| now.saturating_duration_since(at) < self.interval)
        };
        if is_recent(event.at) && !has_new_cause {
            return None;
        }
        if !is_recent(state.begin) {
            state.begin = Some(now);
            state.lines = 0;
        }
        if state.lines == self.lines_max {
            return None;
        }
        state.lines += 1;
        let event = state.kinds.entry_ref(kind).or_default();
        if !is_recent(event.at) {
            event.at = Some(now);
        }
        Some(Repeats(std::mem::take(&mut event.cases)))
    }

    /// The kinds whose window has ended, with their events since their last line, so that the end of a burst is logged.
    pub fn ended(&self, now: Instant) -> Vec<Burst> {
        let mut state = self.state.lock();
        let has_ended = |at: Instant| now.saturating_duration_since(at) >= self.interval;
        let ended = state.kinds.iter_mut().filter(|(_, event)| event.at.is_some_and(has_ended));
        let bursts = ended.filter_map(|(kind, event)| {
            let count = std::mem::take(&mut event.cases);
            let [causes, users, addresses] =
                [&mut event.causes, &mut event.users, &mut event.addresses].map(Tally::take);
            event.at = None;
            (count > 0).then(|| Burst { kind: kind.clone(), count, causes, users, addresses })
        });
        bursts.collect()
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

/// Lines in one [`REFUSAL_INTERVAL`].
const REFUSAL_LINES_MAX: usize = 15;

/// Lines of different causes in the window of one kind.
const CAUSES_LOGGED: usize = 4;

/// Names of one tally.
const TALLY_MAX: usize = 16;

/// Names of a tally that a line has.
const SHOWN: usize = 3;

/// Kinds with a count of their own; all further kinds share one. Redis has some twenty error codes.
const KINDS_MAX: usize = 64;

#[cfg(test)]
mod tests;
