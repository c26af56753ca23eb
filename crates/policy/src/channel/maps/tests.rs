//! Tests of the rules of maps: which keys each mode refuses, and in which words.
//! In: options → out: the texts of mistakes.
//! Uses: nothing else.
//! Changed here: tests of rules between keys.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn check(map: MapOptions, expect: &[&str]) {
    let namespace =
        Namespace { subscription_type: SubscriptionType::Map, map, ..Namespace::default() };
    let found = mistakes(&namespace, "channel.namespaces[board]");
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expect.len(), "{found:?}");
    for (text, expect) in found.iter().zip(expect) {
        let key = format!("channel.namespaces[board].map.{expect}");
        assert!(text.contains(&key), "{text} is not about {key}");
    }
}

fn of(mode: MapMode, key_ttl: Duration) -> MapOptions {
    MapOptions { mode, key_ttl, ..MapOptions::default() }
}

#[test]
fn the_smallest_page_is_not_larger_than_the_largest() {
    let persistent = of(MapMode::Persistent, Duration::ZERO);
    let map = MapOptions { min_page_size: 200, max_page_size: 100, ..persistent };
    check(map, &["min_page_size is \"200\""]);
}

#[test]
fn presence_expires() {
    let map = of(MapMode::Persistent, Duration::ZERO);
    let subscription_type = SubscriptionType::MapUsers;
    let namespace = Namespace { subscription_type, map, ..Namespace::default() };
    let found = mistakes(&namespace, "channel.namespaces[users]");
    assert!(found[0].to_string().contains("map.mode"), "{found:?}");
}

#[test]
fn a_backend_that_decides_about_changes_decides_about_keys() {
    let proxied = |client_key| {
        let mut map = of(MapMode::Persistent, Duration::ZERO);
        map.client_key = client_key;
        map.remove_proxy.enabled = true;
        map
    };
    check(proxied(ClientKey::OfClient), &[]);
    check(proxied(ClientKey::ClientId), &["client_key is \"client_id\""]);
    check(proxied(ClientKey::UserId), &["client_key is \"user_id\""]);
}

#[test]
fn a_map_needs_a_mode() {
    check(MapOptions::default(), &["mode"]);
    assert!(mistakes(&Namespace::default(), "").is_empty(), "streams do not");
}

#[test]
fn entries_expire_unless_the_map_is_persistent() {
    for mode in [MapMode::Ephemeral, MapMode::Recoverable] {
        check(of(mode, SECOND), &[]);
        check(of(mode, Duration::ZERO), &["key_ttl"]);
    }
    check(of(MapMode::Persistent, Duration::ZERO), &[]);
    check(of(MapMode::Persistent, SECOND), &["key_ttl"]);
}

#[test]
fn an_ephemeral_map_has_no_stream() {
    let map = MapOptions {
        stream_size: 1,
        stream_ttl: SECOND,
        meta_ttl: SECOND,
        ..of(MapMode::Ephemeral, SECOND)
    };
    check(map, &["stream_size", "stream_ttl", "meta_ttl"]);
}

#[test]
fn positions_live_as_long_as_changes_and_entries() {
    let with = |meta_ttl, key_ttl| MapOptions {
        meta_ttl: meta_ttl * SECOND,
        ..of(MapMode::Recoverable, key_ttl * SECOND)
    };
    check(with(60, 1), &[]);
    check(with(59, 1), &["meta_ttl"]); // the default of stream_ttl
    check(with(99, 100), &["meta_ttl"]);
    check(with(100, 100), &[]);
    let map = MapOptions { meta_ttl: SECOND, ..of(MapMode::Persistent, Duration::ZERO) };
    check(map, &["meta_ttl"]);
}

#[test]
fn a_prefix_of_presence_is_a_namespace_of_that_kind() {
    let users = Namespace {
        name: "users".into(),
        subscription_type: SubscriptionType::MapUsers,
        ..Namespace::default()
    };
    let section = ChannelOptions { namespaces: vec![users], ..ChannelOptions::default() };
    let with = |clients: &str, users: &str| {
        let namespace = Namespace {
            map_clients_presence_channel_prefix: clients.into(),
            map_users_presence_channel_prefix: users.into(),
            ..Namespace::default()
        };
        let found = prefix_mistakes(&namespace, &section, "channel.namespaces[room]");
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(with("", "users:").is_empty());
    assert!(with("", "users:of:").is_empty());
    for (clients, users) in [("users:", ""), ("", "others:"), ("", ":"), ("", "users")] {
        let found = with(clients, users);
        assert!(found.len() == 1 && found[0].contains("presence_channel_prefix"), "{found:?}");
    }
}
