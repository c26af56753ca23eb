//! Presence in Redis: three keys per channel, which scripts always change together.
//! In: members and the ends of their time → out: commands; members and counts from the replies.
//! Uses: a command connection, keys, scripts, records. Never: clocks; times are milliseconds of the Redis.
//! Changed here: the commands for presence. The scripts are `script/presence*.lua`.

use std::sync::Arc;
use std::time::Duration;

use fanwire_broker::{PresencePage, PresenceStats};
use fanwire_protocol::ClientInfo;
use redis::Value;

use super::command_connection::CommandConnection;
use super::error::Failure;
use super::health::Health;
use super::keys::{KeyKind, Keys};
use super::record::{RecordBody as _, read_member};
use super::script::Script;
use super::wire::{RedisCommand, number, parts, text};

/// The command that adds or renews a member.
pub(crate) fn add(
    keys: &Keys,
    channel: &str,
    member: &ClientInfo,
    ttl: Duration,
    now_ms: u64,
) -> RedisCommand {
    let length = member.length();
    let ttl_ms = (ttl.as_millis() as u64).min(TTL_MS_MAX);
    let mut command =
        call(Script::PresenceAdd, &KINDS, keys, channel, 5, length + member.client.len());
    command
        .number(now_ms)
        .number(now_ms + ttl_ms)
        .text(&member.client)
        .message(length, member)
        .number(ttl_ms.max(1));
    command
}

/// The command that removes a member.
pub(crate) fn remove(keys: &Keys, channel: &str, client: &str) -> RedisCommand {
    let mut command = call(Script::PresenceRemove, &KINDS, keys, channel, 1, client.len());
    command.text(client);
    command
}

/// The command that lists members.
pub(crate) fn list(keys: &Keys, channel: &str, now_ms: u64) -> RedisCommand {
    let mut command = call(Script::PresenceMembers, &KINDS[..2], keys, channel, 1, 0);
    command.number(now_ms);
    command
}

/// The command that lists a page of members.
pub(crate) fn page(
    keys: &Keys,
    channel: &str,
    cursor: u64,
    limit: usize,
    now_ms: u64,
) -> RedisCommand {
    let mut command = call(Script::PresencePage, &KINDS[..2], keys, channel, 3, 0);
    command.number(now_ms).number(cursor).number(limit as u64);
    command
}

/// Decodes the reply to [`page`].
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(crate) fn read_page(
    reply: Value,
    keys: &Keys,
    channel: &str,
    health: &Health,
) -> Result<PresencePage, Failure> {
    let reply = parts(reply).ok_or(Failure::Refused)?;
    let [next, members] = reply.try_into().map_err(|_| Failure::Refused)?;
    let next = number(next).ok_or(Failure::Refused)?;
    Ok(PresencePage { members: listed(members, keys, channel, health)?, next })
}

/// Decodes the reply to [`list`]. Members of another version are left out.
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(crate) fn listed(
    reply: Value,
    keys: &Keys,
    channel: &str,
    health: &Health,
) -> Result<Vec<Arc<ClientInfo>>, Failure> {
    let parts = parts(reply).ok_or(Failure::Refused)?;
    let mut members = Vec::with_capacity(parts.len());
    for member in parts.into_iter().filter_map(text) {
        match read_member(member) {
            Ok(member) => members.push(Arc::new(member)),
            Err(_) => health.skipped_foreign_record(keys.of(KeyKind::Members, channel).as_bytes()),
        }
    }
    Ok(members)
}

/// Counts members. Each call removes a bounded number of expired members; it is repeated while there may be more.
pub(crate) fn count(
    connection: CommandConnection,
    keys: Keys,
    channel: String,
    now_ms: u64,
    done: impl FnOnce(Result<PresenceStats, Failure>) + Send + 'static,
) {
    let mut command = call(Script::PresenceStats, &KINDS, &keys, &channel, 2, 0);
    command.number(now_ms).number(SWEEP_MAX);
    let again = connection.clone();
    connection.send(command, move |reply| match reply.and_then(counted) {
        Ok((stats, false)) => done(Ok(stats)),
        Ok((_, true)) => count(again, keys, channel, now_ms, Box::new(done) as Box<Done>),
        Err(failure) => done(Err(failure)),
    });
}

type Done = dyn FnOnce(Result<PresenceStats, Failure>) + Send;

/// The counts, and whether there may be more members to remove first.
fn counted(reply: Value) -> Result<(PresenceStats, bool), Failure> {
    let parts = parts(reply).ok_or(Failure::Refused)?;
    let numbers: Vec<u64> = parts.into_iter().filter_map(number).collect();
    let &[clients, users, more] = &numbers[..] else { return Err(Failure::Refused) };
    Ok((PresenceStats { clients: clients as usize, users: users as usize }, more > 0))
}

/// Starts a call with the names of `kinds`, and room for `arguments`: numbers, and `bytes` of other arguments.
fn call(
    script: Script,
    kinds: &[KeyKind],
    keys: &Keys,
    channel: &str,
    arguments: usize,
    bytes: usize,
) -> RedisCommand {
    let names: Vec<String> = kinds.iter().map(|kind| keys.of(*kind, channel)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    script.call(&names, arguments, bytes + 3 * NUMBER_BYTES)
}

/// The keys of presence, in the order of the scripts' KEYS.
const KINDS: [KeyKind; 3] = [KeyKind::Ends, KeyKind::Members, KeyKind::Users];
/// Members that one call of a script removes.
const SWEEP_MAX: u64 = 1000;
/// A thousand years.
const TTL_MS_MAX: u64 = 31_557_600_000_000;
/// Bytes for a number.
const NUMBER_BYTES: usize = 24;
