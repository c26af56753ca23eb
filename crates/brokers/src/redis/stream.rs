//! Publishing and history in Redis: each call is one command, one script where several things must be one moment.
//! In: publications and queries → out: positions and stretches of a stream.
//! Uses: a line, keys, scripts, records. Never: PUB/SUB connections.
//! Change here: what is sent for a publication or a query. The scripts are `script/publish.lua` and `history.lua`.

use bytes::Bytes;
use fanwire_node::broker::{Query, Retention};
use fanwire_node::protocol::{ClientInfo, Publication};
use fanwire_node::{Change, Epoch, Position, PublishOptions, Stretch};

use super::error::Failure;
use super::health::Health;
use super::keys::{Keys, Kind};
use super::record::{Record, read_position};
use super::resp::{Command, Reply};
use super::script::Script;

/// The command that publishes.
pub(crate) fn publish(
    keys: &Keys,
    channel: &str,
    publication: Publication,
    options: &PublishOptions,
    retention: Retention,
) -> Command {
    let record = Record::of_publication(publication, options.exclude_client);
    let is_kept = retention.keeps_history() && !options.skip_history;
    if !is_kept && options.idempotency_key.is_empty() {
        return send(keys, channel, &record);
    }
    let mut names = vec![
        keys.of(Kind::Stream, channel),
        keys.of(Kind::Meta, channel),
        keys.of(Kind::Feed, channel),
    ];
    if !options.idempotency_key.is_empty() {
        names.push(keys.of_result(channel, &options.idempotency_key));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let bytes = record.length() + options.version_epoch.len() + ARGUMENT_BYTES;
    let mut command = Script::Publish.call(&names, 8, bytes);
    command
        .written(record.length(), |out| record.put(out))
        .text(Epoch::random().as_str())
        .number(if is_kept { retention.size as u64 } else { 0 })
        .number(millis(retention.ttl))
        .number(millis(retention.meta_ttl))
        .number(options.version)
        .text(&options.version_epoch)
        .number(RESULT_TTL_MS);
    command
}

/// What the reply to [`publish`] says.
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(crate) fn published(reply: Reply) -> Result<Position, Failure> {
    match reply {
        Reply::Integer(_) => Ok(Position::default()), // PUBLISH: how many heard it here
        Reply::Bulk(text) => read_position(&text).map_err(|_| Failure::Refused),
        _ => Err(Failure::Refused),
    }
}

/// The command that tells who came or went.
pub(crate) fn announce(keys: &Keys, channel: &str, change: Change, client: ClientInfo) -> Command {
    send(keys, channel, &Record::of_change(change, client))
}

/// The command that reads.
pub(crate) fn history(keys: &Keys, channel: &str, query: Query, retention: Retention) -> Command {
    let (stream, meta) = (keys.of(Kind::Stream, channel), keys.of(Kind::Meta, channel));
    let mut command = Script::History.call(&[&stream, &meta], 6, ARGUMENT_BYTES);
    command.text(Epoch::random().as_str()).number(millis(retention.meta_ttl));
    let id = |offset: u64| format!("({offset}-0");
    let (name, from, to) = match query {
        Query { limit: Some(0), .. } | Query { reverse: true, since: Some(0), .. } => {
            ("", None, None)
        }
        Query { reverse: true, since, .. } => ("XREVRANGE", since.map(id), None),
        Query { since, .. } => ("XRANGE", since.map(id), None::<String>),
    };
    let (first, last) = if query.reverse { ("+", "-") } else { ("-", "+") };
    command.text(name).text(from.as_deref().unwrap_or(first)).text(to.as_deref().unwrap_or(last));
    match query.limit {
        Some(limit) => command.number((limit as u64).min(i64::MAX as u64)),
        None => command.text(""),
    };
    command
}

/// What the reply to [`history`] says. A foreign record ends the page: what lies before it, as the reader of a stream
/// goes backwards, is left out, so that no page has a hole inside.
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(crate) fn stretch(
    reply: Reply,
    (keys, channel): (&Keys, &str),
    is_reverse: bool,
    health: &Health,
) -> Result<Stretch, Failure> {
    let parts = reply.parts().and_then(|parts| <[Reply; 2]>::try_from(parts).ok());
    let [top, entries] = parts.ok_or(Failure::Refused)?;
    let top = top.text().and_then(|text| read_position(text).ok()).ok_or(Failure::Refused)?;
    let entries = entries.parts().ok_or(Failure::Refused)?;
    let mut publications = Vec::with_capacity(entries.len());
    for entry in entries {
        match stored(entry) {
            Some(publication) => publications.push(publication),
            None => {
                health.is_foreign(keys.of(Kind::Stream, channel).as_bytes());
                if is_reverse {
                    break;
                }
                publications.clear();
            }
        }
    }
    Ok(Stretch { publications, top })
}

/// The command that drops what is stored; the position stays.
pub(crate) fn remove(keys: &Keys, channel: &str) -> Command {
    Command::of(&[b"DEL", keys.of(Kind::Stream, channel).as_bytes()])
}

/// An entry of a stream: its id, and one field with its value.
fn stored(entry: Reply) -> Option<Publication> {
    let [id, fields] = <[Reply; 2]>::try_from(entry.parts()?).ok()?;
    let (offset, _) = str::from_utf8(id.text()?).ok()?.split_once('-')?;
    let [_, record] = <[Reply; 2]>::try_from(fields.parts()?).ok()?;
    let record: &Bytes = record.text()?;
    Record::read_stored(record.clone(), offset.parse().ok()?).ok()
}

fn send(keys: &Keys, channel: &str, record: &Record) -> Command {
    let feed = keys.of(Kind::Feed, channel);
    let mut command = Command::new(3, feed.len() + record.length() + ARGUMENT_BYTES);
    command.text("PUBLISH").text(feed).written(record.length(), |out| record.put(out));
    command
}

/// For a key's time to live, which Redis wants below 2⁶³, and which is never 0 but for "for ever".
fn millis(time: std::time::Duration) -> u64 {
    if time.is_zero() { 0 } else { time.as_millis().clamp(1, TTL_MS_MAX.into()) as u64 }
}

/// How long a repeated idempotency key is answered with the first position (server API §6.1).
const RESULT_TTL_MS: u64 = 300_000;
/// A thousand years.
const TTL_MS_MAX: u64 = 31_557_600_000_000;
/// Room for the numbers of a call.
const ARGUMENT_BYTES: usize = 64;
