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
