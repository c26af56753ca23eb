//! Errors of a Redis for operators, and failures of calls for the engine.
//! In: addresses and errors of connections and replies → out: errors with the address and a remedy.
//! Uses: the errors of the crate `redis`. Never: passwords.
//! Changed here: the text for operators. Clients and backends get `BrokerError`.

use std::fmt;
use std::time::Duration;

use fanwire_broker::Abandoned;
use redis::ErrorKind;

use super::address::Address;

/// Why a Redis cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisError {
    /// An address that cannot be parsed; `text` has no password.
    Address { text: String, wrong: &'static str },
    /// No connection, or it ended.
    Unreachable { address: Address, why: String },
    /// The credentials are wrong, missing, or lack a permission.
    Denied { address: Address, reply: String },
    /// Something else listens there.
    NotRedis { address: Address },
    /// A Redis that lacks commands.
    TooOld { address: Address, version: String },
    /// A Redis that lacks commands for Clusters.
    TooOldForCluster { address: Address, version: String },
    /// Not a node of a Cluster, where one is expected.
    NotCluster { address: Address },
    /// A node of a Cluster, a Sentinel or a replica, where a standalone master is expected.
    Role { address: Address, role: String },
    /// A Redis without the database number of the address: it has fewer databases, or it is a node of a Cluster, which has one.
    Database { address: Address, reply: String },
    /// A Redis that refused another command, or is loading its data.
    Refused { address: Address, reply: String },
    /// A certificate is not trusted, or one side does not speak TLS.
    Tls { address: Address, why: String },
    /// The connection went silent or ended at the point where it does when only one side speaks TLS.
    TlsSuspected { address: Address, why: String },
    /// A Redis, where a Sentinel is expected.
    NotSentinel { address: Address },
    /// A Sentinel without this master.
    Master { address: Address, name: String },
}

impl RedisError {
    /// Whether another try is useless until an operator changes the configuration or the Redis.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Refused { .. } | Self::TlsSuspected { .. } => false,
            Self::Address { .. } | Self::Denied { .. } | Self::NotRedis { .. } => true,
            Self::TooOld { .. } | Self::TooOldForCluster { .. } | Self::Tls { .. } => true,
            Self::NotSentinel { .. } | Self::NotCluster { .. } | Self::Master { .. } => true,
            Self::Database { .. } => true,
            // A replica may be a master that failed over a moment ago.
            Self::Role { role, .. } => role != REPLICA,
        }
    }

    /// The error of a failed connection.
    pub(crate) fn of(address: &Address, error: &redis::RedisError, limit: Duration) -> Self {
        let at = address.clone();
        match error.kind() {
            ErrorKind::AuthenticationFailed => {
                let reply = error.detail().unwrap_or(error.category()).to_owned();
                Self::Denied { address: at, reply }
            }
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Self::NotRedis { address: at },
            ErrorKind::RESP3NotSupported => {
                Self::TooOld { address: at, version: "before 6.0".to_owned() }
            }
            _ if error.is_timeout() => Self::late(address, "a reply", limit),
            _ => match error.code() {
                Some(code) => Self::refusal(address, code, error.detail()),
                None => Self::unreachable(address, error),
            },
        }
    }

    /// The error of an error reply.
    pub(crate) fn refusal(address: &Address, code: &str, details: Option<&str>) -> Self {
        let address = address.clone();
        let reply = [code, details.unwrap_or_default()].join(" ");
        if DENIALS.contains(&code) {
            Self::Denied { address, reply }
        } else if NO_DATABASE.iter().any(|refusal| reply.starts_with(refusal)) {
            Self::Database { address, reply }
        } else {
            Self::Refused { address, reply }
        }
    }

    pub(crate) fn unreachable(address: &Address, why: impl ToString) -> Self {
        Self::Unreachable { address: address.clone(), why: why.to_string() }
    }

    pub(crate) fn tls_suspected(address: &Address, why: impl ToString) -> Self {
        Self::TlsSuspected { address: address.clone(), why: why.to_string() }
    }

    pub(crate) fn late(address: &Address, what: &str, after: Duration) -> Self {
        Self::unreachable(address, format_args!("{what} took longer than {after:?}"))
    }
}

impl fmt::Display for RedisError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { text, wrong } => write!(
                out,
                "the Redis address {text} cannot be used: {wrong}; write host:port or redis://:password@host:port/db"
            ),
            Self::Unreachable { address, why } => {
                let (what, key) = party(address);
                write!(
                    out,
                    "{what} at {address} cannot be reached ({why}): check {key}address, and that {what} runs and listens there"
                )
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
            Self::Denied { address, reply } => {
                let (what, key) = party(address);
                write!(
                    out,
                    "{what} at {address} denies access ({reply}): check {key}user and {key}password"
                )
            }
            Self::NotRedis { address } => {
                let (_, key) = party(address);
                write!(
                    out,
                    "what listens at {address} does not speak the Redis protocol: check the port in {key}address, and whether it expects TLS ({key}tls)"
                )
            }
            Self::TooOld { address, version } => {
                let (what, _) = party(address);
                write!(out, "{what} at {address} has version {version}: 6.2 or newer is needed")
            }
            Self::Role { address, role } => write_role(address, role, out),
            Self::Database { address, reply } => write_database(address, reply, out),
            Self::Refused { address, reply } => {
                let (what, _) = party(address);
                write!(out, "{what} at {address} refuses: {reply}")
            }
            Self::Tls { address, why } => {
                let (what, key) = party(address);
                write!(
                    out,
                    "{what} at {address} and this server do not agree on TLS ({why}): check that this port speaks TLS, and {key}tls"
                )
            }
            Self::TlsSuspected { address, why } => write_tls_suspected(address, why, out),
            Self::NotSentinel { address } => write!(
                out,
                "what listens at {address} is a Redis and no Sentinel: name Sentinels in engine.redis.sentinel_address, or this one in engine.redis.address"
            ),
            Self::Master { address, name } => write!(
                out,
                "the Sentinel at {address} knows no master {name}: check engine.redis.sentinel_master_name"
            ),
        }
    }
}

/// The server has the wrong role.
fn write_role(address: &Address, role: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (role, &address.sentinels) {
        ("cluster", _) => write!(
            out,
            "Redis at {address} runs in cluster mode: give it as engine.redis.cluster_address"
        ),
        (REPLICA, None) => {
            write!(out, "Redis at {address} is a replica: name its master in engine.redis.address")
        }
        (REPLICA, Some(_)) => write!(
            out,
            "Redis at {address} is a replica now: the Sentinels have not made another one the master yet"
        ),
        ("sentinel", _) => write!(
            out,
            "what listens at {address} is a Sentinel, which keeps nothing: name it in engine.redis.sentinel_address, and the master in engine.redis.sentinel_master_name"
        ),
        _ => write!(
            out,
            "Redis at {address} runs in {role} mode, which is not supported here: name a standalone Redis in engine.redis.address"
        ),
    }
}

/// Perhaps only one side speaks TLS.
fn write_tls_suspected(address: &Address, why: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (what, key) = party(address);
    if address.is_tls {
        return write!(
            out,
            "{what} at {address} did not answer the TLS handshake ({why}): if it speaks no TLS at this port, take {key}tls.enabled, or rediss:// in its address, back; if it does, see whether it is overloaded"
        );
    }
    write!(
        out,
        "{what} at {address} closed the connection at the greeting ({why}): it was stopped, or it speaks TLS at this port: see its own log, or set {key}tls.enabled"
    )
}

/// The database number does not exist.
fn write_database(address: &Address, reply: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    if reply.starts_with(ONE_DATABASE) {
        return write!(
            out,
            "Redis at {address} runs in cluster mode, which has database 0 only ({reply}): give it as engine.redis.cluster_address, without engine.redis.db"
        );
    }
    write!(
        out,
        "Redis at {address} has no database {} ({reply}): check engine.redis.db, or the number at the end of engine.redis.address",
        address.db
    )
}

/// The name of the server's kind, and the prefix of its configuration keys.
fn party(address: &Address) -> (&'static str, &'static str) {
    if address.is_sentinel {
        ("Sentinel", "engine.redis.sentinel_")
    } else {
        ("Redis", "engine.redis.")
    }
}

impl std::error::Error for RedisError {}

/// Why a call has no result. Callers see all as `BrokerError::Unavailable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Not sent, or sent and not answered in time.
    Unavailable,
    /// Answered with an error, or with a reply that the command does not have.
    Refused,
}

impl Abandoned for Failure {
    fn abandoned() -> Self {
        Self::Unavailable
    }
}

/// Error codes of credentials and access lists.
const DENIALS: &[&str] = &["WRONGPASS", "NOAUTH", "NOPERM", "DENIED", "-DENIED"];
/// Beginnings of refusals of `SELECT`.
const NO_DATABASE: [&str; 2] = [ONE_DATABASE, "ERR DB index is out of range"];
/// Refusal by a node of a Cluster.
const ONE_DATABASE: &str = "ERR SELECT is not allowed in cluster mode";
/// The role of a replica in `INFO`.
const REPLICA: &str = "slave";
