//! Tests of the registry: shards of a channel, shared names, counts, user limits.
//! In: joins, leaves, entries and exits → out: listeners and counts.
//! Uses: nothing but the registry.
//! The same counts through commands are tested in `tests/it`.

use std::cell::Cell;

use super::*;

const FIRST: ShardId = ShardId(0);
const SECOND: ShardId = ShardId(1);

fn shards(registry: &Registry, channel: &str) -> Vec<u16> {
    let listeners = registry.listeners(channel);
    let mut shards: Vec<_> =
        listeners.into_iter().flat_map(|listeners| listeners.shards).map(|shard| shard.0).collect();
    shards.sort_unstable();
    shards
}

#[test]
fn a_channel_names_each_shard_once_as_long_as_it_has_subscribers_there() {
    let registry = Registry::new();
    registry.join("a", FIRST, NamespaceId::default, || ());
    registry.join("a", FIRST, NamespaceId::default, || ());
    registry.join("a", SECOND, NamespaceId::default, || ());
    assert_eq!(shards(&registry, "a"), [0, 1]);
    registry.leave("a", FIRST, || ());
    assert_eq!(shards(&registry, "a"), [0, 1]);
    registry.leave("a", FIRST, || ());
    assert_eq!(shards(&registry, "a"), [1]);
    registry.leave("a", SECOND, || ());
    assert!(registry.listeners("a").is_none());
    assert_eq!(registry.channel_counts(), (0, 0));
}

#[test]
fn the_broker_hears_of_the_first_and_the_last_subscriber_only() {
    let registry = Registry::new();
    let first = Cell::new(0);
    let last = Cell::new(0);
    for shard in [FIRST, SECOND, FIRST] {
        registry.join("a", shard, NamespaceId::default, || first.set(first.get() + 1));
    }
    for shard in [SECOND, FIRST, FIRST] {
        assert_eq!(last.get(), 0);
        registry.leave("a", shard, || last.set(last.get() + 1));
    }
    assert_eq!((first.get(), last.get()), (1, 1));
}

#[test]
fn everybody_shares_one_copy_of_a_name() {
    let registry = Registry::new();
    let one = registry.join("a", FIRST, NamespaceId::default, || ());
    let other = registry.join("a", SECOND, NamespaceId::default, || ());
    let delivered = registry.listeners("a").map(|listeners| listeners.channel);
    assert!(Arc::ptr_eq(&one, &other));
    assert!(delivered.is_some_and(|delivered| Arc::ptr_eq(&one, &delivered)));
    let user = registry.enter("42", 0).zip(registry.enter("42", 0));
    assert!(user.is_some_and(|(one, other)| Arc::ptr_eq(&one, &other)));
}

#[test]
fn counts_add_up_over_stripes() {
    let registry = Registry::new();
    for number in 0..1_000 {
        registry.join(&format!("channel {number}"), FIRST, NamespaceId::default, || ());
        registry.join(&format!("channel {}", number / 2), SECOND, NamespaceId::default, || ());
        registry.enter(&format!("user {}", number / 4), 0);
    }
    assert_eq!(registry.channel_counts(), (1_000, 2_000));
    assert_eq!(registry.user_counts(), (250, 1_000));
    let mut subscribers = 0;
    registry.each_channel(|_, count| subscribers += count);
    assert_eq!(subscribers, 2_000);
    registry.join("game:1", FIRST, || NamespaceId(2), || ());
    registry.join("game:1", SECOND, || NamespaceId(7), || ()); // the first one says it
    assert_eq!(registry.subscriptions_by_namespace(), [2_000, 0, 2]);
    registry.leave("game:1", FIRST, || ());
    assert_eq!(registry.subscriptions_by_namespace(), [2_000, 0, 1]);
}

#[test]
fn a_user_limit_counts_present_connections() {
    let registry = Registry::new();
    assert!(registry.enter("42", 2).is_some());
    assert!(registry.enter("42", 2).is_some());
    assert!(registry.enter("42", 2).is_none());
    assert!(registry.enter("43", 2).is_some());
    registry.exit("42");
    assert!(registry.enter("42", 2).is_some());
    registry.exit("43");
    assert_eq!(registry.user_counts(), (1, 2));
}
