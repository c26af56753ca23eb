//! Namespaces of maps that the engine cannot keep.
//! In: a filled `Config` → out: a severity, the full key and a sentence for each.
//! Uses values only. Never: what a map keeps; `policy::channel` checks its keys.
//! Changed here: which engines have maps.

use fanwire_policy::options::Namespace;

use super::{Config, Severity};
use crate::keys::{NAMESPACES, WITHOUT_NAMESPACE};
use crate::options::EngineKind;

/// Maps are in memory only: those of several nodes would differ.
pub(super) fn have_an_engine(config: &Config) -> Vec<(Severity, String, String)> {
    if config.engine.kind == EngineKind::Memory {
        return Vec::new();
    }
    let channel = &config.channel;
    let named = channel.namespaces.iter().map(|one| (format!("{NAMESPACES}[{}]", one.name), one));
    let all = std::iter::once((WITHOUT_NAMESPACE.to_owned(), &channel.without_namespace));
    let is_of_maps = |(_, one): &(String, &Namespace)| one.subscription_type.is_of_maps();
    let maps = all.chain(named).filter(is_of_maps);
    maps.map(|(at, _)| {
        let key = format!("{at}.subscription_type");
        let reason = format!(
            "{key} is map, but engine.type is redis, which has no maps yet; set engine.type to memory, or leave the namespace out"
        );
        (Severity::Error, key, reason)
    })
    .collect()
}
