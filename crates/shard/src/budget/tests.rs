//! Tests of the memory budget: granted, refused and returned bytes.
//! In: sequences of requests → out: bytes held.
//! Uses the budget alone.
//! Changed here: expectations of the accounting.

use super::*;

#[test]
fn what_is_dropped_can_be_granted_again() {
    let budget = Budget::new(100);
    let one = budget.reserve(60).expect("there is room");
    assert!(budget.reserve(99).is_none() && budget.reserve_once(41).is_none());
    assert_eq!([budget.take_refused(), budget.take_refused()], [41, 0]);
    drop(one);
    assert_eq!((budget.bytes(), budget.reserve(100).map(|all| all.bytes())), (0, Some(100)));
}

#[test]
fn a_reservation_shrinks_always_and_grows_while_there_is_room() {
    let budget = Budget::new(100);
    let mut one = budget.reserve(60).expect("there is room");
    let _other = budget.reserve(30).expect("there is room");
    assert!(!one.resize(71) && one.bytes() == 60);
    assert!(one.resize(70) && budget.bytes() == 100);
    assert!(one.resize(10) && budget.bytes() == 40);
    drop(one);
    assert_eq!(budget.bytes(), 30);
}
