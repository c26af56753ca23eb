//! Tests of the statuses in memory: the conformance suite, expiry, the limit.
//! In: changes at Unix seconds → out: statuses, the number of entries.
//! Uses: the store alone. Time is a number.
//! Changed here: what this store promises beyond the suite. Nodes and connections are tested in the node.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::user_statuses::conformance;

const NOW: u64 = 1_800_000_000;

#[test]
fn it_passes_the_suite() {
    conformance::check(&|| Arc::new(MemoryUserStatuses::default()));
}

#[test]
fn a_status_expires_after_its_last_change_and_is_swept() {
    let store = MemoryUserStatuses::default();
    let change = UserStatusChange {
        active: Some(NOW),
        state: Some("busy".into()),
        ttl: Duration::from_secs(10),
        ..UserStatusChange::default()
    };
    let seen = UserStatusChange { online: Some(NOW + 5), ..change.clone() };
    let users = ["ada".to_owned(), "bob".to_owned()];
    store.update(&users, &change, NOW).wait().expect("there is room");
    store
        .update(&users[..1], &UserStatusChange { state: None, ..seen }, NOW + 5)
        .wait()
        .expect("room");
    let read = |unix| store.read(&users, unix).wait().expect("memory");
    let of = |online| UserStatus { active: NOW, online, state: "busy".into() };
    assert_eq!(read(NOW + 9), [of(NOW + 5), of(0)]);
    assert_eq!(read(NOW + 10), [of(NOW + 5), UserStatus::default()]);
    (0..STRIPES).for_each(|_| store.sweep(NOW + 10));
    assert_eq!(store.entries.load(Relaxed), 1);
    let again = UserStatusChange { online: Some(NOW + 99), ttl: change.ttl, ..Default::default() };
    store.update(&users[..1], &again, NOW + 99).wait().expect("there is room");
    let only_online = UserStatus { online: NOW + 99, ..UserStatus::default() };
    assert_eq!(read(NOW + 99)[0], only_online, "an expired status does not come back");
    let many: Vec<_> = (0..ENTRIES_MAX).map(|number| number.to_string()).collect();
    assert_eq!(store.update(&many, &change, NOW).wait(), Err(BrokerError::Full));
}
