//! The values in force: each key with its value and where it comes from, without secrets.
//! In: a loaded configuration → out: rows for people.
//! Uses the settings and the catalog. Never: shows a secret, or the user part of an address.
//! Changed here: what is masked, what is said of a file that differs. `settings` decides which source wins.

use fanwire_api::{ConfigValue, NodeConfigResult};

use super::catalog::{LISTS, entries, find};
use super::finding::Source;
use super::key::{Key, Kind};
use super::reload::{LoadedConfig, Reload};
use super::settings::Setting;

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueInForce {
    /// `channel.namespaces[chat].history_size`
    pub key: String,
    /// As it is written, or the default; `***` in place of a secret.
    pub value: String,
    pub source: Source,
}

impl LoadedConfig {
    /// The values of all keys, and how the sources, which were read `again`, differ from them.
    pub fn report(&self, again: Result<Reload, String>) -> NodeConfigResult {
        let values = self
            .values_in_force()
            .into_iter()
            .map(|ValueInForce { key, value, source }| {
                let is_default = source == Source::Default;
                let source = if is_default { String::new() } else { source.to_string() };
                ConfigValue { key, value, source }
            })
            .collect();
        match again {
            Ok(Reload { changed: needs_reload, needs_restart, .. }) => {
                NodeConfigResult { values, needs_reload, needs_restart, ..Default::default() }
            }
            Err(error) => NodeConfigResult { values, error, ..Default::default() },
        }
    }

    /// The values of all keys that have an effect: those that a source sets, then the defaults.
    pub fn values_in_force(&self) -> Vec<ValueInForce> {
        let set = self
            .settings
            .values
            .iter()
            .map(|(name, setting)| row(name.clone(), find(name).map(|one| one.key), setting));
        let members = LISTS.iter().flat_map(|list| {
            let members = self.settings.list(list.key.name).iter();
            members.flat_map(move |member| {
                member.values.iter().map(move |(name, setting)| {
                    row(format!("{}.{name}", member.path), list.find(name), setting)
                })
            })
        });
        let is_list = |name: &str| LISTS.iter().any(|list| list.key.name == name);
        let defaults = entries()
            .iter()
            .filter(|entry| {
                entry.works()
                    && !is_list(&entry.name)
                    && !self.settings.values.contains_key(&entry.name)
            })
            .map(|entry| ValueInForce {
                key: entry.name.clone(),
                value: format!("{:?}", entry.key.default),
                source: Source::Default,
            });
        set.chain(members).chain(defaults).collect()
    }
}

fn row(name: String, key: Option<&Key>, setting: &Setting) -> ValueInForce {
    // The key of a file with a secret is that of the secret; the name of the file is none.
    let names_file = name.ends_with(super::catalog::FILE);
    let is_secret =
        key.is_some_and(|key| matches!(key.kind, Kind::Secret | Kind::Block | Kind::Texts));
    let value = if is_secret && !names_file {
        MASK.to_owned()
    } else {
        without_users(&setting.raw.to_string())
    };
    ValueInForce { key: name, value, source: setting.source.clone() }
}

/// Replaces what stands between `//` and `@` in addresses.
fn without_users(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['/', ',', '"', ' ']).unwrap_or(part.len());
        shown.push_str("://");
        match part[..end].rfind('@') {
            Some(at) => shown.extend([MASK, &part[at..]]),
            None => shown.push_str(part),
        }
    }
    shown
}

const MASK: &str = "***";

#[cfg(test)]
mod tests;
