//! Why a Redis cannot be used, said to its operator; and why a call was not answered, said to the engine.
//! In: addresses and what came back from them → out: errors with the address and the remedy.
//! Uses: nothing. Never: passwords.
//! Change here: what operators read. What clients and backends are told is `BrokerError`.

use std::fmt;

use super::options::Address;

/// Why a Redis cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisError {
    /// An address that cannot be read; `text` is without its password.
    Address { text: String, wrong: &'static str },
    /// No connection, or it ended.
    Unreachable { address: Address, why: String },
    /// The credentials are wrong, missing, or may not do what is needed.
    Denied { address: Address, reply: String },
    /// Something else listens there.
    NotRedis { address: Address },
    /// A Redis that lacks commands.
    TooOld { address: Address, version: String },
    /// One that lacks commands which a Cluster needs.
    TooOldForCluster { address: Address, version: String },
    /// Something else than a node of a Cluster, where one is expected.
    NotCluster { address: Address },
    /// A node of a Cluster, a Sentinel or a replica, where a standalone master is expected.
    Role { address: Address, role: String },
    /// It refused something else, or is busy loading its data.
    Refused { address: Address, reply: String },
}

impl RedisError {
    /// Whether trying again is of no use until somebody changes the configuration or the Redis.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Refused { .. } => false,
            Self::Address { .. } | Self::Denied { .. } | Self::NotRedis { .. } => true,
            Self::TooOld { .. } | Self::TooOldForCluster { .. } => true,
            Self::NotCluster { .. } => true,
            // A replica may be a master that failed over a moment ago.
            Self::Role { role, .. } => role != "slave",
        }
    }
}

impl fmt::Display for RedisError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { text, wrong } => write!(
                out,
                "the Redis address {text} cannot be used: {wrong}; write host:port or redis://:password@host:port/db"
            ),
            Self::Unreachable { address, why } => write!(
                out,
                "Redis at {address} cannot be reached ({why}): check engine.redis.address, and that Redis runs and listens there"
            ),
            Self::Denied { address, reply } => write!(
                out,
                "Redis at {address} denies access ({reply}): check engine.redis.user and engine.redis.password"
            ),
            Self::NotRedis { address } => write!(
                out,
                "what listens at {address} does not speak the Redis protocol: check the port in engine.redis.address, and whether it expects TLS"
            ),
            Self::TooOld { address, version } => {
                write!(out, "Redis at {address} has version {version}: 6.2 or newer is needed")
            }
            Self::TooOldForCluster { address, version } => {
                write!(
                    out,
                    "Redis at {address} has version {version}: in a Cluster 7.0 or newer is needed"
                )
            }
            Self::NotCluster { address } => write!(
                out,
                "Redis at {address} is no node of a Cluster: name a standalone Redis in engine.redis.address instead of engine.redis.cluster_address"
            ),
            Self::Role { address, role } if role == "cluster" => write!(
                out,
                "Redis at {address} runs in cluster mode: give it as engine.redis.cluster_address"
            ),
            Self::Role { address, role } if role == "slave" => write!(
                out,
                "Redis at {address} is a replica: name its master in engine.redis.address"
            ),
            Self::Role { address, role } => write!(
                out,
                "Redis at {address} runs in {role} mode, which is not supported here: name a standalone Redis in engine.redis.address"
            ),
            Self::Refused { address, reply } => write!(out, "Redis at {address} refuses: {reply}"),
        }
    }
}

impl std::error::Error for RedisError {}

/// Why a call has no result. For callers all are `BrokerError::Unavailable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Not sent, or sent and not answered in time.
    Unavailable,
    /// Answered with an error, or with something that the command never answers.
    Refused,
}
