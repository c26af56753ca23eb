//! The tables of all keys, one row per key: the source of help, sample files, checks and documentation.
//! In: nothing → out: rows for `Config` and `Namespace`, and the keys of Centrifugo that are not supported yet.
//! Uses `key`. Never: parsing, precedence, wording of findings.
//! A key is changed in its row; a new key is a new row, in the file of its section.

use std::time::Duration;

use super::key::{FromValue, Kind, Value};

pub(crate) mod api_keys;
pub(crate) mod channel;
pub(crate) mod client;
pub(crate) mod consumers;
pub(crate) mod durable;
pub(crate) mod events;
pub(crate) mod grpc;
pub(crate) mod not_yet;
pub(crate) mod proxy;
pub(crate) mod server;
pub(crate) mod unidirectional;

/// Lists of sections, each with a name: namespaces, event proxies, namespaces of RPC methods, consumers, keys of the API.
pub(crate) const NAMESPACES: &str = "channel.namespaces";
pub(crate) const PROXIES: &str = "proxies";
pub(crate) const RPC_NAMESPACES: &str = "rpc.namespaces";
pub(crate) const CONSUMERS: &str = "consumers";
pub(crate) const API_KEYS: &str = "http_api.keys";
/// The section with the rules of channels outside all namespaces.
pub(crate) const WITHOUT_NAMESPACE: &str = "channel.without_namespace";
/// The section for RPC methods outside all namespaces.
pub(crate) const RPC_WITHOUT_NAMESPACE: &str = "rpc.without_namespace";
/// The event proxy of RPC methods, whose keys those of `PROXIES` have, too.
pub(crate) const RPC_PROXY: &str = "rpc.proxy";

const SWITCH: Kind = Kind::Switch;
const TEXT: Kind = Kind::Text;
const SECRET: Kind = Kind::Secret;
const PORT_TEXT: Kind = Kind::PortText;
const PATH: Kind = Kind::Path;
const LIST: Kind = Kind::List;
const BLOCK: Kind = Kind::Block;
const PORT: Kind = integer(0, 65_535);
/// Sizes and counts that fit in memory anywhere.
const COUNT: Kind = integer(0, 0x7FFF_FFFF);
const COUNT_FROM_1: Kind = integer(1, 0x7FFF_FFFF);
/// Message sizes in bytes: 1 to 1 GiB.
const BYTES: Kind = integer(1, 0x4000_0000);
/// Waiting times of connections.
const DELAY: Kind = duration(Duration::ZERO, DAY);
/// Lifetimes of data, up to ten years.
const LIFETIME: Kind = duration(Duration::ZERO, Duration::from_secs(87_600 * 3600));
/// Limits of rates of connections, and the time in which one is used up.
const RATE_LIMIT: Kind = integer(0, 1_000_000);
const RATE_INTERVAL: Kind = duration(Duration::from_secs(1), DAY);
const DAY: Duration = Duration::from_secs(24 * 3600);

const fn integer(min: u64, max: u64) -> Kind {
    Kind::Integer { min, max }
}

const fn duration(min: Duration, max: Duration) -> Kind {
    Kind::Duration { min, max }
}

/// Bytes of memory, as far as this machine can count them.
fn memory(value: Value) -> usize {
    usize::try_from(u64::from_value(value)).unwrap_or(usize::MAX)
}
