//! Tests of the table of statuses: changes, expiry, the count.
//! In: changes at Unix seconds → out: the status, the number of entries.
//! Uses: the table alone. Time is a number.
//! Change here: tests of the table. Nodes and connections are in `tests/it/users.rs`.

use super::*;

const NOW: u64 = 1_800_000_000;

#[test]
fn a_status_stays_until_it_is_removed_or_expires() {
    let table = UserStatuses::default();
    table.set("ada", NOW, "busy");
    table.set("ada", NOW + 5, "");
    table.set("bob", NOW, "away");
    let status = |user: &str, unix| {
        let UserStatus { active, state, .. } = table.get(user, unix);
        (active, state.into_string())
    };
    assert_eq!(status("ada", NOW + 9), (NOW + 5, String::new()));
    assert_eq!(status("bob", NOW + EXPIRY_SECONDS - 1), (NOW, "away".to_owned()));
    assert_eq!(status("bob", NOW + EXPIRY_SECONDS), (0, String::new()));
    assert_eq!(status("eve", NOW), (0, String::new()));
    (0..STRIPES).for_each(|_| table.sweep(NOW + EXPIRY_SECONDS));
    assert_eq!(table.entries.load(Relaxed), 1);
    table.remove("ada");
    table.remove("ada");
    assert_eq!(table.entries.load(Relaxed), 0);
    assert!(table.has_room(ENTRIES_MAX));
    table.set("ada", NOW, "");
    assert!(!table.has_room(ENTRIES_MAX));
}
