//! The address of a Redis or a Sentinel.
//! In: host, port and credentials → out: the same, and a text for operators.
//! Uses: nothing. Never: passwords in texts.
//! Changed here: the parts of an address. Its syntax is in `options.rs`, that of a Cluster in `cluster/seeds.rs`.

use std::fmt;
use std::sync::Arc;

/// One Redis, or one Sentinel.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// "" = resolved by the `sentinels`.
    pub host: String,
    pub port: u16,
    /// "" = the default user.
    pub user: String,
    /// "" = none.
    pub password: String,
    pub db: u32,
    /// Whether to use TLS, with the settings of [`RedisOptions`](super::RedisOptions).
    pub is_tls: bool,
    /// Whether this is a Sentinel, which has no data.
    pub is_sentinel: bool,
    /// The Sentinels that resolve the master; `None` = a fixed address.
    pub sentinels: Option<Arc<Sentinels>>,
}

/// The Sentinels of one master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentinels {
    /// The name of the master.
    pub master: String,
    /// Addresses of some Sentinels, at least one. These report others.
    pub addresses: Vec<Address>,
    /// The name of connections to them; "" = none.
    pub client_name: String,
}

impl Default for Address {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: PORT,
            user: String::new(),
            password: String::new(),
            db: 0,
            is_tls: false,
            is_sentinel: false,
            sentinels: None,
        }
    }
}

impl Address {
    /// Whether the host is the path of a socket of this machine.
    pub(crate) fn is_unix(&self) -> bool {
        self.host.starts_with('/')
    }

    /// The address of the master that the Sentinels have resolved.
    pub(crate) fn located(&self, host: &str, port: u16) -> Self {
        Self { host: host.to_owned(), port, ..self.clone() }
    }

    /// The address of a node of a Cluster that this one reports. `host` is empty or `?` for a node that does not know
    /// its own, which is that of this address then.
    pub(crate) fn reported(&self, host: &[u8], port: u16) -> Self {
        match host {
            b"" | b"?" => Self { port, ..self.clone() },
            host => self.located(&String::from_utf8_lossy(host), port),
        }
    }
}

/// Writes the address without credentials.
impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        match &self.sentinels {
            Some(sentinels) if host.is_empty() => {
                return write!(out, "the master {}", sentinels.master);
            }
            _ if self.is_unix() => write!(out, "unix://{host}")?,
            _ if host.contains(':') => write!(out, "[{host}]:{port}")?,
            _ => write!(out, "{host}:{port}")?,
        }
        match &self.sentinels {
            Some(sentinels) => write!(out, " (the master {})", sentinels.master),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Address({self}/{})", self.db)
    }
}

/// The port of a Redis.
pub(crate) const PORT: u16 = 6379;
