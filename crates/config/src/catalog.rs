//! All keys of the configuration by their full dotted names, in the order in which they are shown.
//! In: the tables of `keys` → out: `Entry` values for lookup, help, samples and documentation.
//! Uses `keys`. Never: values, sources, findings.
//! How sections are titled and ordered is changed here; a key itself is changed in its row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::key::{Key, Kind, Support};
use super::keys::{self, NAMESPACES, WITHOUT_NAMESPACE};

/// A key under its full name.
#[derive(Debug)]
pub struct Entry {
    /// `client.ping_interval`, `channel.without_namespace.presence`.
    pub name: String,
    pub key: &'static Key,
}

impl Entry {
    /// The name after its prefix in the environment: `CLIENT_PING_INTERVAL`.
    pub fn variable(&self) -> String {
        variable(&self.name)
    }

    /// Whether Fanwire obeys the key.
    pub fn works(&self) -> bool {
        self.key.support == Support::Works
    }
}

/// Entries with the same first part of their names.
#[derive(Debug)]
pub struct Section {
    /// `client`; "" for names without a dot.
    pub name: &'static str,
    pub entries: Vec<&'static Entry>,
}

/// Every key, keys that work first; those of a namespace appear under `channel.without_namespace`.
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// The entry of a full dotted name.
pub fn find(name: &str) -> Option<&'static Entry> {
    BY_NAME.get(name).copied()
}

/// The secret whose value is in the file that a key `…_file` names.
pub(crate) fn secret_of_file(name: &str) -> Option<&'static Entry> {
    let entry = find(name.strip_suffix(FILE)?)?;
    (matches!(entry.key.kind, Kind::Secret) && entry.works()).then_some(entry)
}

/// Every key that works, by section.
pub fn sections() -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for entry in ENTRIES.iter().filter(|entry| entry.works()) {
        let name = entry.name.split_once('.').map_or("", |(section, _)| section);
        match sections.iter_mut().find(|section| section.name == name) {
            Some(section) => section.entries.push(entry),
            None => sections.push(Section { name, entries: vec![entry] }),
        }
    }
    sections
}

/// A dotted name as a variable without its prefix; a namespace's `-` becomes `_` too.
pub(crate) fn variable(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect()
}

/// The keys of one namespace, its name included.
pub(crate) fn namespace_keys() -> impl Iterator<Item = &'static Key> + Clone {
    keys::channel::NAMESPACE.iter().map(|row| &row.key).chain(keys::not_yet::NAMESPACE_NOT_YET)
}

/// The key of one namespace.
pub(crate) fn find_namespace_key(name: &str) -> Option<&'static Key> {
    namespace_keys().find(|key| key.name == name)
}

/// Every full name and every section's name: what a mistyped key may have meant.
pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
    NAMES.iter().copied()
}

/// Whether keys exist below this dotted name.
pub(crate) fn is_section(name: &str) -> bool {
    find(name).is_none() && NAMES.contains(name)
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let rows = keys::server::SERVER.iter().chain(keys::unidirectional::UNIDIRECTIONAL);
    let rows = rows.chain(keys::client::CLIENT).chain(keys::channel::CHANNEL).map(|row| &row.key);
    let plain = |key: &'static Key| Entry { name: key.name.to_owned(), key };
    let within =
        |key: &'static Key| Entry { name: format!("{WITHOUT_NAMESPACE}.{}", key.name), key };
    let mut entries: Vec<Entry> = rows.map(plain).collect();
    entries.push(plain(&NAMESPACES_KEY));
    entries.extend(namespace_keys().filter(|key| key.name != "name").map(within));
    entries.extend(keys::not_yet::NOT_YET.iter().map(plain));
    entries.sort_by_key(|entry| !entry.works());
    entries
});

static BY_NAME: LazyLock<BTreeMap<&'static str, &'static Entry>> =
    LazyLock::new(|| ENTRIES.iter().map(|entry| (entry.name.as_str(), entry)).collect());

static NAMES: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    let above = |name: &'static str| name.match_indices('.').map(move |(end, _)| &name[..end]);
    ENTRIES.iter().flat_map(|entry| above(&entry.name).chain([entry.name.as_str()])).collect()
});

/// The end of the name of a key that names a file with a secret.
pub(crate) const FILE: &str = "_file";

/// The list of namespaces; its objects are made of the rows of `NAMESPACE`.
static NAMESPACES_KEY: Key = Key {
    name: NAMESPACES,
    kind: Kind::Objects,
    default: "",
    doc: "Rules for the channels of each namespace: a list of sections with `name` and the keys of channel.without_namespace.",
    support: Support::Works,
};
