//! Opening a connection to a Redis, and making sure that it is one we can work with.
//! In: an address and timeouts → out: a connection that is logged in, or an error that names the address and the remedy.
//! Uses the crate `redis`, RESP3. Never: waits without a limit.
//! Change here: what is asked of a Redis before it is used. Who tries again lives in `line.rs` and `feed.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, IntoConnectionInfo as _};
use redis::{Pipeline, ProtocolVersion, PushInfo, RedisConnectionInfo, Value};
use tokio::time::timeout;

use super::clock::Clock;
use super::error::RedisError;
use super::options::{Address, RedisOptions};
use super::wire::{Command, number, parts, text};

/// Opens connections to one Redis.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    address: Address,
    client_name: String,
    connect_timeout: Duration,
    pub(crate) io_timeout: Duration,
    clock: Arc<Clock>,
    expected: Expected,
}

/// What has to be at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A master that stands alone.
    Standalone,
    /// A master of a Cluster.
    ClusterMaster,
    /// Any node of a Cluster.
    ClusterNode,
}

impl Dialer {
    pub(crate) fn new(address: &Address, options: &RedisOptions, clock: Arc<Clock>) -> Self {
        let RedisOptions { client_name, connect_timeout, io_timeout, .. } = options;
        Self {
            address: address.clone(),
            client_name: client_name.clone(),
            connect_timeout: *connect_timeout,
            io_timeout: *io_timeout,
            clock,
            expected: Expected::Standalone,
        }
    }

    /// One that takes something else for right.
    pub(crate) fn expecting(self, expected: Expected) -> Self {
        Self { expected, ..self }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// A connection on which `first` was answered well, too. Sets the clock by the time of the Redis. `pushed` gets what
    /// the Redis sends by itself, and the end of the connection; it must not block.
    ///
    /// # Errors
    /// A [`RedisError`] with the address, after the two timeouts at the latest.
    pub(crate) async fn dial(
        &self,
        first: impl Iterator<Item = Command>,
        pushed: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Result<MultiplexedConnection, RedisError> {
        let client = self.client().map_err(|error| self.broken(&error))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None) // ours below
            .set_response_timeout(Some(self.io_timeout))
            .set_pipeline_buffer_size(BATCHES_MAX)
            .set_push_sender(move |push| {
                pushed(push);
                Ok::<(), ()>(())
            });
        let limit = self.connect_timeout + self.io_timeout;
        let connected =
            timeout(limit, client.get_multiplexed_async_connection_with_config(&config));
        let connected = connected.await.map_err(|_| self.late("connecting", limit))?;
        let mut connection = connected.map_err(|error| self.broken(&error))?;
        let judged = timeout(self.io_timeout, self.judge(&mut connection, first)).await;
        judged.map_err(|_| self.late("its first reply", self.io_timeout))??;
        Ok(connection)
    }

    /// The connection was lost.
    pub(crate) fn unreachable(&self, why: impl ToString) -> RedisError {
        RedisError::Unreachable { address: self.address.clone(), why: why.to_string() }
    }

    /// What an error of the connection means.
    pub(crate) fn broken(&self, error: &redis::RedisError) -> RedisError {
        let address = self.address.clone();
        match error.kind() {
            ErrorKind::AuthenticationFailed => {
                let reply = error.detail().unwrap_or(error.category()).to_owned();
                RedisError::Denied { address, reply }
            }
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => RedisError::NotRedis { address },
            ErrorKind::RESP3NotSupported => {
                RedisError::TooOld { address, version: "before 6.0".to_owned() }
            }
            _ if error.is_timeout() => self.late("a reply", self.io_timeout),
            _ => match error.code() {
                Some(code) => self.refused(code, error.detail()),
                None => self.unreachable(error),
            },
        }
    }

    /// What an error reply means for the connection.
    pub(crate) fn refused(&self, code: &str, details: Option<&str>) -> RedisError {
        let address = self.address.clone();
        let reply = [code, details.unwrap_or_default()].join(" ");
        if DENIALS.contains(&code) {
            RedisError::Denied { address, reply }
        } else {
            RedisError::Refused { address, reply }
        }
    }

    fn late(&self, what: &str, after: Duration) -> RedisError {
        self.unreachable(format_args!("{what} took longer than {after:?}"))
    }

    fn client(&self) -> redis::RedisResult<Client> {
        let Address { host, port, user, password, db } = &self.address;
        let mut settings = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP3)
            .set_skip_set_lib_name()
            .set_db((*db).into());
        if !user.is_empty() {
            settings = settings.set_username(user);
        }
        if !password.is_empty() {
            settings = settings.set_password(password);
        }
        let place = ConnectionAddr::Tcp(host.clone(), *port);
        Client::open(place.into_connection_info()?.set_redis_settings(settings))
    }

    /// Whether we can work with it.
    async fn judge(
        &self,
        connection: &mut MultiplexedConnection,
        first: impl Iterator<Item = Command>,
    ) -> Result<(), RedisError> {
        let mut questions = Pipeline::new();
        for [one, other] in [["INFO", "server"], ["INFO", "replication"]] {
            questions.add_command(Command::of(&[one.as_bytes(), other.as_bytes()]).into_cmd());
        }
        questions.add_command(Command::of(&[b"TIME"]).into_cmd());
        if !self.client_name.is_empty() {
            let name = self.client_name.as_bytes();
            questions.add_command(Command::of(&[b"CLIENT", b"SETNAME", name]).into_cmd());
        }
        for command in first {
            questions.add_command(command.into_cmd());
        }
        let answers = connection.send_packed_commands(&questions, 0, questions.len()).await;
        let mut answers = answers.map_err(|error| self.broken(&error))?.into_iter();
        let mut next = || match answers.next().unwrap_or_default() {
            Value::ServerError(error) => Err(self.refused(error.code(), error.details())),
            answer => Ok(answer),
        };
        let (server, replication, time) = (text(next()?), text(next()?), next()?);
        self.judge_by(server.as_ref(), replication.as_ref())?;
        let not_redis = || RedisError::NotRedis { address: self.address.clone() };
        self.clock.set(Instant::now(), unix_ms(time).ok_or_else(not_redis)?);
        (3..questions.len()).try_for_each(|_| next().map(drop))
    }

    /// Whether we can work with a Redis that says this of itself (`INFO`). What it does not say is not held against it.
    fn judge_by(
        &self,
        server: Option<&Bytes>,
        replication: Option<&Bytes>,
    ) -> Result<(), RedisError> {
        let address = || self.address.clone();
        let said = |section: Option<&Bytes>, name| field(section.map_or(b"", |text| text), name);
        let is_in_cluster = self.expected != Expected::Standalone;
        if let Some(version) = said(server, "redis_version") {
            if number_of(&version) < VERSION_MIN {
                return Err(RedisError::TooOld { address: address(), version });
            }
            if is_in_cluster && number_of(&version) < CLUSTER_VERSION_MIN {
                return Err(RedisError::TooOldForCluster { address: address(), version });
            }
        }
        let mode = said(server, "redis_mode");
        if is_in_cluster && mode.as_deref().is_some_and(|mode| mode != "cluster") {
            return Err(RedisError::NotCluster { address: address() });
        }
        let mode = mode.filter(|mode| !is_in_cluster && mode != "standalone");
        let role = said(replication, "role").filter(|role| role != "master");
        match mode.or(role.filter(|_| self.expected != Expected::ClusterNode)) {
            Some(role) => Err(RedisError::Role { address: address(), role }),
            None => Ok(()),
        }
    }
}

/// What `TIME` answers: seconds and microseconds.
pub(crate) fn unix_ms(reply: Value) -> Option<u64> {
    let [seconds, micros] = parts(reply)?.try_into().ok()?;
    number(seconds)?.checked_mul(1000)?.checked_add(number(micros)? / 1000)
}

/// The value of a line `name:value`.
fn field(section: &[u8], name: &str) -> Option<String> {
    let section = String::from_utf8_lossy(section);
    let value = section.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// The first two numbers of a version.
fn number_of(version: &str) -> (u32, u32) {
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Batches of commands that a connection takes without waiting.
pub(crate) const BATCHES_MAX: usize = 64;
/// Codes of refusals that credentials or access lists cause.
const DENIALS: &[&str] = &["WRONGPASS", "NOAUTH", "NOPERM", "DENIED", "-DENIED"];
/// Exclusive ranges of streams.
const VERSION_MIN: (u32, u32) = (6, 2);
/// Sharded PUB/SUB.
const CLUSTER_VERSION_MIN: (u32, u32) = (7, 0);

#[cfg(test)]
mod tests;
