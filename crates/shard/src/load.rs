//! Whether a shard is so busy that publications wait for others, which are written with them.
//! In: times of turns, publications that waited and their writes → out: how long a publication waits now.
//! Pure. Time is a parameter; never a connection.
//! Changed here: when a shard counts as busy. Which frames wait is decided in `connection_writer`.

use std::time::{Duration, Instant};

/// The load of one shard, in windows of [`WINDOW`].
#[derive(Debug)]
pub(super) struct Load {
    /// The longest wait; zero if no publication ever waits.
    delay: Duration,
    is_high: bool,
    turn_began: Instant,
    turn_ended: Instant,
    window_began: Instant,
    /// Time of turns since the window began.
    busy: Duration,
    /// The longest of these turns, and of those of the window before.
    longest_turn: Duration,
    longest_turn_before: Duration,
    /// Pauses since the window began in which publications waited. They tell nothing about the load.
    waiting: Duration,
    waits: Waits,
    /// Waiting was of no use before; it is tried again then.
    retry_at: Instant,
}

/// The last waits, and what they brought.
#[derive(Debug, Default)]
struct Waits {
    count: u32,
    /// Publications that waited, each counted for each of its connections.
    publications: u64,
    writes: u64,
}

impl Load {
    pub(super) fn new(delay: Duration, now: Instant) -> Self {
        Self {
            delay,
            is_high: false,
            turn_began: now,
            turn_ended: now,
            window_began: now,
            busy: Duration::ZERO,
            longest_turn: Duration::ZERO,
            longest_turn_before: Duration::ZERO,
            waiting: Duration::ZERO,
            waits: Waits::default(),
            retry_at: now,
        }
    }

    /// A turn begins, before which publications waited or did not.
    pub(super) fn begin_turn(&mut self, now: Instant, have_waited: bool) {
        if have_waited {
            self.waiting += now.saturating_duration_since(self.turn_ended);
        }
        self.turn_began = now;
        let elapsed = now.saturating_duration_since(self.window_began);
        if elapsed >= WINDOW {
            let known = elapsed.saturating_sub(self.waiting);
            self.is_high = self.busy >= known.mul_f64(BUSY_SHARE);
            self.window_began = now;
            self.busy = Duration::ZERO;
            self.longest_turn_before = std::mem::take(&mut self.longest_turn);
            self.waiting = Duration::ZERO;
        }
    }

    /// The turn has taken this time.
    pub(super) fn end_turn(&mut self, busy: Duration) {
        self.busy += busy;
        self.longest_turn = self.longest_turn.max(busy);
        self.turn_ended = self.turn_began + busy;
    }

    /// How long a publication waits at most; zero while the load is low, and where turns are short.
    #[inline]
    pub(super) fn delay(&self) -> Duration {
        if !self.is_high || self.turn_began < self.retry_at {
            return Duration::ZERO;
        }
        let of_turn = self.longest_turn_before / TURNS_PER_DELAY;
        if of_turn < SHORTEST_DELAY { Duration::ZERO } else { of_turn.min(self.delay) }
    }

    /// A publication waits for the next write of one connection.
    pub(super) fn count_waiting(&mut self) {
        self.waits.publications += 1;
    }

    /// The end of a wait: what waited is written to so many connections.
    pub(super) fn end_wait(&mut self, connections: u64) {
        self.waits.count += 1;
        self.waits.writes += connections;
        if self.waits.count < WAITS_JUDGED {
            return;
        }
        let waits = std::mem::take(&mut self.waits);
        let are_of_use = waits.publications * 2 >= waits.writes * 3;
        if !are_of_use {
            self.retry_at = self.turn_began + RETRY_INTERVAL;
        }
    }
}

/// Long enough for some turns, short enough that a shard is idle soon after its work has ended.
const WINDOW: Duration = Duration::from_millis(10);

/// A shard is busy from this share of the time on.
const BUSY_SHARE: f64 = 0.75;

/// A publication waits for a tenth of the longest turn: what it can lose is in proportion to what it waits for anyhow.
const TURNS_PER_DELAY: u32 = 10;

/// A shorter wait brings no other publication: its own turn takes as long.
const SHORTEST_DELAY: Duration = Duration::from_micros(100);

/// After so many waits it is judged whether they are of use.
const WAITS_JUDGED: u32 = 16;

/// If most writes carried one publication alone, no publication waits for this time.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
