//! Whether this server can serve clients (readiness), and whether only a restart helps (liveness).
//! In: turns and waiting messages of shards once a second, the start of a drain, failures of the engine → out: what is wrong.
//! Pure but for atomics and a lock that no hot path takes.
//! Changed here: what counts as ready; the paths are in `http/routes.rs`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::Mutex;

/// The state of a server.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    is_draining: AtomicBool,
    shards: Mutex<Vec<ShardTurns>>,
}

/// How often a shard has turned, and for how many seconds it has not although messages wait.
#[derive(Clone, Copy, Debug, Default)]
struct ShardTurns {
    turns: u64,
    stuck_seconds: u32,
}

impl Readiness {
    /// Connections are closed from now on.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Relaxed);
    }

    /// Once a second: the turns of each shard, and whether messages wait for it.
    pub(crate) fn observe(&self, shards: impl Iterator<Item = (u64, bool)>) {
        let mut known = self.shards.lock();
        for (number, (turns, has_waiting)) in shards.enumerate() {
            if number == known.len() {
                known.push(ShardTurns::default());
            }
            let shard = &mut known[number];
            let is_stuck = has_waiting && turns == shard.turns;
            let stuck_seconds = if is_stuck { shard.stuck_seconds + 1 } else { 0 };
            *shard = ShardTurns { turns, stuck_seconds };
        }
    }

    /// Why clients should not come here, by what is wrong; empty when they may.
    pub(crate) fn not_ready(&self, engine: Option<String>) -> BTreeMap<&'static str, String> {
        let mut reasons = BTreeMap::new();
        if self.is_draining.load(Relaxed) {
            reasons.insert("draining", "the server is shutting down".to_owned());
        }
        reasons.extend(engine.map(|reason| ("engine", reason)));
        reasons.extend(self.stuck(NOT_READY_AFTER).map(|reason| ("shards", reason)));
        reasons
    }

    /// Why only a restart helps.
    pub(crate) fn not_live(&self) -> BTreeMap<&'static str, String> {
        self.stuck(NOT_LIVE_AFTER).map(|reason| ("shards", reason)).into_iter().collect()
    }

    fn stuck(&self, seconds_max: u32) -> Option<String> {
        let shards = self.shards.lock();
        let number = shards.iter().position(|shard| shard.stuck_seconds >= seconds_max)?;
        let seconds = shards[number].stuck_seconds;
        Some(format!("shard {number} has messages and has not turned for {seconds} s"))
    }
}

/// Seconds. A turn takes some 50 ms at most under load.
const NOT_READY_AFTER: u32 = 5;
const NOT_LIVE_AFTER: u32 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_does_not_turn_although_messages_wait_makes_the_server_unready_and_then_dead() {
        let readiness = Readiness::default();
        readiness.observe([(7, false), (1, true)].into_iter());
        for second in 1..=NOT_LIVE_AFTER {
            assert_eq!(readiness.not_ready(None).is_empty(), second <= NOT_READY_AFTER);
            assert!(readiness.not_live().is_empty());
            // The first shard sleeps, because nothing waits for it.
            readiness.observe([(7, false), (1, true)].into_iter());
        }
        let reason = "shard 1 has messages and has not turned for 30 s";
        assert_eq!(readiness.not_live(), BTreeMap::from([("shards", reason.to_owned())]));
        readiness.observe([(7, false), (2, true)].into_iter());
        assert!(readiness.not_live().is_empty() && readiness.not_ready(None).is_empty());
    }

    #[test]
    fn a_drain_and_an_engine_that_fails_are_reasons_not_to_come_and_none_to_restart() {
        let readiness = Readiness::default();
        readiness.drain();
        let reasons = readiness.not_ready(Some("no Redis".to_owned()));
        assert_eq!(reasons.keys().copied().collect::<Vec<_>>(), ["draining", "engine"]);
        assert!(readiness.not_live().is_empty());
    }
}
