//! Tests of the options of maps: what each mode makes of them.
//! In: options → out: retentions.
//! Uses: nothing else.
//! Changed here: tests of defaults.

use super::*;
use crate::options::{Namespace, SubscriptionType};

const SECOND: Duration = Duration::from_secs(1);

fn stream_of(options: MapOptions) -> Retention {
    options.retention().stream
}

#[test]
fn defaults_depend_on_the_mode() {
    let options = |mode| MapOptions { mode, key_ttl: 3600 * SECOND, ..MapOptions::default() };
    assert_eq!(stream_of(options(MapMode::Ephemeral)), Retention::default());
    let minute = 60 * SECOND;
    let recoverable = Retention { size: 100, ttl: minute, meta_ttl: 3600 * SECOND };
    assert_eq!(stream_of(options(MapMode::Recoverable)), recoverable);
    let short = MapOptions { key_ttl: SECOND, ..options(MapMode::Recoverable) };
    assert_eq!(stream_of(short).meta_ttl, 600 * SECOND);
    let persistent = Retention { size: 100, ttl: minute, meta_ttl: Duration::ZERO };
    assert_eq!(stream_of(options(MapMode::Persistent)), persistent);
}

#[test]
fn only_a_namespace_of_maps_has_a_retention_of_maps() {
    let mut namespace = Namespace::default();
    assert_eq!(namespace.map_retention(), None);
    namespace.subscription_type = SubscriptionType::SharedPoll;
    assert_eq!(namespace.map_retention(), None);
    namespace.subscription_type = SubscriptionType::Map;
    namespace.map.mode = MapMode::Persistent;
    let retention = namespace.map_retention().expect("a namespace of maps");
    assert_eq!((retention.entries_max, retention.bytes_max), (100_000, 1 << 26));
}

#[test]
fn modes_have_the_names_of_the_configuration() {
    for name in MapMode::NAMES {
        assert!(MapMode::parse(name).is_some(), "{name}");
    }
    assert_eq!(MapMode::parse("Persistent"), None);
}

#[test]
fn pages_have_the_size_that_the_client_wants_within_the_limits() {
    let map = MapOptions {
        default_page_size: 50,
        min_page_size: 10,
        max_page_size: 100,
        ..MapOptions::default()
    };
    let cases = [(0, 50), (-1, 50), (i32::MIN, 50), (2, 10), (70, 70), (101, 100), (i32::MAX, 100)];
    for (requested, expect) in cases {
        assert_eq!(map.page_size(requested), expect, "{requested}");
    }
    assert_eq!(map.live_changes_max(), 100, "as max_page_size");
    let zeros = MapOptions { default_page_size: 0, min_page_size: 0, max_page_size: 0, ..map };
    assert_eq!([0, 1, 5000].map(|requested| zeros.page_size(requested)), [100, 100, 1000]);
}
