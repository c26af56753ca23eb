//! How to reach Redis (`engine.redis.*`), and the limits of everything that waits for it.
//! In: addresses as operators write them → out: hosts, ports and credentials, or what is wrong with them.
//! Uses: nothing. Never: sockets.
//! Change here: what can be said about a Redis. Configuration keys live in the server.

use std::fmt;
use std::time::Duration;

use super::error::RedisError;

/// Everything about one engine.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// One Redis, or several: then each channel belongs to one of them.
    pub addresses: Vec<Address>,
    /// Instead: one Cluster, or several; each by some of its nodes.
    pub clusters: Vec<Vec<Address>>,
    /// What all key names begin with.
    pub prefix: String,
    /// What connections are called in `CLIENT LIST`; "" = nothing.
    pub client_name: String,
    /// For opening a connection.
    pub connect_timeout: Duration,
    /// For a reply; a connection that owes one for longer is given up.
    pub io_timeout: Duration,
    /// Connections for commands to each Redis; each channel uses one of them.
    pub command_connections: usize,
    /// Connections for PUB/SUB to each Redis; each channel uses one of them.
    pub feed_connections: usize,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            addresses: vec![Address::default()],
            clusters: Vec::new(),
            prefix: "fanwire".to_owned(),
            client_name: String::new(),
            connect_timeout: Duration::from_secs(1),
            io_timeout: Duration::from_secs(4),
            command_connections: 2,
            feed_connections: 2,
        }
    }
}

/// One Redis.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub host: String,
    pub port: u16,
    /// "" = the default user.
    pub user: String,
    /// "" = none.
    pub password: String,
    pub db: u32,
}

impl Default for Address {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: PORT,
            user: String::new(),
            password: String::new(),
            db: 0,
        }
    }
}

impl Address {
    /// Reads `host:port` or `redis://[[user]:password@]host[:port][/db]`.
    ///
    /// # Errors
    /// [`RedisError::Address`], which says what is wrong.
    pub fn parse(text: &str) -> Result<Self, RedisError> {
        let wrong = |wrong| RedisError::Address { text: without_password(text), wrong };
        let rest = match text.split_once("://") {
            Some(("redis", rest)) => rest,
            Some(_) => return Err(wrong("its scheme is none of: redis")),
            None => text,
        };
        let (place, db) = rest.split_once('/').unwrap_or((rest, ""));
        let db = if db.is_empty() { Ok(0) } else { db.parse() };
        let db = db.map_err(|_| wrong("what follows the slash is not the number of a database"))?;
        let (credentials, place) = place.rsplit_once('@').unwrap_or(("", place));
        let (user, password) = credentials.split_once(':').unwrap_or(("", credentials));
        let decoded = |text| decoded(text).ok_or(wrong("it has a broken %-escape"));
        let (user, password) = (decoded(user)?, decoded(password)?);
        let (host, port) = host_and_port(place).map_err(wrong)?;
        Ok(Self { host, port, user, password, db })
    }
}

/// As an operator knows it: without credentials.
impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        if host.contains(':') {
            write!(out, "[{host}]:{port}")
        } else {
            write!(out, "{host}:{port}")
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Address({self}/{})", self.db)
    }
}

fn host_and_port(place: &str) -> Result<(String, u16), &'static str> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("its [ is not closed")?;
            (host, port.strip_prefix(':').unwrap_or_default())
        }
        None => place.split_once(':').unwrap_or((place, "")),
    };
    if host.is_empty() {
        return Err("it has no host");
    }
    let port = if port.is_empty() { Ok(PORT) } else { port.parse() };
    Ok((host.to_owned(), port.map_err(|_| "its port is not a number up to 65535")?))
}

/// Without `%` escapes; `None` when one is broken.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut pieces = text.split('%');
    bytes.extend_from_slice(pieces.next()?.as_bytes());
    for piece in pieces {
        let digits =
            piece.get(..2).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// Fit to be shown.
fn without_password(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, place)) => format!("…@{place}"),
        None => text.to_owned(),
    }
}

const PORT: u16 = 6379;

#[cfg(test)]
mod tests;
