//! Keys of Centrifugo before v6, whose configuration had no sections, and their names since; former names of keys of Fanwire.
//! In: a name without dots, or a whole file → out: today's key; a finding about a file that was written for those versions.
//! Uses `catalog` and `nearest`. Never: their values, which have no effect.
//! A key whose name is ambiguous is a row here; most are found by putting dots for their `_`.

use std::path::Path;

use serde_json::{Map, Value as Json};

use super::catalog;
use super::file::{self, FileError};
use super::finding::{Finding, Problem, Severity, Source};
use super::keys::WITHOUT_NAMESPACE;
use super::nearest::flat;

#[cfg(test)]
mod tests;

/// Returns today's name of a key of Centrifugo before v6.
pub fn renamed(name: &str) -> Option<&'static str> {
    let listed = || RENAMED.iter().find(|(old, _)| *old == name).map(|(_, now)| *now);
    let proxied = || PROXIES.iter().find_map(|(old, now)| in_a_proxy(name.strip_prefix(old)?, now));
    let section = listed().or_else(|| switch(name)).or_else(|| below_a_section(name));
    section
        .or_else(|| of_a_namespace(name))
        .or_else(proxied)
        .or_else(|| flat(name, catalog::names()))
}

/// The same for a key of a namespace.
pub(crate) fn renamed_in_namespace(name: &str) -> Option<&'static str> {
    renamed(name)?.strip_prefix(WITHOUT_NAMESPACE)?.strip_prefix('.')
}

/// Returns the v6 key for an old scalar key whose name is now a section: `engine.type`, `admin.enabled`.
pub(crate) fn switch(name: &str) -> Option<&'static str> {
    let of = |last: &str| catalog::find(&format!("{name}.{last}"));
    of("type").or_else(|| of("enabled")).map(|entry| entry.name.as_str())
}

/// Returns the finding about a file with several old keys. A file with only old keys, or with values that cannot be
/// read, stops the start: its keys of tokens, channels and limits would have no effect.
pub(crate) fn about(path: &Path, tree: &Map<String, Json>) -> Option<Finding> {
    let count = tree.iter().filter(|(name, json)| is_old(name, json)).count();
    let has_sections = has_sections(tree);
    let is_broken = tree.iter().any(|(name, json)| is_old_switch(name, json));
    let severity = if has_sections && !is_broken { Severity::Warning } else { Severity::Error };
    (count >= KEYS_MIN).then(|| {
        let problem = Problem::Outdated { count };
        Finding { severity, source: Source::File(path.to_owned()), key: String::new(), problem }
    })
}

/// Whether a file is a configuration, of today or from before v6: other programs have a `config.json`, too.
///
/// # Errors
/// The file cannot be read or parsed.
pub fn is_configuration(path: &Path) -> Result<bool, FileError> {
    let tree = file::read(path)?;
    Ok(has_sections(&tree) || about(path, &tree).is_some())
}

fn has_sections(tree: &Map<String, Json>) -> bool {
    let is_section = |name: &str| catalog::is_section(&name.to_ascii_lowercase());
    tree.iter().any(|(name, json)| is_section(name) && json.is_object())
}

fn is_old(name: &str, json: &Json) -> bool {
    let is_known = catalog::find(name).is_some() || catalog::is_section(name);
    let is_gone = || GONE.iter().any(|gone| name.starts_with(gone));
    is_old_switch(name, json) || !is_known && (renamed(name).is_some() || is_gone())
}

fn is_old_switch(name: &str, json: &Json) -> bool {
    let is_scalar = json.is_boolean() || json.is_string();
    is_scalar && catalog::is_section(name) && switch(name).is_some()
}

/// `admin_password` for `admin.password`.
fn below_a_section(name: &str) -> Option<&'static str> {
    let is_same = |known: &&str| known.contains('.') && known.replace('.', "_") == name;
    catalog::names().find(is_same)
}

/// `http_headers` for the section of a proxy; Centrifugo before v6 had some options once for all proxies.
fn in_a_proxy(option: &str, section: &str) -> Option<&'static str> {
    let entry = catalog::find(&format!("{section}.{option}"));
    entry.map(|entry| entry.name.as_str())
}

/// Options of channels outside all namespaces stood at the top.
fn of_a_namespace(name: &str) -> Option<&'static str> {
    let entry = catalog::find(&format!("{WITHOUT_NAMESPACE}.{name}"));
    entry.map(|entry| entry.name.as_str())
}

/// One may be a slip of a finger.
const KEYS_MIN: usize = 2;

/// Keys of Fanwire that were renamed since the version before, and their names now.
pub(crate) const FORMER: [(&str, &str); 1] =
    [("engine.redis.feed_connections", "engine.redis.pubsub_connections")];

const RENAMED: &[(&str, &str)] = &[
    ("address", "http_server.address"),
    ("port", "http_server.port"),
    ("tls", "http_server.tls.enabled"),
    ("tls_cert", "http_server.tls.cert_pem"),
    ("tls_key", "http_server.tls.key_pem"),
    ("name", "node.name"),
    ("secret", "client.token.hmac_secret_key"),
    ("client_anonymous", "client.allow_anonymous_connect_without_token"),
    ("separate_subscription_token_config", "client.subscription_token.enabled"),
    ("user_subscribe_to_personal", "client.subscribe_to_user_personal_channel.enabled"),
    (
        "user_personal_channel_namespace",
        "client.subscribe_to_user_personal_channel.personal_channel_namespace",
    ),
    (
        "user_personal_single_connection",
        "client.subscribe_to_user_personal_channel.single_connection",
    ),
    ("websocket_disable", "websocket.disabled"),
    ("websocket_ping_interval", "client.ping_interval"),
    ("api_key", "http_api.key"),
    ("api_insecure", "http_api.insecure"),
    ("api_external", "http_api.external"),
    ("api_error_mode", "http_api.error_mode"),
    ("api_handler_prefix", "http_api.handler_prefix"),
    ("disable_api", "http_api.disabled"),
    ("redis_url", "engine.redis.address"),
    ("redis_host", "engine.redis.address"),
    ("redis_port", "engine.redis.address"),
    ("engine.redis.host", "engine.redis.address"),
    ("engine.redis.port", "engine.redis.address"),
    ("engine.redis.url", "engine.redis.address"),
    ("redis_tls", "engine.redis.tls.enabled"),
    ("nats_url", "broker.nats"),
    ("usage_stats_disable", "usage_stats.disabled"),
    ("connect_proxy_name", "client.proxy.connect.enabled"),
    ("refresh_proxy_name", "client.proxy.refresh.enabled"),
    ("rpc_proxy_name", "rpc.without_namespace.proxy_name"),
    ("namespaces", "channel.namespaces"),
    ("global_history_meta_ttl", "channel.history_meta_ttl"),
    ("history_lifetime", "channel.without_namespace.history_ttl"),
    ("history_recover", "channel.without_namespace.force_recovery"),
    ("recover", "channel.without_namespace.force_recovery"),
    ("position", "channel.without_namespace.force_positioning"),
    ("publish", "channel.without_namespace.allow_publish_for_client"),
    ("subscribe_to_publish", "channel.without_namespace.allow_publish_for_subscriber"),
    ("anonymous", "channel.without_namespace.allow_subscribe_for_anonymous"),
    ("proxy_subscribe", "channel.without_namespace.subscribe_proxy_enabled"),
    ("proxy_publish", "channel.without_namespace.publish_proxy_enabled"),
    ("proxy_sub_refresh", "channel.without_namespace.sub_refresh_proxy_enabled"),
    ("proxy_subscribe_stream", "channel.without_namespace.subscribe_stream_proxy_enabled"),
];

/// Endpoint, timeout and more of each event proxy, by what their names begin with.
const PROXIES: &[(&str, &str)] = &[
    ("proxy_connect_", "client.proxy.connect"),
    ("proxy_refresh_", "client.proxy.refresh"),
    ("proxy_rpc_", "rpc.proxy"),
    ("proxy_subscribe_stream_", "channel.proxy.subscribe_stream"),
    ("proxy_subscribe_", "channel.proxy.subscribe"),
    ("proxy_publish_", "channel.proxy.publish"),
    ("proxy_sub_refresh_", "channel.proxy.sub_refresh"),
    ("proxy_", "client.proxy.connect"),
];

/// Beginnings of old names that have no successor.
const GONE: [&str; 5] = ["v3_use_offset", "sockjs", "granular_proxy_mode", "gomaxprocs", "proxy_"];
