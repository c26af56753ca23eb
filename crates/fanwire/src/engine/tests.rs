//! Tests of the options that the engine gets from the configuration, and of a memory engine that moves to another program.
//! In: configurations → out: whether TLS is set up, and errors that are error before a connection is opened; two engines.
//! Uses `Engine::check` and the options of Redis. Never: sockets.
//! Another way to enable TLS is a row here.

use std::time::{Duration, Instant};

use fanwire_broker::{PublishOptions, RevocationChange, RevocationKind};
use fanwire_config::{Config, EngineKind};
use fanwire_node::NodeParts;
use fanwire_protocol::Publication;

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

#[tokio::test]
async fn a_memory_engine_goes_on_in_another_program() {
    let mut config = Config::default();
    config.channel.without_namespace.history_size = 10;
    config.channel.without_namespace.history_ttl = Duration::from_secs(60);
    let start = || Engine::start(&config, NodeParts::default(), None);
    let (old, old_node) = start().await.expect("memory starts");
    let now = Instant::now();
    let publish = |node: &fanwire_node::Node| {
        let publication = Publication { data: "1".into(), ..Publication::default() };
        node.channels().publish("news", publication, PublishOptions::default(), now).wait()
    };
    let before = publish(&old_node).expect("memory never fails");
    let block = RevocationChange { subject: "42".into(), ..RevocationChange::default() };
    let blocked = old_node.revocations().revoke(RevocationKind::BlockUser, block, now, 1);
    blocked.expect("the table is empty").wait().expect("memory never fails");
    let mut saved = Vec::new();
    old.save(&mut saved).expect("a Vec grows");
    let (new, new_node) = start().await.expect("memory starts");
    new.restore(&mut saved.as_slice()).expect("it was just saved");
    let after = publish(&new_node).expect("memory never fails");
    assert_eq!(after.epoch, before.epoch);
    assert_eq!(after.offset, before.offset + 1);
    let counts: Vec<_> = new_node.revocations().counts().collect();
    assert_eq!(counts, [("blocked", 1), ("revoked", 0), ("invalidated", 0)]);
    assert!(new.restore(&mut &saved[..saved.len() - 1]).is_err(), "a part is missing");
}
