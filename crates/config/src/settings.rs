//! Settings by key and source: file, then environment, then flags, each overriding the one before.
//! In: a file's tree, variables, flags → out: one setting per key, namespaces in their order, unknown keys as findings.
//! Uses `catalog` and `environment`. Never: checks a value.
//! Changed here: precedence, the form of namespaces and development mode; `apply` checks values.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::{Map, Value as Json};

use super::catalog::{self, LISTS, List, find};
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

impl Raw {
    /// As a variable has it: a text without quotes, everything else as JSON.
    pub(crate) fn as_text(&self) -> String {
        match self {
            Raw::Text(text) | Raw::Json(Json::String(text)) => text.clone(),
            Raw::Json(json) => json.to_string(),
        }
    }
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
    /// Members of lists by full name of the list.
    pub(crate) lists: BTreeMap<&'static str, Vec<MemberSettings>>,
    /// `FANWIRE_VAR_NAME`, for texts with variables.
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) has_centrifugo_variable: bool,
    /// There is no development mode.
    pub(crate) is_closed: bool,
    pub(crate) development: bool,
}

/// A member of a list of sections.
#[derive(Clone, Debug)]
pub(crate) struct MemberSettings {
    /// `channel.namespaces[chat]`, with the position where there is no name.
    pub(crate) path: String,
    pub(crate) values: Values,
    pub(crate) source: Source,
}

impl MemberSettings {
    pub(crate) fn name(&self) -> &str {
        let name = self.path.split_once('[').map_or(&*self.path, |(_, name)| name);
        name.trim_end_matches(']')
    }
}

/// A section of a file: the whole of it, or a member of a list with its path.
#[derive(Clone, Copy)]
enum Scope<'a> {
    File,
    Member(&'static List, &'a str),
}

impl Scope<'_> {
    fn is_key(self, name: &str) -> bool {
        match self {
            Scope::File => find(name).or_else(|| catalog::secret_of_file(name)).is_some(),
            Scope::Member(list, _) => list.find(name).is_some(),
        }
    }

    fn is_section(self, name: &str) -> bool {
        match self {
            Scope::File => catalog::is_section(name),
            Scope::Member(list, _) => list.is_section(name),
        }
    }

    fn path(self, name: &str) -> String {
        match self {
            Scope::File => name.to_owned(),
            Scope::Member(_, path) => format!("{path}.{name}"),
        }
    }

    fn unknown(self, source: &Source, name: &str) -> Finding {
        let Scope::Member(list, _) = self else { return unknown(source.clone(), name) };
        let old = (list.key.name == NAMESPACES).then(|| renamed_in_namespace(name)).flatten();
        let near = old.or_else(|| nearest(name, list.names())).map(str::to_owned);
        Finding::unknown(source.clone(), self.path(name), near)
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
        self.add_section(Scope::File, "", tree, &Source::File(path.to_owned()), findings);
    }

    /// Centrifugo's variables first, so that Fanwire's win; lists before the keys of their members.
    pub(crate) fn add_environment(
        &mut self,
        environment: impl Iterator<Item = (String, String)>,
        findings: &mut Vec<Finding>,
    ) {
        for variable in environment::variables(environment) {
            let source = Source::Environment(variable.name.clone());
            let names = |list: &'static List| {
                (list, self.list(list.key.name).iter().map(MemberSettings::name).collect())
            };
            let target = environment::target(&variable.rest, &LISTS.each_ref().map(names));
            self.has_centrifugo_variable |= environment::is_for_centrifugo(&variable, &target);
            match target {
                Target::Key(name) => self.add_text(&name, variable.value, source, findings),
                Target::Member(list, index, key) => {
                    let setting = Setting { raw: Raw::Text(variable.value), source };
                    let members = self.lists.get_mut(list);
                    let member = members.and_then(|members| members.get_mut(index));
                    member.expect("its name was found").values.insert(key, setting);
                }
                Target::Inside(block, part) => self.add_inside(block, part, variable.value, source),
                Target::Nothing => {
                    self.variables.insert(variable.name, variable.value);
                }
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

    /// Gives values of keys of the version before to their new names, which win where both are set.
    pub(crate) fn rename_former(&mut self, findings: &mut Vec<Finding>) {
        for (old, new) in renamed::FORMER {
            let Some(setting) = self.values.remove(old) else { continue };
            let source = setting.source.clone();
            let reason = format!("{old} was renamed to {new}");
            findings.push(Finding::rejected(Severity::Note, source, old, reason));
            self.values.entry(new.to_owned()).or_insert(setting);
        }
    }

    /// The members of a list.
    pub(crate) fn list(&self, name: &str) -> &[MemberSettings] {
        self.lists.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether a file set something.
    pub(crate) fn are_of_file(&self) -> bool {
        let mut sources = self.values.values().map(|setting| &setting.source);
        let members = self.lists.values().flatten().map(|member| &member.source);
        sources.by_ref().chain(members).any(|source| matches!(source, Source::File(_)))
    }

    /// Returns the source that set a key, for findings about finished values.
    pub(crate) fn source(&self, key: &str) -> Source {
        let members = self.lists.iter().flat_map(|(list, members)| {
            members.iter().enumerate().map(move |(index, member)| (list, index, member))
        });
        let within = members.into_iter().find_map(|(list, index, member)| {
            let by_index = || key.strip_prefix(&format!("{list}[{index}]"));
            let rest = key.strip_prefix(member.path.as_str()).or_else(by_index)?;
            Some(match member.values.get(rest.trim_start_matches('.')) {
                Some(setting) => setting.source.clone(),
                None => member.source.clone(),
            })
        });
        let plain = || self.values.get(key).map(|setting| setting.source.clone());
        within.or_else(plain).unwrap_or(Source::Default)
    }

    /// Where nothing is configured, the server is for the person at this machine alone. A variable that is nearly a
    /// key may have been meant as one.
    pub(crate) fn assume_development(&mut self, findings: &[Finding]) {
        let is_mistyped =
            |finding: &Finding| matches!(finding.problem, Problem::Unknown { nearest: Some(_) });
        let decides = |name: &String| DECIDING.iter().any(|section| name.starts_with(section));
        if self.is_closed
            || self.has_centrifugo_variable
            || findings.iter().any(is_mistyped)
            || self.values.keys().any(decides)
            || self.lists.values().any(|members| !members.is_empty())
            || !ADDRESSES.iter().all(|key| self.is_on_loopback(key))
        {
            return;
        }
        self.development = true;
        for (name, value) in DEVELOPMENT {
            let setting = Setting { raw: Raw::Text(value.to_owned()), source: Source::Default };
            self.values.entry(name.to_owned()).or_insert(setting);
        }
    }

    fn is_on_loopback(&self, key: &str) -> bool {
        match self.values.get(key).map(|setting| &setting.raw) {
            None => true,
            Some(Raw::Text(address)) => LOOPBACK.contains(&address.as_str()),
            Some(Raw::Json(_)) => false,
        }
    }

    fn add_section(
        &mut self,
        scope: Scope<'_>,
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
                Json::Null if scope.is_key(&name) || scope.is_section(&name) => {}
                json if scope.is_key(&name) => {
                    if let (Scope::File, Some(list)) = (scope, catalog::list(&name)) {
                        self.add_list(list, json, source, findings);
                        continue;
                    }
                    self.values
                        .insert(name, Setting { raw: Raw::Json(json), source: source.clone() });
                }
                Json::Object(inner) if scope.is_section(&name) => {
                    self.add_section(scope, &name, inner, source, findings);
                }
                json if scope.is_section(&name) => {
                    findings.push(not_a_section(source, scope.path(&name), &json));
                }
                _ => findings.push(scope.unknown(source, &name)),
            }
        }
    }

    /// A list replaces the one before.
    fn add_list(
        &mut self,
        list: &'static List,
        json: Json,
        source: &Source,
        findings: &mut Vec<Finding>,
    ) {
        let Json::Array(items) = json else {
            return findings.push(not_a_list(source, list.key.name.to_owned(), &json));
        };
        let items = items.into_iter().enumerate();
        let members = items.map(|(index, item)| member(list, index, item, source, findings));
        self.lists.insert(list.key.name, members.collect());
    }

    fn add_text(&mut self, name: &str, text: String, source: Source, findings: &mut Vec<Finding>) {
        if let Some(list) = catalog::list(name) {
            return self.add_list_text(list, &text, &source, findings);
        }
        let says_nothing =
            text.is_empty() && find(name).is_some_and(|entry| !entry.key.kind.takes_empty_text());
        if !says_nothing {
            self.values.insert(name.to_owned(), Setting { raw: Raw::Text(text), source });
        }
    }

    /// Adds members from a list in JSON, or from names separated by spaces, which keep their settings in the file.
    fn add_list_text(
        &mut self,
        list: &'static List,
        text: &str,
        source: &Source,
        findings: &mut Vec<Finding>,
    ) {
        let list_name = list.key.name;
        if text.trim_start().starts_with('[') {
            return match serde_json::from_str(text) {
                Ok(json) => self.add_list(list, json, source, findings),
                Err(_) => findings.push(not_a_list(source, list_name.to_owned(), &text.into())),
            };
        }
        let mut before = self.lists.remove(list_name).unwrap_or_default();
        let members = text.split_whitespace().map(|name| {
            let path = format!("{list_name}[{name}]");
            let known = before.iter().position(|member| member.path == path);
            known.map(|index| before.swap_remove(index)).unwrap_or_else(|| {
                let setting = Setting { raw: Raw::Text(name.to_owned()), source: source.clone() };
                let values = Values::from([("name".to_owned(), setting)]);
                MemberSettings { path, values, source: source.clone() }
            })
        });
        self.lists.insert(list_name, members.collect());
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

/// A member of a list. One that is no section keeps its place, so that those behind it have their numbers.
fn member(
    list: &'static List,
    index: usize,
    item: Json,
    source: &Source,
    findings: &mut Vec<Finding>,
) -> MemberSettings {
    let keys = item.as_object();
    let name = keys.and_then(|keys| keys.iter().find(|(key, _)| key.eq_ignore_ascii_case("name")));
    let path = match name.and_then(|(_, name)| name.as_str()) {
        Some(name) if !name.is_empty() => format!("{}[{name}]", list.key.name),
        _ => format!("{}[{index}]", list.key.name),
    };
    let mut within = Settings::default();
    match item {
        Json::Object(keys) => {
            within.add_section(Scope::Member(list, &path), "", keys, source, findings);
        }
        other => findings.push(not_a_section(source, path.clone(), &other)),
    }
    MemberSettings { path, values: within.values, source: source.clone() }
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

/// Sections of keys with which somebody has decided who may do what. A server with one of them may be meant for others.
const DECIDING: [&str; 8] =
    ["admin.", "channel.", "client.", "engine.", "grpc_api.", "http_api.", "rpc.", "uni_grpc."];

const ADDRESSES: [&str; 2] = ["http_server.address", "http_server.internal_address"];

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
