//! Tests of the state of an engine: well only when every connection is up.
//! In: events → out: states and counts.
//! Uses nothing else. Never: sockets.
//! A new count is a test here.

use super::*;
use crate::redis::options::Address;

#[test]
fn an_engine_is_well_when_every_connection_is_up() {
    let health = Health::default();
    health.counts_on();
    health.counts_on();
    let error = RedisError::NotRedis { address: Address::default() };
    health.is_troubled(error.clone());
    assert!(!health.is_well());
    health.came_up();
    assert_eq!(health.trouble(), Some(error));
    health.came_up();
    assert!(health.is_well());
    assert_eq!(health.trouble(), None);
    health.went_down();
    assert!(!health.is_well());
    assert_eq!((health.lost_count(), health.trouble()), (1, None), "nothing is known yet");
}

#[test]
fn what_is_skipped_is_counted() {
    let health = Health::default();
    health.is_foreign(b"fanwire.stream.{:a}");
    health.heard_foreign(b"\xff");
    health.heard_foreign_word(b"counted by the node");
    assert_eq!((health.foreign_count(), health.refused_count()), (2, 0));
}

#[test]
fn addresses_that_are_away_by_turns_are_said_once_each_until_all_is_well() {
    let away = |port| {
        let address = Address { port, ..Address::default() };
        RedisError::unreachable(&address, "Connection refused")
    };
    let mut trouble = Trouble::default();
    let said: Vec<bool> = [1, 2, 1, 2, 1].map(|port| trouble.is_new(away(port))).into();
    assert_eq!(said, [true, true, false, false, false]);
    assert_eq!(trouble.latest, Some(away(1)), "the last one that was tried");
    for port in 0..2_000 {
        trouble.is_new(away(port));
    }
    assert_eq!(trouble.said.len(), SAID_MAX);

    let health = Health::default();
    health.counts_on();
    health.is_troubled(away(1));
    health.came_up();
    assert!(health.trouble.lock().said.is_empty(), "said again when it happens again");
}
