//! Observes the load of the process, so that new clients are refused before it hurts the connected ones (`shed.*`).
//! In: counters of turns and the resident memory, once a second → out: the flags of `edge`'s overload, and log lines.
//! Uses `edge::LoadLimit` for the rule and `profile` for the memory. Never: refuses a client.
//! Changed here: what is measured. When a limit counts as exceeded is in `edge::clients::overload`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_edge::{LoadLimit, Overload, SharedLimits, ShedOptions};
use fanwire_profile::process;
use fanwire_shard::counters::ShardCounters;

/// The limits of a server on its load.
pub(crate) struct Shedding {
    overload: Arc<Overload>,
    memory_max: u64,
    memory: LoadLimit,
    turns: LoadLimit,
    turn_max: Duration,
    turn_times: Vec<TurnTime>,
}

impl Shedding {
    /// The limits of these options, which set the flags of the admission.
    pub(crate) fn new(options: &ShedOptions, limits: &SharedLimits) -> Self {
        let memory_max = memory_max(options, process::memory_limit_bytes());
        Self {
            overload: limits.read().overload.clone(),
            memory_max,
            memory: LoadLimit::new(memory_max, Duration::ZERO),
            turns: LoadLimit::new(nanoseconds(options.turn_max), TURN_PATIENCE),
            turn_max: options.turn_max,
            turn_times: Vec::new(),
        }
    }

    /// Says whether clients are sent away, so that new ones are refused.
    pub(crate) fn set_evacuation(&self, is_running: bool) {
        self.overload.set_evacuation(is_running);
    }

    /// Measures the load once a second.
    pub(crate) fn observe(&mut self, shards: &[Arc<ShardCounters>], now: Instant) {
        if self.memory_max > 0
            && let Some(resident_bytes) = process::resident_bytes()
        {
            self.observe_memory(resident_bytes, now);
        }
        self.observe_turns(shards, now);
    }

    fn observe_memory(&mut self, resident_bytes: u64, now: Instant) {
        let is_exceeded = self.memory.observe(resident_bytes, now);
        if self.overload.set_memory(is_exceeded) {
            let max = self.memory_max;
            log(
                is_exceeded,
                &format!(
                    "{resident_bytes} bytes are resident, the limit of shed.memory_* is {max}"
                ),
            );
        }
    }

    fn observe_turns(&mut self, shards: &[Arc<ShardCounters>], now: Instant) {
        self.turn_times.resize(shards.len(), TurnTime::default());
        let known = self.turn_times.iter_mut();
        let times = known.zip(shards).map(|(time, shard)| time.since(TurnTotals::of(shard)));
        let longest = Duration::from_micros(times.max().unwrap_or(0));
        let is_exceeded = self.turns.observe(nanoseconds(longest), now);
        if self.overload.set_turns(is_exceeded) {
            let max = self.turn_max;
            log(
                is_exceeded,
                &format!("turns of a shard take {longest:?}, shed.turn_max is {max:?}"),
            );
        }
    }
}

/// Writes a line when a limit is exceeded, and when it is not any more.
fn log(is_exceeded: bool, cause: &str) {
    if is_exceeded {
        tracing::warn!("refusing new clients for the load of this node: {cause}");
    } else {
        tracing::info!("accepting new clients again: {cause}");
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The smaller limit of the two keys in bytes; 0 = no limit.
fn memory_max(options: &ShedOptions, available: Option<u64>) -> u64 {
    let percent = u64::from(options.memory_percent_max);
    let share = available.map_or(0, |bytes| bytes / 100 * percent);
    let limits = [options.memory_max, share].into_iter();
    limits.filter(|limit| *limit > 0).min().unwrap_or(0)
}

/// The turns of a shard since its start.
#[derive(Clone, Copy, Debug, Default)]
struct TurnTotals {
    begun: u64,
    ended: u64,
    time_us: u64,
    squares: u64,
}

impl TurnTotals {
    fn of(shard: &ShardCounters) -> Self {
        let (buckets, time_ns) = shard.turn_time.snapshot();
        Self {
            begun: shard.turns.value(),
            ended: buckets.iter().sum(),
            time_us: time_ns / 1000,
            squares: shard.turn_time_squares.value(),
        }
    }
}

/// The time of the turns of a shard in the last second: the mean, in which a turn counts by its length. Short turns, such as those of
/// handshakes, do not hide long ones.
#[derive(Clone, Copy, Debug, Default)]
struct TurnTime {
    totals: TurnTotals,
    mean_us: u64,
}

impl TurnTime {
    /// Takes the totals of now, and returns microseconds. A shard that has only slept has a mean of 0; one whose turn goes on keeps the
    /// last mean.
    fn since(&mut self, totals: TurnTotals) -> u64 {
        let time_us = totals.time_us.saturating_sub(self.totals.time_us);
        let squares = totals.squares.saturating_sub(self.totals.squares);
        let is_in_turn = totals.begun > totals.ended;
        match squares.checked_div(time_us) {
            Some(mean_us) => self.mean_us = mean_us,
            None if is_in_turn => {}
            None => self.mean_us = 0,
        }
        self.totals = totals;
        self.mean_us
    }
}

/// So long the turns have to be too long.
const TURN_PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_limit_of_memory_counts() {
        let check = |memory_max: u64, memory_percent_max: u8, expected: u64| {
            let options = ShedOptions { memory_max, memory_percent_max, ..ShedOptions::default() };
            assert_eq!(super::memory_max(&options, Some(1000)), expected);
        };
        check(0, 0, 0);
        check(700, 0, 700);
        check(0, 80, 800);
        check(700, 80, 700);
        check(900, 80, 800);
    }

    #[test]
    fn a_share_of_an_unknown_limit_is_no_limit() {
        let options = ShedOptions { memory_percent_max: 80, ..ShedOptions::default() };
        assert_eq!(memory_max(&options, None), 0);
    }

    #[test]
    fn the_mean_is_that_of_the_turns_which_ended_since_the_last_look() {
        let mut time = TurnTime::default();
        let first = TurnTotals { begun: 10, ended: 10, time_us: 1000, squares: 10 * 100 * 100 };
        let in_turn = TurnTotals { begun: 11, ..first };
        let ended = TurnTotals {
            begun: 11,
            ended: 11,
            time_us: first.time_us + 8000,
            squares: first.squares + 8000 * 8000,
        };
        assert_eq!(time.since(first), 100);
        assert_eq!(time.since(in_turn), 100, "a long turn goes on");
        assert_eq!(time.since(ended), 8000);
        assert_eq!(time.since(ended), 0, "the shard has slept");
    }

    #[test]
    fn many_short_turns_do_not_hide_long_ones() {
        let long =
            TurnTotals { begun: 50, ended: 50, time_us: 50 * 4000, squares: 50 * 4000 * 4000 };
        let with_short = TurnTotals {
            begun: 550,
            ended: 550,
            time_us: long.time_us + 500 * 20,
            squares: long.squares + 500 * 20 * 20,
        };
        assert_eq!(TurnTime::default().since(long), 4000);
        assert_eq!(TurnTime::default().since(with_short), 3810);
    }
}
