//! Publishing and history in Redis: each call is one command, or one script where several steps must be atomic.
//! In: publications and queries → out: commands; positions and slices of a stream from the replies.
//! Uses: keys, scripts, records. Never: PUB/SUB connections.
//! Changed here: the command for a publication or a query. The scripts are `script/publish.lua` and `history.lua`.

use std::time::Duration;

use fanwire_broker::{
    Change, Epoch, Position, PublishOptions, Query, Retention, StreamSlice, Suppression,
};
use fanwire_protocol::{ClientInfo, Publication};

use redis::Value;

use super::error::Failure;
use super::health::Health;
use super::keys::{KeyKind, Keys};
use super::record::{Record, RecordBody as _, read_position};
use super::script::Script;
use super::wire::{RedisCommand, number, parts, text};

/// The command that publishes.
pub(crate) fn publish(
    keys: &Keys,
    channel: &str,
    publication: Publication,
    options: &PublishOptions,
    retention: Retention,
) -> RedisCommand {
    let record = Record::of_publication(publication, options);
    let is_kept = retention.keeps_history() && !options.skip_history;
    if !is_kept && options.idempotency_key.is_empty() {
        return send(keys, channel, &record);
    }
    let mut names = vec![
        keys.of(KeyKind::Stream, channel),
        keys.of(KeyKind::Meta, channel),
        keys.of(KeyKind::PubSub, channel),
    ];
    if !options.idempotency_key.is_empty() {
        let key = &options.idempotency_key;
        names.push(match &options.key_owner {
            Some(owner) => keys.of_client_result(channel, &owner.name, key),
            None => keys.of_result(channel, key),
        });
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let owner = options.key_owner.as_ref();
    let result_ttl_ms = owner.map_or(RESULT_TTL_MS, |owner| millis(owner.ttl));
    let length = record.length();
    let bytes = length + options.version_epoch.len() + ARGUMENT_BYTES;
    let mut command = Script::Publish.call(&names, 10, bytes);
    command
        .message(length, &record)
        .text(Epoch::random().as_str())
        .number(if is_kept { retention.size as u64 } else { 0 })
        .number(millis(retention.ttl))
        .number(millis(retention.meta_ttl))
        .number(options.version)
        .text(&options.version_epoch)
        .number(result_ttl_ms)
        .number(options.delta.into())
        .text(keys.publish());
    command
}

/// Decodes the reply to [`publish`].
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(crate) fn read_published(
    reply: Value,
    receipt: u64,
    health: &Health,
) -> Result<Position, Failure> {
    match reply {
        Value::Array(mut parts) if !parts.is_empty() => {
            let suppression = match parts.len() {
                1 => Suppression::RepeatedKey,
                _ => Suppression::OldVersion,
            };
            health.suppressed().add(suppression, receipt);
            position(parts.swap_remove(0)).ok_or(Failure::Refused)
        }
        Value::Int(_) => Ok(Position::default()), // PUBLISH: the number of receivers
        reply => position(reply).ok_or(Failure::Refused),
    }
}

/// The command that announces a join or leave.
pub(crate) fn announce(
    keys: &Keys,
    channel: &str,
    change: Change,
    client: ClientInfo,
) -> RedisCommand {
    send(keys, channel, &Record::of_change(change, client))
}

/// The command that reads. `unpublished_ttl` is that of [`RedisOptions`](super::RedisOptions).
pub(crate) fn history(
    keys: &Keys,
    channel: &str,
    query: Query,
    retention: Retention,
    unpublished_ttl: Duration,
) -> RedisCommand {
    let stream = keys.of(KeyKind::Stream, channel);
    let meta = keys.of(KeyKind::Meta, channel);
    let mut command = Script::History.call(&[&stream, &meta], 7, ARGUMENT_BYTES);
    let name = match query {
        Query { limit: Some(0), .. } | Query { reverse: true, since: Some(0), .. } => "",
        Query { reverse: true, .. } => "XREVRANGE",
        _ => "XRANGE",
    };
    let ttls = [retention.meta_ttl, unpublished_ttl].into_iter().filter(|ttl| !ttl.is_zero());
    command
        .text(Epoch::random().as_str())
        .number(millis(retention.meta_ttl))
        .number(millis(ttls.min().unwrap_or_default()))
        .text(name);
    let count_max = query.limit.map(|limit| (limit as u64).min(i64::MAX as u64));
    for number in [query.since, count_max] {
        match number {
            Some(number) => command.number(number),
            None => command.text(""),
        };
    }
    command.number(retention.size as u64);
    command
}

/// Decodes the reply to [`history`]. A record of another version ends the page; the page keeps the newer side of it,
/// so that it has no gap inside.
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(crate) fn read_slice(
    reply: Value,
    keys: &Keys,
    channel: &str,
    is_reverse: bool,
    health: &Health,
) -> Result<StreamSlice, Failure> {
    let reply = parts(reply).ok_or(Failure::Refused)?;
    let [top, entries, inherited, dropped] = reply.try_into().map_err(|_| Failure::Refused)?;
    let mut dropped = number(dropped);
    let [top, inherited] = [top, inherited].map(position);
    let top = top.ok_or(Failure::Refused)?;
    let inherited = inherited.ok_or(Failure::Refused)?;
    let entries = parts(entries).ok_or(Failure::Refused)?;
    let mut publications = Vec::with_capacity(entries.len());
    for entry in entries {
        match stored(entry) {
            Some(publication) => publications.push(publication),
            None => {
                health.skipped_foreign_record(keys.of(KeyKind::Stream, channel).as_bytes());
                if is_reverse {
                    break;
                }
                publications.clear();
                dropped = dropped.map(|_| top.offset);
            }
        }
    }
    Ok(StreamSlice { publications, top, inherited, dropped })
}

/// The command that deletes the stored publications and keeps the position.
pub(crate) fn remove(keys: &Keys, channel: &str) -> RedisCommand {
    RedisCommand::of(&[b"DEL", keys.of(KeyKind::Stream, channel).as_bytes()]).writes()
}

/// Decodes an entry of a stream: its id, and one field with its value.
fn stored(entry: Value) -> Option<Publication> {
    let [id, fields] = pair(entry)?;
    let [_, record] = pair(fields)?;
    stored_at(id, record)
}

/// Decodes the record that a stream has at an id.
pub(super) fn stored_at(id: Value, record: Value) -> Option<Publication> {
    let id = text(id)?;
    let (offset, _) = str::from_utf8(&id).ok()?.split_once('-')?;
    Record::read_stored(text(record)?, offset.parse().ok()?).ok()
}

fn position(value: Value) -> Option<Position> {
    read_position(&text(value)?).ok()
}

fn pair(value: Value) -> Option<[Value; 2]> {
    parts(value)?.try_into().ok()
}

fn send(keys: &Keys, channel: &str, record: &Record) -> RedisCommand {
    let feed = keys.of(KeyKind::PubSub, channel);
    let length = record.length();
    let mut command = RedisCommand::new(3, feed.len() + length + ARGUMENT_BYTES).writes();
    command.text(keys.publish()).text(feed).message(length, record);
    command
}

/// Milliseconds for a time to live. Redis requires less than 2⁶³; 0 means no end, so a short time becomes 1.
pub(super) fn millis(time: Duration) -> u64 {
    if time.is_zero() { 0 } else { time.as_millis().clamp(1, TTL_MS_MAX.into()) as u64 }
}

/// How long a repeated idempotency key gets the first position (server API §6.1).
pub(super) const RESULT_TTL_MS: u64 = 300_000;
/// A thousand years.
const TTL_MS_MAX: u64 = 31_557_600_000_000;
/// Bytes for the numbers of a call.
pub(super) const ARGUMENT_BYTES: usize = 64;
