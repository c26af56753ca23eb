//! Tests of the keys of a connection: limits, versions, expiry.
//! In: items and versions → out: what is accepted.
//! Uses nothing else. Never: a clock.
//! Changed here: tests of tracked keys.

use super::*;

fn item(key: &str, version: u64) -> TrackedItem<'_> {
    TrackedItem { key, version, expires_at: None }
}

fn track(tracked: &mut TrackedKeys, item: TrackedItem<'_>) -> bool {
    tracked.track(item, || item.key.into())
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

#[test]
fn a_connection_tracks_5000_keys_and_not_5001() {
    let mut tracked = TrackedKeys::default();
    let names = names(5001);
    let items: Vec<_> = names.iter().map(|name| item(name, 0)).collect();
    let room = |tracked: &TrackedKeys, count: usize, untracked: &[String]| {
        tracked.check_room(&items[..count], untracked, 5000)
    };
    assert_eq!(room(&tracked, 5000, &[]), Ok(()));
    assert_eq!(room(&tracked, 5001, &[]), Err(TooManyKeys));
    for item in &items[..5000] {
        assert!(track(&mut tracked, *item));
    }
    assert_eq!(room(&tracked, 5000, &[]), Ok(()), "the same keys again");
    assert_eq!(tracked.check_room(&items[5000..], &[], 5000), Err(TooManyKeys));
    let one = [names[7].clone()];
    assert_eq!(tracked.check_room(&items[5000..], &one, 5000), Ok(()), "one is untracked");
    let unknown = ["unknown".to_owned()];
    assert_eq!(tracked.check_room(&items[5000..], &unknown, 5000), Err(TooManyKeys));
    let twice = [item("new", 0), item("new", 1)];
    assert_eq!(tracked.check_room(&twice, &one, 5000), Ok(()), "a key counts once");
    assert_eq!(tracked.len(), 5000, "a check changes nothing");
}

#[test]
fn versions_of_a_key_only_rise() {
    let mut tracked = TrackedKeys::default();
    assert!(!tracked.accepts("a", 1), "it is not tracked");
    assert!(track(&mut tracked, item("a", 3)));
    assert!(!tracked.accepts("a", 3));
    assert!(tracked.accepts("a", 5));
    assert!(!tracked.accepts("a", 4), "two updates in the wrong order");
    assert_eq!(tracked.version("a"), 5);
    assert!(!track(&mut tracked, item("a", 0)), "the client has lost its value");
    assert!(tracked.accepts("a", 5));
    assert!(tracked.untrack("a") && !tracked.untrack("a"));
    assert!(tracked.is_empty() && tracked.version("a") == 0);
}

#[test]
fn keys_leave_some_time_after_their_signature_has_expired() {
    let mut tracked = TrackedKeys::default();
    for (key, expires_at) in
        [("a", Some(100)), ("b", Some(200)), ("c", None), ("d", Some(u64::MAX))]
    {
        track(&mut tracked, TrackedItem { key, version: 0, expires_at });
    }
    assert!(tracked.take_expired(25, 125).is_empty());
    assert_eq!(tracked.take_expired(25, 126), ["a".into()]);
    track(&mut tracked, TrackedItem { key: "b", version: 0, expires_at: Some(300) });
    assert!(tracked.take_expired(25, 226).is_empty(), "it was refreshed");
    assert_eq!(tracked.take_expired(25, u64::MAX), ["b".into()]);
    assert_eq!(tracked.keys().count(), 2);
}
