//! The connections to one Redis, and how they are opened.
//! In: an address, the expected role, the redirect handler → out: command connections, PUB/SUB connections, a clock.
//! Uses: both kinds of connections. Never: decides which channel is here.
//! Changed here: what belongs to one Redis. `store.rs` decides which Redis has a channel.

use std::sync::Arc;
use std::time::Instant;

use redis::Value;
use tokio::runtime::Handle;

use super::address::Address;
use super::clock::RedisClock;
use super::command_connection::{CommandConnection, UnroutedCalls};
use super::dial::{self, Dialer, Expected};
use super::error::Failure;
use super::health::Health;
use super::message_handler::MessageHandler;
use super::options::RedisOptions;
use super::pubsub_connection::PubSubConnection;
use super::redirect::ClusterRedirects;
use super::wire::RedisCommand;

/// The connections to one Redis.
pub(crate) struct Server {
    pub(crate) address: Address,
    pub(crate) command_connections: Vec<CommandConnection>,
    pub(crate) pubsub_connections: Vec<PubSubConnection>,
    pub(crate) clock: Arc<RedisClock>,
}

impl Server {
    /// Whether the last try to open a command connection failed.
    pub(crate) fn is_down(&self) -> bool {
        self.command_connections.iter().any(CommandConnection::is_down)
    }

    /// Sends `TIME`; the reply sets the clock.
    pub(crate) fn sync_clock(&self) {
        let clock = Arc::clone(&self.clock);
        let set = move |reply: Result<Value, Failure>| {
            if let Some(unix_ms) = reply.ok().and_then(dial::unix_ms) {
                clock.set(Instant::now(), unix_ms);
            }
        };
        self.command_connections[0].send(RedisCommand::of(&[b"TIME"]), set);
    }
}

/// Opens connections of one engine.
#[derive(Clone)]
pub(crate) struct ConnectionFactory {
    pub(crate) options: Arc<RedisOptions>,
    pub(crate) message_handler: Arc<MessageHandler>,
    pub(crate) health: Arc<Health>,
    pub(crate) runtime: Handle,
    /// The time of all clocks until their Redis has answered.
    pub(crate) clock: Arc<RedisClock>,
}

impl ConnectionFactory {
    /// Starts to connect, and reconnects until the server is dropped.
    pub(crate) fn open(
        &self,
        address: &Address,
        expected: Expected,
        redirects: &ClusterRedirects,
    ) -> Server {
        let clock = Arc::new(self.clock.fork());
        let dialer = Dialer::new(address, &self.options, Arc::clone(&clock)).expecting(expected);
        dialer.watch(&self.runtime);
        let for_commands = dialer.clone().for_commands();
        let connection = |_| {
            CommandConnection::open(
                for_commands.clone(),
                Arc::clone(&self.health),
                redirects.clone(),
                &self.runtime,
            )
        };
        let pubsub = |_| {
            let message_handler = Arc::clone(&self.message_handler);
            let health = Arc::clone(&self.health);
            PubSubConnection::open(
                dialer.clone(),
                message_handler,
                health,
                redirects.clone(),
                &self.runtime,
            )
        };
        Server {
            address: address.clone(),
            command_connections: (0..self.command_connection_count()).map(connection).collect(),
            pubsub_connections: (0..self.pubsub_connection_count()).map(pubsub).collect(),
            clock,
        }
    }

    /// A server without a Redis: calls and names wait there until they have one.
    pub(crate) fn unrouted(&self, redirects: &ClusterRedirects) -> (Server, UnroutedCalls) {
        let (connection, unrouted_calls) = CommandConnection::unrouted(Arc::clone(&self.health));
        let wait_timeout = self.options.io_timeout;
        let pubsub = |_| {
            PubSubConnection::unrouted(
                Arc::clone(&self.message_handler),
                redirects.clone(),
                wait_timeout,
            )
        };
        let server = Server {
            address: Address::default(),
            command_connections: vec![connection; self.command_connection_count()],
            pubsub_connections: (0..self.pubsub_connection_count()).map(pubsub).collect(),
            clock: Arc::clone(&self.clock),
        };
        (server, unrouted_calls)
    }

    fn command_connection_count(&self) -> usize {
        self.options.command_connections.max(1)
    }

    fn pubsub_connection_count(&self) -> usize {
        self.options.pubsub_connections.max(1)
    }
}
