//! Offsets of clocks.
//! In: a clock that is ahead or behind, times of the two ways → out: an offset, and an uncertainty that covers the error.
//! Uses: the question alone. Never: nodes.
//! Changed here: the arithmetic. `tests/it/cluster.rs` asks two nodes.

use proptest::prelude::*;

use super::*;

fn merged(asked_at_ms: u64, unix_ms: u64, round_trip: Duration) -> NodeClock {
    let answer = NodeClock { node: "b".into(), unix_ms, offset_ms: 99, uncertainty_ms: 99 };
    let mut all = ClusterClock::default();
    let question = ClockQuestion { asked_at_ms };
    question.merge(&mut all, ClusterClock { nodes: vec![answer] }, round_trip);
    all.nodes.remove(0)
}

#[test]
fn an_offset_is_counted_from_the_middle_of_the_round_trip() {
    for (unix_ms, round_trip_us, offset_ms, uncertainty_ms) in [
        (1_000_000, 0, 0, 1),
        (1_000_010, 20_000, 0, 11),
        (1_007_010, 20_000, 7000, 11),
        (993_010, 20_000, -7000, 11),
        (1_000_001, 2_001, 0, 3),
    ] {
        let found = merged(1_000_000, unix_ms, Duration::from_micros(round_trip_us));
        assert_eq!((found.offset_ms, found.uncertainty_ms), (offset_ms, uncertainty_ms));
    }
}

proptest! {
    #[test]
    fn the_true_offset_is_within_the_uncertainty(
        asked_us in 0..4_000_000_000_000_000_u64,
        there_us in 0..20_000_000_u64,
        back_us in 0..20_000_000_u64,
        ahead_us in -1_000_000_000_i64..1_000_000_000,
    ) {
        let asked_us = asked_us + 1_000_000_000;
        let answered_us = (asked_us + there_us).strict_add_signed(ahead_us);
        let round_trip = Duration::from_micros(there_us + back_us);
        let found = merged(asked_us / 1000, answered_us / 1000, round_trip);
        let error_us = (found.offset_ms * 1000 - ahead_us).unsigned_abs();
        prop_assert!(error_us <= found.uncertainty_ms * 1000, "{found:?}");
    }

    #[test]
    fn any_answer_is_merged(asked: u64, unix: u64, round_trip: u64) {
        let found = merged(asked, unix, Duration::from_millis(round_trip));
        prop_assert!(found.uncertainty_ms >= ROUNDING_MS);
    }
}
