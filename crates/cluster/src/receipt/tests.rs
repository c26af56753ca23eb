//! Tests of receipts.
//! In: deliveries with their times → out: asserted counts.
//! Uses: instants made by the test. Never: waits.
//! Changed here: tests of what a receipt counts.

use super::*;

#[test]
fn a_time_is_in_the_bucket_that_ends_behind_it() {
    for us in (0..10_000).chain([1 << 20, (1 << 26) - 1]) {
        let end = bucket_end(bucket(us));
        assert!(us <= end && end <= us.max(4) * 5 / 4, "{us} in the bucket up to {end}");
    }
    assert_eq!(bucket(u64::MAX), BUCKETS - 1);
}

#[test]
fn a_receipt_has_counts_and_times() {
    let start = Instant::now();
    let receipt = Receipt::new(start);
    (0..103).for_each(|_| receipt.add_subscriber());
    (1..=98).for_each(|ms| receipt.take(start + Duration::from_millis(ms), true));
    receipt.replace();
    receipt.drop_one();
    let early = receipt.record(start + Duration::from_millis(500));
    let counts = (early.subscribers, early.at_once, early.waited, early.replaced, early.dropped);
    assert_eq!((counts, early.late), ((103, 98, 0, 1, 1), 0));
    assert!(early.half_us.is_some_and(|us| (51_000..64_000).contains(&us)), "{early:?}");
    assert_eq!((early.most_us, early.all_us), (None, None));

    assert_eq!(receipt.record(start + Duration::from_millis(1500)).late, 3);
    (0..3).for_each(|_| receipt.take(start + Duration::from_secs(2), false));
    let done = receipt.record(start + Duration::from_secs(3));
    assert_eq!((done.waited, done.late, done.all_us), (3, 3, Some(2_000_000)));
    receipt.leave_out(4);
    receipt.leave_out(1);
    let filtered = receipt.record(start + Duration::from_secs(3));
    assert_eq!(
        (filtered.filtered, filtered.subscribers),
        (5, 103),
        "they are no subscribers of it"
    );
}

#[test]
fn receipts_are_kept_for_a_minute_and_a_thousand_at_most() {
    let receipts = Receipts::default();
    let start = Instant::now();
    let first = receipts.open(1, start);
    assert!(Arc::ptr_eq(&first, &receipts.open(1, start)), "the same for all channels");
    assert!(receipts.record(1, start + KEPT - Duration::from_millis(1)).is_some());
    assert!(receipts.record(1, start + KEPT).is_none() && receipts.record(2, start).is_none());
    (2..3000).for_each(|number| drop(receipts.open(number, start)));
    assert_eq!(receipts.table.lock().len(), RECEIPTS_MAX);
    receipts.open(3000, start + KEPT);
    assert_eq!(receipts.table.lock().len(), 1);
}
