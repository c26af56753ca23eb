//! Tests of the rules between the keys of history.
//! In: namespaces → out: which key is named, or none.
//! Uses: `mistakes` only.
//! What the settings do is tested in `broker/memory/tests.rs`.

use super::*;

/// The key that is wrong, if any.
fn wrong(size: usize, ttl_ms: u64, meta_ttl_ms: u64) -> Option<String> {
    let namespace = Namespace {
        history_size: size,
        history_ttl: Duration::from_millis(ttl_ms),
        history_meta_ttl: Duration::from_millis(meta_ttl_ms),
        ..Namespace::default()
    };
    mistakes(&namespace, "n").into_iter().next().map(|error| match error {
        OptionsError::Value { key, .. } => key,
        other => panic!("{other:?}"),
    })
}

#[test]
fn size_and_ttl_come_together_or_not_at_all() {
    assert_eq!(wrong(0, 0, 0), None);
    assert_eq!(wrong(10, 60_000, 0), None);
    assert_eq!(wrong(10, 0, 0).as_deref(), Some("n.history_ttl"));
    assert_eq!(wrong(0, 60_000, 0).as_deref(), Some("n.history_ttl"));
}

#[test]
fn recovery_needs_history() {
    let mut namespace = Namespace { force_recovery: true, ..Namespace::default() };
    assert_eq!(mistakes(&namespace, "n").len(), 1);
    namespace.history_size = 1;
    namespace.history_ttl = Duration::from_secs(1);
    assert_eq!(mistakes(&namespace, "n"), []);
}

#[test]
fn times_are_whole_seconds() {
    assert_eq!(wrong(10, 1500, 0).as_deref(), Some("n.history_ttl"));
    assert_eq!(wrong(10, 1000, 1500).as_deref(), Some("n.history_meta_ttl"));
}

#[test]
fn positions_are_kept_at_least_as_long_as_publications() {
    assert_eq!(wrong(10, 2000, 1000).as_deref(), Some("n.history_meta_ttl"));
    assert_eq!(wrong(10, 2000, 2000), None);
}
