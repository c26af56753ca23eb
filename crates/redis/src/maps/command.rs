//! The commands of maps: each is one script, with the names and the retention of the map in front of its own arguments.
//! In: changes and queries → out: commands.
//! Uses: keys, scripts, Protobuf. Never: connections, replies.
//! Changed here: the arguments. The scripts are `script/map*.lua`, replies are read in `reply.rs`.

use std::time::Duration;

use fanwire_broker::map::{
    ChangesQuery, KeyMode, MapChannel, MapPublish, MapRemoval, MapRetention, StateQuery,
};
use fanwire_broker::{Epoch, Position};
use fanwire_protocol::{Publication, protobuf};

use crate::keys::{KeyKind, Keys};
use crate::record::{Record, RecordBody as _};
use crate::script::Script;
use crate::stream::{ARGUMENT_BYTES, RESULT_TTL_MS, millis};
use crate::wire::RedisCommand;

/// The arguments with which commands of a map begin.
#[derive(Clone, Copy)]
pub(super) struct MapTarget<'a> {
    pub(super) keys: &'a Keys,
    pub(super) channel: MapChannel<'a>,
    /// Unix milliseconds of the Redis.
    pub(super) now_ms: u64,
}

impl MapTarget<'_> {
    /// Sets a key.
    pub(super) fn publish(self, publish: &MapPublish) -> RedisCommand {
        let MapPublish { publication, idempotency_key, version, version_epoch, .. } = publish;
        let Publication { key, tags, .. } = publication;
        let tags = message(&Publication { tags: tags.clone(), ..Publication::default() });
        let rest = message(&Publication {
            tags: Default::default(),
            offset: 0,
            epoch: String::new(),
            prev_data: Default::default(),
            ..publication.clone()
        });
        let mut fields = Vec::new();
        protobuf::put_number(5, publish.delta.into(), &mut fields);
        let mode = match publish.key_mode {
            KeyMode::Any => "",
            KeyMode::IfNew { refreshes: false } => "new",
            KeyMode::IfNew { refreshes: true } => "refresh",
            KeyMode::IfExists => "exists",
        };
        let bytes = key.len() + tags.len() + rest.len() + version_epoch.len();
        let mut command = self.call(Script::MapPublish, idempotency_key, 12, bytes);
        command
            .text(key)
            .text(tags)
            .text(rest)
            .text(fields)
            .number(*version)
            .text(version_epoch)
            .text(mode);
        put_expected(publish.expected, &mut command);
        command
            .number(self.channel.retention.entries_max as u64)
            .number(publish.delta.into())
            .number(RESULT_TTL_MS);
        command
    }

    /// Removes a key.
    pub(super) fn remove(self, removal: &MapRemoval) -> RedisCommand {
        let Publication { key, tags, time, .. } = &removal.publication;
        let tags = message(&Publication { tags: tags.clone(), ..Publication::default() });
        let bytes = key.len() + tags.len();
        let mut command = self.call(Script::MapRemove, &removal.idempotency_key, 6, bytes);
        command.text(key).text(tags).number((*time).try_into().unwrap_or(0));
        put_expected(removal.expected, &mut command);
        command.number(RESULT_TTL_MS);
        command
    }

    /// Reads entries. `unpublished_ttl` is that of [`RedisOptions`](crate::RedisOptions).
    pub(super) fn state(self, query: &StateQuery, unpublished_ttl: Duration) -> RedisCommand {
        let StateQuery { cursor, limit, key, .. } = query;
        let (what, at, run_id) = match (key, limit) {
            (Some(key), _) => ("key", &**key, ""),
            (None, None) => ("all", "", ""),
            (None, Some(0)) => ("none", "", ""),
            (None, Some(_)) => match read_cursor(cursor) {
                Some(Cursor { at, run_id }) => ("page", at, run_id),
                None => ("none", "", ""),
            },
        };
        let mut command = self.call(Script::MapState, "", 5, at.len());
        command.text(what).text(at).number(count_of(*limit)).text(run_id);
        self.put_unpublished_ttl(unpublished_ttl, &mut command);
        command
    }

    /// Reads changes. At least one is read, because the first one shows whether changes before it are lost.
    pub(super) fn changes(self, query: ChangesQuery, unpublished_ttl: Duration) -> RedisCommand {
        let mut command = self.call(Script::MapChanges, "", 4, 0);
        command.number(query.reverse.into());
        match query.since {
            Some(since) => command.number(since.offset),
            None => command.text(""),
        };
        command.number(count_of(query.limit));
        self.put_unpublished_ttl(unpublished_ttl, &mut command);
        command
    }

    /// Removes up to [`SWEEP_MAX`] entries whose time is over.
    pub(super) fn sweep(self) -> RedisCommand {
        let mut command = self.call(Script::MapSweep, "", 1, 0);
        command.number(SWEEP_MAX);
        command
    }

    /// Forgets the map.
    pub(super) fn clear(self) -> RedisCommand {
        let record = Record::of_clearing();
        let length = record.length();
        let mut names = self.names();
        names.push(self.keys.of(KeyKind::MapClearing, self.channel.name));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut command = Script::MapClear.call(&names, 4, length + ARGUMENT_BYTES);
        command
            .text(Epoch::random().as_str())
            .number(RESULT_TTL_MS)
            .text(self.keys.publish())
            .message(length, &record);
        command
    }

    /// Starts a call with room for `arguments` more, of about `bytes`.
    fn call(
        self,
        script: Script,
        idempotency_key: &str,
        arguments: usize,
        bytes: usize,
    ) -> RedisCommand {
        let MapTarget { keys, channel: MapChannel { name, retention }, now_ms } = self;
        let mut names = self.names();
        if !idempotency_key.is_empty() {
            names.push(keys.of(KeyKind::MapClearing, name));
            names.push(keys.of_result(name, idempotency_key));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut command = script.call(&names, 9 + arguments, bytes + 4 * ARGUMENT_BYTES);
        let size = if retention.has_stream() { retention.stream.size as u64 } else { 0 };
        command
            .text(Epoch::random().as_str())
            .number(now_ms)
            .number(size)
            .number(millis(retention.stream.ttl))
            .number(millis(meta_ttl(retention)))
            .number(millis(retention.key_ttl))
            .number(millis(entries_ttl(retention)))
            .number(retention.bytes_max as u64)
            .text(keys.publish());
        command
    }

    fn names(self) -> Vec<String> {
        NAMES.iter().map(|kind| self.keys.of(*kind, self.channel.name)).collect()
    }

    fn put_unpublished_ttl(self, unpublished_ttl: Duration, command: &mut RedisCommand) {
        let ttls = [meta_ttl(self.channel.retention), unpublished_ttl];
        let ttl = ttls.into_iter().filter(|ttl| !ttl.is_zero()).min();
        command.number(millis(ttl.unwrap_or_default()));
    }
}

/// The position of a page, as clients get it: the cursor of HSCAN, a dot, and the `run_id` of the Redis, if it is known.
pub(super) struct Cursor<'a> {
    pub(super) at: &'a str,
    pub(super) run_id: &'a str,
}

/// Parses a cursor; `None` for a text that is none, behind which there is nothing.
pub(super) fn read_cursor(cursor: &str) -> Option<Cursor<'_>> {
    if cursor.is_empty() {
        return Some(Cursor { at: "0", run_id: "" });
    }
    let (at, run_id) = cursor.split_once('.')?;
    at.parse::<u64>().ok()?;
    Some(Cursor { at, run_id })
}

fn put_expected(expected: Option<Position>, command: &mut RedisCommand) {
    match expected {
        Some(Position { offset, epoch }) => command.number(offset).text(epoch.as_str()),
        None => command.text("").text(""),
    };
}

/// The Protobuf message of a publication.
fn message(publication: &Publication) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(protobuf::publication_length(publication));
    protobuf::put_publication(publication, &mut bytes);
    bytes
}

/// COUNT of a command that reads at least one.
fn count_of(limit: Option<usize>) -> u64 {
    limit.map_or(i64::MAX as u64, |limit| (limit as u64).clamp(1, i64::MAX as u64))
}

/// Entries end by a sweep. If no node has swept for some time after that, Redis removes them all, and the map begins again.
fn entries_ttl(retention: MapRetention) -> Duration {
    match retention.key_ttl {
        Duration::ZERO => Duration::ZERO,
        key_ttl => key_ttl.saturating_add(SWEEP_MARGIN),
    }
}

/// The epoch lives at least as long as the entries.
fn meta_ttl(retention: MapRetention) -> Duration {
    let entries_ttl = entries_ttl(retention);
    match retention.stream.meta_ttl {
        _ if !retention.has_stream() => entries_ttl,
        Duration::ZERO => Duration::ZERO,
        meta_ttl => meta_ttl.max(entries_ttl),
    }
}

/// The keys of a map, in the order of the scripts' KEYS.
const NAMES: [KeyKind; 5] = [
    KeyKind::MapChanges,
    KeyKind::MapMeta,
    KeyKind::PubSub,
    KeyKind::MapEntries,
    KeyKind::MapDeadlines,
];
/// Entries that one call removes.
const SWEEP_MAX: u64 = 100;
/// How long entries exist in Redis after their time, if no node removes them.
const SWEEP_MARGIN: Duration = Duration::from_secs(60);
