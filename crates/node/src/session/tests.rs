//! Tests of what a session costs at rest.
//! In: nothing → out: sizes in bytes.
//! Uses: nothing but the types.
//! The whole cost of a connection is measured in `tests/it/memory.rs`.

use super::*;

#[test]
fn a_session_and_a_subscription_stay_small() {
    assert!(size_of::<Option<Session>>() <= 250, "{}", size_of::<Option<Session>>());
    assert!(size_of::<Subscription>() <= 24, "{}", size_of::<Subscription>());
}
