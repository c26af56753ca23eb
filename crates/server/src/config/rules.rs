//! Relations between keys, and what only the node can judge: patterns, public keys, names.
//! In: a filled `Config` and who set what → out: findings.
//! Uses `fanwire_node::options::Options::validate`. Never: changes a value.
//! A relation is added here; the limits of a single key live in its row.

use fanwire_node::options::OptionsError;

use super::finding::{Finding, Severity};
use super::settings::Settings;
use super::{Config, EngineKind};

mod paths;

#[cfg(test)]
mod tests;

pub(crate) fn check(config: &Config, settings: &Settings, findings: &mut Vec<Finding>) {
    let broken = findings.iter().any(|finding| finding.severity == Severity::Error);
    // After a wrong value its default stands there, and what the node says about that would mislead.
    if !broken && let Err(error) = config.node.validate() {
        let key = key_of(&error);
        let source = settings.source(key);
        findings.push(Finding::rejected(Severity::Error, source, key, error.to_string()));
    }
    for (severity, key, reason) in [
        paths::differ(config),
        somebody_can_connect(config),
        open_to_others(config),
        open_api(config),
        redis_addresses(config),
        redis_wait(config),
    ]
    .into_iter()
    .flatten()
    {
        findings.push(Finding::rejected(severity, settings.source(key), key, reason));
    }
}

type Found = Option<(Severity, &'static str, String)>;

fn somebody_can_connect(config: &Config) -> Found {
    let client = &config.node.client;
    let keys = [
        &client.token.hmac_secret_key,
        &client.token.rsa_public_key,
        &client.token.ecdsa_public_key,
        &client.token.jwks_public_endpoint,
        &config.client.user_id_http_header,
    ];
    let open = client.insecure
        || client.insecure_skip_token_signature_verify
        || client.allow_anonymous_connect_without_token;
    (!open && keys.iter().all(|key| key.is_empty()) && !config.websocket.disabled).then(|| {
        let reason = "client.token has no key, so no client can connect; set \
                      client.token.hmac_secret_key, rsa_public_key, ecdsa_public_key or jwks_public_endpoint, or \
                      client.allow_anonymous_connect_without_token";
        (Severity::Warning, "client.token.hmac_secret_key", reason.to_owned())
    })
}

fn open_to_others(config: &Config) -> Found {
    let client = &config.node.client;
    let key = match (client.insecure, client.insecure_skip_token_signature_verify) {
        (true, _) => "client.insecure",
        (_, true) => "client.insecure_skip_token_signature_verify",
        _ => return None,
    };
    (!config.development).then(|| {
        let reason = format!(
            "{key} is true, so anybody who reaches this server may do anything; for development only"
        );
        (Severity::Warning, key, reason)
    })
}

fn open_api(config: &Config) -> Found {
    (config.http_api.api.insecure && !config.http_api.disabled).then(|| {
        let reason = "http_api.insecure is true, so anybody who reaches this server may publish; \
                      only where something else guards it";
        (Severity::Warning, "http_api.insecure", reason.to_owned())
    })
}

fn redis_addresses(config: &Config) -> Found {
    if config.engine.kind != EngineKind::Redis {
        return None;
    }
    let redis = &config.engine.redis;
    let has_sentinels = !redis.sentinel_address.is_empty();
    let key = if has_sentinels { "engine.redis.sentinel_address" } else { "engine.redis.address" };
    if redis.address.is_empty() && redis.cluster_address.is_empty() && !has_sentinels {
        let reason = format!("{key} is empty, but engine.type is redis; name at least one");
        return Some((Severity::Error, key, reason));
    }
    let key = if redis.cluster_address.is_empty() { key } else { "engine.redis.cluster_address" };
    match redis.options() {
        Err(error) => Some((Severity::Error, key, format!("{key}: {error}"))),
        Ok(options) if !options.clusters.is_empty() && redis.prefix.contains('{') => {
            let key = "engine.redis.prefix";
            let reason = format!(
                "{key} is {}, but in a Redis Cluster the braces around the channel have to be the first; leave out {{",
                redis.prefix
            );
            Some((Severity::Error, key, reason))
        }
        Ok(_) => None,
    }
}

/// Two waits may be owed one after the other before a reply, which must come in time.
fn redis_wait(config: &Config) -> Found {
    let key = "engine.redis.wait.timeout";
    let redis = &config.engine.redis;
    let is_used = config.engine.kind == EngineKind::Redis && redis.wait_replicas > 0;
    (is_used && redis.wait_timeout > redis.io_timeout / 4).then(|| {
        let reason = format!(
            "{key} is {:?}, expected at most a quarter of engine.redis.io_timeout ({:?})",
            redis.wait_timeout, redis.io_timeout
        );
        (Severity::Error, key, reason)
    })
}

/// The full key an error of the node is about.
fn key_of(error: &OptionsError) -> &str {
    match error {
        OptionsError::Value { key, .. }
        | OptionsError::Duplicate { key, .. }
        | OptionsError::Regex { key, .. }
        | OptionsError::PublicKey { key, .. } => key,
        _ => "",
    }
}
