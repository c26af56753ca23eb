//! Tests of the measuring: every delivery is timed once, and what does not belong is an error.
//! In: publications and who received them → out: how many latencies there are.
//! Uses nothing but the audience; never a server.
//! Changed here: expectations of `presence` without sockets.

use super::*;

#[test]
fn every_delivery_is_timed_once() {
    let mut deliveries = Deliveries::new(3, 2);
    assert!(deliveries.is_complete());
    deliveries.published.extend([Instant::now(); 2]);
    for subscriber in [3, 3, 4] {
        deliveries.publication(subscriber, b"x").expect("one of two publications");
    }
    assert!(!deliveries.is_complete());
    deliveries.publication(4, b"x").expect("the last one");
    assert!(deliveries.is_complete());
    assert_eq!(deliveries.latencies_ms.len(), 4);
}

#[test]
fn a_member_that_hears_something_and_a_delivery_too_many_are_errors() {
    let mut deliveries = Deliveries::new(3, 2);
    assert!(deliveries.publication(3, b"x").is_err(), "nothing was published");
    deliveries.published.push(Instant::now());
    assert!(deliveries.publication(2, b"x").is_err(), "a member is no subscriber");
    assert!(deliveries.publication(3, b"x").is_ok());
    assert!(deliveries.publication(3, b"x").is_err(), "twice");
}
