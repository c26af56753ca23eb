//! One share of the channels: a standalone Redis, or a Cluster, which spreads its part over masters.
//! In: the location of a channel → out: its command connection, its PUB/SUB connection, its clock.
//! Uses: servers, the map of a Cluster. Never: blocks for longer than a Cluster takes to change its map.
//! Changed here: how a connection is found. `consistent_hash::jump` chooses the store of a channel, `keys.rs` its slot.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::MappedRwLockReadGuard;

use super::call::Route;
use super::cluster::Cluster;
use super::command_connection::CommandConnection;
use super::location::Location;
use super::pubsub_connection::PubSubConnection;
use super::server::Server;

/// One share of the channels.
pub(crate) enum Store {
    Single(Box<Server>),
    Cluster(Arc<Cluster>),
}

/// A connection to send a command on.
pub(crate) enum CommandConnectionRef<'a> {
    Single(&'a CommandConnection),
    Cluster(CommandConnection),
}

impl Deref for CommandConnectionRef<'_> {
    type Target = CommandConnection;

    fn deref(&self) -> &CommandConnection {
        match self {
            Self::Single(connection) => connection,
            Self::Cluster(connection) => connection,
        }
    }
}

/// A PUB/SUB connection. While it is held, the names of a Cluster do not move.
pub(crate) enum PubSubConnectionRef<'a> {
    Single(&'a PubSubConnection),
    Cluster(MappedRwLockReadGuard<'a, PubSubConnection>),
}

impl Deref for PubSubConnectionRef<'_> {
    type Target = PubSubConnection;

    fn deref(&self) -> &PubSubConnection {
        match self {
            Self::Single(pubsub) => pubsub,
            Self::Cluster(pubsub) => pubsub,
        }
    }
}

impl Store {
    pub(crate) fn command_connection(&self, location: Location) -> CommandConnectionRef<'_> {
        match self {
            Self::Single(server) => CommandConnectionRef::Single(
                &server.command_connections
                    [location.connection_index(server.command_connections.len())],
            ),
            Self::Cluster(cluster) => {
                let server = cluster.server(location.slot);
                let connection_index = location.connection_index(server.command_connections.len());
                let route = Route { slot: location.slot, connection_index, ..Route::default() };
                CommandConnectionRef::Cluster(
                    server.command_connections[connection_index].on(route),
                )
            }
        }
    }

    pub(crate) fn pubsub_connection(&self, location: Location) -> PubSubConnectionRef<'_> {
        match self {
            Self::Single(server) => PubSubConnectionRef::Single(
                &server.pubsub_connections
                    [location.connection_index(server.pubsub_connections.len())],
            ),
            Self::Cluster(cluster) => {
                PubSubConnectionRef::Cluster(cluster.pubsub_connection(location))
            }
        }
    }

    /// Unix milliseconds at `now`, by the clock of the Redis.
    pub(crate) fn ms(&self, location: Location, now: Instant) -> u64 {
        match self {
            Self::Single(server) => server.clock.ms(now),
            Self::Cluster(cluster) => cluster.server(location.slot).clock.ms(now),
        }
    }

    /// Sends `TIME` to each Redis and sets its clock.
    pub(crate) fn sync_clock(&self) {
        match self {
            Self::Single(server) => server.sync_clock(),
            Self::Cluster(cluster) => cluster.servers().iter().for_each(|one| one.sync_clock()),
        }
    }
}
