//! Tests of rates of tenants: one node alone, and several that report to each other.
//! In: publishes at moments made by hand → out: what is allowed, what is reported and forgotten.
//! Uses several values that exchange their reports. Never: a clock, a bus.
//! Changed here: tests of this module; what a client sees is tested in `node/tests/it/rates.rs`.

use std::time::Duration;

use super::*;

const CHAT: NamespaceId = NamespaceId(1);
const SECOND: u64 = 1_000_000_000;

fn rate(limit: u32) -> Rate {
    Rate { limit, interval: Duration::from_secs(1) }
}

fn tenant(user: &str) -> Tenant<'_> {
    Tenant { namespace: CHAT, user }
}

/// How many of `tries` publishes are allowed.
fn allowed(rates: &SharedRates, user: &str, limit: u32, tries: usize, now: u64) -> usize {
    (0..tries).filter(|_| rates.take(tenant(user), rate(limit), now)).count()
}

/// Every node tells the others what was taken.
fn exchange(nodes: &[SharedRates], limit: u32, now: u64) {
    for (from, node) in nodes.iter().enumerate() {
        for taken in node.report(usize::MAX, now) {
            let others = nodes.iter().enumerate().filter(|(at, _)| *at != from);
            others.for_each(|(_, other)| {
                other.charge(tenant(&taken.user), taken.tokens, rate(limit), now);
            });
        }
    }
}

#[test]
fn users_and_namespaces_have_buckets_of_their_own() {
    let rates = SharedRates::default();
    assert_eq!(allowed(&rates, "ada", 3, 5, 0), 3);
    assert_eq!(allowed(&rates, "bob", 3, 5, 0), 3);
    assert_eq!(allowed(&rates, Tenant::ALL_USERS, 3, 5, 0), 3);
    let elsewhere = Tenant { namespace: NamespaceId(2), user: "ada" };
    assert!(rates.take(elsewhere, rate(3), 0));
    assert_eq!(allowed(&rates, "ada", 3, 5, SECOND), 3);
}

#[test]
fn a_user_of_several_nodes_pays_back_what_was_too_much_before_the_first_report() {
    let nodes = [SharedRates::default(), SharedRates::default()];
    assert_eq!(nodes.iter().map(|node| allowed(node, "ada", 10, 50, 0)).sum::<usize>(), 20);
    exchange(&nodes, 10, 0);
    for tenths in 1..=10 {
        let now = SECOND / 10 * tenths;
        assert_eq!(nodes.iter().map(|node| allowed(node, "ada", 10, 50, now)).sum::<usize>(), 0);
        exchange(&nodes, 10, now);
    }
    let now = SECOND / 10 * 11;
    assert_eq!(allowed(&nodes[0], "ada", 10, 50, now), 1, "as much as comes back in 100 ms");
}

#[test]
fn the_rate_of_all_nodes_together_is_the_limit() {
    for count in [1, 2, 3, 5] {
        let nodes: Vec<_> = (0..count).map(|_| SharedRates::default()).collect();
        let seconds = 60;
        let mut published = 0;
        for second in 0..seconds {
            for tenth in 0..10 {
                let now = SECOND * second + SECOND / 10 * tenth;
                published +=
                    nodes.iter().map(|node| allowed(node, "ada", 10, 10, now)).sum::<usize>();
            }
            exchange(&nodes, 10, SECOND * (second + 1) - 1);
        }
        let mean = published as f64 / seconds as f64;
        // Nodes report once a second, so the last ones may have published a second more than they knew.
        assert!((9.0..=11.0 + count as f64 / 3.0).contains(&mean), "{count} nodes: {mean}/s");
    }
}

#[test]
fn a_report_is_bounded_and_the_rest_follows() {
    let rates = SharedRates::default();
    for number in 0..10 {
        assert_eq!(allowed(&rates, &format!("user {number}"), 5, 2, 0), 2);
    }
    let mut users = Vec::new();
    for _ in 0..3 {
        let report = rates.report(4, 0);
        assert!(report.iter().all(|taken| taken.tokens == 2 && taken.namespace == CHAT));
        users.extend(report.into_iter().map(|taken| taken.user));
    }
    users.sort();
    let expected: Vec<_> = (0..10).map(|number| format!("user {number}")).collect();
    assert_eq!(users, expected, "each once");
    assert_eq!(rates.report(4, 0), []);
}

#[test]
fn full_buckets_are_forgotten() {
    let rates = SharedRates::default();
    assert_eq!(allowed(&rates, "ada", 5, 2, 0), 2);
    let count = || -> usize {
        let stripes = rates.stripes.iter().map(|stripe| stripe.lock());
        stripes.map(|stripe| stripe.values().map(HashMap::len).sum::<usize>()).sum()
    };
    rates.report(0, SECOND);
    assert_eq!(count(), 1, "it is not reported yet");
    rates.report(1, SECOND / 10);
    assert_eq!(count(), 1, "it is not full yet");
    rates.report(1, SECOND);
    assert_eq!(count(), 0);
}
