//! The time in which a certificate is valid (RFC 5280 §4.1.2.5), and when it is to be renewed.
//! In: a certificate in DER → out: two times, the time of renewal.
//! Uses the fields that `tls::certificate` reads. Never: a clock, the signature.
//! Changed here: how early a certificate is renewed.

use std::time::{Duration, SystemTime};

use crate::Fields;

/// From when to when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) not_before: SystemTime,
    pub(crate) not_after: SystemTime,
}

impl Validity {
    /// Reads the dates of a certificate; `None` if there are none, or they are before 1970.
    pub(crate) fn of(certificate: &[u8]) -> Option<Self> {
        let Fields { begin, end, .. } = Fields::of(certificate)?;
        let time = |seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        Some(Self { not_before: time(begin.seconds)?, not_after: time(end.seconds)? })
    }

    /// When to order the next one: [`RENEW_BEFORE`] its end, but not before two thirds of its life. `jitter` from 0 to 1 makes it
    /// up to a hundredth of its life earlier, so that servers which started together do not order together.
    pub(super) fn renewal(&self, jitter: f64) -> SystemTime {
        let life = self.not_after.duration_since(self.not_before).unwrap_or_default();
        let before = RENEW_BEFORE.min(life / 3) + (life / 100).mul_f64(jitter);
        self.not_after - before
    }
}

/// Until the end of a certificate that lives for 90 days or more.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 24 * 3600);

#[cfg(test)]
mod tests;
