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
fn a_cluster_is_named_by_its_key_or_by_the_scheme() {
    let url = settings(&["redis+cluster://:secret@one:7000?addr=two:7001"]);
    let keyed = EngineRedisOptions {
        cluster_address: vec!["one:7000,two:7001".into(), "three:7000".into()],
        password: "secret".into(),
        ..settings(&["redis://127.0.0.1:6379"])
    };
    for (settings, count) in [(&url, 1), (&keyed, 2)] {
        let options = settings.options().expect("good addresses");
        assert_eq!((options.addresses.len(), options.clusters.len()), (0, count));
        let seeds = &options.clusters[0];
        assert_eq!([seeds[0].to_string(), seeds[1].to_string()], ["one:7000", "two:7001"]);
        assert!(seeds.iter().all(|seed| seed.password == "secret"));
    }
    let error = EngineRedisOptions { db: 3, ..url }.options().expect_err("no such database");
    let text = error.to_string();
    assert!(text.contains("engine.redis.db") && !text.contains("secret"), "{text}");
    let mixed = settings(&["redis+cluster://one", "redis://two"]);
    assert!(mixed.options().is_err(), "either Clusters or others");
}

#[test]
fn a_wrong_address_is_told_without_its_password() {
    let error = settings(&["one", "http://x:secret@two"]).options().expect_err("no such scheme");
    let text = error.to_string();
    assert!(text.contains("@two") && !text.contains("secret"), "{text}");
}
