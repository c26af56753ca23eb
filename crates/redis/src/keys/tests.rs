//! Tests of names: all names of a channel are in one slot of a Cluster, and the channel can be decoded.
//! In: prefixes and odd channels → out: names and their hash tags.
//! Uses the tag rule of the Redis Cluster specification. Never: a Redis.
//! A new kind of name is a row here.

use super::*;

const KINDS: [KeyKind; 12] = [
    KeyKind::PubSub,
    KeyKind::Stream,
    KeyKind::Meta,
    KeyKind::Ends,
    KeyKind::Members,
    KeyKind::Users,
    KeyKind::Growing,
    KeyKind::MapChanges,
    KeyKind::MapMeta,
    KeyKind::MapEntries,
    KeyKind::MapDeadlines,
    KeyKind::MapClearing,
];

/// The part of a name that decides its slot (Redis Cluster specification, "hash tags").
fn tag(name: &str) -> &str {
    let Some(open) = name.find('{') else { return name };
    match name[open + 1..].find('}') {
        Some(0) | None => name,
        Some(length) => &name[open + 1..open + 1 + length],
    }
}

#[test]
fn all_names_of_a_channel_have_one_hash_tag() {
    let keys = Keys::new("fanwire", true);
    for channel in ["news", "", "}", "{}", "a}b", "user:#42", "\u{fffd} "] {
        let expected = tag(&keys.of(KeyKind::PubSub, channel)).to_owned();
        assert!(expected.starts_with(':'), "{channel}");
        for kind in KINDS {
            assert_eq!(tag(&keys.of(kind, channel)), expected, "{kind:?} of {channel}");
        }
        assert_eq!(tag(&keys.of_result(channel, "any} key")), expected, "{channel}");
        assert_eq!(tag(&keys.of_client_result(channel, "any}", "key")), expected, "{channel}");
        assert_eq!(tag(&keys.of_message(channel, "any} key")), expected, "{channel}");
        let name = keys.of(KeyKind::Meta, channel);
        assert_eq!(keys.slot(channel), slot::of(name.as_bytes()), "{channel}");
    }
}

#[test]
fn different_kinds_have_different_names() {
    let keys = Keys::new("fanwire", false);
    let mut names: Vec<_> = KINDS.iter().map(|kind| keys.of(*kind, "news")).collect();
    assert_eq!(names[1], "fanwire.stream.{:news}");
    assert_eq!(keys.of_result("news", "k"), "fanwire.result.4.{:news}.k");
    let of_client = keys.of_client_result("news", "user 1", "k");
    assert_eq!(of_client, "fanwire.client_result.4.6.{:news}.user 1.k");
    let [first, second] =
        [("u.a", "b"), ("u", "a.b")].map(|(owner, key)| keys.of_client_result("news", owner, key));
    assert_ne!(first, second);
    assert_ne!(keys.of_result("a}.x", "y"), keys.of_result("a", "x}.y"));
    names.sort();
    names.dedup();
    assert_eq!(names.len(), KINDS.len());
}

#[test]
fn the_channel_of_a_feed_is_found_again() {
    let keys = Keys::new("a.b", false);
    for channel in ["news", "", "}", "a}b"] {
        let name = keys.of(KeyKind::PubSub, channel);
        assert_eq!(keys.channel_of_pubsub(name.as_bytes()), Some(channel));
    }
    for foreign in ["a.b.feed.{:news", "a.b.stream.{:news}", "news", "", "a.b.feed.{:"] {
        assert_eq!(keys.channel_of_pubsub(foreign.as_bytes()), None, "{foreign}");
    }
    assert_eq!(keys.channel_of_pubsub(b"a.b.feed.{:\xff}"), None);
}

#[test]
fn names_of_nodes_are_told_from_names_of_channels() {
    let keys = Keys::new("fanwire", false);
    assert_eq!(keys.node_channel(None), "fanwire.nodes");
    assert_eq!(keys.node_channel(Some("uid")), "fanwire.nodes.uid");
    for name in [keys.node_channel(None), keys.node_channel(Some("uid"))] {
        assert!(keys.is_node_channel(name.as_bytes()));
        assert_eq!(keys.channel_of_pubsub(name.as_bytes()), None);
    }
    assert!(!keys.is_node_channel(keys.of(KeyKind::PubSub, "nodes").as_bytes()));
    assert!(!keys.is_node_channel(b"other.nodes"));
}
