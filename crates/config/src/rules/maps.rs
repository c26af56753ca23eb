//! The broker of maps, which is the engine, and proxies of maps in namespaces of other channels.
//! In: a filled `Config` → out: a severity, the key and a sentence.
//! Uses values only. Never: what a map keeps; `policy::channel` checks its keys.
//! Changed here: where maps can be kept, and which of their keys have no effect elsewhere.

use fanwire_policy::options::{Namespace, SubscriptionType};

use super::{Config, Severity};
use crate::keys::{NAMESPACES, WITHOUT_NAMESPACE};
use crate::options::{EngineKind, MapBrokerKind};

/// `map_broker.type` must not name another store than the engine.
pub(super) fn are_where_the_engine_is(config: &Config) -> Option<(Severity, &'static str, String)> {
    let reason = match (config.map_broker.kind, config.engine.kind) {
        (MapBrokerKind::Memory, _) | (MapBrokerKind::Redis, EngineKind::Redis) => return None,
        (MapBrokerKind::Redis, EngineKind::Memory) => {
            "map_broker.type is redis, but engine.type is memory, and maps are kept where the engine is; set engine.type to redis, or leave map_broker.type out"
        }
        (MapBrokerKind::Postgres, _) => {
            "map_broker.type is postgres, which is not supported; leave it out, and maps are kept where engine.type says"
        }
    };
    Some((Severity::Error, "map_broker.type", reason.to_owned()))
}

/// Proxies that decide about changes of maps have no effect in a namespace whose clients change none.
pub(super) fn proxies_without_maps(config: &Config) -> Vec<(Severity, String, String)> {
    let channel = &config.channel;
    let named = channel.namespaces.iter().map(|one| (format!("{NAMESPACES}[{}]", one.name), one));
    let without = (WITHOUT_NAMESPACE.to_owned(), &channel.without_namespace);
    let all = std::iter::once(without).chain(named);
    all.flat_map(|(at, namespace)| without_effect(&at, namespace)).collect()
}

fn without_effect(at: &str, namespace: &Namespace) -> Vec<(Severity, String, String)> {
    if namespace.subscription_type == SubscriptionType::Map {
        return Vec::new();
    }
    let switches = [
        ("map.publish_proxy_enabled", namespace.map.publish_proxy.enabled),
        ("map.remove_proxy_enabled", namespace.map.remove_proxy.enabled),
    ];
    let on = switches.into_iter().filter(|(_, is_on)| *is_on);
    let warning = |(name, _)| {
        let key = format!("{at}.{name}");
        let reason = format!(
            "{key} is true and has no effect, because clients change keys in maps only: set {at}.subscription_type to map, or \
             leave the key out"
        );
        (Severity::Warning, key, reason)
    };
    on.map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_of_maps_needs_a_map() {
        let mut config = Config::blank();
        assert!(proxies_without_maps(&config).is_empty());
        let board = Namespace { name: "board".into(), ..Namespace::default() };
        config.channel.namespaces = vec![board];
        config.channel.namespaces[0].map.publish_proxy.enabled = true;
        config.channel.without_namespace.map.remove_proxy.enabled = true;
        let keys = |config: &Config| {
            let found = proxies_without_maps(config);
            found.into_iter().map(|(_, key, _)| key).collect::<Vec<_>>()
        };
        let of_board = "channel.namespaces[board].map.publish_proxy_enabled";
        let of_others = "channel.without_namespace.map.remove_proxy_enabled";
        assert_eq!(keys(&config), [of_others, of_board]);
        config.channel.namespaces[0].subscription_type = SubscriptionType::Map;
        assert_eq!(keys(&config), [of_others]);
        config.channel.without_namespace.subscription_type = SubscriptionType::MapClients;
        assert_eq!(keys(&config), [of_others], "clients do not write who is present");
    }
}
