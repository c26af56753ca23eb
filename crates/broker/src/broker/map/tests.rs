//! Tests of the values of the port: when a position is lost, what the server API calls things.
//! In: positions and streams → out: verdicts.
//! Uses: nothing else.
//! Changed here: tests of values. What engines do is in `conformance.rs`.

use super::*;

#[test]
fn a_position_is_lost_when_the_next_change_is_not_stored() {
    let epoch = Epoch::random();
    let check = |since, top, oldest, expect| {
        let since = Some(Position { offset: since, epoch });
        let query = ChangesQuery { since, ..ChangesQuery::default() };
        let top = Position { offset: top, epoch };
        assert_eq!(query.is_lost(top, oldest), expect, "{since:?} of {oldest} to {top:?}");
    };
    // A stream that was trimmed to 16 to 20.
    check(0, 20, 16, true);
    check(14, 20, 16, true);
    check(15, 20, 16, false);
    check(20, 20, 16, false);
    check(21, 20, 16, true);
    check(u64::MAX, 20, 16, true);
    // A stream that has expired.
    check(0, 18, 19, true);
    check(17, 18, 19, true);
    check(18, 18, 19, false);
    // An empty one.
    check(0, 0, 1, false);
    check(1, 0, 1, true);
}

#[test]
fn key_modes_have_the_names_of_the_api() {
    let if_new = KeyMode::IfNew { refreshes: false };
    let modes = ["", "if_new", "if_exists", "IF_NEW", "replace"].map(KeyMode::parse);
    assert_eq!(modes, [Some(KeyMode::Any), Some(if_new), Some(KeyMode::IfExists), None, None]);
}
