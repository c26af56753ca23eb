//! Tests of the options that the engine gets from the configuration.
//! In: configurations → out: whether TLS is set up, and errors that are error before a connection is opened.
//! Uses `Engine::check` and the options of Redis. Never: sockets.
//! Another way to enable TLS is a row here.

use std::time::Duration;

use fanwire_config::{Config, EngineKind};

use super::{Engine, redis_options};

fn config(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::default();
    config.engine.kind = EngineKind::Redis;
    change(&mut config);
    config
}

fn texts(address: &str) -> Vec<String> {
    vec![address.to_owned()]
}

#[test]
fn every_way_to_enable_tls_sets_it_up() {
    let asks = |change: fn(&mut Config)| {
        let redis = redis_options(&config(change)).expect("addresses");
        (redis.tls.is_some(), redis.sentinel_tls.is_some())
    };
    let plain = |config: &mut Config| config.engine.redis.address = texts("localhost");
    assert_eq!(asks(plain), (false, false));
    assert_eq!(
        asks(|config| config.engine.redis.address = texts("rediss://localhost")),
        (true, false)
    );
    assert_eq!(
        asks(|config| config.engine.redis.address = texts("rediss+cluster://localhost")),
        (true, false)
    );
    assert_eq!(
        asks(|config| config.engine.redis.cluster_address = texts("rediss+cluster://localhost")),
        (true, false)
    );
    assert_eq!(
        asks(|config| {
            config.engine.redis.cluster_address = texts("localhost:7000,localhost:7001");
            config.engine.redis.tls.enabled = true;
        }),
        (true, false)
    );
    let sentinels = |config: &mut Config| {
        let address = "rediss+sentinel://localhost?sentinel_master_name=master";
        config.engine.redis.address = texts(address);
    };
    assert!(asks(sentinels).1);
}

#[test]
fn redis_keeps_an_unpublished_channel_for_longer_than_positions_are_checked() {
    let kept = |seconds| {
        let delay = Duration::from_secs(seconds);
        let change = |config: &mut Config| config.client.channel_position_check_delay = delay;
        redis_options(&config(change)).expect("addresses").unpublished_ttl.as_secs()
    };
    assert_eq!([kept(40), kept(600), kept(0)], [55, 615, 0]);
}

#[test]
fn a_missing_certificate_is_found_before_the_start() {
    let missing = |config: &mut Config| {
        config.engine.redis.tls.enabled = true;
        config.engine.redis.tls.server_ca_pem = "/no/such/authorities.pem".to_owned();
    };
    let error = Engine::check(&config(missing)).expect("a mistake");
    let message = error.to_string();
    assert!(
        message.starts_with(
            "engine.redis.tls.server_ca_pem: \"/no/such/authorities.pem\" cannot be read"
        ),
        "{message}"
    );
    let mut memory = config(missing);
    memory.engine.kind = EngineKind::Memory;
    assert!(Engine::check(&memory).is_none());
}
