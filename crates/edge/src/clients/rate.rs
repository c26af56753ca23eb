//! The limit on new connections per second (`client.connection_rate_limit`).
//! In: the time of a handshake → out: whether it is allowed.
//! Uses the node's token bucket behind a small lock; never waits.
//! Changed here: how many connections a second allows. `admission` applies it.

use std::time::{Duration, Instant};

use fanwire_node::TokenBucket;
use fanwire_node::options::Rate as Limit;
use parking_lot::Mutex;

/// Allows `per_second` events a second, and as many at once after a quiet second. 0 allows everything.
pub struct ConnectionRate {
    limit: Limit,
    base: Instant,
    bucket: Mutex<TokenBucket>,
}

impl ConnectionRate {
    pub fn new(per_second: usize, now: Instant) -> Self {
        let limit = u32::try_from(per_second).unwrap_or(u32::MAX).min(Limit::LIMIT_MAX);
        let limit = Limit { limit, interval: Duration::from_secs(1) };
        Self { limit, base: now, bucket: Mutex::default() }
    }

    /// Whether `other` allows the same number of events.
    pub fn is_same(&self, other: &Self) -> bool {
        self.limit == other.limit
    }

    pub fn allows(&self, now: Instant) -> bool {
        if self.limit.limit == 0 {
            return true;
        }
        let nanos = now.saturating_duration_since(self.base).as_nanos();
        self.bucket.lock().take(self.limit, nanos.try_into().unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::ConnectionRate;

    #[test]
    fn a_bucket_empties_and_refills() {
        let start = Instant::now();
        let bucket = ConnectionRate::new(2, start);
        assert_eq!([0, 0, 0].map(|_| bucket.allows(start)), [true, true, false]);
        assert!(bucket.allows(start + Duration::from_millis(500)));
        assert!(!bucket.allows(start + Duration::from_millis(500)));
    }

    #[test]
    fn zero_is_no_limit() {
        let start = Instant::now();
        let bucket = ConnectionRate::new(0, start);
        assert!((0..1000).all(|_| bucket.allows(start)));
    }

    #[test]
    fn the_largest_limit_is_a_million() {
        let start = Instant::now();
        let rate = ConnectionRate::new(usize::MAX, start);
        assert_eq!((0..1_000_010).filter(|_| rate.allows(start)).count(), 1_000_000);
    }
}
