//! Blocks and revocations in Redis: three sorted sets for all nodes, which one script changes together with their version.
//! In: changes, cursors → out: commands; pages and changes from replies and messages.
//! Uses: keys, scripts, records. Never: what a change means.
//! Changed here: the commands and the form of members. The scripts are `script/revocations_*.lua`.

use bytes::{BufMut, Bytes};
use fanwire_broker::{
    Epoch, Position, RevocationChange, RevocationCursor, RevocationKind, RevocationPage,
};
use prost::Message as _;
use redis::Value;

use super::error::Failure;
use super::health::Health;
use super::keys::Keys;
use super::record::{Foreign, RecordBody, VERSION, read, read_position};
use super::script::Script;
use super::wire::{RedisCommand, number, parts, text};

/// A change as the PUB/SUB message of it. The script appends the position as field 15.
#[derive(Clone, PartialEq, prost::Message)]
struct RevocationRecord {
    /// 1 block, 2 unblock, 3 revoke, 4 invalidate.
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(string, tag = "2")]
    subject: String,
    #[prost(string, optional, tag = "3")]
    channel: Option<String>,
    #[prost(uint64, tag = "4")]
    expire_at: u64,
    #[prost(uint64, tag = "5")]
    issued_before: u64,
    /// Decimal offset, a space, the epoch.
    #[prost(bytes = "bytes", tag = "15")]
    position: Bytes,
}

impl RecordBody for RevocationRecord {
    fn length(&self) -> usize {
        1 + self.encoded_len()
    }

    fn put(&self, out: &mut impl BufMut) {
        out.put_u8(VERSION);
        self.encode(out).expect("commands grow");
    }
}

/// The entry of the same subject that the list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Replaced,
    /// It is newer than a change that is stored again.
    Stays,
}

/// The command that makes a change.
pub(crate) fn change(
    keys: &Keys,
    change: &RevocationChange,
    existing: Existing,
    now_ms: u64,
) -> RedisCommand {
    let RevocationChange { kind, subject, channel, expire_at, issued_before } = change;
    let names = SETS.into_iter().chain([BEFORE, VERSION_KEY, CHANGES]);
    let names: Vec<String> = names.map(|name| keys.of_revocations(name)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (number, set) = match kind {
        RevocationKind::BlockUser => (1, 1),
        RevocationKind::UnblockUser => (2, 1),
        RevocationKind::RevokeToken => (3, 2),
        RevocationKind::InvalidateTokens => (4, 3),
    };
    let record = RevocationRecord {
        kind: number,
        subject: subject.clone(),
        channel: channel.clone(),
        expire_at: *expire_at,
        issued_before: *issued_before,
        position: Bytes::new(),
    };
    let member = match kind {
        RevocationKind::InvalidateTokens => {
            format!("{}.{subject}{}", subject.len(), channel.as_deref().unwrap_or_default())
        }
        _ => subject.clone(),
    };
    let length = record.length();
    let mut command = Script::RevocationsChange.call(&names, 9, length + member.len() + NUMBERS);
    command.number(now_ms).number(set).text(&member);
    match (kind, *expire_at) {
        (RevocationKind::UnblockUser, _) => command.text(""),
        (_, 0) => command.text("+inf"),
        (_, seconds) => command.number(seconds.saturating_mul(1000)),
    };
    match kind {
        RevocationKind::InvalidateTokens => command.number(*issued_before),
        _ => command.text(""),
    };
    command.message(length, &record).text(Epoch::random().as_str()).text(keys.publish());
    command.text(if existing == Existing::Stays { "1" } else { "" });
    command
}

/// The command that reads a page.
pub(crate) fn page(keys: &Keys, from: RevocationCursor) -> RedisCommand {
    let set = usize::from(from.table).min(SETS.len() - 1);
    let names = [SETS[set], VERSION_KEY, BEFORE].map(|name| keys.of_revocations(name));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let has_before = SETS[set] == INVALIDATED;
    let mut command =
        Script::RevocationsPage.call(&names[..if has_before { 3 } else { 2 }], 2, NUMBERS);
    command.number(from.scan).number(PAGE_ENTRIES);
    command
}

/// Decodes the reply to [`page`]. Members of other programs are left out.
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(crate) fn read_page(
    reply: Value,
    from: RevocationCursor,
    keys: &Keys,
    health: &Health,
) -> Result<RevocationPage, Failure> {
    let reply = parts(reply).ok_or(Failure::Refused)?;
    let [position, scan, members, before] = reply.try_into().map_err(|_| Failure::Refused)?;
    let position = text(position).ok_or(Failure::Refused)?;
    let position = read_position(&position).map_err(|_| Failure::Refused)?;
    let scan = number(scan).ok_or(Failure::Refused)?;
    let mut members = parts(members).ok_or(Failure::Refused)?.into_iter();
    let mut before = parts(before).ok_or(Failure::Refused)?.into_iter();
    let mut entries = Vec::with_capacity(members.len() / 2);
    while let (Some(member), Some(end)) = (members.next(), members.next()) {
        let before = before.next().and_then(number).unwrap_or_default();
        match entry(from.table, member, end, before) {
            Some(entry) => entries.push(entry),
            None => {
                let set = SETS[usize::from(from.table).min(SETS.len() - 1)];
                health.skipped_foreign_record(keys.of_revocations(set).as_bytes());
            }
        }
    }
    let next = match scan {
        0 if usize::from(from.table) + 1 >= SETS.len() => None,
        0 => Some(RevocationCursor { table: from.table + 1, scan: 0 }),
        scan => Some(RevocationCursor { scan, ..from }),
    };
    Ok(RevocationPage { position, entries, next })
}

/// Decodes a message.
///
/// # Errors
/// [`Foreign`] for bytes that are no change of this version.
pub(crate) fn read_change(message: Bytes) -> Result<(Position, RevocationChange), Foreign> {
    let RevocationRecord { kind, subject, channel, expire_at, issued_before, position } =
        read(message)?;
    let kind = match kind {
        1 => RevocationKind::BlockUser,
        2 => RevocationKind::UnblockUser,
        3 => RevocationKind::RevokeToken,
        4 => RevocationKind::InvalidateTokens,
        _ => return Err(Foreign::Malformed),
    };
    let change = RevocationChange { kind, subject, channel, expire_at, issued_before };
    Ok((read_position(&position)?, change))
}

fn entry(table: u8, member: Value, end: Value, issued_before: u64) -> Option<RevocationChange> {
    let member = String::from_utf8(text(member)?.into()).ok()?;
    let end: f64 = match end {
        Value::Double(end) => end,
        end => str::from_utf8(&text(end)?).ok()?.parse().ok()?,
    };
    // An end below the second 1 would read as no end.
    let expire_at = if end == f64::INFINITY { 0 } else { ((end / 1000.0) as u64).max(1) };
    let kinds =
        [RevocationKind::BlockUser, RevocationKind::RevokeToken, RevocationKind::InvalidateTokens];
    let kind = *kinds.get(usize::from(table))?;
    let (subject, channel) = match kind {
        RevocationKind::InvalidateTokens => {
            let (length, rest) = member.split_once('.')?;
            let (user, channel) = rest.split_at_checked(length.parse().ok()?)?;
            (user.to_owned(), (!channel.is_empty()).then(|| channel.to_owned()))
        }
        _ => (member, None),
    };
    Some(RevocationChange { kind, subject, channel, expire_at, issued_before })
}

/// Sorted sets, in the order of the scripts' KEYS.
const SETS: [&str; 3] = ["blocked", "revoked", INVALIDATED];
const INVALIDATED: &str = "invalidated";
const BEFORE: &str = "before";
const VERSION_KEY: &str = "version";
/// The PUB/SUB name.
pub(crate) const CHANGES: &str = "changes";
/// `COUNT` of a page, some 0.5 ms of the Redis.
const PAGE_ENTRIES: u64 = 1000;
/// Bytes for the numbers of a call.
const NUMBERS: usize = 96;

#[cfg(test)]
mod tests;
