//! Tests of addresses: the forms that are read, and what is said about others.
//! In: texts → out: addresses or errors without passwords.
//! Uses nothing else. Never: sockets.
//! A new form is a row here.

use super::*;

fn address(host: &str, port: u16, user: &str, password: &str, db: u32) -> Address {
    let [host, user, password] = [host, user, password].map(str::to_owned);
    Address { host, port, user, password, db }
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
        ("rediss://h", "its scheme is none of: redis"),
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
fn an_address_is_shown_without_credentials() {
    let address = address("::1", 7000, "me", "secret", 3);
    assert_eq!(format!("{address} {address:?}"), "[::1]:7000 Address([::1]:7000/3)");
}
