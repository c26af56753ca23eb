//! The circuit of a proxy: no calls to a backend that is down, except one from time to time (circuit breaker).
//! In: the outcome of each call, the time → out: whether a call may be made; transitions for the log.
//! Uses: values only. Never: a call, the time other than that of its caller.
//! Changed here: when a circuit opens and closes.

use std::time::{Duration, Instant};

/// State of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitState {
    /// Calls are made.
    Closed,
    /// Calls fail at once.
    Open,
    /// One call tries whether the backend answers again; others fail at once.
    HalfOpen,
}

/// A change that an operator wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    Opened,
    Closed,
}

/// A circuit and its transitions; an event that has no row does not change the state.
///
/// | state | event | next state |
/// |---|---|---|
/// | closed | a success | closed, without failures |
/// | closed | one failure too many | open |
/// | open | a call after the pause | half open |
/// | half open | the probe was not sent | open, and the next call is a probe |
/// | half open | a failure | open, after a longer pause |
/// | open, half open | a success | closed |
#[derive(Debug)]
pub(crate) enum Circuit {
    /// `failures`: since the last success.
    Closed { failures: u32 },
    /// The next call is made at `probe_at`.
    Open { probe_at: Instant, failed_probes: u32 },
    /// A probe is on its way since `begun_at`.
    HalfOpen { begun_at: Instant, failed_probes: u32 },
}

impl Default for Circuit {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

impl Circuit {
    /// Whether a call may be made now. A permitted call must report its outcome.
    pub(crate) fn permits(&mut self, now: Instant) -> bool {
        match *self {
            Self::Closed { .. } => true,
            Self::Open { probe_at, failed_probes } if probe_at <= now => {
                *self = Self::HalfOpen { begun_at: now, failed_probes };
                true
            }
            Self::Open { .. } | Self::HalfOpen { .. } => false,
        }
    }

    pub(crate) fn state(&self) -> CircuitState {
        match self {
            Self::Closed { .. } => CircuitState::Closed,
            Self::Open { .. } => CircuitState::Open,
            Self::HalfOpen { .. } => CircuitState::HalfOpen,
        }
    }

    /// The permitted call was not sent.
    pub(crate) fn not_called(&mut self) {
        if let Self::HalfOpen { begun_at, failed_probes } = *self {
            *self = Self::Open { probe_at: begun_at, failed_probes };
        }
    }

    /// The backend answered.
    pub(crate) fn succeeded(&mut self) -> Option<Transition> {
        let before = std::mem::take(self);
        (before.state() != CircuitState::Closed).then_some(Transition::Closed)
    }

    /// The backend did not answer, or with an error of a server.
    pub(crate) fn failed(&mut self, now: Instant) -> Option<Transition> {
        match self {
            Self::Closed { failures } => {
                *failures += 1;
                if *failures < FAILURES_MAX {
                    return None;
                }
                *self = Self::Open { probe_at: now + PROBE_AFTER, failed_probes: 0 };
                Some(Transition::Opened)
            }
            Self::Open { .. } => None, // a call that was on its way
            Self::HalfOpen { failed_probes, .. } => {
                let failed_probes = *failed_probes + 1;
                let pause = PROBE_AFTER.saturating_mul(1 << failed_probes.min(3));
                let probe_at = now + pause.min(PROBE_AFTER_MAX);
                *self = Self::Open { probe_at, failed_probes };
                None
            }
        }
    }
}

/// Consecutive failures that open a circuit.
const FAILURES_MAX: u32 = 20;
/// Time until the first probe; doubles with each probe that fails.
const PROBE_AFTER: Duration = Duration::from_secs(1);
const PROBE_AFTER_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circuit_opens_probes_and_closes() {
        let mut circuit = Circuit::default();
        let start = Instant::now();
        for _ in 1..FAILURES_MAX {
            assert_eq!(circuit.failed(start), None);
        }
        circuit.succeeded();
        for _ in 1..FAILURES_MAX {
            assert_eq!(circuit.failed(start), None, "a success counts");
        }
        assert!(circuit.permits(start));
        assert_eq!(circuit.failed(start), Some(Transition::Opened));
        assert_eq!(circuit.failed(start), None, "calls that were on their way");
        assert!(!circuit.permits(start));
        let later = start + PROBE_AFTER;
        assert!(circuit.permits(later));
        assert_eq!(circuit.state(), CircuitState::HalfOpen);
        assert!(!circuit.permits(later), "one probe at a time");
        assert_eq!(circuit.failed(later), None);
        assert!(!circuit.permits(later + PROBE_AFTER), "the pause doubles");
        assert!(circuit.permits(later + 2 * PROBE_AFTER));
        circuit.not_called();
        assert!(circuit.permits(later + 2 * PROBE_AFTER), "a probe that was not sent is none");
        assert_eq!(circuit.succeeded(), Some(Transition::Closed));
        assert_eq!(circuit.state(), CircuitState::Closed);
        assert!(circuit.permits(later));
    }

    #[test]
    fn the_pause_between_probes_has_a_limit() {
        let mut circuit = Circuit::default();
        let mut now = Instant::now();
        (0..FAILURES_MAX).for_each(|_| assert_ne!(circuit.failed(now), Some(Transition::Closed)));
        for _ in 0..100 {
            now += PROBE_AFTER_MAX;
            assert!(circuit.permits(now));
            circuit.failed(now);
        }
    }
}
