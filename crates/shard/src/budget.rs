//! One limit for the memory that compression takes on the whole node.
//! In: requests in bytes from any thread → out: reservations that give back their bytes when they are dropped.
//! Uses atomics; never allocates anything itself.
//! Changed here: the accounting. The order of requests is decided in `compression::sweep`.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// A shared limit in bytes.
#[derive(Debug)]
pub struct Budget {
    bytes_max: usize,
    bytes: AtomicUsize,
    /// Bytes refused to single connections, for compressors and windows of clients, since the last call of `take_refused`.
    refused: AtomicUsize,
}

/// Granted bytes; dropping gives them back.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, bytes: AtomicUsize::new(0), refused: AtomicUsize::new(0) })
    }

    /// Grants `bytes` if that many are left.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        self.take(bytes).then(|| Reservation { budget: Arc::clone(self), bytes })
    }

    /// As [`reserve`](Self::reserve), for a caller that does not retry: a refusal is counted for `take_refused`.
    pub fn reserve_once(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let granted = self.reserve(bytes);
        if granted.is_none() {
            self.refused.fetch_add(bytes, Relaxed);
        }
        granted
    }

    /// Bytes granted at the moment.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes that [`reserve_once`](Self::reserve_once) refused since the last call.
    pub fn take_refused(&self) -> usize {
        self.refused.swap(0, Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let grant = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.bytes.fetch_update(Relaxed, Relaxed, grant).is_ok()
    }
}

impl Reservation {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the reservation to `bytes`. Fewer bytes are always granted; if more are refused, returns false and
    /// changes nothing.
    pub fn resize(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes && !self.budget.take(bytes - self.bytes) {
            return false;
        }
        self.budget.bytes.fetch_sub(self.bytes.saturating_sub(bytes), Relaxed);
        self.bytes = bytes;
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests;
