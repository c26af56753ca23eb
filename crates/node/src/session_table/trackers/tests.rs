//! Tests of the trackers of a shard.
//! In: keys that connections track and untrack → out: who gets an update, and that nothing is left.
//! Uses nothing else. Never: sessions.
//! Changed here: tests of `trackers.rs`.

use super::*;

const ADA: u32 = 1;
const BOB: u32 = 2;

fn item(key: &str, version: u64) -> TrackedItem<'_> {
    TrackedItem { key, version, expires_at: Some(100) }
}

fn sorted(mut indices: Vec<u32>) -> Vec<u32> {
    indices.sort_unstable();
    indices
}

#[test]
fn an_update_is_for_those_who_track_the_key_and_have_an_older_version() {
    let mut trackers = Trackers::default();
    let channel: Arc<str> = "prices".into();
    assert!(trackers.track(ADA, &channel, item("a", 0)));
    assert!(!trackers.track(ADA, &channel, item("a", 3)));
    assert!(trackers.track(BOB, &channel, item("a", 5)));
    assert!(trackers.track(BOB, &channel, item("b", 0)));
    assert_eq!(trackers.accept_all("prices", "a", 4), [ADA]);
    assert_eq!(sorted(trackers.accept_all("prices", "a", 6)), [ADA, BOB]);
    assert!(trackers.accept_all("prices", "a", 6).is_empty(), "once");
    assert!(trackers.accept_all("prices", "c", 6).is_empty());
    assert!(trackers.accept_all("other", "a", 9).is_empty());
    assert!(trackers.accept(BOB, "prices", "b", 1));
    assert!(!trackers.accept(ADA, "prices", "b", 1));
}

#[test]
fn nothing_is_left_of_keys_without_trackers() {
    let mut trackers = Trackers::default();
    let channel: Arc<str> = "prices".into();
    for key in ["a", "b", "c"] {
        trackers.track(ADA, &channel, item(key, 0));
        trackers.track(BOB, &channel, item(key, 0));
    }
    assert_eq!(trackers.untrack(ADA, "prices", "a").as_deref(), Some("a"));
    assert_eq!(trackers.untrack(ADA, "prices", "a"), None);
    assert_eq!(sorted(trackers.remove("prices", "b")), [ADA, BOB]);
    assert_eq!(trackers.end(ADA, "prices"), ["c".into()]);
    assert_eq!(trackers.end(ADA, "prices"), []);
    assert_eq!(trackers.take_expired(BOB, "prices", 25, 125), []);
    assert_eq!(trackers.take_expired(BOB, "prices", 25, 126).len(), 2);
    assert!(trackers.0.is_empty());
}
