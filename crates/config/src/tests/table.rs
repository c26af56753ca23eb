//! Tests of the table itself: every row is complete, true to the node, and sets the field that it names.
//! In: all rows → out: nothing, when each is right.
//! Uses the tables and the node's own defaults. Never: single findings.
//! A rule that every row has to follow is a test here.

use fanwire_policy::options::Options;

use super::super::catalog::{consumers, find, is_section, names};
use super::super::key::Row;
use super::super::keys::{
    api_keys, channel, client, consumers as queues, durable, events, grpc, proxy, server,
    unidirectional,
};
use super::super::{Config, Kind, entries};

#[test]
fn every_default_fits_its_kind() {
    for entry in entries().iter().chain(consumers()) {
        let value = entry.key.kind.read_text(entry.key.default);
        assert!(value.is_ok(), "{}: {value:?}", entry.name);
    }
}

#[test]
fn every_key_is_documented_by_one_sentence() {
    for entry in entries().iter().chain(consumers()) {
        let doc = entry.key.doc;
        assert!(doc.len() > 8 && doc.ends_with('.'), "{}: {doc:?}", entry.name);
        assert!(doc.starts_with(|c: char| c.is_uppercase()), "{}: {doc:?}", entry.name);
        assert!(!doc.contains(". ") && !doc.contains('|'), "{}: {doc:?}", entry.name);
    }
}

#[test]
fn every_name_stands_once_and_no_key_is_a_section_too() {
    for entry in entries() {
        assert_eq!(find(&entry.name).map(|found| found.key.doc), Some(entry.key.doc));
        assert!(!is_section(&entry.name), "{}", entry.name);
    }
    assert_eq!(names().filter(|name| find(name).is_some()).count(), entries().len());
}

#[test]
fn defaults_of_the_table_are_those_of_the_crates_that_have_some() {
    let config = Config::default();
    // The server names a node without a name.
    assert_eq!(config.node_options(), Options { name: String::new(), ..Options::default() });
    assert_eq!(config.api_options(), fanwire_api::ApiOptions::default());
    assert_eq!(config.durable_streams, fanwire_durable::DurableOptions::default());
}

#[test]
fn limits_lie_inside_the_fields_they_land_in() {
    for entry in entries() {
        let Kind::Integer { min, max } = entry.key.kind else { continue };
        for limit in [min, max] {
            let flag = (entry.name.clone(), limit.to_string());
            // Landing panics when a field is too small; findings of relations between keys are fine here.
            let _ = super::super::load(None, std::iter::empty(), &[flag]);
        }
    }
}

/// The names of the rows with the paths of their fields. A path that does not exist is no program.
fn paths<T>(rows: &'static [Row<T>]) -> Vec<(&'static str, String)> {
    rows.iter().map(|row| (row.key.name, row.path.replace(' ', ""))).collect()
}

#[test]
fn every_key_is_a_field_of_the_same_name() {
    let tables = [
        server::SERVER,
        unidirectional::UNIDIRECTIONAL,
        client::CLIENT,
        channel::CHANNEL,
        grpc::GRPC,
        events::EVENTS,
        durable::DURABLE,
    ];
    let others: Vec<_> =
        tables.into_iter().flat_map(paths).filter(|(name, path)| name != path).collect();
    let expected = [
        ("engine.type", "engine.kind"), // `type` is a word of Rust
        ("map_broker.type", "map_broker.kind"),
        ("engine.redis.feed_connections", "engine.redis.pubsub_connections"), // its former name
        ("client.proxy.connect.enabled", "client.proxy.connect"), // `None` unless enabled
        ("client.proxy.refresh.enabled", "client.proxy.refresh"),
    ];
    assert_eq!(others, expected.map(|(name, path)| (name, path.to_owned())));
}

#[test]
fn every_key_of_a_member_is_a_field_of_the_same_name_or_of_a_group_with_it() {
    let mut rows = paths(channel::NAMESPACE);
    rows.extend(paths(proxy::PROXY));
    rows.extend(paths(queues::CONSUMER));
    rows.extend(paths(queues::REDIS));
    rows.extend(paths(queues::TLS));
    let others =
        rows.into_iter().filter(|(name, path)| *name != path.replace('.', "_") && name != path);
    let expected = [
        ("append_message_size_max", "append.message_bytes_max"),
        ("map.publish_proxy_enabled", "map.publish_proxy.enabled"),
        ("map.publish_proxy_name", "map.publish_proxy.name"),
        ("map.remove_proxy_enabled", "map.remove_proxy.enabled"),
        ("map.remove_proxy_name", "map.remove_proxy.name"),
        ("delivery", "delivery.class"),
        ("batch_max_size", "delivery.batch.max_size"),
        ("batch_max_delay", "delivery.batch.max_delay"),
        ("batch_flush_latest", "delivery.batch.flush_latest"),
        ("area_tile_size", "areas.tile_size"),
        ("area_tiles_max", "areas.tiles_max"),
        ("area_rings", "areas.rings"),
        ("type", "kind"),
        ("nats_jetstream.deliver_policy", "nats_jetstream.deliver_all"),
    ];
    assert_eq!(others.collect::<Vec<_>>(), expected.map(|(name, path)| (name, path.to_owned())));
    let mut rows = paths(proxy::CHOICE);
    rows.extend(paths(api_keys::API_KEY));
    rows.extend(paths(queues::HEADERS));
    rows.extend(paths(queues::VALUES));
    for (name, path) in rows {
        let words: Vec<&str> = path.split(['.', '_']).collect();
        assert!(words.iter().all(|word| name.contains(word)), "{name}: {path}");
    }
}
