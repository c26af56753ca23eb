//! The limit on new connections per second (`client.connection_rate_limit`).
//! In: the time of a handshake → out: whether it is allowed.
//! Uses a token bucket behind a small lock; never waits.
//! Changed here: the bucket. `admission` applies it.

use std::time::Instant;

use parking_lot::Mutex;

/// Allows `per_second` events per second, with bursts of as many. 0 allows everything.
pub struct TokenBucket {
    per_second: f64,
    /// The time of the last call, and the tokens left then.
    state: Mutex<(Instant, f64)>,
}

impl TokenBucket {
    pub fn new(per_second: usize, now: Instant) -> Self {
        let per_second = per_second as f64;
        Self { per_second, state: Mutex::new((now, per_second)) }
    }

    pub fn allows(&self, now: Instant) -> bool {
        if self.per_second == 0.0 {
            return true;
        }
        let (last, tokens) = &mut *self.state.lock();
        let gained = now.saturating_duration_since(*last).as_secs_f64() * self.per_second;
        *tokens = (*tokens + gained).min(self.per_second);
        *last = now;
        let allowed = *tokens >= 1.0;
        if allowed {
            *tokens -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::TokenBucket;

    #[test]
    fn a_bucket_empties_and_refills() {
        let start = Instant::now();
        let bucket = TokenBucket::new(2, start);
        assert_eq!([0, 0, 0].map(|_| bucket.allows(start)), [true, true, false]);
        assert!(bucket.allows(start + Duration::from_millis(500)));
        assert!(!bucket.allows(start + Duration::from_millis(500)));
    }

    #[test]
    fn zero_is_no_limit() {
        let start = Instant::now();
        let bucket = TokenBucket::new(0, start);
        assert!((0..1000).all(|_| bucket.allows(start)));
    }
}
