//! Environment variables: `FANWIRE_CLIENT_PING_INTERVAL` sets `client.ping_interval`, and so does `CENTRIFUGO_…`.
//! In: the process's variables → out: those with our prefixes, in the order of precedence, and the key of each.
//! Uses `catalog`. Never: reads the process environment, checks a value.
//! Changed here: prefixes and spellings; precedence between sources lives in `settings`.

use super::catalog::{self, LISTS, List, entries};
use super::key::Kind;
use super::nearest::nearest;
use super::renamed::renamed;

#[cfg(test)]
mod tests;

/// A variable with one of our prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    /// Name in the environment, with the prefix.
    pub(crate) name: String,
    /// Without its prefix.
    pub(crate) rest: String,
    pub(crate) value: String,
}

/// Target of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A key by its full name.
    Key(String),
    /// A key of the member at this position of a list.
    Member(&'static str, usize, String),
    /// A key below a block, with the rest of the name in lower case.
    Inside(&'static str, String),
    /// Put there by others for others.
    Nothing,
    /// No key; the nearest variable, when it is near.
    Unknown(Option<String>),
}

/// Our variables: Centrifugo's before Fanwire's, lists of sections before everything else. An empty one is not set:
/// compose writes `NAME=` for `${NAME:-}`, and must not erase what a file says.
pub(crate) fn variables(environment: impl Iterator<Item = (String, String)>) -> Vec<Variable> {
    let ours = |(name, value): (String, String)| {
        let rest = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))?.to_owned();
        (!value.is_empty() && !is_announced(&rest, &value)).then_some(Variable {
            name,
            rest,
            value,
        })
    };
    let mut variables: Vec<Variable> = environment.filter_map(ours).collect();
    let lists = LISTS.each_ref().map(|list| catalog::variable(list.key.name));
    variables.sort_by_key(|variable| {
        let is_list = lists.contains(&variable.rest);
        (!is_list, variable.name.starts_with(FANWIRE), variable.name.clone())
    });
    variables
}

/// Lists with the names of their members.
pub(crate) type ListMembers<'a> = [(&'static List, Vec<&'a str>)];

/// The meaning of a variable without its prefix, where lists have these members.
pub(crate) fn target(rest: &str, members: &ListMembers<'_>) -> Target {
    if let Some(entry) = entries().iter().find(|entry| entry.variable() == rest) {
        return Target::Key(entry.name.clone());
    }
    let of_file = |entry: &&catalog::Entry| {
        let secret = rest.strip_suffix(&catalog::variable(catalog::FILE));
        secret == Some(&entry.variable()) && matches!(entry.key.kind, Kind::Secret)
    };
    if let Some(entry) = entries().iter().find(of_file) {
        return Target::Key(format!("{}{}", entry.name, catalog::FILE));
    }
    if let Some(target) = member_target(rest, members).or_else(|| block_target(rest)) {
        return target;
    }
    let old = renamed(&rest.to_ascii_lowercase()).map(catalog::variable);
    if let Some(variable) = old {
        return Target::Unknown(Some(format!("{FANWIRE}{variable}")));
    }
    if is_of_others(rest) {
        return Target::Nothing;
    }
    // Of a member that is there, so that no variable is said to mean another one.
    let of_members = members.iter().flat_map(|(list, names)| {
        let prefixes = names.iter().map(|name| format!("{}.{name}", list.key.name));
        let meant = prefixes.filter(|prefix| rest.starts_with(&catalog::variable(prefix)));
        meant.flat_map(|prefix| list.names().map(move |key| format!("{prefix}.{key}")))
    });
    let known: Vec<String> = entries()
        .iter()
        .map(catalog::Entry::variable)
        .chain(of_members.map(|name| catalog::variable(&name)))
        .collect();
    let near = nearest(rest, known.iter().map(String::as_str));
    Target::Unknown(near.map(|near| format!("{FANWIRE}{near}")))
}

/// `CHANNEL_NAMESPACES_CHAT_HISTORY_SIZE` for the namespace `chat`; the longest name that fits is meant.
fn member_target(rest: &str, members: &ListMembers<'_>) -> Option<Target> {
    let mut best: Option<(usize, Target)> = None;
    for (list, names) in members {
        let below = rest.strip_prefix(&format!("{}_", catalog::variable(list.key.name)));
        for (index, name) in names.iter().enumerate() {
            let prefix = format!("{}_", catalog::variable(name));
            let key = below.and_then(|below| key_of(list, below.strip_prefix(&prefix)?));
            if let Some(key) = key
                && best.as_ref().is_none_or(|(length, _)| *length < prefix.len())
            {
                best = Some((prefix.len(), Target::Member(list.key.name, index, key)));
            }
        }
    }
    best.map(|(_, target)| target)
}

/// The key of a member with this variable.
fn key_of(list: &List, variable: &str) -> Option<String> {
    let names = list.names().flat_map(|name| [name.to_owned(), format!("{name}{}", catalog::FILE)]);
    let mut keys = names.filter(|name| list.find(name).is_some());
    keys.find(|name| catalog::variable(name) == variable)
}

fn block_target(rest: &str) -> Option<Target> {
    let blocks = entries().iter().filter(|entry| {
        matches!(entry.key.kind, Kind::Block | Kind::Objects)
            && catalog::list(&entry.name).is_none()
    });
    let mut inside = blocks.filter_map(|entry| {
        let part = rest.strip_prefix(&entry.variable())?.strip_prefix('_')?;
        Some(Target::Inside(&entry.name, part.to_ascii_lowercase()))
    });
    inside.next()
}

/// Whether a variable with this target was set for Centrifugo, and not by Kubernetes for everybody.
pub(crate) fn is_for_centrifugo(variable: &Variable, target: &Target) -> bool {
    let has_use = *target != Target::Nothing || variable.rest.starts_with(INTERPOLATED);
    variable.name.starts_with(CENTRIFUGO) && has_use
}

/// Whether Kubernetes says where a service listens: one called `centrifugo-internal` is `CENTRIFUGO_INTERNAL_PORT=tcp://…`.
fn is_announced(rest: &str, value: &str) -> bool {
    rest.ends_with("PORT") && ["tcp://", "udp://", "sctp://"].iter().any(|at| value.starts_with(at))
}

/// `VAR_*` are values for interpolation; Kubernetes announces every service by `NAME_PORT_…` and `NAME_SERVICE_…`, too.
fn is_of_others(rest: &str) -> bool {
    let framed = format!("_{rest}_");
    rest.starts_with(INTERPOLATED) || framed.contains("_PORT_") || framed.contains("_SERVICE_")
}

/// Variables that stand in texts of the configuration.
const INTERPOLATED: &str = "VAR_";
const FANWIRE: &str = "FANWIRE_";
const CENTRIFUGO: &str = "CENTRIFUGO_";
const PREFIXES: [&str; 2] = [FANWIRE, CENTRIFUGO];
