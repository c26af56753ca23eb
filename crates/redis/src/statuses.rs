//! Statuses of users in Redis: a hash for each user, which all nodes change and read.
//! In: users, changes → out: commands; statuses from replies.
//! Uses: keys, a script. Never: clocks; Redis expires the hashes.
//! Changed here: the commands and the fields. The script is `script/status_update.lua`.

use fanwire_broker::{UserStatus, UserStatusChange};
use redis::Value;

use super::error::Failure;
use super::keys::{KeyKind, Keys};
use super::script::Script;
use super::wire::{RedisCommand, number, parts, text};

/// The command that changes the status of a user.
pub(crate) fn update(keys: &Keys, user: &str, change: &UserStatusChange) -> RedisCommand {
    let UserStatusChange { active, online, state, ttl } = change;
    let times = [("a", active), ("o", online)];
    let times = times.into_iter().filter_map(|(field, time)| Some((field, (*time)?)));
    let fields = times.clone().count() + usize::from(state.is_some());
    let bytes = NUMBERS + state.as_deref().map_or(0, str::len);
    let name = keys.of(KeyKind::Status, user);
    let mut command = Script::StatusUpdate.call(&[&name], 1 + 2 * fields, bytes);
    command.number((ttl.as_millis() as u64).clamp(1, TTL_MS_MAX));
    for (field, time) in times {
        command.text(field).number(time);
    }
    if let Some(state) = state {
        command.text("s").text(state.as_bytes());
    }
    command
}

/// The command that removes the status of a user.
pub(crate) fn remove(keys: &Keys, user: &str) -> RedisCommand {
    RedisCommand::of(&[b"DEL", keys.of(KeyKind::Status, user).as_bytes()]).writes()
}

/// The command that reads the status of a user.
pub(crate) fn read(keys: &Keys, user: &str) -> RedisCommand {
    RedisCommand::of(&[b"HMGET", keys.of(KeyKind::Status, user).as_bytes(), b"a", b"o", b"s"])
}

/// Decodes the reply to [`read`].
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(crate) fn status(reply: Value) -> Result<UserStatus, Failure> {
    let fields = parts(reply).ok_or(Failure::Refused)?;
    let [active, online, state] = fields.try_into().map_err(|_| Failure::Refused)?;
    let state = text(state).and_then(|state| String::from_utf8(state.into()).ok());
    let [active, online] = [active, online].map(|time| number(time).unwrap_or_default());
    Ok(UserStatus { active, online, state: state.unwrap_or_default().into() })
}

/// A thousand years.
const TTL_MS_MAX: u64 = 31_557_600_000_000;
/// Bytes for the numbers of a call.
const NUMBERS: usize = 72;
