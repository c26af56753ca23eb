//! `engine.*` and `map_broker.*`: where publications, history, presence and maps are stored.
//! In: values of the rows → out: the section.
//! Uses the options of `redis` and `tls`. Never: connects.
//! Changed here: the kinds of engines, and of brokers of maps.

use std::time::Duration;

use fanwire_redis::EngineRedisOptions;
use fanwire_tls::TlsOptions;

/// `engine.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineOptions {
    pub kind: EngineKind,
    pub memory: EngineMemoryOptions,
    pub redis: EngineRedisOptions<TlsOptions>,
}

/// `engine.memory.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineMemoryOptions {
    /// File that outlives the process; "" = none.
    pub snapshot_path: String,
    /// Time between two snapshots.
    pub snapshot_interval: Duration,
}

/// Store that publications, history and presence of all nodes share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// Memory of this process: there is one node.
    #[default]
    Memory,
    /// Redis: nodes with the same Redis are one server.
    Redis,
}

impl EngineKind {
    /// Kinds by their names in `engine.type`.
    pub(crate) const NAMED: [(&'static str, Self); 2] =
        [("memory", Self::Memory), ("redis", Self::Redis)];

    /// The name in `engine.type`.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, kind)| *kind == self).expect("every kind has a name").0
    }
}

/// `map_broker.*`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapBrokerOptions {
    pub kind: MapBrokerKind,
}

/// Store of maps. It is that of the engine, whatever kind is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapBrokerKind {
    /// Memory of the process; also when it is not configured.
    #[default]
    Memory,
    Redis,
    Postgres,
}

impl MapBrokerKind {
    /// Kinds by their names in `map_broker.type`.
    pub(crate) const NAMED: [(&'static str, Self); 3] =
        [("memory", Self::Memory), ("redis", Self::Redis), ("postgres", Self::Postgres)];
}
