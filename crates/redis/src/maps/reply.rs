//! The replies to commands of maps.
//! In: replies of Redis → out: outcomes, pages, slices of a stream, results of sweeps.
//! Uses: records, the rules of lost positions of the port. Never: connections.
//! Changed here: how a reply is read. The scripts are `script/map*.lua`.

use std::time::Duration;

use bytes::Bytes;
use fanwire_broker::map::{
    ChangesQuery, MapError, MapOutcome, MapSuppression, PositionLost, StatePage, StateQuery,
};
use fanwire_broker::{Epoch, Position, StreamSlice, Suppression};
use fanwire_protocol::Publication;
use prost::Message as _;
use redis::Value;

use super::schedule::SweepResult;
use crate::error::Failure;
use crate::health::Health;
use crate::record::read_position;
use crate::stream::stored_at;
use crate::wire::{number, parts, text};

/// Reads the reply to a change.
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(super) fn read_outcome(
    reply: Value,
    health: &Health,
) -> Result<Result<MapOutcome, MapError>, Failure> {
    let mut reply = parts(reply).ok_or(Failure::Refused)?.into_iter();
    let reason = reply.next().and_then(text).ok_or(Failure::Refused)?;
    let position = read_top(reply.next())?;
    let suppression = match &*reason {
        b"" => None,
        b"idempotency" => {
            health.suppressed().add(Suppression::RepeatedKey, 0);
            Some(MapSuppression::Idempotency)
        }
        b"version" => {
            health.suppressed().add(Suppression::OldVersion, 0);
            Some(MapSuppression::Version)
        }
        b"key_exists" => Some(MapSuppression::KeyExists),
        b"key_not_found" => Some(MapSuppression::KeyNotFound),
        b"position_mismatch" => {
            let entry = reply.next().and_then(text).unwrap_or_default();
            let current = read_entry(&entry, position.epoch);
            Some(MapSuppression::PositionMismatch(current.map(Box::new)))
        }
        b"entries" => return Ok(Err(MapError::TooManyEntries)),
        b"bytes" => return Ok(Err(MapError::TooLarge)),
        _ => return Err(Failure::Refused),
    };
    Ok(Ok(MapOutcome { position, suppression }))
}

/// A page, and the number of all entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MapState {
    pub(super) page: StatePage,
    pub(super) count: usize,
}

/// Reads the reply to a query of entries. Entries of other programs are left out, and reported under `name`.
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(super) fn read_state(
    reply: Value,
    query: &StateQuery,
    name: &str,
    health: &Health,
) -> Result<Result<MapState, PositionLost>, Failure> {
    let Some(reply) = parts(reply) else { return Ok(Err(PositionLost)) };
    let [top, count, cursor, run_id, found] = reply.try_into().map_err(|_| Failure::Refused)?;
    let top = read_top(Some(top))?;
    if query.epoch != Epoch::NONE && query.epoch != top.epoch {
        return Ok(Err(PositionLost));
    }
    let count = number(count).ok_or(Failure::Refused)?;
    let cursor = match number(cursor) {
        Some(0) => String::new(),
        Some(at) => {
            let run_id = text(run_id).unwrap_or_default();
            format!("{at}.{}", String::from_utf8_lossy(&run_id))
        }
        None => return Err(Failure::Refused),
    };
    let found = parts(found).ok_or(Failure::Refused)?;
    let mut entries = Vec::with_capacity(found.len() / 2);
    for entry in found.into_iter().skip(1).step_by(2) {
        match text(entry).and_then(|entry| read_entry(&entry, top.epoch)) {
            Some(entry) => entries.push(entry),
            None => health.skipped_foreign_record(name.as_bytes()),
        }
    }
    let page = StatePage { entries, top, cursor };
    Ok(Ok(MapState { page, count: count.try_into().unwrap_or(usize::MAX) }))
}

/// Reads the reply to a query of changes. A record of another program, reported under `name`, ends the stream: only what is newer
/// than it is stored.
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(super) fn read_changes(
    reply: Value,
    query: ChangesQuery,
    name: &str,
    health: &Health,
) -> Result<Result<StreamSlice, PositionLost>, Failure> {
    let reply = parts(reply).ok_or(Failure::Refused)?;
    let [top, found] = reply.try_into().map_err(|_| Failure::Refused)?;
    let top = read_top(Some(top))?;
    let mut publications: Vec<Publication> = Vec::new();
    for entry in parts(found).ok_or(Failure::Refused)? {
        match read_change(entry) {
            Some(publication) => publications.push(publication),
            None => {
                health.skipped_foreign_record(name.as_bytes());
                if query.reverse {
                    break;
                }
                publications.clear();
            }
        }
    }
    let oldest = publications.first().map_or(top.offset + 1, |first| first.offset);
    if query.is_lost(top, oldest) {
        return Ok(Err(PositionLost));
    }
    publications.truncate(query.limit.unwrap_or(usize::MAX));
    Ok(Ok(StreamSlice { publications, top, ..StreamSlice::default() }))
}

/// Reads the reply to a sweep; no duration when it has to go on at once.
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(super) fn read_sweep(reply: Value) -> Result<SweepResult, Failure> {
    let reply = text(reply).ok_or(Failure::Refused)?;
    if reply.is_empty() {
        return Ok(SweepResult::Empty);
    }
    let wait = str::from_utf8(&reply).ok().and_then(|wait| wait.parse().ok());
    wait.map(|ms| SweepResult::Next(Duration::from_millis(ms))).ok_or(Failure::Refused)
}

fn read_top(position: Option<Value>) -> Result<Position, Failure> {
    let position = position.and_then(text).ok_or(Failure::Refused)?;
    read_position(&position).map_err(|_| Failure::Refused)
}

/// Reads an entry of the stream: its id, and its fields `d` and `c`.
fn read_change(entry: Value) -> Option<Publication> {
    let [id, fields] = parts(entry)?.try_into().ok()?;
    let [_, record, _, _] = parts(fields)?.try_into().ok()?;
    stored_at(id, record)
}

/// Reads an entry, as `script/map.lua` describes it. Payloads are slices of `entry`.
fn read_entry(entry: &Bytes, epoch: Epoch) -> Option<Publication> {
    let mut parts = entry.splitn(5, |byte| *byte == b' ');
    let offset: u64 = number_of(parts.next()?)?;
    let _version: u64 = number_of(parts.next()?)?;
    let epoch_length: usize = number_of(parts.next()?)?;
    let _tags_length: usize = number_of(parts.next()?)?;
    let rest = parts.next()?;
    let message = entry.slice_ref(rest.get(epoch_length..)?);
    let publication = Publication::decode(message).ok()?;
    // An entry of a map that had a stream before has an offset of that.
    let offset = if epoch == Epoch::NONE { 0 } else { offset };
    Some(Publication { offset, ..publication })
}

fn number_of<N: std::str::FromStr>(text: &[u8]) -> Option<N> {
    str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
