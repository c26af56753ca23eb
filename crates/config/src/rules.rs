//! Relations between keys, and checks that need the node: patterns, public keys, names.
//! In: a filled `Config` and the source of each value → out: findings.
//! Uses `mistakes` of the options of the node. Never: changes a value.
//! A relation is added here; the limits of a single key live in its row.

use std::net::IpAddr;

use fanwire_auth::OptionsError;

use super::finding::{Finding, Problem, Severity};
use super::options::Config;
use super::settings::Settings;

mod admin;
mod api_keys;
mod autocert;
mod compression;
mod consumers;
mod debug_for;
mod durable;
mod event_proxies;
mod events;
mod grpc;
mod maps;
mod namespaces;
mod origins;
mod paths;
mod proxies;
mod redis;
mod secrets;
mod switches;
mod tls;
mod unidirectional;

#[cfg(test)]
mod tests;

pub(crate) fn check(config: &Config, settings: &Settings, findings: &mut Vec<Finding>) {
    if findings.iter().any(is_of_another_time) {
        return;
    }
    let broken: Vec<String> = broken(findings).map(str::to_owned).collect();
    let is_client_broken = broken.iter().any(|key| key.starts_with("client."));
    let mistakes = config.node_options().mistakes().into_iter().map(|mistake| {
        let key = key_of(&mistake).to_owned();
        (Severity::Error, key, mistake.to_string())
    });
    let relations = [
        paths::differ(config),
        somebody_can_connect(config).into_iter().filter(|_| !is_client_broken).collect(),
        open_to_others(config).into_iter().collect(),
        open_api(config).into_iter().collect(),
        admin::is_guarded(config),
        grpc::open_api(config).into_iter().collect(),
        cleartext_http2(config).into_iter().collect(),
        personal_channels_of_others(config).into_iter().collect(),
        origins::are_origins(config),
        proxies::are_networks(config),
        debug_for::are_addresses(config),
        switches::are_on(config),
        secrets::are_long(config),
        profiles_for_clients(config).into_iter().collect(),
        metrics_for_clients(config).into_iter().collect(),
        origins::are_few(config).into_iter().collect(),
        tls::listeners(config),
        autocert::is_complete(config),
        redis::addresses(config),
        redis::wait(config).into_iter().collect(),
        redis::prefix(config).into_iter().collect(),
        maps::are_where_the_engine_is(config).into_iter().collect(),
        redis::snapshot(config).into_iter().collect(),
        events::are_right(config),
        durable::are_right(config),
        unidirectional::statuses(config),
        compression::required_choice(config).into_iter().collect(),
        compression::memory_for_clients(config).into_iter().collect(),
    ]
    .into_iter()
    .flatten()
    .map(|(severity, key, reason)| (severity, key.to_owned(), reason));
    let found = mistakes
        .chain(relations)
        .chain(namespaces::contradict(config))
        .chain(maps::proxies_without_maps(config))
        .chain(event_proxies::are_right(config))
        .chain(consumers::are_whole(config))
        .chain(api_keys::are_right(config));
    let found = found.filter(|(_, key, reason)| {
        // A rejected value was replaced by its default; a rule about the default would mislead.
        !broken.iter().any(|broken| is_about(key, reason, broken))
    });
    findings.extend(found.map(|(severity, key, reason)| {
        Finding::rejected(severity, settings.source(&key), &key, reason)
    }));
}

/// Checks that a file is outdated: almost none of it was read, so a finding about defaults would mislead.
fn is_of_another_time(finding: &Finding) -> bool {
    finding.severity == Severity::Error && matches!(finding.problem, Problem::Outdated { .. })
}

/// Keys that have a value of a wrong kind.
fn broken(findings: &[Finding]) -> impl Iterator<Item = &str> {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| finding.key.as_str())
}

/// Whether a remark about `key` names `broken` too, in full or by its last part.
fn is_about(key: &str, reason: &str, broken: &str) -> bool {
    let names = |name: &str| {
        let mut words = reason.split(|c: char| !(c.is_ascii_alphanumeric() || "_.[]-".contains(c)));
        words.any(|word| word == name || word.strip_prefix(name).is_some_and(is_below))
    };
    let beside = broken.rsplit_once('.').filter(|(section, _)| key.starts_with(section));
    names(broken) || beside.is_some_and(|(_, last)| names(last))
}

/// Checks that the rest of a name, after the name of a section, is a key of that section.
fn is_below(rest: &str) -> bool {
    rest.starts_with('.') || rest.starts_with('[')
}

/// Severity, key and sentence of a remark.
type Remark = (Severity, &'static str, String);

type RuleResult = Option<Remark>;

fn somebody_can_connect(config: &Config) -> RuleResult {
    let client = &config.client;
    let keys = [
        &*client.token.hmac_secret_key,
        &client.token.rsa_public_key,
        &client.token.ecdsa_public_key,
        &client.token.jwks_public_endpoint,
        &config.client.user_id_http_header,
    ];
    let open = client.insecure
        || config.client.proxy.connect.is_some()
        || client.insecure_skip_token_signature_verify
        || client.allow_anonymous_connect_without_token;
    (!open && keys.iter().all(|key| key.is_empty()) && !config.websocket.disabled).then(|| {
        let reason = "client.token has no key, so no client can connect; set \
                      client.token.hmac_secret_key, rsa_public_key, ecdsa_public_key or jwks_public_endpoint, \
                      client.proxy.connect.enabled, or client.allow_anonymous_connect_without_token";
        (Severity::Warning, "client.token.hmac_secret_key", reason.to_owned())
    })
}

fn open_to_others(config: &Config) -> RuleResult {
    let client = &config.client;
    let key = match (client.insecure, client.insecure_skip_token_signature_verify) {
        (true, _) => "client.insecure",
        (_, true) => "client.insecure_skip_token_signature_verify",
        _ => return None,
    };
    (!config.development).then(|| {
        let place = reached(config, false);
        let reason = format!(
            "{key} is true, so anybody who reaches {place} may do anything; for development only"
        );
        (Severity::Warning, key, reason)
    })
}

fn open_api(config: &Config) -> RuleResult {
    (config.http_api.insecure && !config.http_api.disabled).then(|| {
        let place = reached(config, !config.http_api.external);
        let reason = format!(
            "http_api.insecure is true, so anybody who reaches {place} may publish; only where something else guards it"
        );
        (Severity::Warning, "http_api.insecure", reason)
    })
}

/// Where a listener of HTTP can be reached, in words that stand behind `reaches`. Loopback addresses are not named.
fn reached(config: &Config, is_internal: bool) -> String {
    let http = &config.http_server;
    let internal_port = http.internal_port.parse().ok().filter(|_| is_internal);
    let address = match http.internal_address.as_str() {
        internal if is_internal && !internal.is_empty() => internal,
        _ => &http.address,
    };
    let port: u16 = internal_port.unwrap_or(http.port);
    match address {
        "" => format!("port {port} of any address of this machine"),
        address if is_loopback(address) => "this server".to_owned(),
        address => format!("port {port} of {address}"),
    }
}

/// Whether only programs of this machine reach an address.
fn is_loopback(address: &str) -> bool {
    address == "localhost" || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Proxies that speak HTTP/2 to the external port would otherwise reach the API through it.
fn cleartext_http2(config: &Config) -> RuleResult {
    let is_wrong = config.http_server.h2c_external && !config.http_server.is_split();
    let reason = "http_server.h2c_external needs a port of its own for operators and backends: set http_server.internal_port";
    is_wrong.then(|| (Severity::Error, "http_server.h2c_external", reason.to_owned()))
}

/// Profiles show what the server works on, and reading one costs a core.
fn profiles_for_clients(config: &Config) -> RuleResult {
    let is_open = config.debug.enabled && !config.http_server.is_split() && !config.development;
    let reason = "debug.enabled puts profiles, which need no key, on the port of clients; set http_server.internal_port, too";
    is_open.then(|| (Severity::Warning, "debug.enabled", reason.to_owned()))
}

/// Metrics tell everybody who reaches the port how many users there are, and what they do.
fn metrics_for_clients(config: &Config) -> RuleResult {
    let http = &config.http_server;
    let is_open = config.prometheus.enabled && !http.is_split() && !is_loopback(&http.address);
    let reason = "prometheus.enabled puts metrics, which need no key, on the port of clients; set http_server.internal_port, \
                  too, or let a proxy refuse that path";
    is_open.then(|| (Severity::Note, "prometheus.enabled", reason.to_owned()))
}

/// Finds personal channels of others that clients may subscribe to. User-limited channels (`#42`) prevent that.
fn personal_channels_of_others(config: &Config) -> RuleResult {
    let personal = &config.client.subscribe_to_user_personal_channel;
    let channel = &config.channel;
    let name = &personal.personal_channel_namespace;
    let namespace = match name.as_str() {
        "" => &channel.without_namespace,
        name => channel.namespaces.iter().find(|namespace| namespace.name == name)?,
    };
    let is_open = namespace.allow_subscribe_for_client && !namespace.allow_user_limited_channels;
    (personal.enabled && is_open).then(|| {
        let at = match name.as_str() {
            "" => "channel.without_namespace".to_owned(),
            name => format!("channel.namespaces[{name}]"),
        };
        let reason = format!(
            "{at}.allow_subscribe_for_client is true, so every client may subscribe to the personal channels of others; \
             turn it off, or set {at}.allow_user_limited_channels"
        );
        (Severity::Warning, "client.subscribe_to_user_personal_channel.enabled", reason)
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
