//! The configuration of a server: Centrifugo v6's keys, read from file, environment and flags into one `Config`.
//! In: a path, environment pairs, flags → out: `Config` and findings, or an error that names file, key, value and remedy.
//! Uses the options of the crates that obey them. Reads files that are named; never the process environment, the clock or the network.
//! Changed here: the list of modules. A key is a row in `keys` and a field in `options`; kinds of values live in `key`, precedence in
//! `settings`, wording in `finding`.
#![forbid(unsafe_code)]

mod apply;
mod catalog;
pub mod document;
mod environment;
pub mod example;
mod file;
mod finding;
mod in_force;
mod key;
mod keys;
mod load;
mod nearest;
mod options;
mod reload;
mod renamed;
mod rules;
mod settings;
mod transforms;

#[cfg(test)]
mod tests;

pub use catalog::{Entry, Section, entries, find, sections};
pub use file::{FileError, Format};
pub use finding::{Finding, Problem, Severity, Source};
pub use in_force::ValueInForce;
pub use key::{Key, Kind, Misfit, Support, Value, Weight};
pub use load::{ConfigError, load};
pub use options::{
    AdminOptions, ChannelProxies, ChannelSection, ClientProxies, ClientRateLimits, ClientSection,
    ClusterSection, CompatibilityOptions, Config, ConnectCodeOptions, DedicatedOptions,
    EndpointOptions, EngineKind, EngineMemoryOptions, EngineOptions, GrpcApiOptions,
    HttpApiOptions, HttpServerOptions, JwksOptions, LogOptions, MapBrokerKind, MapBrokerOptions,
    NodeOptions, OpentelemetryOptions, PingOptions, PrometheusOptions, RecorderOptions, RpcSection,
    ShutdownOptions, TokenSection, WebsocketOptions,
};
pub use reload::{LoadedConfig, Reload};
pub use renamed::{is_configuration, renamed};
pub use transforms::Transforms;
