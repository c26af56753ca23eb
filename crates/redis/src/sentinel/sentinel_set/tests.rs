//! Tests of the set of Sentinels: configured ones first, none twice, never too many.
//! In: addresses and replies → out: the order of asking, added and removed Sentinels.
//! Uses no sockets: those are in `tests/it/sentinel.rs`.
//! A new form of the reply is a row here.

use super::*;

fn at(port: u16) -> Address {
    Address { host: "h".into(), port, is_sentinel: true, ..Address::default() }
}

fn ports(sentinel_set: &SentinelSet) -> Vec<u16> {
    sentinel_set.in_order().iter().map(|address| address.port).collect()
}

#[test]
fn the_last_answering_sentinel_is_first_then_the_configured_ones() {
    let mut sentinel_set = SentinelSet::of(vec![at(1), at(2)]);
    assert_eq!(
        sentinel_set.add_discovered(vec![at(2), at(3)]),
        SentinelChanges { added: vec![at(3)], removed: vec![] }
    );
    assert_eq!(sentinel_set.add_discovered(vec![at(3)]), SentinelChanges::default());
    assert_eq!(ports(&sentinel_set), [1, 2, 3]);
    sentinel_set.answered(&at(3));
    assert_eq!(ports(&sentinel_set), [3, 1, 2]);
    sentinel_set.answered(&at(9));
    assert_eq!(ports(&sentinel_set), [3, 1, 2], "it was removed");
    sentinel_set.ask_next_first();
    assert_eq!(ports(&sentinel_set), [1, 2, 3]);
    sentinel_set.ask_next_first();
    assert_eq!(ports(&sentinel_set), [2, 1, 3]);
}

#[test]
fn the_sentinel_reported_longest_ago_is_removed() {
    let mut sentinel_set = SentinelSet::of(vec![at(1)]);
    sentinel_set.add_discovered((100..100 + DISCOVERED_MAX as u16).map(at).collect());
    sentinel_set.answered(&at(101));
    sentinel_set.add_discovered(vec![at(100)]);
    let discovered = sentinel_set.add_discovered(vec![at(7)]);
    assert_eq!(discovered, SentinelChanges { added: vec![at(7)], removed: vec![at(101)] });
    assert_eq!(ports(&sentinel_set).len(), 1 + DISCOVERED_MAX);
    assert_eq!(ports(&sentinel_set)[0], 1, "the one that answered last is forgotten");
    sentinel_set.add_discovered((1000..2000).map(at).collect());
    assert_eq!(ports(&sentinel_set).len(), 1 + DISCOVERED_MAX);
}

#[test]
fn others_are_read_from_either_protocol_without_the_dead() {
    let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    let fields = |host: &str, port: &str, flags: &str| {
        [("name", "x"), ("ip", host), ("port", port), ("flags", flags)]
            .map(|(name, value)| (text(name), text(value)))
    };
    let map = |fields: [(Value, Value); 4]| Value::Map(fields.to_vec());
    let flat = |fields: [(Value, Value); 4]| {
        Value::Array(fields.into_iter().flat_map(|(name, value)| [name, value]).collect())
    };
    let reply = Value::Array(vec![
        map(fields("10.0.0.1", "26379", "sentinel")),
        flat(fields("10.0.0.2", "26380", "sentinel")),
        map(fields("10.0.0.3", "26379", "s_down,sentinel,disconnected")),
        map(fields("", "26379", "sentinel")),
        map(fields("10.0.0.4", "0", "sentinel")),
        map(fields("10.0.0.5", "70000", "sentinel")),
        Value::Nil,
    ]);
    let asked = Address { password: "p".into(), is_tls: true, ..at(1) };
    let expected = [("10.0.0.1", 26379), ("10.0.0.2", 26380)].map(|(host, port)| Address {
        host: host.into(),
        port,
        ..asked.clone()
    });
    assert_eq!(others_of(&asked, reply), expected);
    assert_eq!(others_of(&asked, Value::Okay), []);
}
