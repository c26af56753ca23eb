//! Opens a connection to a Redis and verifies that the engine can work with it.
//! In: an address and timeouts → out: a connection that is logged in, or an error with the address and a remedy.
//! Uses sockets and Sentinels. Never: waits without a limit.
//! Changed here: the checks before a Redis is used. `command_connection.rs` and `pubsub_connection.rs` try again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use redis::{Pipeline, Value};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::address::Address;
use super::clock::RedisClock;
use super::error::RedisError;
use super::options::{RedisOptions, Wait};
use super::sentinel::MasterResolver;
pub(crate) use super::socket::{BATCHES_MAX, Connection, PushHandler};
use super::socket::{RedisTls, Timeouts, open};
use super::wire::{RedisCommand, number, parts, text};

/// Opens connections to one Redis.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    address: Address,
    client_name: String,
    pub(crate) timeouts: Timeouts,
    pub(crate) io_timeout: Duration,
    pub(crate) wait: Wait,
    tls: Option<RedisTls>,
    clock: Arc<RedisClock>,
    expected: Expected,
    /// Finds the master; `None` for a fixed address.
    resolver: Option<Arc<MasterResolver>>,
}

/// The expected role of the server at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A master outside of Clusters.
    Standalone,
    /// A master of a Cluster.
    ClusterMaster,
    /// Any node of a Cluster.
    ClusterNode,
}

impl Dialer {
    pub(crate) fn new(address: &Address, options: &RedisOptions, clock: Arc<RedisClock>) -> Self {
        let connect = options.connect_timeout;
        let io = options.io_timeout;
        let timeouts = Timeouts { connect, io, has_own_timeout: false };
        let resolver = address.sentinels.as_ref().map(|sentinels| {
            Arc::new(MasterResolver::new(
                Arc::clone(sentinels),
                options.sentinel_tls.clone(),
                timeouts,
            ))
        });
        Self {
            address: address.clone(),
            client_name: options.client_name.clone(),
            timeouts,
            io_timeout: io,
            wait: options.wait,
            tls: options.tls.clone(),
            clock,
            expected: Expected::Standalone,
            resolver,
        }
    }

    /// Returns a dialer for command connections, which check for late replies themselves.
    pub(crate) fn for_commands(self) -> Self {
        let timeouts = Timeouts { has_own_timeout: true, ..self.timeouts };
        Self { timeouts, ..self }
    }

    /// Starts to watch the Sentinels, if there are any. When another Redis becomes the master, connections to the old
    /// one end.
    pub(crate) fn watch(&self, runtime: &Handle) {
        if let Some(resolver) = &self.resolver {
            MasterResolver::watch(resolver, runtime);
        }
    }

    /// The same with another expected role.
    pub(crate) fn expecting(self, expected: Expected) -> Self {
        Self { expected, ..self }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Connects, and requires that each command of `first` succeeds. Sets the clock by the time of the Redis. `pushed`
    /// gets the pushes of the Redis and the end of the connection; it must not block.
    ///
    /// # Errors
    /// A [`RedisError`] with the address, after twice the two timeouts at the latest, three times with Sentinels.
    pub(crate) fn dial(
        &self,
        first: Vec<RedisCommand>,
        pushed: PushHandler,
    ) -> BoxFuture<'_, Result<Connection, RedisError>> {
        Box::pin(self.connect(first, pushed))
    }

    async fn connect(
        &self,
        first: Vec<RedisCommand>,
        pushed: PushHandler,
    ) -> Result<Connection, RedisError> {
        let (address, master_replaced) = self.resolve_address().await?;
        let mut connection =
            open(&address, self.tls.as_ref(), self.timeouts, pushed, master_replaced).await?;
        let verified =
            timeout(self.io_timeout, self.verify(&address, &mut connection, first)).await;
        let late = |_| RedisError::late(&address, "its first reply", self.io_timeout);
        match (verified.map_err(late)?, &self.resolver) {
            (Ok(()), _) => Ok(connection),
            (Err(error), resolver) => {
                if let (RedisError::Role { .. }, Some(resolver)) = (&error, resolver) {
                    resolver.ask_next_first();
                }
                Err(error)
            }
        }
    }

    /// Completes when another Redis became the master, so that the next try may succeed.
    pub(crate) fn until_moved(&self) -> MasterChange {
        match &self.resolver {
            None => Box::pin(std::future::pending()),
            Some(resolver) => Box::pin(resolver.until_moved()),
        }
    }

    /// The current address of the Redis, and a future that completes when it is no longer there.
    async fn resolve_address(&self) -> Result<(Address, MasterChange), RedisError> {
        match &self.resolver {
            None => Ok((self.address.clone(), Box::pin(std::future::pending()))),
            Some(resolver) => {
                let master = resolver.resolve().await?;
                let address = self.address.located(&master.host, master.port);
                Ok((address, Box::pin(resolver.until_replaced(master.config_epoch))))
            }
        }
    }

    /// The error of a lost connection.
    pub(crate) fn unreachable(&self, why: impl ToString) -> RedisError {
        RedisError::unreachable(&self.address, why)
    }

    /// The error of a failed connection.
    pub(crate) fn broken(&self, error: &redis::RedisError) -> RedisError {
        RedisError::of(&self.address, error, self.io_timeout)
    }

    /// The error of an error reply.
    pub(crate) fn refused(&self, code: &str, details: Option<&str>) -> RedisError {
        RedisError::refusal(&self.address, code, details)
    }

    /// Checks that the engine can work with the server.
    async fn verify(
        &self,
        address: &Address,
        connection: &mut Connection,
        first: Vec<RedisCommand>,
    ) -> Result<(), RedisError> {
        let mut commands = Pipeline::new();
        // With tracking the Redis sends an invalidation when it drops all its data. A Redis that refuses the command
        // works without.
        commands
            .add_command(RedisCommand::of(&[b"CLIENT", b"TRACKING", b"ON", b"OPTIN"]).into_cmd());
        for [one, other] in [["INFO", "server"], ["INFO", "replication"]] {
            commands.add_command(RedisCommand::of(&[one.as_bytes(), other.as_bytes()]).into_cmd());
        }
        commands.add_command(RedisCommand::of(&[b"TIME"]).into_cmd());
        let preamble_length = commands.len();
        if !self.client_name.is_empty() {
            let name = self.client_name.as_bytes();
            commands.add_command(RedisCommand::of(&[b"CLIENT", b"SETNAME", name]).into_cmd());
        }
        for command in first {
            commands.add_command(command.into_cmd());
        }
        let answers = connection.send_packed_commands(&commands, 0, commands.len()).await;
        let broken = |error: redis::RedisError| RedisError::of(address, &error, self.io_timeout);
        let mut answers = answers.map_err(broken)?.into_iter();
        let mut next = || match answers.next().unwrap_or_default() {
            Value::ServerError(error) => {
                Err(RedisError::refusal(address, error.code(), error.details()))
            }
            answer => Ok(answer),
        };
        match next() {
            Err(RedisError::Refused { reply, .. }) if reply.starts_with("ERR ") => {}
            Err(RedisError::Denied { .. }) | Ok(_) => {}
            Err(error) => return Err(error), // it may accept the command later
        }
        let server = text(next()?);
        let replication = text(next()?);
        verify_info(address, self.expected, server.as_ref(), replication.as_ref())?; // before TIME, which a Sentinel lacks
        let not_redis = || RedisError::NotRedis { address: address.clone() };
        self.clock.set(Instant::now(), unix_ms(next()?).ok_or_else(not_redis)?);
        (preamble_length..commands.len()).try_for_each(|_| next().map(drop))?;
        connection
            .set_replication_history(replication_history_of(server.as_ref(), replication.as_ref()));
        Ok(())
    }
}

/// Completes when the Redis is not the master any more.
pub(crate) type MasterChange = BoxFuture<'static, ()>;

/// Checks the reply to `INFO`. A missing field passes.
fn verify_info(
    address: &Address,
    expected: Expected,
    server: Option<&Bytes>,
    replication: Option<&Bytes>,
) -> Result<(), RedisError> {
    let address = || address.clone();
    let is_in_cluster = expected != Expected::Standalone;
    if let Some(version) = info_field(server, "redis_version") {
        if number_of(&version) < VERSION_MIN {
            return Err(RedisError::TooOld { address: address(), version });
        }
        if is_in_cluster && number_of(&version) < CLUSTER_VERSION_MIN {
            return Err(RedisError::TooOldForCluster { address: address(), version });
        }
    }
    // Valkey has another name for the field.
    let mode = info_field(server, "redis_mode").or_else(|| info_field(server, "server_mode"));
    if is_in_cluster && mode.as_deref().is_some_and(|mode| mode != "cluster") {
        return Err(RedisError::NotCluster { address: address() });
    }
    let mode = mode.filter(|mode| !is_in_cluster && mode != "standalone");
    let role = info_field(replication, "role").filter(|role| role != "master");
    match mode.or(role.filter(|_| expected != Expected::ClusterNode)) {
        Some(role) => Err(RedisError::Role { address: address(), role }),
        None => Ok(()),
    }
}

/// The id of a replication history: the first 16 digits of the process (`run_id`), then of `master_replid`, which
/// changes with each promotion.
fn replication_history_of(server: Option<&Bytes>, replication: Option<&Bytes>) -> String {
    let ids = [info_field(server, "run_id"), info_field(replication, "master_replid")];
    ids.into_iter()
        .flatten()
        .flat_map(|id| id.chars().take(ID_LENGTH).collect::<Vec<_>>())
        .collect()
}

fn info_field(section: Option<&Bytes>, name: &str) -> Option<String> {
    field(section.map_or(b"", |text| text), name)
}

/// The reply to `TIME`: seconds and microseconds.
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

/// Digits of an id, of 40; enough to tell all ids apart.
const ID_LENGTH: usize = 16;
/// Oldest Redis with exclusive ranges of streams.
const VERSION_MIN: (u32, u32) = (6, 2);
/// Oldest Redis with sharded PUB/SUB.
const CLUSTER_VERSION_MIN: (u32, u32) = (7, 0);

#[cfg(test)]
mod tests;
