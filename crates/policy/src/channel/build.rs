//! Compiles `ChannelOptions` into `ChannelRules` and rejects invalid options.
//! In: options from the configuration → out: the compiled rules, or every `OptionsError`.
//! May use: regex. Runs at start and reload only, so it may allocate.
//! Changed here: limits of names, patterns and boundaries; `channel.rs` applies them to a channel name.

use fanwire_area::{Grid, RINGS_MAX};
use fanwire_auth::{OptionsError, compile};
use fanwire_broker::DeliveryClass;
use hashbrown::{HashMap, HashSet};

use super::{ChannelRules, NamespaceId, NamespaceRules, history, maps, shared_poll};
use crate::options::{ChannelOptions, DataFormat, Namespace, Rate};

impl ChannelRules {
    /// Compiles the rules.
    ///
    /// # Errors
    /// Namespace names that are malformed or used twice, patterns that do not compile, prefixes and boundaries of more
    /// than one character or with the same character twice, a `max_length` of 0.
    pub fn new(options: &ChannelOptions) -> Result<Self, OptionsError> {
        let names: Vec<_> = NamespaceId::all(options).map(|one| one.name.clone()).collect();
        Self::with_ids(options, &names)
    }

    /// [`new`](Self::new) with the names of all namespaces by id.
    ///
    /// # Errors
    /// As there.
    pub fn with_ids(options: &ChannelOptions, names: &[String]) -> Result<Self, OptionsError> {
        if let Some(first) = Self::mistakes(options).into_iter().next() {
            return Err(first);
        }
        Ok(Self {
            length_max: options.max_length,
            private_prefix: one_char(PRIVATE_PREFIX, &options.private_prefix)?,
            namespace_boundary: one_char(NAMESPACE_BOUNDARY, &options.namespace_boundary)?,
            user_boundary: one_char(USER_BOUNDARY, &options.user_boundary)?,
            user_separator: one_char(USER_SEPARATOR, &options.user_separator)?,
            without_namespace: rules(
                NamespaceId(0),
                WITHOUT_NAMESPACE,
                &options.without_namespace,
                options,
            )?,
            namespaces: namespaces(options, names)?,
            personal: None,
        })
    }

    /// All errors that [`new`](Self::new) would return.
    pub fn mistakes(options: &ChannelOptions) -> Vec<OptionsError> {
        let mut mistakes = Vec::new();
        if options.max_length == 0 {
            mistakes.push(OptionsError::value("channel.max_length", 0, "at least 1 byte"));
        }
        mistakes.extend(check_distinct(options).err());
        let characters = characters(options).into_iter();
        mistakes.extend(characters.filter_map(|(key, value)| one_char(key, value).err()));
        let (rest, count) = (&options.without_namespace, options.namespaces.len());
        mistakes.extend(mistakes_of(rest, options, WITHOUT_NAMESPACE));
        if count > NAMESPACES_MAX {
            let expected = format!("at most {NAMESPACES_MAX} namespaces");
            mistakes.push(OptionsError::value("channel.namespaces", count, expected));
        }
        let mut names = HashSet::with_capacity(count);
        for (index, namespace) in options.namespaces.iter().enumerate() {
            let name = namespace.name.as_str();
            mistakes.extend(check_name(index, name, &options.namespace_boundary).err());
            if !name.is_empty() && !names.insert(name) {
                let key = format!("channel.namespaces[{index}].name");
                mistakes.push(OptionsError::Duplicate { key, value: name.to_owned() });
            }
            mistakes.extend(mistakes_of(namespace, options, &key_of(index, name)));
        }
        mistakes
    }
}

/// A namespace id has two bytes; 0 stands for none, and the last one for those beyond the tables.
const NAMESPACES_MAX: usize = u16::MAX as usize - 2;

const WITHOUT_NAMESPACE: &str = "channel.without_namespace";
const PRIVATE_PREFIX: &str = "channel.private_prefix";
const NAMESPACE_BOUNDARY: &str = "channel.namespace_boundary";
const USER_BOUNDARY: &str = "channel.user_boundary";
const USER_SEPARATOR: &str = "channel.user_separator";

fn namespaces(
    options: &ChannelOptions,
    names: &[String],
) -> Result<HashMap<String, NamespaceRules>, OptionsError> {
    let ids = ids(names);
    let numbered = options.namespaces.iter().enumerate();
    let named = numbered.map(|(index, namespace)| {
        let name = namespace.name.clone();
        let prefix_key = key_of(index, &name);
        let rules = rules(ids[name.as_str()], &prefix_key, namespace, options)?;
        Ok((name, rules))
    });
    named.collect()
}

/// The ids of namespaces, from their names in the order of the ids. Those after 65,536 share one, which no table has.
pub fn ids(names: &[String]) -> HashMap<&str, NamespaceId> {
    let id = |number| NamespaceId(u16::try_from(number).unwrap_or(u16::MAX));
    names.iter().enumerate().map(|(number, name)| (name.as_str(), id(number))).collect()
}

/// The name of a namespace in error messages.
fn key_of(index: usize, name: &str) -> String {
    match name {
        "" => format!("channel.namespaces[{index}]"),
        name => format!("channel.namespaces[{name}]"),
    }
}

/// Compiles one namespace and fills in the defaults of the section; `prefix_key` is the beginning of its keys.
fn rules(
    id: NamespaceId,
    prefix_key: &str,
    namespace: &Namespace,
    section: &ChannelOptions,
) -> Result<NamespaceRules, OptionsError> {
    let namespace = completed(namespace, section);
    let channel_regex = compile(prefix_key, "channel_regex", &namespace.channel_regex)?;
    Ok(NamespaceRules { id, namespace, channel_regex })
}

fn completed(namespace: &Namespace, section: &ChannelOptions) -> Namespace {
    let mut namespace = namespace.clone();
    if namespace.publication_data_format == DataFormat::Unset {
        namespace.publication_data_format = section.publication_data_format;
    }
    if namespace.history_meta_ttl.is_zero() {
        namespace.history_meta_ttl = section.history_meta_ttl;
    }
    namespace
}

/// All errors of one namespace.
fn mistakes_of(
    namespace: &Namespace,
    section: &ChannelOptions,
    prefix_key: &str,
) -> Vec<OptionsError> {
    let namespace = completed(namespace, section);
    let rate = |key: &str, rate: Rate| rate.check(&format!("{prefix_key}.{key}"));
    let checks = [
        check_delta_types(&namespace, prefix_key),
        check_delivery(&namespace, prefix_key),
        check_areas(&namespace, prefix_key),
        check_client_idempotency(&namespace, prefix_key),
        rate("publish_rate_", namespace.publish_rate),
        rate("subscribe_rate_", namespace.subscribe_rate),
        rate("limits.user_publish.", namespace.limits.user_publish.rate()),
        rate("limits.publish.", namespace.limits.publish.rate()),
        compile(prefix_key, "channel_regex", &namespace.channel_regex).map(drop),
    ];
    let mut mistakes = history::mistakes(&namespace, prefix_key);
    mistakes.extend(maps::mistakes(&namespace, prefix_key));
    mistakes.extend(maps::prefix_mistakes(&namespace, section, prefix_key));
    mistakes.extend(shared_poll::mistakes(&namespace, prefix_key));
    mistakes.extend(checks.into_iter().filter_map(Result::err));
    mistakes
}

fn check_delta_types(namespace: &Namespace, prefix_key: &str) -> Result<(), OptionsError> {
    let unknown = namespace.allowed_delta_types.iter().find(|kind| *kind != Namespace::FOSSIL);
    unknown.map_or(Ok(()), |kind| {
        let key = format!("{prefix_key}.allowed_delta_types");
        Err(OptionsError::value(key, kind, format!("{} only", Namespace::FOSSIL)))
    })
}

/// A publication that is replaced would be a gap without a report.
fn check_delivery(namespace: &Namespace, prefix_key: &str) -> Result<(), OptionsError> {
    if namespace.delivery.keys_max == 0 {
        let key = format!("{prefix_key}.delivery_keys_max");
        return Err(OptionsError::value(key, 0, "at least 1"));
    }
    check_batch(namespace, prefix_key)?;
    if namespace.delivery.class == DeliveryClass::Latest && namespace.promises_every_publication() {
        let expected = "reliable where subscribers may recover a stream or have a position in it, \
                        because a replaced publication would be a gap; \
                        latest goes with force_recovery_mode cache";
        return Err(OptionsError::value(format!("{prefix_key}.delivery"), "latest", expected));
    }
    Ok(())
}

/// A viewer has no position in a stream of which it receives parts, and no base for a delta.
fn check_areas(namespace: &Namespace, prefix_key: &str) -> Result<(), OptionsError> {
    let Namespace { areas, .. } = namespace;
    if areas.tiles_max == 0 {
        let key = format!("{prefix_key}.area_tiles_max");
        return Err(OptionsError::value(key, 0, "at least 1"));
    }
    if Grid::new(areas.tile_size, areas.tiles_max).with_rings(&areas.rings).is_none() {
        let key = format!("{prefix_key}.area_rings");
        let expected = format!(
            "at most {RINGS_MAX} texts DISTANCE/UPDATES such as 200/5, from 1/2 on, each farther and slower than the one before"
        );
        return Err(OptionsError::value(key, areas.rings.join(", "), expected));
    }
    let needs_all = namespace.promises_every_publication()
        || namespace.force_recovery
        || namespace.allow_recovery
        || !namespace.allowed_delta_types.is_empty();
    if areas.tile_size > 0 && needs_all {
        let key = format!("{prefix_key}.area_tile_size");
        let expected = "0 where subscribers may recover, have a position or get deltas, because a \
                        viewer receives a part of the publications";
        return Err(OptionsError::value(key, areas.tile_size, expected));
    }
    Ok(())
}

/// The field is of JSON objects, and maps have their keys.
fn check_client_idempotency(namespace: &Namespace, prefix_key: &str) -> Result<(), OptionsError> {
    let field = &namespace.client_idempotency.field;
    let is_json = namespace.publication_data_format != DataFormat::Binary;
    if field.is_empty() || is_json && namespace.is_of_streams() {
        return Ok(());
    }
    let expected =
        "empty where channels are maps or shared polls, or publication_data_format is binary";
    Err(OptionsError::value(format!("{prefix_key}.client_idempotency_field"), field, expected))
}

fn check_batch(namespace: &Namespace, prefix_key: &str) -> Result<(), OptionsError> {
    let batch = namespace.delivery.batch;
    let wrong = |name: &str, value: &str, expected: &str| {
        Err(OptionsError::value(format!("{prefix_key}.{name}"), value, expected))
    };
    if batch.flush_latest && namespace.promises_every_publication() {
        let expected = "false where subscribers may recover a stream or have a position in it, \
                        because a publication that is left out would be a gap";
        return wrong("batch_flush_latest", "true", expected);
    }
    if (batch.flush_latest || batch.max_size > 0) && !batch.is_on() {
        let expected = "above 0s with batch_max_size or batch_flush_latest, \
                        because the last publications would wait without end";
        return wrong("batch_max_delay", "0s", expected);
    }
    Ok(())
}

fn check_name(index: usize, name: &str, boundary: &str) -> Result<(), OptionsError> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.len() < 2 || !name.bytes().all(known) {
        return Err(OptionsError::value(
            format!("channel.namespaces[{index}].name"),
            name,
            "two or more of the characters a-z A-Z 0-9 - _ .",
        ));
    }
    if !boundary.is_empty() && name.contains(boundary) {
        return Err(OptionsError::value(
            format!("channel.namespaces[{index}].name"),
            name,
            format!("a name without channel.namespace_boundary ({boundary:?})"),
        ));
    }
    Ok(())
}

fn one_char(key: &str, value: &str) -> Result<Option<char>, OptionsError> {
    let mut chars = value.chars();
    match (chars.next(), chars.next()) {
        (first, None) => Ok(first),
        _ => Err(OptionsError::value(key, value, "one character, or \"\" to do without")),
    }
}

/// The keys whose value is one character.
fn characters(options: &ChannelOptions) -> [(&'static str, &str); 4] {
    [
        (PRIVATE_PREFIX, &options.private_prefix),
        (NAMESPACE_BOUNDARY, &options.namespace_boundary),
        (USER_BOUNDARY, &options.user_boundary),
        (USER_SEPARATOR, &options.user_separator),
    ]
}

/// The same character for two purposes would make names ambiguous.
fn check_distinct(options: &ChannelOptions) -> Result<(), OptionsError> {
    let rows = characters(options);
    for (index, (key, value)) in rows.iter().enumerate() {
        let earlier = rows[..index].iter().find(|(_, other)| other == value);
        if let Some((other, _)) = earlier.filter(|_| !value.is_empty()) {
            return Err(OptionsError::value(*key, value, format!("not the same as {other}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
