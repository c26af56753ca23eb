//! Growing messages in Redis: a hash for each, next to the stream of its channel, which one script changes and publishes.
//! In: fragments → out: commands; what came of a fragment from replies.
//! Uses: keys, a script. Never: the rules of a fragment, which the script has.
//! Changed here: the arguments and the reply. The script is `script/append.lua`.

use fanwire_broker::{
    Append, AppendError, Appended, Epoch, FINAL_TTL, Fragment, Position, Retention,
};
use fanwire_protocol::{Publication, protobuf};
use redis::Value;
use std::time::Duration;

use super::error::Failure;
use super::keys::{KeyKind, Keys};
use super::record::read_position;
use super::script::Script;
use super::stream::{ARGUMENT_BYTES, millis};
use super::wire::{RedisCommand, number, parts, text};

/// The command that appends, at Unix milliseconds of the Redis.
pub(crate) fn append(
    keys: &Keys,
    channel: &str,
    append: &Append,
    retention: Retention,
    now_ms: u64,
) -> RedisCommand {
    let Append { key, fragment, publication, delta, limits } = append;
    let kinds = [KeyKind::Stream, KeyKind::Meta, KeyKind::PubSub, KeyKind::Growing];
    let [stream, meta, feed, open] = kinds.map(|kind| keys.of(kind, channel));
    let message = keys.of_message(channel, key);
    let none = Fragment::default();
    let Fragment { text, at, field, head, replaces_head, is_final } =
        fragment.as_ref().unwrap_or(&none);
    let bytes = text.len() + field.len() + head.len() + 4 * ARGUMENT_BYTES;
    let mut command = Script::Append.call(&[&stream, &meta, &feed, &message, &open], 21, bytes);
    command.text(text);
    match at {
        Some(at) => command.number(*at),
        None => command.text(""),
    };
    command.text(field).text(head);
    for flag in [*replaces_head, *is_final, fragment.is_some()] {
        command.number(flag.into());
    }
    let mut fields = Vec::new();
    protobuf::put_number(5, (*delta).into(), &mut fields);
    command
        .text(without_data(publication))
        .text(fields)
        .text(key)
        .number(now_ms)
        .number(limits.interval.as_millis() as u64)
        .number(limits.message_bytes_max as u64)
        .number(limits.messages_max as u64)
        .number(millis(FINAL_TTL))
        .text(Epoch::random().as_str())
        .number(retention.size as u64)
        .number(millis(retention.ttl))
        .number(millis(retention.meta_ttl))
        .number((*delta).into())
        .text(keys.publish());
    command
}

/// Decodes the reply to [`append`].
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(crate) fn read_appended(reply: Value) -> Result<Result<Appended, AppendError>, Failure> {
    let reply = parts(reply).ok_or(Failure::Refused)?;
    let [outcome, length, position, wait] = reply.try_into().map_err(|_| Failure::Refused)?;
    let length = number(length).ok_or(Failure::Refused)?;
    let position = text(position).and_then(|text| read_position(&text).ok());
    let position: Position = position.ok_or(Failure::Refused)?;
    let publish_after = number(wait).map(Duration::from_millis);
    let is_duplicate = match text(outcome).as_deref() {
        Some(b"ok") => false,
        Some(b"known") => true,
        Some(b"final") => return Ok(Err(AppendError::Final(length))),
        Some(b"at") => return Ok(Err(AppendError::At(length))),
        Some(b"field") => return Ok(Err(AppendError::OtherField)),
        Some(b"long") => return Ok(Err(AppendError::TooLong)),
        Some(b"many") => return Ok(Err(AppendError::TooMany)),
        _ => return Err(Failure::Refused),
    };
    Ok(Ok(Appended { position, length, is_duplicate, publish_after }))
}

/// The Protobuf message of a publication that gets its data in the script.
fn without_data(publication: &Publication) -> Vec<u8> {
    let mut fields = Vec::with_capacity(protobuf::publication_length(publication));
    protobuf::put_publication(publication, &mut fields);
    fields
}
