//! Loading a configuration again while the server runs: which keys take effect, and which ones need a restart.
//! In: the sources read again → out: the configuration that runs from now on, and the names of the keys that differ.
//! Uses `settings` and the checks of a start. Never: applies a value to a server.
//! Changed here: the list of keys that can change. What a server does with them lives in `fanwire`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::catalog::{self, LISTS, find};
use super::file;
use super::finding::{Finding, Problem, Severity};
use super::key::{Key, Value};
use super::keys::{API_KEYS, NAMESPACES, RPC_NAMESPACES, WITHOUT_NAMESPACE};
use super::load::{ConfigError, collect, finish};
use super::options::Config;
use super::settings::{MemberSettings, Raw, Setting, Settings, Values};

#[cfg(test)]
mod tests;

/// The configuration of a running server, with the values that its sources set.
pub struct LoadedConfig {
    pub config: Config,
    pub(super) settings: Settings,
    /// The values of namespaces that need a restart, by path, those that a reload removed included.
    fixed_values: BTreeMap<String, Values>,
}

/// A configuration that was read again.
pub struct Reload {
    /// The running configuration, with the new values of the keys that can change.
    pub loaded: LoadedConfig,
    /// The configuration in the sources, which a restart would use.
    pub written: Config,
    /// Keys whose new values are in `loaded`.
    pub changed: Vec<String>,
    /// Keys whose new values need a restart.
    pub needs_restart: Vec<String>,
    pub findings: Vec<Finding>,
}

impl LoadedConfig {
    /// [`load`](super::load), for a configuration that is read again later.
    ///
    /// # Errors
    /// As there.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
        flags: &[(String, String)],
    ) -> Result<(Self, Vec<Finding>), ConfigError> {
        let (settings, findings) = collect(file::tree(file)?, environment, flags, false);
        Self::of(settings, findings)
    }

    /// The same, but without any configuration the defaults apply, as with Centrifugo, and not development mode.
    ///
    /// # Errors
    /// As there.
    pub fn load_closed(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
        flags: &[(String, String)],
    ) -> Result<(Self, Vec<Finding>), ConfigError> {
        let (settings, findings) = collect(file::tree(file)?, environment, flags, true);
        Self::of(settings, findings)
    }

    fn of(settings: Settings, findings: Vec<Finding>) -> Result<(Self, Vec<Finding>), ConfigError> {
        let (config, findings) = finish(&settings, findings)?;
        let fixed_values = BTreeMap::new();
        let mut loaded = Self { config, settings, fixed_values };
        loaded.remember_fixed_values();
        Ok((loaded, findings))
    }

    /// Reads the sources again.
    ///
    /// # Errors
    /// As for a start. Also if there is an unknown key, which may be a misspelt one that would go back to its default, if the
    /// file has no key any more, and if the new values of the keys that can change contradict the old ones of the others.
    pub fn reload(
        &self,
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
        flags: &[(String, String)],
    ) -> Result<Reload, ConfigError> {
        let tree = file::tree(file)?;
        if let Some((path, tree)) = &tree
            && tree.is_empty()
            && self.settings.are_of_file()
        {
            return Err(file::FileError::Emptied { path: (*path).to_owned() }.into());
        }
        let (written, findings) = collect(tree, environment, flags, self.settings.is_closed);
        self.reload_from(&written, findings)
    }

    fn reload_from(
        &self,
        written: &Settings,
        findings: Vec<Finding>,
    ) -> Result<Reload, ConfigError> {
        let (written_config, mut findings) = finish(written, findings)?;
        let mut is_unknown = false;
        for finding in &mut findings {
            if matches!(finding.problem, Problem::Unknown { .. }) {
                (finding.severity, is_unknown) = (Severity::Error, true);
            }
        }
        if is_unknown {
            findings.retain(|finding| finding.severity == Severity::Error);
            return Err(ConfigError::Findings(findings));
        }
        let settings = self.merged(written);
        let needs_restart = differences(&settings, written);
        let (config, _) = finish(&settings, Vec::new())
            .map_err(|_| ConfigError::NeedsRestart(needs_restart.clone()))?;
        let changed = differences(&self.settings, &settings);
        let mut loaded = Self { config, settings, fixed_values: self.fixed_values.clone() };
        loaded.remember_fixed_values();
        Ok(Reload { loaded, written: written_config, changed, needs_restart, findings })
    }

    /// The running settings with those of `written` that can change.
    fn merged(&self, written: &Settings) -> Settings {
        let mut lists = written.lists.clone();
        lists.retain(|list, _| can_change(list));
        let fixed = self.settings.lists.iter().filter(|(list, _)| !can_change(list));
        lists.extend(fixed.map(|(list, members)| (*list, members.clone())));
        for namespace in lists.get_mut(NAMESPACES).into_iter().flatten() {
            if let Some(fixed_values) = self.fixed_values.get(&namespace.path) {
                namespace.values = select(fixed_values, &namespace.values, is_fixed_in_namespace);
            }
        }
        Settings {
            values: select(&self.settings.values, &written.values, |name| !can_change(name)),
            lists,
            variables: self.settings.variables.clone(),
            development: self.settings.development,
            has_centrifugo_variable: self.settings.has_centrifugo_variable,
            is_closed: self.settings.is_closed,
        }
    }

    fn remember_fixed_values(&mut self) {
        for namespace in self.settings.list(NAMESPACES) {
            let fixed = namespace
                .values
                .iter()
                .filter(|(name, _)| is_fixed_in_namespace(name))
                .map(|(name, setting)| (name.clone(), setting.clone()))
                .collect();
            self.fixed_values.entry(namespace.path.clone()).or_insert(fixed);
        }
    }
}

/// The fixed values of the one, and the others of the other.
fn select(fixed: &Values, other: &Values, is_fixed: impl Fn(&str) -> bool) -> Values {
    let kept = fixed.iter().filter(|(name, _)| is_fixed(name));
    let taken = other.iter().filter(|(name, _)| !is_fixed(name));
    kept.chain(taken).map(|(name, setting)| (name.clone(), setting.clone())).collect()
}

/// The keys that have other values, and the members of lists that only one of both has.
fn differences(one: &Settings, other: &Settings) -> Vec<String> {
    let key = |name: &str| find(name).map(|entry| entry.key);
    let mut keys = different_keys(&one.values, &other.values, key, "");
    for list in &LISTS {
        let one = one.list(list.key.name);
        let other = other.list(list.key.name);
        let paths = |members: &[MemberSettings]| -> BTreeSet<String> {
            members.iter().map(|member| member.path.clone()).collect()
        };
        keys.extend(paths(one).symmetric_difference(&paths(other)).cloned());
        for member in one {
            let Some(same) = other.iter().find(|other| other.path == member.path) else { continue };
            let key = |name: &str| list.find(name);
            let prefix = format!("{}.", member.path);
            keys.extend(different_keys(&member.values, &same.values, key, &prefix));
        }
    }
    keys
}

/// A key without a setting has its default.
fn different_keys(
    one: &Values,
    other: &Values,
    key: impl Fn(&str) -> Option<&'static Key>,
    prefix: &str,
) -> Vec<String> {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differs = |name: &str| match key(name) {
        Some(key) => value(key, one.get(name)) != value(key, other.get(name)),
        None => one.get(name) != other.get(name),
    };
    names.into_iter().filter(|name| differs(name)).map(|name| format!("{prefix}{name}")).collect()
}

/// The value of a key whose setting was found to be valid; `None` for a key that has no effect yet.
fn value(key: &Key, setting: Option<&Setting>) -> Option<Value> {
    match setting.map(|setting| &setting.raw) {
        Some(Raw::Json(json)) => key.kind.read(json).ok(),
        Some(Raw::Text(text)) => key.kind.read_text(text).ok(),
        None => key.kind.read_text(key.default).ok(),
    }
}

/// Whether a new value of a key takes effect without a restart.
fn can_change(name: &str) -> bool {
    let within = name.strip_prefix(WITHOUT_NAMESPACE).and_then(|rest| rest.strip_prefix('.'));
    match within {
        Some(key) => !is_fixed_in_namespace(key),
        None => CAN_CHANGE.contains(&secret_of(name)),
    }
}

/// The key whose value is in the file that `name` names, or `name`.
fn secret_of(name: &str) -> &str {
    catalog::secret_of_file(name).map_or(name, |entry| &entry.name)
}

/// How publications wait, for slow clients or for others, is stored with the channels that have subscribers; so are the tiles of
/// viewers.
fn is_fixed_in_namespace(key: &str) -> bool {
    key.starts_with("delivery") || key.starts_with("batch_") || key.starts_with("area_")
}

/// Keys that commands, handshakes and API requests read when they begin. All others are built into connections, shards,
/// listeners or the engine at the start.
const CAN_CHANGE: [&str; 76] = [
    "channel.history_meta_ttl",
    "channel.max_length",
    NAMESPACES,
    "channel.publication_data_format",
    "client.allow_anonymous_connect_without_token",
    "client.allowed_origins",
    "client.channel_limit",
    "client.concurrency",
    "client.connect_code_to_unidirectional_disconnect.enabled",
    "client.connect_code_to_unidirectional_disconnect.transforms",
    "client.connect_include_server_time",
    "client.connection_limit",
    "client.connection_rate_limit",
    "client.disallow_anonymous_connection_tokens",
    "client.history_max_publication_limit",
    "client.limits.address_connections.dry_run",
    "client.limits.address_connections.limit",
    "client.rate_limit.client_command.interval",
    "client.rate_limit.client_command.limit",
    "client.rate_limit.refusal.interval",
    "client.rate_limit.refusal.limit",
    "client.recovery_max_publication_limit",
    "client.subscribe_to_user_personal_channel.enabled",
    "client.subscribe_to_user_personal_channel.personal_channel_namespace",
    "client.subscribe_to_user_personal_channel.single_connection",
    "client.subscription_token.audience",
    "client.subscription_token.audience_regex",
    "client.subscription_token.ecdsa_public_key",
    "client.subscription_token.hmac_previous_secret_key",
    "client.subscription_token.hmac_previous_secret_key_valid_until",
    "client.subscription_token.hmac_secret_key",
    "client.subscription_token.issuer",
    "client.subscription_token.issuer_regex",
    "client.subscription_token.rsa_public_key",
    "client.subscription_token.user_id_claim",
    "client.token.audience",
    "client.token.audience_regex",
    "client.token.ecdsa_public_key",
    "client.token.hmac_previous_secret_key",
    "client.token.hmac_previous_secret_key_valid_until",
    "client.token.hmac_secret_key",
    "client.token.issuer",
    "client.token.issuer_regex",
    "client.token.labels_from_claim",
    "client.token.rsa_public_key",
    "client.token.user_id_claim",
    "client.user_connection_limit",
    "cluster.rebalance.enabled",
    "cluster.rebalance.min_age",
    "cluster.rebalance.rate",
    "grpc_api.key",
    "http_api.key",
    API_KEYS,
    "http_api.previous_key",
    "http_api.previous_key_valid_until",
    "http_server.internal_tls.cert_pem",
    "http_server.internal_tls.client_ca_pem",
    "http_server.internal_tls.key_pem",
    "http_server.tls.cert_pem",
    "http_server.tls.client_ca_pem",
    "http_server.tls.key_pem",
    "log.debug_for.addresses",
    "log.debug_for.channels",
    "log.debug_for.users",
    "log.level",
    "rpc.namespace_boundary",
    RPC_NAMESPACES,
    "rpc.ping.enabled",
    "rpc.ping.method",
    "rpc.without_namespace.proxy_enabled",
    "rpc.without_namespace.proxy_name",
    "shared_poll.hmac_previous_secret_key",
    "shared_poll.hmac_previous_secret_key_valid_until",
    "shared_poll.hmac_secret_key",
    "user_status.enabled",
    "user_status.expire_interval",
];
