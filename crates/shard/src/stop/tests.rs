//! The pace of closes, on simulated time.
//! In: keys and moments → out: which ones are due.
//! Uses the list alone. Never: a connection.
//! Changed here: expectations of `stop.rs`.

use super::*;

#[test]
fn closes_are_spread_evenly_and_each_is_returned_once() {
    let start = Instant::now();
    let keys: Vec<_> = (0..10).map(|index| SlotKey { index, generation: 1 }).collect();
    let mut closes = PacedCloses::new(keys.clone(), Duration::from_secs(1), start);
    let mut returned = closes.due(start);
    assert!(returned.is_empty());
    for tenth in 1..=10 {
        let due = closes.due(start + Duration::from_millis(100 * tenth + 1));
        assert_eq!(due.len(), 1);
        returned.extend(due);
    }
    assert!(closes.are_done());
    returned.sort_by_key(|key| key.index);
    assert_eq!(returned, keys);
}

#[test]
fn without_a_spread_all_are_due_at_once() {
    let start = Instant::now();
    let keys = vec![SlotKey { index: 7, generation: 1 }];
    let mut closes = PacedCloses::new(keys.clone(), Duration::ZERO, start);
    assert_eq!(closes.due(start), keys);
    let mut none = PacedCloses::new(Vec::new(), Duration::ZERO, start);
    assert!(none.due(start).is_empty() && none.are_done());
}
