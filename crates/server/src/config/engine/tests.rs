//! Addresses and keys of the Redis engine, joined.
//! In: settings. Out: addresses as the engine gets them.
//! Uses the options alone.
//! Changed here: tests of `config::engine`.

use super::*;

fn settings(address: &[&str]) -> EngineRedisOptions {
    let address = address.iter().map(|text| (*text).to_owned()).collect();
    EngineRedisOptions { address, ..EngineRedisOptions::default() }
}

#[test]
fn an_address_says_everything_or_leaves_it_to_the_keys() {
    let whole = settings(&["redis://ada:secret@one:7000/3", "two"]);
    let options = whole.options().expect("good addresses");
    assert_eq!(options.addresses[0].to_string(), "one:7000");
    assert_eq!((options.addresses[0].user.as_str(), options.addresses[0].db), ("ada", 3));
    assert_eq!(options.addresses[1].port, 6379);

    let (user, password) = ("bob".to_owned(), "other".to_owned());
    let keyed = EngineRedisOptions { user, password, db: 7, ..whole };
    for address in keyed.options().expect("good addresses").addresses {
        assert_eq!((address.user.as_str(), address.password.as_str()), ("bob", "other"));
        assert_eq!(address.db, 7);
    }
}

#[test]
fn a_wrong_address_is_told_without_its_password() {
    let error = settings(&["one", "http://x:secret@two"]).options().expect_err("no such scheme");
    let text = error.to_string();
    assert!(text.contains("@two") && !text.contains("secret"), "{text}");
}
