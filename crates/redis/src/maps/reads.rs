//! Reads of maps. Equal reads at one time share a script, as those of streams do.
//! In: queries, the connection of the channel → out: the answer, for each caller.
//! Uses: command connections, commands, singleflight. Never: changes data.
//! Changed here: which reads of maps are equal. Sharing is in `singleflight.rs`.

use std::sync::Arc;
use std::time::Duration;

use fanwire_broker::StreamSlice;
use fanwire_broker::map::{ChangesQuery, MapChannel, MapRetention, PositionLost, StateQuery};

use super::command::MapTarget;
use super::reply::{MapState, read_changes, read_state};
use crate::command_connection::CommandConnection;
use crate::error::Failure;
use crate::health::Health;
use crate::keys::{KeyKind, Keys};
use crate::singleflight::{SharedRead, Singleflight};

/// The reads of maps of an engine.
pub(crate) struct MapReads {
    pub(super) states: Singleflight<StateRead>,
    pub(super) changes: Arc<Singleflight<ChangesRead>>,
    settings: Arc<ReadSettings>,
}

struct ReadSettings {
    keys: Keys,
    health: Arc<Health>,
    unpublished_ttl: Duration,
}

/// Given to a read when it is sent.
pub(super) struct ReadContext {
    connection: CommandConnection,
    settings: Arc<ReadSettings>,
    /// Unix milliseconds of the Redis.
    now_ms: u64,
}

/// Entries of a map.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct StateRead {
    pub(super) channel: Box<str>,
    pub(super) retention: MapRetention,
    pub(super) query: StateQuery,
}

/// Changes of a map.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ChangesRead {
    pub(super) channel: Box<str>,
    pub(super) retention: MapRetention,
    pub(super) query: ChangesQuery,
}

impl MapReads {
    pub(crate) fn new(keys: Keys, health: Arc<Health>, unpublished_ttl: Duration) -> Self {
        Self {
            states: Singleflight::new(Arc::clone(&health)),
            changes: Arc::new(Singleflight::new(Arc::clone(&health))),
            settings: Arc::new(ReadSettings { keys, health, unpublished_ttl }),
        }
    }

    pub(super) fn context(&self, connection: CommandConnection, now_ms: u64) -> ReadContext {
        ReadContext { connection, settings: Arc::clone(&self.settings), now_ms }
    }
}

impl SharedRead for StateRead {
    type Context = ReadContext;
    type Output = Result<MapState, PositionLost>;

    fn send(
        &self,
        context: ReadContext,
        done: impl FnOnce(Result<Self::Output, Failure>) + Send + 'static,
    ) {
        let ReadContext { connection, settings, now_ms } = context;
        let ReadSettings { keys, unpublished_ttl, .. } = &*settings;
        let channel = MapChannel { name: &self.channel, retention: self.retention };
        let command = MapTarget { keys, channel, now_ms }.state(&self.query, *unpublished_ttl);
        let query = self.query.clone();
        let name = keys.of(KeyKind::MapEntries, &self.channel);
        let health = Arc::clone(&settings.health);
        connection.send(command, move |reply| {
            done(reply.and_then(|reply| read_state(reply, &query, &name, &health)));
        });
    }
}

impl SharedRead for ChangesRead {
    type Context = ReadContext;
    type Output = Result<StreamSlice, PositionLost>;

    fn send(
        &self,
        context: ReadContext,
        done: impl FnOnce(Result<Self::Output, Failure>) + Send + 'static,
    ) {
        let ReadContext { connection, settings, now_ms } = context;
        let ReadSettings { keys, unpublished_ttl, .. } = &*settings;
        let channel = MapChannel { name: &self.channel, retention: self.retention };
        let query = self.query;
        let command = MapTarget { keys, channel, now_ms }.changes(query, *unpublished_ttl);
        let name = keys.of(KeyKind::MapChanges, &self.channel);
        let health = Arc::clone(&settings.health);
        connection.send(command, move |reply| {
            done(reply.and_then(|reply| read_changes(reply, query, &name, &health)));
        });
    }
}
