//! Tests of the resolver: which answer counts, and how replies are decoded.
//! In: addresses and replies → out: the current address, connections that end.
//! Uses no sockets: those are in `tests/it`.
//! A new form of a reply is a row here.

use std::time::Duration;

use futures_util::FutureExt as _;

use super::*;

fn resolver() -> MasterResolver {
    let sentinels = Sentinels {
        master: "main".to_owned(),
        addresses: vec![Address::default()],
        client_name: String::new(),
    };
    let timeouts = Timeouts {
        connect: Duration::from_secs(1),
        io: Duration::from_secs(1),
        has_own_timeout: false,
    };
    MasterResolver::new(Arc::new(sentinels), None, timeouts)
}

fn at(port: u16, config_epoch: u64) -> MasterAddress {
    MasterAddress { host: "h".to_owned(), port, config_epoch }
}

#[test]
fn a_newer_address_ends_connections_to_the_older_one_only() {
    let resolver = resolver();
    assert!(resolver.accept(&at(1, 3)));
    let older = resolver.until_replaced(3);
    let newer = resolver.until_replaced(4);
    assert!(
        resolver.accept(&at(2, 3)),
        "of the same age, as Sentinels may spell an address differently"
    );
    assert!(!resolver.accept(&at(1, 2)), "a Sentinel that was cut off");
    let mut older = Box::pin(older);
    let mut newer = Box::pin(newer);
    assert!(older.as_mut().now_or_never().is_none());
    assert!(resolver.accept(&at(2, 4)));
    assert!(older.as_mut().now_or_never().is_some());
    assert!(newer.as_mut().now_or_never().is_none());
    drop(resolver);
    assert!(newer.now_or_never().is_none(), "dropping the resolver ends no connection");
}

#[test]
fn a_retry_is_woken_by_another_master_only() {
    let resolver = resolver();
    assert!(resolver.accept(&at(1, 3)));
    let mut until_moved = Box::pin(resolver.until_moved());
    assert!(resolver.accept(&at(1, 3)) && !resolver.accept(&at(9, 2)));
    assert!(until_moved.as_mut().now_or_never().is_none());
    assert!(resolver.accept(&at(2, 4)));
    assert!(until_moved.as_mut().now_or_never().is_some());
}

fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| Value::BulkString(text.as_bytes().to_vec())).collect()
}

#[test]
fn an_address_is_a_host_and_a_port() {
    let place = |parts| host_and_port_of(Value::Array(parts));
    assert_eq!(place(texts(&["10.0.0.1", "6379"])), Some(("10.0.0.1".to_owned(), 6379)));
    for wrong in [&["10.0.0.1"][..], &["h", "x"], &["h", "65536"], &["h", "1", "2"], &[]] {
        assert_eq!(place(texts(wrong)), None, "{wrong:?}");
    }
    assert_eq!(host_and_port_of(Value::Okay), None);
}

#[test]
fn the_config_epoch_is_a_field_in_either_protocol() {
    let fields = texts(&["name", "main", "config-epoch", "7"]);
    let pairs = fields.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    assert_eq!(config_epoch_of(Value::Map(pairs)), 7);
    assert_eq!(config_epoch_of(Value::Array(fields)), 7);
    assert_eq!(config_epoch_of(Value::Array(texts(&["config-epoch"]))), 0);
    assert_eq!(config_epoch_of(Value::Nil), 0);
}

#[test]
fn a_redis_is_told_from_a_sentinel_that_refuses() {
    let sentinel = Address { is_sentinel: true, ..Address::default() };
    let unknown = refusal(&sentinel, "ERR", Some("unknown command 'SENTINEL', with args"));
    assert!(unknown.to_string().contains("no Sentinel"), "{unknown}");
    let denied = refusal(&sentinel, "NOPERM", Some("no permissions")).to_string();
    assert!(denied.contains("engine.redis.sentinel_password"), "{denied}");
}
