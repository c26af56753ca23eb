//! Connections apart from an engine, for consumers of streams: one caller, commands that may block.
//! In: options of one Redis, Sentinels or a Cluster, and a key → out: a connection to the Redis that has the key; replies.
//! Uses the dialer, with its checks. Never: shares a connection, waits without a limit.
//! Changed here: how the node of a Cluster with a key is found. How a connection begins is in `dial.rs`.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::clock::RedisClock;
use super::dial::{Connection, Dialer, Expected};
use super::error::RedisError;
use super::options::RedisOptions;
use super::redirect::Redirect;
use super::wire::RedisCommand;

/// Opens connections to one Redis or one Cluster.
#[derive(Clone, Debug)]
pub struct OwnDialer {
    /// One, or some nodes of a Cluster.
    dialers: Vec<Dialer>,
    options: Arc<RedisOptions>,
}

/// A connection of one caller.
pub struct OwnConnection {
    connection: Connection,
    dialer: Dialer,
}

impl OwnDialer {
    /// For the first address, or the first Cluster, of the options. Must be called inside a runtime, which watches Sentinels.
    pub fn new(options: RedisOptions) -> Self {
        let is_cluster = !options.clusters.is_empty();
        let seeds = options.clusters.first().cloned();
        let addresses =
            seeds.unwrap_or_else(|| options.addresses.iter().take(1).cloned().collect());
        let dialer = |address| {
            let dialer = Dialer::new(address, &options, Arc::new(RedisClock::new())).for_commands();
            dialer.watch(&Handle::current());
            if is_cluster { dialer.expecting(Expected::ClusterNode) } else { dialer }
        };
        let dialers = addresses.iter().map(dialer).collect();
        Self { dialers, options: Arc::new(options) }
    }

    /// Connects to the Redis that has a key.
    ///
    /// # Errors
    /// That of the last address, after its time limits.
    pub async fn connect(&self, key: &[u8]) -> Result<OwnConnection, RedisError> {
        let mut last = None;
        for dialer in &self.dialers {
            match self.follow(dialer.clone(), key).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("options have an address"))
    }

    /// Connects, and goes where a Cluster says that the key is.
    async fn follow(&self, mut dialer: Dialer, key: &[u8]) -> Result<OwnConnection, RedisError> {
        for _ in 0..REDIRECTS_MAX {
            let connection = dialer.dial(Vec::new(), Arc::new(drop)).await?;
            let mut own = OwnConnection { connection, dialer };
            let Value::ServerError(error) = own.send(&[b"TYPE", key], Duration::ZERO).await? else {
                return Ok(own);
            };
            let (Some(Redirect::Moved(node)) | Some(Redirect::Ask(node))) =
                Redirect::of(own.dialer.address(), &error)
            else {
                return Err(own.dialer.refused(error.code(), error.details()));
            };
            let next = Dialer::new(&node, &self.options, Arc::new(RedisClock::new()));
            dialer = next.for_commands().expecting(Expected::ClusterNode);
        }
        Err(dialer.unreachable("the Cluster moved the key too often"))
    }
}

impl OwnConnection {
    /// Sends a command, which may block for some time, and returns its reply.
    ///
    /// # Errors
    /// An error reply, or the end of the connection; after a reply that is late, the connection must not be used.
    pub async fn call(
        &mut self,
        arguments: &[&[u8]],
        blocks_for: Duration,
    ) -> Result<Value, RedisError> {
        match self.send(arguments, blocks_for).await? {
            Value::ServerError(error) => Err(self.dialer.refused(error.code(), error.details())),
            reply => Ok(reply),
        }
    }

    async fn send(
        &mut self,
        arguments: &[&[u8]],
        blocks_for: Duration,
    ) -> Result<Value, RedisError> {
        let limit = blocks_for + self.dialer.io_timeout;
        let command = RedisCommand::of(arguments).into_cmd();
        let reply = timeout(limit, self.connection.send_packed_command(&command)).await;
        let reply = reply.map_err(|_| RedisError::late(self.dialer.address(), "a reply", limit))?;
        reply.map_err(|error| self.dialer.broken(&error))
    }
}

const REDIRECTS_MAX: usize = 5;
