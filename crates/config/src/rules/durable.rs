//! Durable Streams: a namespace with a history, in an engine that can keep the state of streams.
//! In: a filled `Config` → out: a remark for each mistake.
//! Uses the options as they are written. Never: serves.
//! Changed here: what the endpoint needs from other keys.

use super::{Remark, Severity};
use crate::options::{Config, EngineKind};

pub(super) fn are_right(config: &Config) -> Vec<Remark> {
    let options = &config.durable_streams;
    if !options.enabled {
        return Vec::new();
    }
    let mut found = Vec::new();
    let namespaces = &config.channel.namespaces;
    let namespace = namespaces.iter().find(|one| one.name == options.namespace);
    if !namespace.is_some_and(|one| one.history_size > 0 && !one.history_ttl.is_zero()) {
        let reason = format!(
            "{NAMESPACE} is {:?}, expected the name of a namespace in channel.namespaces with history_size and history_ttl",
            options.namespace
        );
        found.push((Severity::Error, NAMESPACE, reason));
    }
    if namespace.is_some_and(|one| one.subscribe_stream_proxy.enabled) {
        let reason = format!(
            "{NAMESPACE} is {:?} with subscribe_stream_proxy_enabled, which is not asked about reads over HTTP, because they have no \
             subscriber that a stream could go to: without a key or a subscription token they get 403. Set \
             subscribe_proxy_enabled instead, if a proxy should decide about them",
            options.namespace
        );
        found.push((Severity::Warning, NAMESPACE, reason));
    }
    if config.engine.kind != EngineKind::Memory {
        let reason = format!(
            "{ENABLED} is true and engine.type is not memory, but the state of streams is in the memory of one node; set \
             engine.type to memory, or {ENABLED} to false"
        );
        found.push((Severity::Error, ENABLED, reason));
    }
    if options.insecure {
        let reason = format!(
            "{INSECURE} is true, so anybody who reaches this server may read, write and delete streams; for tests only"
        );
        found.push((Severity::Warning, INSECURE, reason));
    }
    found
}

const ENABLED: &str = "durable_streams.enabled";
const INSECURE: &str = "durable_streams.insecure";
const NAMESPACE: &str = "durable_streams.namespace";

#[cfg(test)]
mod tests;
