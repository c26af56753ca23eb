//! Tests of the state of an engine: healthy only when every connection is up.
//! In: events → out: states and counts.
//! Uses nothing else. Never: sockets.
//! A new count is a test here.

use super::*;
use crate::address::Address;

#[test]
fn an_engine_is_healthy_when_every_connection_is_up() {
    let health = Health::default();
    health.connection_added();
    health.connection_added();
    let error = RedisError::NotRedis { address: Address::default() };
    health.report_error(error.clone());
    assert!(!health.is_healthy());
    health.connection_up();
    assert_eq!(health.current_error(), Some(error));
    health.connection_up();
    assert!(health.is_healthy());
    assert_eq!(health.current_error(), None);
    health.connection_lost();
    assert!(!health.is_healthy());
    assert_eq!((health.lost_count(), health.current_error()), (1, None), "nothing is known yet");
}

#[test]
fn skipped_records_are_counted() {
    let health = Health::default();
    health.skipped_foreign_record(b"fanwire.stream.{:a}");
    health.skipped_foreign_message(b"\xff");
    health.skipped_foreign_node_message(b"counted by the node");
    assert_eq!((health.foreign_count(), health.refused_count()), (2, 0));
}

#[test]
fn errors_of_alternating_addresses_are_logged_once_each() {
    let away = |port| {
        let address = Address { port, ..Address::default() };
        RedisError::unreachable(&address, "Connection refused")
    };
    let mut errors = ConnectionErrors::default();
    let logged: Vec<bool> = [1, 2, 1, 2, 1].map(|port| errors.is_new(away(port))).into();
    assert_eq!(logged, [true, true, false, false, false]);
    assert_eq!(errors.latest, Some(away(1)), "the last one that was tried");
    for port in 0..2_000 {
        errors.is_new(away(port));
    }
    assert_eq!(errors.logged.len(), LOGGED_MAX);

    let health = Health::default();
    health.connection_added();
    health.report_error(away(1));
    health.connection_up();
    assert!(health.errors.lock().logged.is_empty(), "logged again when it happens again");
}
