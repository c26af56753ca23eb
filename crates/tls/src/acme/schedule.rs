//! When each name needs an order, and which challenge the order uses.
//! In: validities of certificates, failures, the time, jitter → out: the name that is due, the time of the next attempt.
//! Uses arithmetic. Never: a clock, sockets, files.
//! Changed here: times between attempts. How early a certificate is renewed is in `validity`.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::validity::Validity;

/// The state of all names. Orders are made one at a time, so that one of them can take no other's rate limit by surprise.
#[derive(Debug)]
pub(super) struct OrderSchedule {
    names: Vec<NameState>,
    challenges: &'static [ChallengeKind],
}

/// How to prove the control of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChallengeKind {
    /// RFC 8737: a certificate in a TLS handshake at port 443.
    TlsAlpn,
    /// RFC 8555 §8.3: a document at port 80.
    Http,
}

/// An order to make now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DueOrder {
    pub(super) name: Arc<str>,
    pub(super) challenge: ChallengeKind,
}

/// Who failed an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// The authority did not answer, or with an error of its own: asked again soon.
    Authority,
    /// The authority refused the order. Every such order counts for its rate limits.
    Refused,
    /// It could not validate the challenge: the other challenge may work.
    Challenge,
}

#[derive(Debug)]
struct NameState {
    name: Arc<str>,
    /// `None` without a certificate: as soon as possible.
    renew_at: Option<SystemTime>,
    /// After a failure.
    retry_at: Option<SystemTime>,
    /// Since the last certificate.
    failures: u32,
    /// Index of the challenge that worked last, or of the one after that failed last.
    challenge: usize,
}

/// A failed order.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderFailure {
    pub(super) kind: FailureKind,
    /// The time that the authority asked to wait.
    pub(super) retry_after: Option<Duration>,
}

impl OrderSchedule {
    /// Names without certificates. `challenges` has at least one, the preferred one first.
    pub(super) fn new(
        names: impl IntoIterator<Item = Arc<str>>,
        challenges: &'static [ChallengeKind],
    ) -> Self {
        let name =
            |name| NameState { name, renew_at: None, retry_at: None, failures: 0, challenge: 0 };
        Self { names: names.into_iter().map(name).collect(), challenges }
    }

    /// A certificate was found in the cache.
    pub(super) fn handle_cached(&mut self, name: &str, validity: Validity, jitter: f64) {
        if let Some(name) = self.find(name) {
            name.renew_at = Some(validity.renewal(jitter));
        }
    }

    /// The authority issued a certificate. Returns when it will be renewed.
    pub(super) fn handle_issued(
        &mut self,
        name: &str,
        validity: Validity,
        now: SystemTime,
        jitter: f64,
    ) -> SystemTime {
        let mut renew_at = validity.renewal(jitter);
        if renew_at <= now {
            // One of the two clocks is wrong; ordering without end would help nothing.
            renew_at = now + RETRY_MAX;
        }
        if let Some(name) = self.find(name) {
            *name = NameState {
                name: name.name.clone(),
                renew_at: Some(renew_at),
                retry_at: None,
                failures: 0,
                challenge: name.challenge,
            };
        }
        renew_at
    }

    /// An order failed. Returns the time until the next attempt.
    pub(super) fn handle_failure(
        &mut self,
        name: &str,
        failure: OrderFailure,
        now: SystemTime,
        jitter: f64,
    ) -> Duration {
        let OrderFailure { kind, retry_after } = failure;
        let challenges = self.challenges.len();
        let Some(name) = self.find(name) else { return RETRY_MAX };
        let mut failures = name.failures;
        name.failures += 1;
        if kind == FailureKind::Challenge {
            name.challenge = (name.challenge + 1) % challenges;
        }
        let mut wait = Duration::ZERO;
        let has_other_challenge = kind == FailureKind::Challenge && challenges > 1;
        if !has_other_challenge || failures > 0 {
            failures -= u32::from(has_other_challenge);
            let whole = kind.first_wait().saturating_mul(1 << failures.min(10)).min(RETRY_MAX);
            wait = whole.mul_f64(1.0 + jitter * JITTER_SHARE);
        }
        let wait = wait.max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX));
        name.retry_at = Some(now + wait);
        wait
    }

    /// The order that is due longest.
    pub(super) fn poll_order(&self, now: SystemTime) -> Option<DueOrder> {
        let name = self.names.iter().min_by_key(|name| name.due_at())?;
        let challenge = self.challenges[name.challenge];
        (name.due_at() <= now).then(|| DueOrder { name: name.name.clone(), challenge })
    }

    /// How long no order is due.
    pub(super) fn time_to_wait(&self, now: SystemTime) -> Duration {
        let next = self.names.iter().map(NameState::due_at).min();
        next.map_or(Duration::MAX, |next| next.duration_since(now).unwrap_or_default())
    }

    fn find(&mut self, name: &str) -> Option<&mut NameState> {
        self.names.iter_mut().find(|found| &*found.name == name)
    }
}

impl NameState {
    fn due_at(&self) -> SystemTime {
        self.retry_at.or(self.renew_at).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

impl FailureKind {
    /// The time until the first repetition; it doubles with each further one.
    fn first_wait(self) -> Duration {
        match self {
            Self::Authority => Duration::from_secs(15),
            // Let's Encrypt permits five failed validations of a name in an hour: these are at minutes 0, 4, 12, 28 and 60, and with
            // two challenges at 0, 0, 4, 12 and 28.
            Self::Refused | Self::Challenge => Duration::from_secs(4 * 60),
        }
    }
}

/// As the authority names it.
impl fmt::Display for ChallengeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TlsAlpn => "tls-alpn-01",
            Self::Http => "http-01",
        })
    }
}

/// Between attempts, without jitter.
const RETRY_MAX: Duration = Duration::from_secs(3600);

/// The longest time that an authority may ask to wait (`Retry-After`).
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// The part of a wait that jitter adds at most.
const JITTER_SHARE: f64 = 0.25;

#[cfg(test)]
mod tests;
