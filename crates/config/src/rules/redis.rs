//! The addresses of Redis, and keys that do not go with them: invalid ones, and invalid combinations.
//! In: a filled `Config` → out: a remark for each.
//! Uses the addresses of `redis`, as `EngineRedisOptions` joins them. Never: connects.
//! The broker crate parses addresses; limits of single keys live in their rows.

use fanwire_redis::EngineRedisOptions;
use fanwire_tls::TlsOptions;

use super::{Remark, RuleResult, Severity};
use crate::options::{Config, EngineKind};

/// `engine.redis`
type Redis = EngineRedisOptions<TlsOptions>;

pub(super) fn addresses(config: &Config) -> Vec<Remark> {
    if config.engine.kind != EngineKind::Redis {
        return Vec::new();
    }
    let redis = &config.engine.redis;
    let key = key_of(redis);
    if list_of(redis).is_empty() {
        let reason = format!("{key} is empty, but engine.type is redis; name at least one");
        return vec![(Severity::Error, key, reason)];
    }
    match redis.options(|tls| tls.enabled) {
        Err(_) => each(redis, key),
        Ok(options) if !options.clusters.is_empty() && redis.prefix.contains('{') => {
            let key = "engine.redis.prefix";
            let reason = format!(
                "{key} is {}, but in a Redis Cluster the braces around the channel have to be the first; leave out {{",
                redis.prefix
            );
            vec![(Severity::Error, key, reason)]
        }
        Ok(_) => Vec::new(),
    }
}

/// Returns the faults of each address by itself; when there are none, the fault of all of them together.
fn each(redis: &Redis, key: &'static str) -> Vec<Remark> {
    let alone = |text: &String| {
        let mut one = redis.clone();
        let list = match key {
            SENTINEL => &mut one.sentinel_address,
            CLUSTER => &mut one.cluster_address,
            _ => &mut one.address,
        };
        *list = vec![text.clone()];
        one.options(|tls| tls.enabled).err()
    };
    let mut errors: Vec<String> =
        list_of(redis).iter().filter_map(alone).map(|error| error.to_string()).collect();
    if errors.is_empty() {
        errors.extend(redis.options(|tls| tls.enabled).err().map(|error| error.to_string()));
    }
    errors.into_iter().map(|error| (Severity::Error, key, format!("{key}: {error}"))).collect()
}

/// The key that says where Redis is.
fn key_of(redis: &Redis) -> &'static str {
    match (redis.cluster_address.is_empty(), redis.sentinel_address.is_empty()) {
        (false, _) => CLUSTER,
        (true, false) => SENTINEL,
        (true, true) => ADDRESS,
    }
}

fn list_of(redis: &Redis) -> &[String] {
    match key_of(redis) {
        CLUSTER => &redis.cluster_address,
        SENTINEL => &redis.sentinel_address,
        _ => &redis.address,
    }
}

const ADDRESS: &str = "engine.redis.address";
const CLUSTER: &str = "engine.redis.cluster_address";
const SENTINEL: &str = "engine.redis.sentinel_address";

/// Files of Centrifugo have its prefix, under which it stores other data.
pub(super) fn prefix(config: &Config) -> RuleResult {
    let key = "engine.redis.prefix";
    let is_used = config.engine.kind == EngineKind::Redis;
    (is_used && config.engine.redis.prefix == "centrifugo").then(|| {
        let reason = format!(
            "{key} is \"centrifugo\", as Centrifugo has it, which stores other data under the same names; leave the key out, or \
             choose another one"
        );
        (Severity::Warning, key, reason)
    })
}

/// Redis keeps what a snapshot would have.
pub(super) fn snapshot(config: &Config) -> RuleResult {
    let key = "engine.memory.snapshot_path";
    let path = &config.engine.memory.snapshot_path;
    (config.engine.kind == EngineKind::Redis && !path.is_empty()).then(|| {
        let reason = format!(
            "{key} is {path:?}, but engine.type is redis, which keeps histories by itself: the file is not used; leave the key out"
        );
        (Severity::Warning, key, reason)
    })
}

/// Two waits may be owed one after the other before a reply, which must come in time.
pub(super) fn wait(config: &Config) -> RuleResult {
    let key = "engine.redis.wait.timeout";
    let redis = &config.engine.redis;
    let is_used = config.engine.kind == EngineKind::Redis && redis.wait.replicas > 0;
    (is_used && redis.wait.timeout > redis.io_timeout / 4).then(|| {
        let reason = format!(
            "{key} is {:?}, expected at most a quarter of engine.redis.io_timeout ({:?})",
            redis.wait.timeout, redis.io_timeout
        );
        (Severity::Error, key, reason)
    })
}
