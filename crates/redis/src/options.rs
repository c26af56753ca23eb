//! The options of the Redis engine (`engine.redis.*`): addresses, timeouts, numbers of connections.
//! In: addresses as operators write them → out: hosts, ports and credentials, or an error.
//! Uses: nothing. Never: sockets.
//! Changed here: the options and the syntax of addresses, whose parts are in `address.rs`. Configuration keys are in the crate `config`.

use std::sync::Arc;
use std::time::Duration;

use super::address::{Address, PORT, Sentinels};
use super::error::RedisError;
use super::socket::RedisTls;

/// The options of one engine.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// One Redis, or several that share the channels.
    pub addresses: Vec<Address>,
    /// One Cluster or several, each by some of its nodes; used instead of `addresses`.
    pub clusters: Vec<Vec<Address>>,
    /// The beginning of all key names.
    pub prefix: String,
    /// The name of connections in `CLIENT LIST`; "" = none.
    pub client_name: String,
    /// Time limit for opening a connection.
    pub connect_timeout: Duration,
    /// Time limit for a reply. A connection that owes a reply for longer is closed.
    pub io_timeout: Duration,
    /// The replicas that must have a write.
    pub wait: Wait,
    /// How long the epoch of a channel without publications is kept after a read; zero = as long as others. Positions
    /// of subscribers have to be compared with the stream at shorter intervals.
    pub unpublished_ttl: Duration,
    /// Connections for commands to each Redis; each channel uses one of them.
    pub command_connections: usize,
    /// Connections for PUB/SUB to each Redis; each channel uses one of them.
    pub pubsub_connections: usize,
    /// TLS settings for each Redis; required when an address uses TLS.
    pub tls: Option<RedisTls>,
    /// TLS settings for Sentinels.
    pub sentinel_tls: Option<RedisTls>,
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
            wait: Wait::default(),
            unpublished_ttl: Duration::from_secs(55),
            command_connections: 2,
            pubsub_connections: 2,
            tls: None,
            sentinel_tls: None,
        }
    }
}

impl RedisOptions {
    /// Connects to each Redis with TLS, whatever its address says.
    pub(crate) fn require_tls(&mut self) {
        let redis = self.addresses.iter_mut().chain(self.clusters.iter_mut().flatten());
        redis.for_each(|address| address.is_tls = true);
    }

    /// Connects to each Sentinel with TLS.
    pub(crate) fn require_sentinel_tls(&mut self) {
        let sentinels = self.addresses.iter_mut().filter_map(|address| address.sentinels.as_mut());
        for sentinels in sentinels {
            let addresses = &mut Arc::make_mut(sentinels).addresses;
            addresses.iter_mut().for_each(|address| address.is_tls = true);
        }
    }

    /// The address with a database number, while the prefix is the default. The number does not separate two
    /// installations, because PUB/SUB of Redis ignores it.
    pub(crate) fn separated_by_database_only(&self) -> Option<&Address> {
        let has_own_names = self.prefix != Self::default().prefix;
        self.addresses.iter().find(|address| address.db != 0 && !has_own_names)
    }
}

/// How many replicas must have a write before it is answered (the command `WAIT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// 0 = none: a write is answered when the Redis has done it.
    pub replicas: u32,
    /// Time for the replicas; then the write fails although the Redis has done it. At most a quarter of `io_timeout`.
    pub timeout: Duration,
}

impl Default for Wait {
    fn default() -> Self {
        Self { replicas: 0, timeout: Duration::from_millis(500) }
    }
}

impl Address {
    /// Parses `host:port` or `SCHEME://[[user]:password@]host[:port][/db][?option=value&…]`, as Centrifugo does. Schemes are
    /// `redis`, `tcp`, `unix` with the path of a socket, and, with TLS, `rediss`. With `+sentinel` after the scheme, or with
    /// the option `sentinel_master_name`, the host is a Sentinel, and so are the values of the option `addr`.
    ///
    /// # Errors
    /// [`RedisError::Address`] with the reason.
    pub fn parse(text: &str) -> Result<Self, RedisError> {
        let wrong = |wrong| RedisError::Address { text: without_password(text), wrong };
        let (scheme, rest) = text.split_once("://").unwrap_or(("redis", text));
        if scheme == "unix" {
            return Self::parse_unix(rest).map_err(wrong);
        }
        let (is_tls, is_sentinel) = SCHEMES
            .iter()
            .find_map(|(name, is_tls, is_sentinel)| {
                (*name == scheme).then_some((*is_tls, *is_sentinel))
            })
            .ok_or_else(|| {
                wrong("its scheme is none of: redis, tcp, rediss, redis+sentinel, rediss+sentinel, redis+cluster, rediss+cluster, unix")
            })?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let query = Query::read(query).map_err(wrong)?;
        let (endpoint, db) = rest.split_once('/').unwrap_or((rest, ""));
        let db = if db.is_empty() { Ok(0) } else { db.parse() };
        let db = db.map_err(|_| wrong("what follows the slash is not the number of a database"))?;
        let (credentials, endpoint) = endpoint.rsplit_once('@').unwrap_or(("", endpoint));
        let (user, password) = credentials.split_once(':').unwrap_or(("", credentials));
        let decoded = |text| decoded(text).ok_or(wrong("it has a broken %-escape"));
        let user = decoded(user)?;
        let password = decoded(password)?;
        let mut address = Self { user, password, db, ..Self::default() };
        address.is_tls = is_tls || query.is_tls;
        if is_sentinel || !query.master.is_empty() {
            let sentinels = query.sentinels(endpoint, is_tls).map_err(wrong)?;
            (address.host, address.sentinels) = (String::new(), Some(Arc::new(sentinels)));
        } else {
            query.has_no_sentinels().map_err(wrong)?;
            (address.host, address.port) = host_and_port(endpoint, PORT).map_err(wrong)?;
        }
        Ok(address)
    }

    /// Parses `[[user]:password@]/path[?db=number]`, a socket of this machine.
    fn parse_unix(text: &str) -> Result<Self, &'static str> {
        let (rest, query) = text.split_once('?').unwrap_or((text, ""));
        let (credentials, path) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (user, password) = credentials.split_once(':').unwrap_or(("", credentials));
        let decoded = |text| decoded(text).ok_or("it has a broken %-escape");
        let user = decoded(user)?;
        let password = decoded(password)?;
        let host = decoded(path)?;
        if !host.starts_with('/') {
            return Err("unix:// is followed by the whole path of a socket");
        }
        let db = match query.strip_prefix("db=") {
            Some(db) => {
                db.parse().map_err(|_| "db= is not followed by the number of a database")?
            }
            None if query.is_empty() => 0,
            None => {
                return Err("a socket has the option db alone; others are keys of engine.redis");
            }
        };
        Ok(Self { host, port: 0, user, password, db, ..Self::default() })
    }

    /// Parses the `host:port` of a Sentinel.
    ///
    /// # Errors
    /// [`RedisError::Address`] with the reason.
    pub fn parse_sentinel(text: &str) -> Result<Self, RedisError> {
        let wrong = |wrong| RedisError::Address { text: without_password(text), wrong };
        if text.contains(['/', '@', '?']) {
            return Err(wrong(
                "a Sentinel is host:port here, and its credentials have keys of their own",
            ));
        }
        let (host, port) = host_and_port(text, SENTINEL_PORT).map_err(wrong)?;
        Ok(Self { host, port, is_sentinel: true, ..Self::default() })
    }
}

/// The options after the `?` of an address, unescaped.
#[derive(Default)]
struct Query {
    master: String,
    endpoints: Vec<String>,
    user: String,
    password: String,
    is_tls: bool,
    are_sentinels_tls: bool,
}

impl Query {
    fn read(text: &str) -> Result<Self, &'static str> {
        let mut query = Self::default();
        for option in text.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = decoded(value).ok_or("it has a broken %-escape")?;
            match name {
                "sentinel_master_name" => query.master = value,
                "addr" => query.endpoints.push(value),
                "sentinel_user" => query.user = value,
                "sentinel_password" => query.password = value,
                "tls_enabled" => query.is_tls = is_true(&value)?,
                "sentinel_tls_enabled" => query.are_sentinels_tls = is_true(&value)?,
                _ => {
                    return Err(
                        "its options may be sentinel_master_name, addr, sentinel_user, sentinel_password, tls_enabled, sentinel_tls_enabled; others are keys of engine.redis",
                    );
                }
            }
        }
        Ok(query)
    }

    /// The Sentinel of the host part, and those of the options.
    fn sentinels(self, endpoint: &str, is_tls: bool) -> Result<Sentinels, &'static str> {
        if self.master.is_empty() {
            return Err("it names no master: add ?sentinel_master_name=");
        }
        let mut addresses = Vec::new();
        for endpoint in std::iter::once(endpoint).chain(self.endpoints.iter().map(String::as_str)) {
            let (host, port) = host_and_port(endpoint, SENTINEL_PORT)?;
            let user = self.user.clone();
            let password = self.password.clone();
            let is_tls = is_tls || self.are_sentinels_tls;
            let is_sentinel = true;
            addresses.push(Address {
                host,
                port,
                user,
                password,
                is_tls,
                is_sentinel,
                ..Address::default()
            });
        }
        Ok(Sentinels { master: self.master, addresses, client_name: String::new() })
    }

    fn has_no_sentinels(&self) -> Result<(), &'static str> {
        let Self { endpoints, user, password, are_sentinels_tls, .. } = self;
        if endpoints.is_empty() && user.is_empty() && password.is_empty() && !are_sentinels_tls {
            return Ok(());
        }
        Err("it names no master: add sentinel_master_name=")
    }
}

fn is_true(text: &str) -> Result<bool, &'static str> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("an option of it is neither true nor false"),
    }
}

fn host_and_port(endpoint: &str, default: u16) -> Result<(String, u16), &'static str> {
    let (host, port) = match endpoint.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("its [ is not closed")?;
            (host, port.strip_prefix(':').unwrap_or_default())
        }
        None => endpoint.split_once(':').unwrap_or((endpoint, "")),
    };
    if host.is_empty() {
        return Err("it has no host");
    }
    let port = if port.is_empty() { Ok(default) } else { port.parse() };
    Ok((host.to_owned(), port.map_err(|_| "its port is not a number up to 65535")?))
}

/// Decodes `%` escapes; `None` for a broken one.
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

/// Removes credentials, for error messages.
fn without_password(text: &str) -> String {
    let head = text.split_once('?').map_or(text, |(head, _)| head);
    match head.rsplit_once('@') {
        Some((_, endpoint)) => format!("…@{endpoint}"),
        None if text.contains('@') => "…".to_owned(), // a question mark in a password, or an @ in an option
        None => head.to_owned(),
    }
}

/// Scheme, whether it uses TLS, whether it names Sentinels.
const SCHEMES: &[(&str, bool, bool)] = &[
    ("redis", false, false),
    ("tcp", false, false),
    ("rediss", true, false),
    ("redis+sentinel", false, true),
    ("rediss+sentinel", true, true),
];
const SENTINEL_PORT: u16 = 26379;

#[cfg(test)]
mod tests;
