//! Receipts of publications: how many subscribers got one, and how fast the kernel took it.
//! In: deliveries of all shards, one by one → out: counts and times of a node, kept for a minute.
//! Uses: atomics; a lock for the table. Never: reads a clock, knows connections.
//! Changed here: what a receipt counts. `fanout/realtime/receipts.rs` counts deliveries.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Deliveries of a publication on one node. Times are microseconds since its arrival there.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ReceiptRecord {
    #[prost(uint32, tag = "1")]
    pub subscribers: u32,
    /// Taken by the kernel in the turn of the delivery.
    #[prost(uint32, tag = "2")]
    pub at_once: u32,
    /// Taken by the kernel later.
    #[prost(uint32, tag = "3")]
    pub waited: u32,
    /// A newer publication took its place.
    #[prost(uint32, tag = "4")]
    pub replaced: u32,
    /// The connection or subscription ended before.
    #[prost(uint32, tag = "5")]
    pub dropped: u32,
    /// Receivers that did not take it within a second; 0 before that.
    #[prost(uint32, tag = "6")]
    pub late: u32,
    /// Microseconds until the kernel had it for half of the receivers; `None` as long as it has not.
    #[prost(uint64, optional, tag = "7")]
    pub half_us: Option<u64>,
    /// The same for 99 %.
    #[prost(uint64, optional, tag = "8")]
    pub most_us: Option<u64>,
    /// The same for all.
    #[prost(uint64, optional, tag = "9")]
    pub all_us: Option<u64>,
    /// Subscribers that do not get it, by their filter or because they are excluded.
    #[prost(uint32, tag = "10")]
    pub filtered: u32,
    /// Channels in which it was not published, because of its idempotency key.
    #[prost(uint32, tag = "11")]
    pub repeated_keys: u32,
    /// The same because of its version.
    #[prost(uint32, tag = "12")]
    pub old_versions: u32,
}

/// Counts of one publication, or of one broadcast to many channels, on this node.
#[derive(Debug)]
pub struct Receipt {
    accepted_at: Instant,
    subscribers: AtomicU32,
    at_once: AtomicU32,
    waited: AtomicU32,
    replaced: AtomicU32,
    dropped: AtomicU32,
    filtered: AtomicU32,
    /// Taken by the kernel within a second.
    in_a_second: AtomicU32,
    /// Microseconds of the slowest.
    longest_us: AtomicU64,
    /// Counts by time until the kernel had it: four buckets for each power of two of microseconds.
    times: [AtomicU32; BUCKETS],
}

impl Receipt {
    fn new(accepted_at: Instant) -> Self {
        Self {
            accepted_at,
            subscribers: AtomicU32::new(0),
            at_once: AtomicU32::new(0),
            waited: AtomicU32::new(0),
            replaced: AtomicU32::new(0),
            dropped: AtomicU32::new(0),
            filtered: AtomicU32::new(0),
            in_a_second: AtomicU32::new(0),
            longest_us: AtomicU64::new(0),
            times: [const { AtomicU32::new(0) }; BUCKETS],
        }
    }

    /// One more subscriber is to get it.
    pub fn add_subscriber(&self) {
        self.subscribers.fetch_add(1, Relaxed);
    }

    /// The kernel has it for one subscriber: at once, in the turn of the delivery, or later.
    pub fn take(&self, at: Instant, is_at_once: bool) {
        let time = at.saturating_duration_since(self.accepted_at);
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let counter = if is_at_once { &self.at_once } else { &self.waited };
        counter.fetch_add(1, Relaxed);
        self.in_a_second.fetch_add((time <= LATE).into(), Relaxed);
        self.longest_us.fetch_max(us, Relaxed);
        self.times[bucket(us)].fetch_add(1, Relaxed);
    }

    /// A newer publication took its place for one subscriber.
    pub fn replace(&self) {
        self.replaced.fetch_add(1, Relaxed);
    }

    /// A connection or subscription ended before the kernel had it.
    pub fn drop_one(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    /// Subscribers do not get it, by their filter or because they are excluded.
    pub fn leave_out(&self, subscribers: u64) {
        let subscribers = u32::try_from(subscribers).unwrap_or(u32::MAX);
        self.filtered.fetch_add(subscribers, Relaxed);
    }

    /// The counts at an instant.
    fn record(&self, now: Instant) -> ReceiptRecord {
        let read = |counter: &AtomicU32| counter.load(Relaxed);
        let at_once = read(&self.at_once);
        let waited = read(&self.waited);
        let replaced = read(&self.replaced);
        let dropped = read(&self.dropped);
        let subscribers = read(&self.subscribers);
        let receivers = subscribers.saturating_sub(replaced + dropped);
        let is_over = now.saturating_duration_since(self.accepted_at) > LATE;
        let late = receivers.saturating_sub(read(&self.in_a_second));
        let times: Vec<u32> = self.times.iter().map(read).collect();
        let longest = self.longest_us.load(Relaxed);
        let until = |share: f64| {
            let needed = (f64::from(receivers) * share).ceil() as u32;
            let mut taken = 0;
            let bucket = times.iter().position(|count| {
                taken += count;
                taken >= needed
            });
            bucket.filter(|_| receivers > 0).map(|bucket| bucket_end(bucket).min(longest))
        };
        ReceiptRecord {
            subscribers,
            at_once,
            waited,
            replaced,
            dropped,
            late: if is_over { late } else { 0 },
            half_us: until(0.5),
            most_us: until(0.99),
            all_us: until(1.0),
            filtered: read(&self.filtered),
            ..ReceiptRecord::default()
        }
    }
}

/// The receipts of a node: the last thousand, for a minute each.
#[derive(Debug, Default)]
pub struct Receipts {
    /// Number, time of the begin and receipt, oldest first.
    table: Mutex<VecDeque<(u64, Instant, Arc<Receipt>)>>,
}

impl Receipts {
    /// The receipt with this number, begun now if there is none.
    pub fn open(&self, number: u64, now: Instant) -> Arc<Receipt> {
        let mut table = self.table.lock();
        if let Some((.., receipt)) = table.iter().rev().find(|(known, ..)| *known == number) {
            return Arc::clone(receipt);
        }
        let is_over = |begun: Instant| now.saturating_duration_since(begun) >= KEPT;
        while table.len() >= RECEIPTS_MAX || table.front().is_some_and(|(_, at, _)| is_over(*at)) {
            table.pop_front();
        }
        let receipt = Arc::new(Receipt::new(now));
        table.push_back((number, now, Arc::clone(&receipt)));
        receipt
    }

    /// The counts of a receipt, if it is kept.
    pub fn record(&self, number: u64, now: Instant) -> Option<ReceiptRecord> {
        let table = self.table.lock();
        let (_, begun, receipt) = table.iter().rev().find(|(known, ..)| *known == number)?;
        (now.saturating_duration_since(*begun) < KEPT).then(|| receipt.record(now))
    }
}

/// The bucket of a time: its power of two, and the two bits behind the first.
fn bucket(us: u64) -> usize {
    let us = us.max(4);
    let power = us.ilog2() as usize;
    (4 * (power - 2) + (us >> (power - 2)) as usize - 4).min(BUCKETS - 1)
}

/// The longest time in a bucket, in microseconds.
fn bucket_end(bucket: usize) -> u64 {
    ((5 + bucket as u64 % 4) << (bucket / 4)) - 1
}

/// Up to 67 s; the last bucket has all above.
const BUCKETS: usize = 96;
const RECEIPTS_MAX: usize = 1000;
const KEPT: Duration = Duration::from_secs(60);
/// A subscriber whose kernel has not taken it by then is late.
const LATE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
