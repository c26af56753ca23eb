//! The port of maps, implemented by the Redis engine: calls become scripts, and expired entries are removed once a second.
//! In: calls of the node → out: answers that come later, from the task of a connection.
//! Uses: connections, commands of maps. Never: blocks, waits.
//! Changed here: which command answers which call. The promises are in `broker/map.rs` of the crate `broker`.

mod command;
mod reads;
mod reply;
mod schedule;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_broker::map::{
    ChangesQuery, MapBroker, MapChannel, MapError, MapOutcome, MapPublish, MapRemoval, MapStats,
    PositionLost, StatePage, StateQuery,
};
use fanwire_broker::{Answer, StreamSlice};
use parking_lot::Mutex;

use super::Redis;
use super::command_connection::CommandConnection;
use super::error::Failure;
use super::keys::Keys;
use super::ports::later;
use super::wire::RedisCommand;
use command::MapTarget;
use reads::{ChangesRead, StateRead};
use reply::{MapState, read_outcome, read_sweep};
use schedule::{DueMap, SweepResult};

pub(crate) use reads::MapReads;
pub(crate) use schedule::SweepSchedule;

impl MapBroker for Redis {
    fn publish(
        &self,
        channel: MapChannel<'_>,
        publish: MapPublish,
        now: Instant,
    ) -> Answer<Result<MapOutcome, MapError>> {
        let needs_stream = publish.expected.is_some() || publish.version > 0;
        if needs_stream && !channel.retention.has_stream() {
            return Answer::now(Ok(Err(MapError::NoStream)));
        }
        self.map_sweeps.lock().add(channel, channel.retention.key_ttl, now);
        self.change(channel, self.target(channel, now).publish(&publish))
    }

    fn remove(
        &self,
        channel: MapChannel<'_>,
        removal: MapRemoval,
        now: Instant,
    ) -> Answer<Result<MapOutcome, MapError>> {
        if removal.expected.is_some() && !channel.retention.has_stream() {
            return Answer::now(Ok(Err(MapError::NoStream)));
        }
        self.change(channel, self.target(channel, now).remove(&removal))
    }

    fn read_state(
        &self,
        channel: MapChannel<'_>,
        query: &StateQuery,
        now: Instant,
    ) -> Answer<Result<StatePage, PositionLost>> {
        self.state(channel, query, now).map(|read| Ok(read?.map(|state| state.page)))
    }

    fn read_stream(
        &self,
        channel: MapChannel<'_>,
        query: ChangesQuery,
        now: Instant,
    ) -> Answer<Result<StreamSlice, PositionLost>> {
        if !channel.retention.has_stream() {
            return Answer::now(Ok(Ok(StreamSlice::default())));
        }
        let (done, answer) = later();
        self.changes(channel, query, now)(done);
        answer
    }

    fn follow(
        &self,
        channel: MapChannel<'_>,
        query: Option<ChangesQuery>,
        now: Instant,
    ) -> Answer<Result<StreamSlice, PositionLost>> {
        self.map_sweeps.lock().follow(channel, now);
        let (done, answer) = later();
        let query = query.filter(|_| channel.retention.has_stream());
        let read = query.map(|query| self.changes(channel, query, now));
        let (pubsub, name) = self.pubsub_connection(channel.name);
        pubsub.when_subscribed(&name, move |subscribed| match (subscribed, read) {
            (Ok(continuity), Some(read)) => read(move |slice: Result<_, Failure>| {
                // As for streams: after a break, changes that came after this read may be lost.
                done(if continuity.is_unbroken() { slice } else { Err(Failure::Unavailable) });
            }),
            (Ok(_), None) => done(Ok(Ok(StreamSlice::default()))),
            (Err(failure), _) => done(Err(failure)),
        });
        answer
    }

    fn stats(&self, channel: MapChannel<'_>, now: Instant) -> Answer<MapStats> {
        let position_only = StateQuery { limit: Some(0), ..StateQuery::default() };
        self.state(channel, &position_only, now).map(|read| {
            let entries = read?.map_or(0, |state| state.count);
            Ok(MapStats { entries })
        })
    }

    fn clear(&self, channel: MapChannel<'_>, now: Instant) -> Answer<()> {
        self.send_simple(channel.name, self.target(channel, now).clear())
    }
}

impl Redis {
    fn target<'a>(&'a self, channel: MapChannel<'a>, now: Instant) -> MapTarget<'a> {
        MapTarget { keys: &self.keys, channel, now_ms: self.ms(channel.name, now) }
    }

    fn change(
        &self,
        channel: MapChannel<'_>,
        command: RedisCommand,
    ) -> Answer<Result<MapOutcome, MapError>> {
        let (done, answer) = later();
        let health = Arc::clone(&self.health);
        self.command_connection(channel.name).send(command, move |reply| {
            done(reply.and_then(|reply| read_outcome(reply, &health)));
        });
        answer
    }

    fn state(
        &self,
        channel: MapChannel<'_>,
        query: &StateQuery,
        now: Instant,
    ) -> Answer<Result<MapState, PositionLost>> {
        // Entries may be left of a time without nodes.
        self.map_sweeps.lock().add(channel, Duration::ZERO, now);
        let (done, answer) = later();
        let connection = self.command_connection(channel.name).clone();
        let context = self.map_reads.context(connection, self.ms(channel.name, now));
        let MapChannel { name, retention } = channel;
        let read = StateRead { channel: name.into(), retention, query: query.clone() };
        self.map_reads.states.ask(read, context, done);
        answer
    }

    /// A read of changes that is sent when the returned function is called.
    fn changes<F>(
        &self,
        channel: MapChannel<'_>,
        query: ChangesQuery,
        now: Instant,
    ) -> impl FnOnce(F) + use<F>
    where
        F: FnOnce(Result<Result<StreamSlice, PositionLost>, Failure>) + Send + 'static,
    {
        let connection = self.command_connection(channel.name).clone();
        let context = self.map_reads.context(connection, self.ms(channel.name, now));
        let MapChannel { name, retention } = channel;
        let read = ChangesRead { channel: name.into(), retention, query };
        let changes = Arc::clone(&self.map_reads.changes);
        move |done| changes.ask(read, context, done)
    }

    /// Removes expired entries of the maps that are due.
    pub(super) fn sweep_maps(&self, now: Instant) {
        let due = self.map_sweeps.lock().take_due(SWEPT_MAPS_MAX, now);
        for map in due {
            let connection = self.command_connection(&map.name).clone();
            let now_ms = self.ms(&map.name, now);
            let schedule = Arc::clone(&self.map_sweeps);
            let keys = self.keys.clone();
            Sweep { connection, keys, map, now, now_ms, schedule }.send();
        }
    }
}

/// The sweep of one map.
struct Sweep {
    connection: CommandConnection,
    keys: Keys,
    map: DueMap,
    now: Instant,
    /// The same in Unix milliseconds of the Redis.
    now_ms: u64,
    schedule: Arc<Mutex<SweepSchedule>>,
}

impl Sweep {
    /// Removes expired entries in one script after the other, until none is left.
    fn send(self) {
        let DueMap { name, retention } = &self.map;
        let channel = MapChannel { name, retention: *retention };
        let target = MapTarget { keys: &self.keys, channel, now_ms: self.now_ms };
        let command = target.sweep();
        self.connection.clone().send(command, move |reply| match reply.and_then(read_sweep) {
            Ok(SweepResult::Next(Duration::ZERO)) => self.send(),
            result => {
                let result = result.unwrap_or(SweepResult::Failed);
                self.schedule.lock().swept(&self.map.name, result, self.now);
            }
        });
    }
}

/// Maps that one sweep looks at; others wait for the next one, a second later.
const SWEPT_MAPS_MAX: usize = 10_000;
