//! Settings by key and source: file, then environment, then flags, each overriding the one before.
//! In: a file's tree, variables, flags → out: one setting per key, namespaces in their order, unknown keys as findings.
//! Uses `catalog` and `environment`. Never: checks a value.
//! Precedence, the form of namespaces and development mode are changed here; `apply` checks values.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::{Map, Value as Json};

use super::catalog::{self, find, find_namespace_key, namespace_keys};
use super::environment::{self, Target};
use super::finding::{Finding, Problem, Severity, Source};
use super::keys::NAMESPACES;
use super::nearest::nearest;
use super::renamed::{self, renamed, renamed_in_namespace};

/// A value as somebody wrote it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    pub(crate) raw: Raw,
    pub(crate) source: Source,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Raw {
    /// A value of a file, or JSON in a variable.
    Json(Json),
    /// A value of a variable or a flag.
    Text(String),
}

/// Text for messages: JSON, so that texts have quotes.
impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raw::Json(json) => json.fmt(f),
            Raw::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// Settings by key, relative to their section for namespaces.
pub(crate) type Values = BTreeMap<String, Setting>;

#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// Values by full name of the key.
    pub(crate) values: Values,
    pub(crate) namespaces: Vec<NamespaceSettings>,
    pub(crate) development: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct NamespaceSettings {
    /// `channel.namespaces[chat]`, with the position where there is no name.
    pub(crate) path: String,
    pub(crate) values: Values,
    pub(crate) source: Source,
}

impl NamespaceSettings {
    fn name(&self) -> &str {
        let name = self.path.strip_prefix(NAMESPACES).unwrap_or(&self.path);
        name.trim_start_matches('[').trim_end_matches(']')
    }
}

impl Settings {
    pub(crate) fn add_file(
        &mut self,
        path: &Path,
        tree: Map<String, Json>,
        findings: &mut Vec<Finding>,
    ) {
        findings.extend(renamed::about(path, &tree));
        self.add_section("", tree, &Source::File(path.to_owned()), findings);
    }

    /// Centrifugo's variables first, so that Fanwire's win; lists of namespaces before their keys.
    pub(crate) fn add_environment(
        &mut self,
        environment: impl Iterator<Item = (String, String)>,
        findings: &mut Vec<Finding>,
    ) {
        for variable in environment::variables(environment) {
            let source = Source::Environment(variable.name.clone());
            let names: Vec<&str> = self.namespaces.iter().map(NamespaceSettings::name).collect();
            match environment::target(&variable.rest, &names) {
                Target::Key(name) => self.add_text(&name, variable.value, source, findings),
                Target::Namespace(index, key) => {
                    let setting = Setting { raw: Raw::Text(variable.value), source };
                    self.namespaces[index].values.insert(key.to_owned(), setting);
                }
                Target::Inside(block, part) => self.add_inside(block, part, variable.value, source),
                Target::Nothing => {}
                Target::Unknown(nearest) => {
                    findings.push(Finding::unknown(source, variable.name, nearest));
                }
            }
        }
    }

    pub(crate) fn add_flags(&mut self, flags: &[(String, String)], findings: &mut Vec<Finding>) {
        for (name, value) in flags {
            let source = Source::Flag(name.clone());
            match find(name).or_else(|| catalog::secret_of_file(name)) {
                Some(_) => self.add_text(name, value.clone(), source, findings),
                None => findings.push(unknown(source, name)),
            }
        }
    }

    /// Whether a file set something.
    pub(crate) fn are_of_file(&self) -> bool {
        let mut sources = self.values.values().map(|setting| &setting.source);
        let namespaces = self.namespaces.iter().map(|namespace| &namespace.source);
        sources.by_ref().chain(namespaces).any(|source| matches!(source, Source::File(_)))
    }

    /// Returns the source that set a key, for findings about finished values.
    pub(crate) fn source(&self, key: &str) -> Source {
        let within = self.namespaces.iter().enumerate().find_map(|(index, namespace)| {
            let by_index = || key.strip_prefix(&format!("{NAMESPACES}[{index}]"));
            let rest = key.strip_prefix(namespace.path.as_str()).or_else(by_index)?;
            Some(match namespace.values.get(rest.trim_start_matches('.')) {
                Some(setting) => setting.source.clone(),
                None => namespace.source.clone(),
            })
        });
        let plain = || self.values.get(key).map(|setting| setting.source.clone());
        within.or_else(plain).unwrap_or(Source::Default)
    }

    /// Without any word about access, the server is for the person at this machine alone. A variable that is nearly a
    /// key may have been meant as such a word.
    pub(crate) fn assume_development(&mut self, findings: &[Finding]) {
        let is_mistyped =
            |finding: &Finding| matches!(finding.problem, Problem::Unknown { nearest: Some(_) });
        if findings.iter().any(is_mistyped) {
            return;
        }
        let decides = |name: &String| DECIDING.iter().any(|section| name.starts_with(section));
        if self.values.keys().any(decides) || !self.namespaces.is_empty() || !self.on_loopback() {
            return;
        }
        self.development = true;
        for (name, value) in DEVELOPMENT {
            let setting = Setting { raw: Raw::Text(value.to_owned()), source: Source::Default };
            self.values.entry(name.to_owned()).or_insert(setting);
        }
    }

    fn on_loopback(&self) -> bool {
        match self.values.get("http_server.address").map(|setting| &setting.raw) {
            None => true,
            Some(Raw::Text(address)) => LOOPBACK.contains(&address.as_str()),
            Some(Raw::Json(_)) => false,
        }
    }

    fn add_section(
        &mut self,
        prefix: &str,
        section: Map<String, Json>,
        source: &Source,
        findings: &mut Vec<Finding>,
    ) {
        for (key, json) in section {
            // Letter case does not count, as with Centrifugo.
            let key = key.to_ascii_lowercase();
            let name = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
            match json {
                // An empty section or value of YAML says nothing.
                Json::Null if find(&name).is_some() || catalog::is_section(&name) => {}
                json if name == NAMESPACES => self.add_namespaces(json, source, findings),
                json if find(&name).or_else(|| catalog::secret_of_file(&name)).is_some() => {
                    self.values
                        .insert(name, Setting { raw: Raw::Json(json), source: source.clone() });
                }
                Json::Object(inner) if catalog::is_section(&name) => {
                    self.add_section(&name, inner, source, findings);
                }
                json if catalog::is_section(&name) => {
                    findings.push(not_a_section(source, name, &json));
                }
                _ => findings.push(unknown(source.clone(), &name)),
            }
        }
    }

    /// A list of namespaces replaces the one before.
    fn add_namespaces(&mut self, json: Json, source: &Source, findings: &mut Vec<Finding>) {
        let Json::Array(items) = json else {
            return findings.push(not_a_list(source, NAMESPACES.to_owned(), &json));
        };
        self.namespaces.clear();
        for (index, item) in items.into_iter().enumerate() {
            match item {
                Json::Object(keys) => {
                    self.namespaces.push(namespace(index, keys, source, findings))
                }
                other => {
                    let path = format!("{NAMESPACES}[{index}]");
                    findings.push(not_a_section(source, path.clone(), &other));
                    // Its place is kept, so that those behind it have their numbers.
                    let values = Values::new();
                    self.namespaces.push(NamespaceSettings {
                        path,
                        values,
                        source: source.clone(),
                    });
                }
            }
        }
    }

    fn add_text(&mut self, name: &str, text: String, source: Source, findings: &mut Vec<Finding>) {
        if name == NAMESPACES {
            return self.add_namespaces_text(&text, &source, findings);
        }
        let says_nothing =
            text.is_empty() && find(name).is_some_and(|entry| !entry.key.kind.takes_empty_text());
        if !says_nothing {
            self.values.insert(name.to_owned(), Setting { raw: Raw::Text(text), source });
        }
    }

    /// Adds namespaces from a list in JSON, or from names separated by spaces, which keep their settings in the file.
    fn add_namespaces_text(&mut self, text: &str, source: &Source, findings: &mut Vec<Finding>) {
        if text.trim_start().starts_with('[') {
            return match serde_json::from_str(text) {
                Ok(json) => self.add_namespaces(json, source, findings),
                Err(_) => findings.push(not_a_list(source, NAMESPACES.to_owned(), &text.into())),
            };
        }
        let mut before = std::mem::take(&mut self.namespaces);
        for name in text.split_whitespace() {
            let path = format!("{NAMESPACES}[{name}]");
            let known = before.iter().position(|namespace| namespace.path == path);
            self.namespaces.push(match known {
                Some(index) => before.swap_remove(index),
                None => {
                    let setting =
                        Setting { raw: Raw::Text(name.to_owned()), source: source.clone() };
                    let values = Values::from([("name".to_owned(), setting)]);
                    NamespaceSettings { path, values, source: source.clone() }
                }
            });
        }
    }

    /// A variable below a block, such as `CLIENT_PROXY_CONNECT_ENABLED`.
    fn add_inside(&mut self, block: &str, part: String, text: String, source: Source) {
        let entry = self.values.entry(block.to_owned());
        let setting = entry.or_insert(Setting { raw: Raw::Json(Json::Null), source });
        let mut inner = match &setting.raw {
            Raw::Json(Json::Object(inner)) => inner.clone(),
            _ => Map::new(),
        };
        inner.insert(part, Json::String(text));
        setting.raw = Raw::Json(Json::Object(inner));
    }
}

fn namespace(
    index: usize,
    keys: Map<String, Json>,
    source: &Source,
    findings: &mut Vec<Finding>,
) -> NamespaceSettings {
    let name = keys.iter().find(|(key, _)| key.eq_ignore_ascii_case("name"));
    let name = name.and_then(|(_, name)| name.as_str());
    let path = match name {
        Some(name) if !name.is_empty() => format!("{NAMESPACES}[{name}]"),
        _ => format!("{NAMESPACES}[{index}]"),
    };
    let mut values = Values::new();
    for (key, json) in keys {
        let key = key.to_ascii_lowercase();
        if find_namespace_key(&key).is_none() {
            let near = || nearest(&key, namespace_keys().map(|key| key.name));
            let near = renamed_in_namespace(&key).or_else(near).map(str::to_owned);
            findings.push(Finding::unknown(source.clone(), format!("{path}.{key}"), near));
        } else if !json.is_null() {
            values.insert(key, Setting { raw: Raw::Json(json), source: source.clone() });
        }
    }
    NamespaceSettings { path, values, source: source.clone() }
}

fn unknown(source: Source, name: &str) -> Finding {
    let near = renamed(name).or_else(|| nearest(name, catalog::names())).map(str::to_owned);
    Finding::unknown(source, name.to_owned(), near)
}

fn not_a_section(source: &Source, key: String, json: &Json) -> Finding {
    let expected = match renamed::switch(&key) {
        Some(switch) => format!("a section of keys, such as {switch}"),
        None => "a section of keys".to_owned(),
    };
    wrong_type(source, key, json, &expected)
}

fn not_a_list(source: &Source, key: String, json: &Json) -> Finding {
    wrong_type(source, key, json, "a list of sections, each with a name")
}

fn wrong_type(source: &Source, key: String, json: &Json, expected: &str) -> Finding {
    let problem = Problem::WrongType { value: json.to_string(), expected: expected.to_owned() };
    Finding { severity: Severity::Error, source: source.clone(), key, problem }
}

/// Sections of keys with which an operator has decided about the rights of clients.
const DECIDING: [&str; 3] = ["client.", "channel.", "engine."];

const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "::1"];

/// Values that development mode adds to the defaults.
pub(crate) const DEVELOPMENT: [(&str, &str); 6] = [
    ("http_server.address", "127.0.0.1"),
    ("client.insecure", "true"),
    ("client.allowed_origins", "http://127.0.0.1:* http://localhost:* http://[::1]:*"),
    ("demo.enabled", "true"),
    ("health.enabled", "true"),
    ("prometheus.enabled", "true"),
];
