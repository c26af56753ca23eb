//! Named keys of the server API: secrets that are there and differ, names of methods and namespaces that exist.
//! In: a filled `Config` → out: a severity, the full key and a sentence for each mistake.
//! Uses the options as they are written. Never: shows a secret.
//! Changed here: what a named key needs. Names are checked in `apply`.

use std::collections::BTreeSet;

use fanwire_api::{DEFAULT_KEY, Method};

use super::{Config, Severity};
use crate::keys::API_KEYS;

pub(super) fn are_right(config: &Config) -> Vec<(Severity, String, String)> {
    let options = &config.http_api;
    let mut found = Vec::new();
    let others = [&options.key, &options.previous_key, &config.grpc_api.key];
    let mut secrets: BTreeSet<&str> = others.map(|key| &**key).into();
    let known: BTreeSet<&str> =
        config.channel.namespaces.iter().map(|namespace| &*namespace.name).collect();
    for (name, one) in &options.keys {
        let mut say = |severity, key: &str, what: String| {
            let key = format!("{API_KEYS}[{name}].{key}");
            found.push((severity, key.clone(), format!("{key} {what}")));
        };
        match &*one.key {
            "" => say(Severity::Error, "key", "is empty, expected a secret".to_owned()),
            key if !secrets.insert(key) => {
                let what = "is also another key of the API, expected one of its own".to_owned();
                say(Severity::Error, "key", what);
            }
            key if key.len() < super::secrets::BYTES_MIN => {
                let what = "is short enough to be guessed, expected 32 random bytes".to_owned();
                say(Severity::Warning, "key", what);
            }
            _ => {}
        }
        if name == DEFAULT_KEY {
            let what = format!("is {name:?}, which is the name of http_api.key");
            say(Severity::Error, "name", what);
        }
        for method in one.methods.iter().filter(|name| Method::of_name(name).is_none()) {
            let what = format!("has {method:?}, which is not a method of the API");
            say(Severity::Error, "methods", what);
        }
        for namespace in one.namespaces.iter().filter(|name| !known.contains(&***name)) {
            let what = format!("has {namespace:?}, which is not in channel.namespaces");
            say(Severity::Warning, "namespaces", what);
        }
    }
    if options.keys.len() > KEYS_MAX {
        let reason = format!("{API_KEYS} has more than {KEYS_MAX} keys, each of which is compared");
        found.push((Severity::Error, API_KEYS.to_owned(), reason));
    }
    found
}

/// Each request is compared with all of them, and each has metrics of its own.
const KEYS_MAX: usize = 100;

#[cfg(test)]
mod tests;
