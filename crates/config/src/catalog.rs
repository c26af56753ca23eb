//! All keys of the configuration by their full dotted names, in the order in which they are shown.
//! In: the tables of `keys` → out: `Entry` values for lookup, help, samples and documentation.
//! Uses `keys`. Never: values, sources, findings.
//! Changed here: how sections are titled and ordered; a key itself is changed in its row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::key::{Key, Kind, Row, Support};
use super::keys::{
    self, API_KEYS, CONSUMERS, NAMESPACES, PROXIES, RPC_NAMESPACES, RPC_PROXY,
    RPC_WITHOUT_NAMESPACE, WITHOUT_NAMESPACE,
};

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

    fn is_secret(&self) -> bool {
        matches!(self.key.kind, Kind::Secret) && self.works()
    }
}

/// Entries with the same first part of their names.
#[derive(Debug)]
pub struct Section {
    /// `client`; "" for names without a dot.
    pub name: &'static str,
    pub entries: Vec<&'static Entry>,
}

/// A list of sections, each with a name.
pub(crate) struct List {
    pub(crate) key: Key,
    /// The section whose keys its members have; "" for consumers and keys of the API, whose keys no section has.
    like: &'static str,
}

impl List {
    /// The key of a member; for the name of a file with a secret, the secret.
    pub(crate) fn find(&self, name: &str) -> Option<&'static Key> {
        if name == NAME.key.name {
            return Some(&NAME.key);
        }
        if self.like.is_empty() {
            let named = |name: &str| self.own().iter().find(|entry| entry.name == name);
            let of_file = || named(name.strip_suffix(FILE)?).filter(|entry| entry.is_secret());
            return named(name).or_else(of_file).map(|entry| entry.key);
        }
        let full = format!("{}.{name}", self.like);
        find(&full).or_else(|| secret_of_file(&full)).map(|entry| entry.key)
    }

    /// Whether keys of a member exist below this name.
    pub(crate) fn is_section(&self, name: &str) -> bool {
        if self.like.is_empty() {
            let is_above =
                |full: &str| full.strip_prefix(name).is_some_and(|it| it.starts_with('.'));
            return self.own().iter().any(|entry| is_above(&entry.name));
        }
        is_section(&format!("{}.{name}", self.like))
    }

    /// The names of a member's keys and sections.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        let like = (!self.like.is_empty()).then_some(self.like);
        let within = names().filter_map(move |name| name.strip_prefix(like?)?.strip_prefix('.'));
        within.chain(self.own().iter().map(|entry| &*entry.name)).chain([NAME.key.name])
    }

    /// The keys of a member that no section has.
    fn own(&self) -> &'static [Entry] {
        match self.key.name {
            CONSUMERS => consumers(),
            API_KEYS => api_keys(),
            _ => &[],
        }
    }
}

/// The list with this name.
pub(crate) fn list(name: &str) -> Option<&'static List> {
    LISTS.iter().find(|list| list.key.name == name)
}

/// Every key, keys that work first; those of the members of a list appear in the section that they are like.
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
    entry.is_secret().then_some(entry)
}

/// Every key of a consumer, by its name within one; the name of the consumer is not among them.
pub(crate) fn consumers() -> &'static [Entry] {
    static CONSUMERS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let name = |section: &str, key: &Key| match section {
            "" => key.name.to_owned(),
            section => format!("{section}.{}", key.name),
        };
        keys::consumers::keys()
            .map(|(section, key)| Entry { name: name(section, key), key })
            .collect()
    });
    &CONSUMERS
}

/// Every key of a named key of the API but its name.
pub(crate) fn api_keys() -> &'static [Entry] {
    static API_KEYS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let rows = keys::api_keys::API_KEY.iter();
        rows.map(|row| Entry { name: row.key.name.to_owned(), key: &row.key }).collect()
    });
    &API_KEYS
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

/// A dotted name as a variable without its prefix; a namespace's `-` becomes `_` too, and so does the `[` of `proxies[pay]`.
pub(crate) fn variable(name: &str) -> String {
    name.chars()
        .filter(|c| *c != ']')
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect()
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
    let rows = keys::server::SERVER
        .iter()
        .chain(keys::unidirectional::UNIDIRECTIONAL)
        .chain(keys::client::CLIENT)
        .chain(keys::channel::CHANNEL)
        .chain(keys::grpc::GRPC)
        .chain(keys::events::EVENTS)
        .chain(keys::durable::DURABLE)
        .map(|row| &row.key);
    let plain = |key: &'static Key| Entry { name: key.name.to_owned(), key };
    let within = |section: &'static str| {
        move |key: &'static Key| Entry { name: format!("{section}.{}", key.name), key }
    };
    let mut entries: Vec<Entry> = rows.map(plain).collect();
    entries.extend(LISTS.iter().map(|list| plain(&list.key)));
    let namespace =
        keys::channel::NAMESPACE.iter().map(|row| &row.key).filter(|key| key.name != NAME.key.name);
    entries.extend(namespace.map(within(WITHOUT_NAMESPACE)));
    let choice = keys::proxy::CHOICE.iter().map(|row| &row.key);
    entries.extend(choice.map(within(RPC_WITHOUT_NAMESPACE)));
    for place in keys::proxy::PLACES {
        let proxy = keys::proxy::PROXY.iter().map(|row| &row.key);
        entries.extend(proxy.chain(keys::proxy::PROXY_NOT_YET).map(within(place)));
    }
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

/// The name of a member.
static NAME: &Row<String> = &keys::proxy::NAME[0];

/// Every list.
pub(crate) static LISTS: [List; 5] = [
    List {
        key: objects(
            NAMESPACES,
            "Rules for the channels of each namespace: a list of sections with `name` and the keys of channel.without_namespace.",
        ),
        like: WITHOUT_NAMESPACE,
    },
    List {
        key: objects(
            PROXIES,
            "Event proxies that namespaces choose by name: a list of sections with `name` and the keys of an event proxy.",
        ),
        like: RPC_PROXY,
    },
    List {
        key: objects(
            RPC_NAMESPACES,
            "Proxies of RPC methods with a namespace: a list of sections with `name` and the keys of rpc.without_namespace.",
        ),
        like: RPC_WITHOUT_NAMESPACE,
    },
    List {
        key: objects(
            CONSUMERS,
            "Consumers of message queues: a list of sections with `name` and the keys of a consumer.",
        ),
        like: "",
    },
    List {
        key: objects(
            API_KEYS,
            "Fanwire only: further keys of the server API, with rights: a list of sections with `name`, `key`, `methods`, `namespaces`.",
        ),
        like: "",
    },
];

const fn objects(name: &'static str, doc: &'static str) -> Key {
    Key { name, kind: Kind::Objects, default: "", doc, support: Support::Works }
}
