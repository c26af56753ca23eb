//! Tests of what the engine is given from the configuration.
//! In: configurations → out: whether connections know how to speak TLS.
//! Uses the options of Redis. Never: sockets.
//! Another way to ask for TLS is a row here.

use super::options_of_redis;
use crate::config::{Config, EngineKind};

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
fn whatever_asks_for_tls_is_told_how_to_speak_it() {
    let asks = |change: fn(&mut Config)| {
        let redis = options_of_redis(&config(change)).expect("addresses");
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
