//! Applies settings to a `Config`: each row takes its setting or its default, and invalid values become findings.
//! In: `Settings` → out: `Config`, and findings about values and unsupported keys.
//! Uses the tables of `keys`. Never: precedence, relations between keys.
//! The check of one value is changed here; kinds live in `key`, relations between keys in `rules`.

use fanwire_node::options::{Namespace, SubscriptionType};
use serde_json::Value as Json;

use super::finding::{Finding, Severity};
use super::key::{Key, Kind, Misfit, Row, Support, Value, Weight};
use super::keys::{self, WITHOUT_NAMESPACE};
use super::settings::{NamespaceSettings, Raw, Setting, Settings, Values};
use super::{Config, catalog};

pub(crate) fn apply(settings: &Settings, findings: &mut Vec<Finding>) -> Config {
    let mut config = Config::blank();
    config.development = settings.development;
    let place = Place { values: &settings.values, stored: "", shown: "" };
    let unidirectional = keys::unidirectional::UNIDIRECTIONAL;
    for table in
        [keys::server::SERVER, unidirectional, keys::client::CLIENT, keys::channel::CHANNEL]
    {
        place.fill(table, &mut config, findings);
    }
    place.judge(keys::not_yet::NOT_YET, findings);

    let within = format!("{WITHOUT_NAMESPACE}.");
    let place = Place { values: &settings.values, stored: &within, shown: &within };
    place.namespace(&mut config.node.channel.without_namespace, findings);

    let namespaces = settings.namespaces.iter().map(|settings| namespace(settings, findings));
    config.node.channel.namespaces = namespaces.collect();
    config
}

fn namespace(settings: &NamespaceSettings, findings: &mut Vec<Finding>) -> Namespace {
    let within = format!("{}.", settings.path);
    let place = Place { values: &settings.values, stored: "", shown: &within };
    let mut namespace = Namespace::default();
    place.namespace(&mut namespace, findings);
    namespace
}

/// Position of one table in the settings, and the names of its keys in findings.
struct Place<'a> {
    values: &'a Values,
    /// Text before a row's name in `values`.
    stored: &'a str,
    /// Text before a row's name in findings.
    shown: &'a str,
}

impl Place<'_> {
    fn setting(&self, key: &Key) -> Option<&Setting> {
        self.values.get(&format!("{}{}", self.stored, key.name))
    }

    fn name(&self, key: &Key) -> String {
        format!("{}{}", self.shown, key.name)
    }

    /// Fills a namespace; a type of channels that is obeyed by refusing it is found like a key that is not obeyed.
    fn namespace(&self, namespace: &mut Namespace, findings: &mut Vec<Finding>) {
        let rows = keys::channel::NAMESPACE;
        self.fill(rows, namespace, findings);
        self.judge(keys::not_yet::NAMESPACE_NOT_YET, findings);
        let key = rows.iter().map(|row| &row.key).find(|key| key.name == "subscription_type");
        if namespace.subscription_type != SubscriptionType::Stream
            && let Some(key) = key
            && let Some(setting) = self.setting(key)
        {
            let (source, name) = (&setting.source, self.name(key));
            findings.push(Finding::not_yet(source, &name, key.doc, Weight::Feature));
        }
    }

    /// Gives every row its value, in the order of the table.
    fn fill<T>(&self, table: &[Row<T>], target: &mut T, findings: &mut Vec<Finding>) {
        for Row { key, set } in table {
            let from_file = self.secret_from_file(key, findings);
            let setting = from_file.as_ref().or_else(|| self.setting(key));
            let read = setting.map(|setting| (setting, read(key, setting)));
            let value = match read {
                Some((setting, Ok(value))) => {
                    findings.extend(self.placeholder(key, setting, &value));
                    value
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
                    let found = Finding::misfit(&setting.source, &name, &key.kind, written, misfit);
                    findings.push(Finding { severity: Severity::Warning, ..found });
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
