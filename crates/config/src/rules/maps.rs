//! The broker of maps, which is the engine.
//! In: a filled `Config` → out: a severity, the key and a sentence.
//! Uses values only. Never: what a map keeps; `policy::channel` checks its keys.
//! Changed here: where maps can be kept.

use super::{Config, Severity};
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
