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
            self.waiting = Duration::ZERO;
        }
    }

    /// The turn has taken this time.
    pub(super) fn end_turn(&mut self, busy: Duration) {
        self.busy += busy;
        self.turn_ended = self.turn_began + busy;
    }

    /// How long a publication waits at most; zero while the load is low.
    #[inline]
    pub(super) fn delay(&self) -> Duration {
        let may_wait = self.is_high && self.turn_began >= self.retry_at;
        if may_wait { self.delay } else { Duration::ZERO }
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

/// After so many waits it is judged whether they are of use.
const WAITS_JUDGED: u32 = 16;

/// If most writes carried one publication alone, no publication waits for this time.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
