//! Which settings of maps are valid together (Centrifugo v6 `map.*`).
//! In: one namespace → out: every `OptionsError`.
//! May use: the options only. Never entries; `broker/` implements them.
//! Changed here: a rule between keys; limits of single keys are in the server's config table.

use std::time::Duration;

use fanwire_auth::OptionsError;

use crate::options::{ChannelOptions, ClientKey, MapMode, MapOptions, Namespace, SubscriptionType};

/// Errors: no mode, a lifetime that the mode does not have or lacks, positions that expire before what has them.
pub(super) fn mistakes(namespace: &Namespace, prefix_key: &str) -> Vec<OptionsError> {
    if !namespace.subscription_type.is_of_maps() {
        return Vec::new();
    }
    let map = &namespace.map;
    let is_presence = namespace.subscription_type != SubscriptionType::Map;
    let mut mistakes = match map.mode {
        MapMode::Unset => vec![("mode", quoted(""), MODES.to_owned())],
        MapMode::Ephemeral => ephemeral(map),
        MapMode::Recoverable => recoverable(map),
        MapMode::Persistent if is_presence => {
            vec![("mode", quoted("persistent"), EXPIRING.to_owned())]
        }
        MapMode::Persistent => persistent(map),
    };
    mistakes.extend(pages(map));
    mistakes.extend(client_key(map));
    let error = |(key, given, expected): Mistake| {
        OptionsError::value(format!("{prefix_key}.map.{key}"), given, expected)
    };
    mistakes.into_iter().map(error).collect()
}

/// Errors: a prefix of presence that is no namespace of maps of that kind.
pub(super) fn prefix_mistakes(
    namespace: &Namespace,
    section: &ChannelOptions,
    prefix_key: &str,
) -> Vec<OptionsError> {
    let prefixes = [
        ("clients", &namespace.map_clients_presence_channel_prefix, SubscriptionType::MapClients),
        ("users", &namespace.map_users_presence_channel_prefix, SubscriptionType::MapUsers),
    ];
    let mut mistakes = Vec::new();
    for (kind, prefix, expected) in prefixes {
        let boundary = section.namespace_boundary.as_str();
        let name = prefix.split_once(boundary).map(|(name, _)| name);
        let mut namespaces = section.namespaces.iter();
        let is_valid = namespaces
            .any(|one| Some(one.name.as_str()) == name && one.subscription_type == expected);
        if !prefix.is_empty() && !is_valid {
            let key = format!("{prefix_key}.map_{kind}_presence_channel_prefix");
            let right = format!("a namespace with subscription_type map_{kind}, and {boundary:?}");
            mistakes.push(OptionsError::value(key, prefix, right));
        }
    }
    mistakes
}

/// A key, its value, and what would be right.
type Mistake = (&'static str, String, String);

fn ephemeral(map: &MapOptions) -> Vec<Mistake> {
    let expected = || "0 or absent: an ephemeral map has no stream".to_owned();
    let size = map.stream_size;
    let mistakes = [
        key_ttl(map, "an ephemeral"),
        (size > 0).then(|| ("stream_size", size.to_string(), expected())),
        absent("stream_ttl", map.stream_ttl, expected()),
        absent("meta_ttl", map.meta_ttl, expected()),
    ];
    mistakes.into_iter().flatten().collect()
}

fn recoverable(map: &MapOptions) -> Vec<Mistake> {
    let meta_ttl = map.meta_ttl;
    let stream_ttl = map.stream_ttl();
    let least = stream_ttl.max(map.key_ttl);
    let is_short = !meta_ttl.is_zero() && meta_ttl < least;
    let expected = || {
        format!("at least {least:?}, the larger of map.stream_ttl ({stream_ttl:?}) and map.key_ttl")
    };
    let mistakes = [
        key_ttl(map, "a recoverable"),
        is_short.then(|| ("meta_ttl", format!("{meta_ttl:?}"), expected())),
    ];
    mistakes.into_iter().flatten().collect()
}

fn persistent(map: &MapOptions) -> Vec<Mistake> {
    let expected = |what: &str| format!("0s or absent: {what} of a persistent map are permanent");
    let mistakes = [
        absent("key_ttl", map.key_ttl, expected("entries")),
        absent("meta_ttl", map.meta_ttl, expected("positions")),
    ];
    mistakes.into_iter().flatten().collect()
}

fn pages(map: &MapOptions) -> Option<Mistake> {
    let min = map.page_size_min();
    let max = map.page_size_max();
    let expected = || format!("at most map.max_page_size, which is {max}");
    (min > max).then(|| ("min_page_size", min.to_string(), expected()))
}

/// A backend that decides about a change decides about its key.
fn client_key(map: &MapOptions) -> Option<Mistake> {
    let name = match map.client_key {
        ClientKey::OfClient => return None,
        ClientKey::ClientId => "client_id",
        ClientKey::UserId => "user_id",
    };
    let switches = [
        (map.publish_proxy.enabled, "map.publish_proxy_enabled"),
        (map.remove_proxy.enabled, "map.remove_proxy_enabled"),
    ];
    let (_, switch) = switches.into_iter().find(|(is_on, _)| *is_on)?;
    let expected = format!("\"\", because {switch} is true, and the backend decides about the key");
    Some(("client_key", name.to_owned(), expected))
}

fn key_ttl(map: &MapOptions, kind: &str) -> Option<Mistake> {
    let expected = || format!("more than 0s: entries of {kind} map expire");
    map.key_ttl.is_zero().then(|| ("key_ttl", "0s".to_owned(), expected()))
}

fn absent(key: &'static str, value: Duration, expected: String) -> Option<Mistake> {
    (!value.is_zero()).then(|| (key, format!("{value:?}"), expected))
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

const MODES: &str = "ephemeral, recoverable or persistent, which maps need";
const EXPIRING: &str =
    "ephemeral or recoverable: the entries of a client that is gone have to expire";

#[cfg(test)]
mod tests;
