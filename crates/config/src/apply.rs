//! Applies settings to a `Config`: each row takes its setting or its default, and invalid values become findings.
//! In: `Settings` → out: `Config`, and findings about values and unsupported keys.
//! Uses the tables of `keys`. Never: precedence, relations between keys.
//! Changed here: the check of one value; kinds live in `key`, relations between keys in `rules`.

use std::collections::BTreeMap;

use fanwire_consumers::ConsumerOptions;
use fanwire_policy::options::{Namespace, ProxyChoice};
use fanwire_proxy::ProxyOptions;
use fanwire_tls::TlsOptions;
use serde_json::Value as Json;

use super::catalog;
use super::finding::{Finding, Severity};
use super::key::{Key, Kind, Misfit, Row, Support, Value, Weight};
use super::keys::{
    self, API_KEYS, CONSUMERS, NAMESPACES, PROXIES, RPC_NAMESPACES, RPC_PROXY,
    RPC_WITHOUT_NAMESPACE, WITHOUT_NAMESPACE,
};
use super::options::Config;
use super::settings::{MemberSettings, Raw, Setting, Settings, Values};

pub(crate) fn apply(settings: &Settings, findings: &mut Vec<Finding>) -> Config {
    let mut config = Config::blank();
    config.development = settings.development;
    let place = Place::of_file(settings, "");
    let unidirectional = keys::unidirectional::UNIDIRECTIONAL;
    for table in [
        keys::server::SERVER,
        unidirectional,
        keys::client::CLIENT,
        keys::channel::CHANNEL,
        keys::grpc::GRPC,
        keys::events::EVENTS,
        keys::durable::DURABLE,
    ] {
        place.fill(table, &mut config, findings);
    }
    place.judge(keys::not_yet::NOT_YET, findings);

    let channel = &mut config.channel;
    Place::of_file(settings, WITHOUT_NAMESPACE).fill(
        keys::channel::NAMESPACE,
        &mut channel.without_namespace,
        findings,
    );
    let namespaces = settings.list(NAMESPACES).iter().map(|member| {
        let mut namespace = Namespace::default();
        Place::of_member(settings, member).fill(keys::channel::NAMESPACE, &mut namespace, findings);
        namespace
    });
    channel.namespaces = namespaces.collect();

    let rpc = &mut config.rpc;
    let choice = keys::proxy::CHOICE;
    let outside = Place::of_file(settings, RPC_WITHOUT_NAMESPACE);
    outside.fill(choice, &mut rpc.without_namespace, findings);
    rpc.namespaces = by_name(settings, RPC_NAMESPACES, findings, |place, namespace, findings| {
        place.fill(choice, namespace, findings);
    });
    proxies(settings, &mut config, findings);
    config.consumers = by_name(settings, CONSUMERS, findings, |place, options, findings| {
        place.consumer(options, findings);
    });
    config.http_api.keys = by_name(settings, API_KEYS, findings, |place, options, findings| {
        place.fill(keys::api_keys::API_KEY, options, findings);
    });
    config
}

/// Fills the event proxies; those of connections exist already where they are enabled.
fn proxies(settings: &Settings, config: &mut Config, findings: &mut Vec<Finding>) {
    let mut proxy = |place| {
        let mut options = ProxyOptions::default();
        Place::of_file(settings, place).proxy(&mut options, findings);
        options
    };
    let connect = proxy("client.proxy.connect");
    let refresh = proxy("client.proxy.refresh");
    let client = &mut config.client.proxy;
    client.connect = client.connect.take().map(|_| connect);
    client.refresh = client.refresh.take().map(|_| refresh);
    let channel = &mut config.channel.proxy;
    channel.subscribe = proxy("channel.proxy.subscribe");
    channel.publish = proxy("channel.proxy.publish");
    channel.sub_refresh = proxy("channel.proxy.sub_refresh");
    channel.subscribe_stream = proxy("channel.proxy.subscribe_stream");
    channel.shared_poll_refresh = proxy("channel.proxy.shared_poll_refresh");
    channel.map_publish = proxy("channel.proxy.map_publish");
    channel.map_remove = proxy("channel.proxy.map_remove");
    config.rpc.proxy = proxy(RPC_PROXY);
    config.proxies = by_name(settings, PROXIES, findings, |place, options, findings| {
        place.proxy(options, findings);
    });
}

impl Default for Config {
    fn default() -> Self {
        apply(&Settings::default(), &mut Vec::new())
    }
}

/// The members of a list by their names, which must be right and differ.
fn by_name<T: Default>(
    settings: &Settings,
    list: &str,
    findings: &mut Vec<Finding>,
    fill: impl Fn(&Place<'_>, &mut T, &mut Vec<Finding>),
) -> BTreeMap<String, T> {
    let mut members = BTreeMap::new();
    for member in settings.list(list) {
        let place = Place::of_member(settings, member);
        let mut name = String::new();
        let mut target = T::default();
        place.fill(keys::proxy::NAME, &mut name, findings);
        fill(&place, &mut target, findings);
        let (marks, expected) = match list {
            // It is part of names of locks and of variables.
            CONSUMERS => ("_", "at least two letters, digits or `_`"),
            _ => ("-_.", "at least two letters, digits, `-`, `_` or `.`"),
        };
        let is_char = |c: char| c.is_ascii_alphanumeric() || marks.contains(c);
        let expected = if name.len() < 2 || !name.chars().all(is_char) {
            expected
        } else if list == PROXIES && name == ProxyChoice::DEFAULT {
            "another name, because this one stands for the proxies of channel.proxy and rpc.proxy"
        } else if members.insert(name.clone(), target).is_some() {
            "a name that no other member of the list has"
        } else {
            continue;
        };
        let key = format!("{}.name", member.path);
        let reason = format!("{key} is {name:?}, expected {expected}");
        let source = settings.source(&key);
        findings.push(Finding::rejected(Severity::Error, source, &key, reason));
    }
    members
}

/// Position of one table in the settings, and the names of its keys in findings.
struct Place<'a> {
    values: &'a Values,
    /// Variables that stand in texts.
    variables: &'a BTreeMap<String, String>,
    /// Text before a row's name in `values`.
    stored: String,
    /// Text before a row's name in findings.
    shown: String,
}

impl<'a> Place<'a> {
    /// The section with this name, "" for the whole file.
    fn of_file(settings: &'a Settings, section: &str) -> Self {
        let stored = if section.is_empty() { String::new() } else { format!("{section}.") };
        let Settings { values, variables, .. } = settings;
        Self { values, variables, shown: stored.clone(), stored }
    }

    fn of_member(settings: &'a Settings, member: &'a MemberSettings) -> Self {
        let values = &member.values;
        let variables = &settings.variables;
        Self { values, variables, stored: String::new(), shown: format!("{}.", member.path) }
    }
}

impl Place<'_> {
    fn setting(&self, key: &Key) -> Option<&Setting> {
        self.values.get(&format!("{}{}", self.stored, key.name))
    }

    fn name(&self, key: &Key) -> String {
        format!("{}{}", self.shown, key.name)
    }

    fn proxy(&self, options: &mut ProxyOptions, findings: &mut Vec<Finding>) {
        self.fill(keys::proxy::PROXY, options, findings);
        self.judge(keys::proxy::PROXY_NOT_YET, findings);
    }

    /// Fills a consumer. Keys of one that is not enabled are not checked, but for its type.
    fn consumer(&self, options: &mut ConsumerOptions, findings: &mut Vec<Finding>) {
        use keys::consumers::{
            CONSUMER, CONSUMER_NOT_YET, HEADER_PLACES, HEADERS, REDIS, REDIS_PLACE, TLS,
            TLS_PLACES, VALUE_PLACE, VALUES,
        };
        let mut found = Vec::new();
        self.fill(CONSUMER, options, &mut found);
        let redis = &mut options.redis_stream;
        let jetstream = &mut options.nats_jetstream;
        let postgresql = &mut options.postgresql;
        let kafka = &mut options.kafka;
        self.within(REDIS_PLACE).fill(REDIS, &mut redis.redis, &mut found);
        let modes = [&mut jetstream.publication_data_mode, &mut kafka.publication_data_mode];
        for (place, mode) in HEADER_PLACES.into_iter().zip(modes) {
            self.within(place).fill(HEADERS, mode, &mut found);
        }
        self.within(VALUE_PLACE).fill(VALUES, &mut redis.publication_data_mode, &mut found);
        let tls: [&mut TlsOptions; TLS_PLACES.len()] = [
            &mut postgresql.tls,
            &mut redis.redis.tls,
            &mut redis.redis.sentinel_tls,
            &mut jetstream.tls,
            &mut kafka.tls,
        ];
        for (place, tls) in TLS_PLACES.into_iter().zip(tls) {
            self.within(place).fill(TLS, tls, &mut found);
        }
        self.judge(CONSUMER_NOT_YET, &mut found);
        let is_for_all =
            |key: &str| [".type", ".enabled"].iter().any(|always| key.ends_with(always));
        found.retain(|finding| options.enabled || is_for_all(&finding.key));
        findings.append(&mut found);
    }

    /// A section of this one.
    fn within(&self, section: &str) -> Self {
        let stored = &self.stored;
        let shown = &self.shown;
        let stored = format!("{stored}{section}.");
        let shown = format!("{shown}{section}.");
        Self { stored, shown, ..*self }
    }

    /// Gives every row its value, in the order of the table.
    fn fill<T>(&self, table: &[Row<T>], target: &mut T, findings: &mut Vec<Finding>) {
        for Row { key, set, .. } in table {
            let from_file = self.secret_from_file(key, findings);
            let setting = from_file.as_ref().or_else(|| self.setting(key));
            let read = setting.map(|setting| (setting, read(key, setting)));
            let value = match read {
                Some((setting, Ok(value))) => {
                    findings.extend(self.placeholder(key, setting, &value));
                    self.with_variables(key, setting, value, findings)
                }
                Some((setting, Err(misfit))) => {
                    let written = setting.raw.to_string();
                    let name = self.name(key);
                    findings.push(Finding::misfit(
                        &setting.source,
                        &name,
                        &key.kind,
                        written,
                        misfit,
                    ));
                    default(key)
                }
                None => default(key),
            };
            set(target, value);
        }
    }

    /// The secret in the file that the key with `_file` behind it names, without the line end that editors add.
    fn secret_from_file(&self, key: &Key, findings: &mut Vec<Finding>) -> Option<Setting> {
        let name = format!("{}{}", key.name, catalog::FILE);
        let setting = matches!(key.kind, Kind::Secret)
            .then(|| self.values.get(&format!("{}{name}", self.stored)))
            .flatten()?;
        let shown = format!("{}{name}", self.shown);
        let mut reject = |reason: String| {
            let source = setting.source.clone();
            findings.push(Finding::rejected(Severity::Error, source, &shown, reason));
        };
        let Ok(Value::Text(path)) = read(&Key { kind: Kind::Text, ..*key }, setting) else {
            reject(format!("{shown} is {}, expected the name of a file", setting.raw));
            return None;
        };
        if self.setting(key).is_some() {
            let secret = self.name(key);
            reject(format!("{shown} and {secret} are both set: leave one out"));
            return None;
        }
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let text = text.trim_end_matches(['\n', '\r']).to_owned();
                Some(Setting { raw: Raw::Text(text), source: setting.source.clone() })
            }
            Err(error) => {
                reject(format!("{shown} is {path:?}, which cannot be read: {error}"));
                None
            }
        }
    }

    /// Puts variables into the texts of a key that may have some.
    fn with_variables(
        &self,
        key: &Key,
        setting: &Setting,
        mut value: Value,
        findings: &mut Vec<Finding>,
    ) -> Value {
        let (Kind::Texts, Value::Tree(Json::Object(entries))) = (&key.kind, &mut value) else {
            return value;
        };
        for (entry, json) in entries {
            match interpolated(json.as_str().unwrap_or_default(), self.variables) {
                Ok(text) => *json = text.into(),
                Err(variable) => {
                    let name = self.name(key);
                    let reason = format!(
                        "{name} has {variable} in the value of {entry:?}, which is not set in the environment; set it, or write \
                         the value itself"
                    );
                    let source = setting.source.clone();
                    findings.push(Finding::rejected(Severity::Error, source, &name, reason));
                }
            }
        }
        value
    }

    /// Finds secrets that stand in the documentation or in a template, so that they are known to everybody.
    fn placeholder(&self, key: &Key, setting: &Setting, value: &Value) -> Option<Finding> {
        let (Kind::Secret, Value::Text(text)) = (&key.kind, value) else { return None };
        let name = self.name(key);
        if text.to_ascii_lowercase().starts_with("change-me") {
            let reason = format!(
                "{name} is {text:?}, which stands in the documentation; expected a secret of your own, as `openssl rand -hex 32` prints one"
            );
            return Some(Finding::rejected(Severity::Error, setting.source.clone(), &name, reason));
        }
        text.strip_prefix("${")?.strip_suffix('}')?;
        let reason = format!(
            "{name} is {text:?} as it stands there, as variables are not put in; set FANWIRE_{} instead",
            catalog::variable(&name)
        );
        Some(Finding::rejected(Severity::Error, setting.source.clone(), &name, reason))
    }

    /// Finds the keys that were set and are not obeyed.
    fn judge(&self, table: &[Key], findings: &mut Vec<Finding>) {
        for key in table {
            let Some(setting) = self.setting(key) else { continue };
            let Support::NotYet(weight) = key.support else { continue };
            let name = self.name(key);
            match read(key, setting) {
                Ok(value) if asks_for_nothing(key, &value, weight) => {}
                Ok(_) => findings.push(Finding::not_yet(&setting.source, &name, key.doc, weight)),
                // Its shape is not what is to be mended: lists of names are right in Centrifugo's variables.
                Err(_) if weight != Weight::Tuning => {
                    findings.push(Finding::not_yet(&setting.source, &name, key.doc, weight));
                }
                Err(misfit) => {
                    let written = setting.raw.to_string();
                    let finding =
                        Finding::misfit(&setting.source, &name, &key.kind, written, misfit);
                    findings.push(Finding { severity: Severity::Warning, ..finding });
                }
            }
        }
    }
}

fn read(key: &Key, setting: &Setting) -> Result<Value, Misfit> {
    match &setting.raw {
        Raw::Json(json) => key.kind.read(json),
        Raw::Text(text) => key.kind.read_text(text),
    }
}

/// A text with the values of its variables; the error is the name of one that is not set.
fn interpolated(text: &str, variables: &BTreeMap<String, String>) -> Result<String, String> {
    let mut parts = text.split("${");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}') {
            Some((name, rest)) if VARIABLES.iter().any(|prefix| name.starts_with(prefix)) => {
                result.push_str(variables.get(name).ok_or(name)?);
                result.push_str(rest);
            }
            _ => result.extend(["${", part]),
        }
    }
    Ok(result)
}

fn default(key: &Key) -> Value {
    key.kind.read_text(key.default).expect("every row's default fits its kind")
}

/// The default, or a section in which nothing is switched on and no endpoint is named: files that list every key have
/// sections at their defaults. Those that would stop the start have a switch, which is off by default.
fn asks_for_nothing(key: &Key, value: &Value, weight: Weight) -> bool {
    let has_switch = weight == Weight::Refused;
    match value {
        Value::Tree(Json::Object(section)) => {
            !section.iter().any(|(name, json)| asks(name, json, has_switch))
        }
        value => *value == default(key),
    }
}

/// Whether an entry of such a section asks for something.
fn asks(name: &str, json: &Json, has_switch: bool) -> bool {
    let name = name.to_ascii_lowercase();
    match json {
        Json::Object(inner) => inner.iter().any(|(name, json)| asks(name, json, has_switch)),
        json if name == "enabled" || name.ends_with("_enabled") => {
            Kind::Switch.read(json) != Ok(Value::Switch(false))
        }
        Json::String(text) => name == "endpoint" && !text.is_empty() && !has_switch,
        _ => false,
    }
}

/// How the names of variables begin that stand in texts.
const VARIABLES: [&str; 2] = ["FANWIRE_VAR_", "CENTRIFUGO_VAR_"];
