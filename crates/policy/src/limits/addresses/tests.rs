//! Tests of the limit of connections by address: places, networks, reports of other nodes.
//! In: addresses and limits → out: a place or none.
//! Uses moments made by hand. Never: sockets.
//! Changed here: tests of this module; the doors are tested in `fanwire/tests/it/tenants.rs`.

use super::*;

fn addresses(limit: u32, dry_run: bool) -> Arc<AddressCounts> {
    let addresses = Arc::<AddressCounts>::default();
    addresses.configure(AddressLimit { limit, dry_run });
    addresses
}

fn ip(text: &str) -> Option<IpAddr> {
    Some(text.parse().expect("an address"))
}

#[test]
fn an_address_has_places_up_to_the_limit_and_gets_them_back() {
    let addresses = addresses(2, false);
    let first = addresses.enter(ip("192.0.2.1")).expect("a place");
    let _second = addresses.enter(ip("192.0.2.1")).expect("a place");
    assert_eq!(addresses.enter(ip("192.0.2.1")).err(), Some(AddressFull));
    assert_eq!(addresses.enter(ip("::ffff:192.0.2.1")).err(), Some(AddressFull), "the same one");
    assert!(addresses.enter(ip("192.0.2.2")).is_ok());
    drop(first);
    assert!(addresses.enter(ip("192.0.2.1")).is_ok());
    assert_eq!(addresses.exceeded.values(), [2, 0]);
}

#[test]
fn addresses_of_one_network_of_ipv6_count_together() {
    let addresses = addresses(1, false);
    let _place = addresses.enter(ip("2001:db8::1")).expect("a place");
    assert!(addresses.enter(ip("2001:db8::ffff:0:0:9")).is_err());
    assert!(addresses.enter(ip("2001:db8:0:1::1")).is_ok());
}

#[test]
fn a_dry_run_counts_and_refuses_nothing() {
    let addresses = addresses(1, true);
    let places: Vec<_> = (0..3).map(|_| addresses.enter(ip("192.0.2.1"))).collect();
    assert!(places.iter().all(Result::is_ok));
    assert_eq!(addresses.exceeded.values(), [0, 2]);
}

#[test]
fn without_a_limit_nothing_is_counted() {
    let addresses = addresses(0, false);
    assert!(addresses.enter(ip("192.0.2.1")).is_ok_and(|place| place.is_none()));
    assert!(addresses.adopt(IpAddr::from([192, 0, 2, 1])).is_none());
    assert!(addresses.own.lock().is_empty());
    assert_eq!(addresses.report(9), []);
}

#[test]
fn connections_of_other_programs_and_nodes_count() {
    let addresses = addresses(3, false);
    let now = Instant::now();
    let adopted = addresses.adopt(IpAddr::from([192, 0, 2, 1]));
    assert_eq!(addresses.report(9), [(ip("192.0.2.1").expect("one"), 1)]);
    let counts = || ip("192.0.2.1").map(|address| (address, 2)).into_iter();
    addresses.learn("other".to_owned(), counts(), now);
    assert!(addresses.enter(ip("192.0.2.1")).is_err());
    addresses.learn("other".to_owned(), std::iter::empty(), now);
    let place = addresses.enter(ip("192.0.2.1"));
    assert!(place.is_ok(), "the other node has none any more");
    addresses.learn("other".to_owned(), counts(), now);
    addresses.forget_silent(now + SILENCE_MAX);
    let second = addresses.enter(ip("192.0.2.1"));
    assert!(second.is_ok(), "the other node is gone");
    drop((adopted, place, second));
    assert!(addresses.own.lock().is_empty());
}

#[test]
fn addresses_with_few_connections_are_not_reported() {
    let addresses = addresses(17, false);
    let _few: Vec<_> = (0..2).map(|_| addresses.enter(ip("192.0.2.1"))).collect();
    let _many: Vec<_> = (0..3).map(|_| addresses.enter(ip("192.0.2.2"))).collect();
    assert_eq!(addresses.report(9), [(ip("192.0.2.2").expect("one"), 3)]);
    assert_eq!(addresses.report(0), []);
}
