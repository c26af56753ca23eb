//! The tests that every store of statuses must pass.
//! In: a function that makes an empty store → out: a panic that names the broken promise.
//! Uses: threads, Unix seconds of the machine. Never: sleeps; expiry is tested next to each store.
//! Changed here: the promises that all stores share.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{UserStatus, UserStatusChange, UserStatusStore};

/// Makes an empty store. Called for each promise.
pub type MakeUserStatuses<'a> = &'a dyn Fn() -> Arc<dyn UserStatusStore>;

/// Tests every promise.
///
/// # Panics
/// When the store breaks a promise.
pub fn check(make: MakeUserStatuses<'_>) {
    a_change_keeps_what_it_does_not_set(make);
    a_thousand_users_are_read_in_the_order_of_the_request(make);
    changes_of_many_threads_all_count(make);
}

fn a_change_keeps_what_it_does_not_set(make: MakeUserStatuses<'_>) {
    let store = make();
    let unix = now();
    let users = ["ada".to_owned(), "{:b}*?\n é".to_owned()];
    let mut expect = UserStatus::default();
    assert_eq!(read(&*store, &users), vec![expect.clone(); 2]);
    for change in [
        UserStatusChange { active: Some(unix), state: Some("busy".into()), ..change() },
        UserStatusChange { online: Some(unix + 1), ..change() },
        UserStatusChange { active: Some(unix + 2), ..change() },
        UserStatusChange { active: Some(unix + 3), state: Some("".into()), ..change() },
    ] {
        store.update(&users, &change, unix).wait().expect("the store is available");
        expect.active = change.active.unwrap_or(expect.active);
        expect.online = change.online.unwrap_or(expect.online);
        expect.state = change.state.unwrap_or(expect.state);
        assert_eq!(read(&*store, &users), vec![expect.clone(); 2]);
    }
    store.remove(&users[..1]).wait().expect("the store is available");
    store.remove(&users[..1]).wait().expect("the store is available");
    assert_eq!(read(&*store, &users), [UserStatus::default(), expect]);
}

fn a_thousand_users_are_read_in_the_order_of_the_request(make: MakeUserStatuses<'_>) {
    let store = make();
    let unix = now();
    let users: Vec<_> = (0..1000).rev().map(|number| number.to_string()).collect();
    let known: Vec<_> = users.iter().step_by(3).cloned().collect();
    let change = UserStatusChange { active: Some(unix), ..change() };
    store.update(&known, &change, unix).wait().expect("the store is available");
    for (number, status) in read(&*store, &users).into_iter().enumerate() {
        assert_eq!(status.active, if number % 3 == 0 { unix } else { 0 }, "{number}");
    }
    store.remove(&users).wait().expect("the store is available");
    assert_eq!(read(&*store, &users), vec![UserStatus::default(); 1000]);
}

fn changes_of_many_threads_all_count(make: MakeUserStatuses<'_>) {
    let store = make();
    let unix = now();
    thread::scope(|scope| {
        for number in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for user in 0..50 {
                    let at = Some(unix + number);
                    let change = UserStatusChange { active: at, ..change() };
                    let user = [format!("{number} {user}"), "all".to_owned()];
                    store.update(&user, &change, unix).wait().expect("the store is available");
                }
            });
        }
    });
    let users: Vec<_> = (0..200).map(|user| format!("{} {}", user / 50, user % 50)).collect();
    let found = read(&*store, &users);
    assert!((0..200).all(|user| found[user].active == unix + user as u64 / 50));
    assert!(read(&*store, &["all".to_owned()])[0].active >= unix);
}

fn change() -> UserStatusChange {
    UserStatusChange { ttl: Duration::from_secs(3600), ..UserStatusChange::default() }
}

fn read(store: &dyn UserStatusStore, users: &[String]) -> Vec<UserStatus> {
    store.read(users, now()).wait().expect("the store is available")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
