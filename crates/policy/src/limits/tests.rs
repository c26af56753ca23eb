//! Tests of the limits of one shard: whose buckets are whose.
//! In: two connections, two namespaces → out: what one does costs another nothing.
//! Uses: rates of one per second.
//! The arithmetic is tested in `bucket/tests.rs`, what clients see in `tests/it/rates.rs`.

use std::time::Duration;

use super::*;

const ONE: Rate = Rate { limit: 1, interval: Duration::from_secs(1) };
const SECOND: u64 = 1_000_000_000;

#[test]
fn every_connection_and_purpose_has_a_bucket_of_its_own() {
    let mut limits = RateLimits::default();
    let [here, there] = [0, 1].map(NamespaceId);
    for index in [3, 0] {
        let actions = [here, there].into_iter().flat_map(|namespace| {
            [InNamespace::Publish, InNamespace::Subscribe]
                .map(|action| NamespaceAction { namespace, action })
        });
        for counted in actions {
            assert!(limits.take_in(index, counted, ONE, 0), "{index} {counted:?}");
            assert!(!limits.take_in(index, counted, ONE, 0), "{index} {counted:?}");
        }
        assert!(limits.take_command(index, ONE, 0) && limits.take_refusal(index, ONE, 0));
        assert!(!limits.take_command(index, ONE, 0) && !limits.take_refusal(index, ONE, 0));
    }
    assert!(limits.take_command(3, ONE, SECOND));
}

#[test]
fn an_index_that_is_used_again_begins_with_full_buckets() {
    let mut limits = RateLimits::default();
    assert!(limits.take_command(0, ONE, 0));
    limits.forget(0);
    limits.forget(7);
    assert!(limits.take_command(0, ONE, 0));
}

#[test]
fn saved_buckets_fill_in_another_program_when_they_would_have_been_full() {
    let rate = Rate { limit: 2, interval: Duration::from_secs(4) };
    let counted = NamespaceAction { namespace: NamespaceId(3), action: InNamespace::Subscribe };
    let mut before = RateLimits::default();
    assert_eq!(before.save(0, SECOND), None);
    assert!(before.take_command(0, rate, SECOND) && before.take_command(0, rate, SECOND));
    assert!(before.take_refusal(0, rate, SECOND) && before.take_in(0, counted, rate, SECOND));
    let saved = before.save(0, 2 * SECOND).expect("buckets that are not full");
    let namespaces = vec![(counted, SECOND)];
    assert_eq!(saved, SavedRates { commands: 3 * SECOND, refusals: SECOND, namespaces });
    let mut after = RateLimits::default();
    after.restore(7, &saved, 100 * SECOND);
    assert_eq!(after.save(7, 100 * SECOND), Some(saved));
    assert!(!after.take_command(7, rate, 100 * SECOND));
    assert!(after.take_command(7, rate, 101 * SECOND));
}

#[test]
fn without_limits_nothing_is_remembered() {
    let mut limits = RateLimits::default();
    let none = Rate::default();
    let counted = NamespaceAction { namespace: NamespaceId(0), action: InNamespace::Publish };
    for index in 0..100 {
        assert!(limits.take_command(index, none, 0) && limits.take_in(index, counted, none, 0));
    }
    assert_eq!(limits.connections.capacity(), 0);
}
