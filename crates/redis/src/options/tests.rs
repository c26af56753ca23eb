//! Tests of addresses: accepted forms, and errors for others.
//! In: texts → out: addresses or errors without passwords.
//! Uses nothing else. Never: sockets.
//! A new form is a row here.

use super::*;

fn address(host: &str, port: u16, user: &str, password: &str, db: u32) -> Address {
    let [host, user, password] = [host, user, password].map(str::to_owned);
    Address { host, port, user, password, db, ..Address::default() }
}

#[test]
fn every_form_is_read() {
    let rows = [
        ("127.0.0.1:6379", address("127.0.0.1", 6379, "", "", 0)),
        ("redis.internal", address("redis.internal", 6379, "", "", 0)),
        ("redis://h:7000", address("h", 7000, "", "", 0)),
        ("redis://h/3", address("h", 6379, "", "", 3)),
        ("redis://:p%40ss@h:1/0", address("h", 1, "", "p@ss", 0)),
        ("redis://me:a:b@h", address("h", 6379, "me", "a:b", 0)),
        ("redis://secret@h", address("h", 6379, "", "secret", 0)),
        ("tcp://h:7000/3", address("h", 7000, "", "", 3)),
        ("rediss://h", Address { is_tls: true, ..address("h", 6379, "", "", 0) }),
        ("redis://h?tls_enabled=true", Address { is_tls: true, ..address("h", 6379, "", "", 0) }),
        ("[::1]:7000", address("::1", 7000, "", "", 0)),
        ("redis://[::1]", address("::1", 6379, "", "", 0)),
    ];
    for (text, expected) in rows {
        let read = Address::parse(text);
        assert_eq!(read.as_ref(), Ok(&expected), "{text}");
        assert_eq!(read.map(|read| read.password), Ok(expected.password), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_without_the_password() {
    let rows = [
        ("http://h", "its scheme is none of: redis"),
        ("redis://h?a=secret", "its options may be sentinel_master_name"),
        ("redis://h?tls_enabled=secret", "an option of it is neither true nor false"),
        ("redis+sentinel://h", "it names no master"),
        ("redis://h?sentinel_password=secret", "it names no master"),
        ("redis+sentinel://h?sentinel_master_name=m&addr=x:secret", "its port is not a number"),
        ("redis+sentinel://:secret@h?sentinel_master_name=%m", "it has a broken %-escape"),
        ("h:99999", "its port is not a number up to 65535"),
        ("redis://:secret@h:x", "its port is not a number up to 65535"),
        ("redis://:secret@h/x", "what follows the slash is not the number of a database"),
        ("redis://:secret%4@h", "it has a broken %-escape"),
        ("redis://:secret%+4@h", "it has a broken %-escape"),
        ("redis://:secret@", "it has no host"),
        ("[::1", "its [ is not closed"),
        ("", "it has no host"),
    ];
    for (text, expected) in rows {
        let Err(error) = Address::parse(text) else { panic!("{text} was read") };
        assert!(error.to_string().contains(expected), "{text}: {error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[test]
fn an_address_may_be_that_of_sentinels() {
    let texts = [
        "redis+sentinel://me:p@one/2?sentinel_master_name=main&addr=two:1&sentinel_password=s%40",
        "redis://me:p@one/2?addr=two:1&sentinel_master_name=main&sentinel_password=s%40",
        "rediss+sentinel://me:p@one/2?addr=two:1&sentinel_master_name=main&sentinel_password=s%40",
    ];
    for text in texts {
        let address = Address::parse(text).expect("an address");
        let is_tls = text.starts_with("rediss");
        assert_eq!((address.host.as_str(), address.user.as_str(), address.db), ("", "me", 2));
        assert_eq!((address.password.as_str(), address.is_tls), ("p", is_tls));
        let sentinels = address.sentinels.as_ref().expect("they are named");
        assert_eq!(sentinels.master, "main");
        for (found, place) in sentinels.addresses.iter().zip(["one:26379", "two:1"]) {
            assert_eq!((found.to_string().as_str(), found.is_sentinel), (place, true));
            assert_eq!((found.password.as_str(), found.is_tls), ("s@", is_tls));
        }
        assert_eq!(address.to_string(), "the master main");
        assert_eq!(address.located("h", 7).to_string(), "h:7 (the master main)");
    }
    let sentinel = Address::parse_sentinel("[::1]").expect("a Sentinel");
    assert_eq!((sentinel.to_string().as_str(), sentinel.is_sentinel), ("[::1]:26379", true));
    let error = Address::parse_sentinel("redis://:secret@h").expect_err("that is too much");
    assert!(error.to_string().contains("host:port") && !error.to_string().contains("secret"));
}

#[test]
fn an_address_is_shown_without_credentials() {
    let address = address("::1", 7000, "me", "secret", 3);
    assert_eq!(format!("{address} {address:?}"), "[::1]:7000 Address([::1]:7000/3)");
}

#[test]
fn a_number_of_a_database_does_not_set_installations_apart() {
    for (db, prefix, is_warned) in [(0, "fanwire", false), (1, "fanwire", true), (1, "b", false)] {
        let addresses = vec![Address::default(), Address { db, ..Address::default() }];
        let options = RedisOptions { addresses, prefix: prefix.into(), ..RedisOptions::default() };
        assert_eq!(options.separated_by_database_only().is_some(), is_warned, "{db} {prefix}");
    }
}
