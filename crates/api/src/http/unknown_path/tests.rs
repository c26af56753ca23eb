//! Tests of `unknown_path`: the nearest methods of mistyped ones.
//! In: names. Out: nothing.
//! Uses the functions only.
//! The response is tested in the server.

use super::*;

#[test]
fn a_mistyped_method_is_the_first_of_the_nearest() {
    for (name, meant) in [
        ("publsh", "publish"),
        ("Publish", "publish"),
        ("publish/", "publish"),
        ("historyremove", "history_remove"),
        ("boradcast", "broadcast"),
        ("presence-stats", "presence_stats"),
    ] {
        assert_eq!(nearest(name)[0], meant, "{name}");
    }
}

#[test]
fn a_long_name_is_compared_in_little_time() {
    assert_eq!(nearest(&"é".repeat(1 << 20)).len(), NEAREST);
}
