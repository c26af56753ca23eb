//! Addresses and keys of the Redis engine, joined.
//! In: settings. Out: addresses as the engine gets them.
//! Uses the options alone.
//! Changed here: tests of `engine_options`.

use super::*;

fn settings(address: &[&str]) -> EngineRedisOptions {
    let address = address.iter().map(|text| (*text).to_owned()).collect();
    EngineRedisOptions { address, ..EngineRedisOptions::default() }
}

#[test]
fn an_address_says_everything_or_leaves_it_to_the_keys() {
    let whole = settings(&["redis://ada:secret@one:7000/3", "two"]);
    let options = whole.options(|()| false).expect("good addresses");
    assert_eq!(options.addresses[0].to_string(), "one:7000");
    assert_eq!((options.addresses[0].user.as_str(), options.addresses[0].db), ("ada", 3));
    assert_eq!(options.addresses[1].port, 6379);

    let (user, password) = ("bob".to_owned(), "other".into());
    let keyed = EngineRedisOptions { user, password, db: 7, ..whole };
    for address in keyed.options(|()| false).expect("good addresses").addresses {
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
        let options = settings.options(|()| false).expect("good addresses");
        assert_eq!((options.addresses.len(), options.clusters.len()), (0, count));
        let seeds = &options.clusters[0];
        assert_eq!([seeds[0].to_string(), seeds[1].to_string()], ["one:7000", "two:7001"]);
        assert!(seeds.iter().all(|seed| seed.password == "secret"));
    }
    let error =
        EngineRedisOptions { db: 3, ..url }.options(|()| false).expect_err("no such database");
    let text = error.to_string();
    assert!(text.contains("engine.redis.db") && !text.contains("secret"), "{text}");
    let mixed = settings(&["redis+cluster://one", "redis://two"]);
    assert!(mixed.options(|()| false).is_err(), "either Clusters or others");
}

#[test]
fn a_wrong_address_is_told_without_its_password() {
    let error =
        settings(&["one", "http://x:secret@two"]).options(|()| false).expect_err("no such scheme");
    let text = error.to_string();
    assert!(text.contains("@two") && !text.contains("secret"), "{text}");
}

#[test]
fn sentinels_stand_in_for_addresses() {
    let check = |items: &[&str], names: &str, expect: &[(&str, usize)]| {
        let items = items.iter().map(|text| (*text).to_owned()).collect();
        let settings = EngineRedisOptions {
            sentinel_address: items,
            sentinel_master_name: names.to_owned(),
            sentinel_user: "watcher".to_owned(),
            sentinel_password: "other secret".into(),
            sentinel_client_name: "fanwire".to_owned(),
            password: "secret".into(),
            ..settings(&["redis://not-used"])
        };
        let options = settings.options(|()| false).expect("good addresses");
        let found = options.addresses.iter().map(|address| {
            assert_eq!((address.host.as_str(), address.password.as_str()), ("", "secret"));
            let sentinels = address.sentinels.as_deref().expect("they are asked");
            assert_eq!(sentinels.client_name, "fanwire");
            for sentinel in &sentinels.addresses {
                let credentials = (sentinel.user.as_str(), sentinel.password.as_str());
                assert_eq!(credentials, ("watcher", "other secret"));
            }
            (sentinels.master.as_str(), sentinels.addresses.len())
        });
        assert_eq!(
            found.collect::<Vec<_>>(),
            expect,
            "{items:?} {names}",
            items = settings.sentinel_address
        );
    };
    check(&["one", "two:1"], "main", &[("main", 2)]);
    check(&["one,two,three"], "main", &[("main", 3)]);
    check(&["one", "two"], "main,second", &[("main", 2), ("second", 2)]);
    check(&["one,two", "three"], "main", &[("main", 2), ("main", 1)]);
}

#[test]
fn sentinels_without_a_master_or_with_credentials_in_them_are_refused() {
    let of = |item: &str, name: &str| {
        let sentinel_address = vec![item.to_owned()];
        let sentinel_master_name = name.to_owned();
        let settings =
            EngineRedisOptions { sentinel_address, sentinel_master_name, ..settings(&[]) };
        settings.options(|()| false).expect_err("something is missing").to_string()
    };
    assert!(of("one", "").contains("engine.redis.sentinel_master_name"));
    let text = of("redis://:secret@one", "main");
    assert!(text.contains("host:port") && !text.contains("secret"), "{text}");
}

#[test]
fn tls_is_for_redis_and_sentinels_apart() {
    let wants = |address: &str, tls, sentinel_tls| {
        let addresses = [address, "two"].map(str::to_owned).into();
        let settings =
            EngineRedisOptions { address: addresses, tls, sentinel_tls, ..Default::default() };
        let options = settings.options(|enabled| *enabled).expect("good addresses");
        let sentinels = options.addresses[0].sentinels.clone().expect("they are asked");
        (options.addresses[0].is_tls, options.addresses[1].is_tls, sentinels.addresses[0].is_tls)
    };
    let whole = "rediss+sentinel://one?sentinel_master_name=main";
    assert_eq!(wants(whole, false, false), (true, false, true));
    let plain = "redis+sentinel://one?sentinel_master_name=main";
    assert_eq!(wants(plain, true, false), (true, true, false));
    assert_eq!(wants(plain, false, true), (false, false, true));
}

#[test]
fn replicas_are_waited_for_as_configured() {
    let wait = Wait { replicas: 2, timeout: Duration::from_millis(250) };
    let waiting = EngineRedisOptions { wait, ..settings(&["one"]) };
    assert_eq!(waiting.options(|()| false).expect("a good address").wait, wait);
}

#[test]
fn timeouts_may_be_options_of_an_address() {
    let address = "redis://:secret@one:7000?connect_timeout=3s&io_timeout=700ms";
    let options = settings(&[address]).options(|()| false).expect("a good address");
    assert_eq!(options.addresses[0].to_string(), "one:7000");
    assert_eq!(options.connect_timeout, Duration::from_secs(3));
    assert_eq!(options.io_timeout, Duration::from_millis(700));
    let cluster = settings(&["redis+cluster://one:7000?io_timeout=2s&addr=two:7001"]);
    let options = cluster.options(|()| false).expect("a good address");
    assert_eq!((options.clusters[0].len(), options.io_timeout.as_secs()), (2, 2));
    let error =
        settings(&["redis://:secret@one?io_timeout=2"]).options(|()| false).expect_err("no unit");
    assert!(error.to_string().contains("durations such as 1s"), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}
