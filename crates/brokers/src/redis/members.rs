//! Presence in Redis: three keys per channel, or two whose fields end by themselves, always changed together by a script.
//! In: members with their ends → out: commands; members and counts from the replies.
//! Uses: a line, keys, scripts, records. Never: the time, which comes in milliseconds of the Redis.
//! Change here: what is sent for presence. The scripts are `script/presence*.lua`.

use std::sync::Arc;
use std::time::Duration;

use fanwire_broker::PresenceStats;
use fanwire_protocol::ClientInfo;
use redis::Value;

use super::error::Failure;
use super::health::Health;
use super::keys::{Keys, Kind};
use super::line::Line;
use super::record::{Written as _, read_member};
use super::script::Script;
use super::wire::{Command, number, parts, text};

/// A channel, and the names that a call for it has.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    keys: &'a Keys,
    channel: &'a str,
    /// Two names more cost a Redis that has nothing there a twentieth of a renewal, so it is not given them. A call that
    /// gets to another Redis than it was made for uses the sorted set.
    may_have_fields: bool,
}

impl<'a> Place<'a> {
    /// For a call that is to be sent on this line.
    pub(crate) fn on(line: &Line, keys: &'a Keys, channel: &'a str) -> Self {
        Self { keys, channel, may_have_fields: line.may_have_fields() }
    }
}

/// The command that adds or renews a member.
pub(crate) fn add(place: Place<'_>, member: &ClientInfo, ttl: Duration, now_ms: u64) -> Command {
    let length = member.length();
    let ttl_ms = (ttl.as_millis() as u64).min(TTL_MS_MAX);
    let mut command = call(Script::PresenceAdd, place, 5, length + member.client.len());
    command
        .number(now_ms)
        .number(now_ms + ttl_ms)
        .text(&member.client)
        .message(length, member)
        .number(ttl_ms.max(1));
    command
}

/// The command that removes a member.
pub(crate) fn remove(place: Place<'_>, client: &str, now_ms: u64) -> Command {
    let mut command = call(Script::PresenceRemove, place, 2, client.len());
    command.text(client).number(now_ms);
    command
}

/// The command that lists members.
pub(crate) fn list(place: Place<'_>, now_ms: u64) -> Command {
    let kinds: &[Kind] = &[Kind::Ends, Kind::Members, Kind::Clients];
    let kinds = if place.may_have_fields { kinds } else { &kinds[..2] };
    let mut command = named(Script::PresenceMembers, place, kinds, (1, NUMBER_BYTES));
    command.number(now_ms);
    command
}

/// What the reply to [`list`] says; foreign members are left out.
///
/// # Errors
/// [`Failure::Refused`] for a reply that no such command has.
pub(crate) fn listed(
    reply: Value,
    (keys, channel): (&Keys, &str),
    health: &Health,
) -> Result<Vec<Arc<ClientInfo>>, Failure> {
    let parts = parts(reply).ok_or(Failure::Refused)?;
    let mut members = Vec::with_capacity(parts.len());
    for member in parts.into_iter().filter_map(text) {
        match read_member(member) {
            Ok(member) => members.push(Arc::new(member)),
            Err(_) => health.is_foreign(places_of_members(keys, channel).as_bytes()),
        }
    }
    Ok(members)
}

/// The keys in which a member may be.
fn places_of_members(keys: &Keys, channel: &str) -> String {
    [Kind::Members, Kind::Clients].map(|kind| keys.of(kind, channel)).join(" or ")
}

/// Counts, with as many calls as it takes to take out whose time is over: each is bounded.
pub(crate) fn count(
    line: Line,
    (keys, channel): (Keys, String),
    now_ms: u64,
    done: impl FnOnce(Result<PresenceStats, Failure>) + Send + 'static,
) {
    let place = Place::on(&line, &keys, &channel);
    let mut command = call(Script::PresenceStats, place, 2, 2 * NUMBER_BYTES);
    command.number(now_ms).number(SWEEP_MAX);
    let again = line.clone();
    line.send(command, move |reply| match reply.and_then(counted) {
        Ok((stats, false)) => done(Ok(stats)),
        Ok((_, true)) => count(again, (keys, channel), now_ms, Box::new(done) as Box<Done>),
        Err(failure) => done(Err(failure)),
    });
}

type Done = dyn FnOnce(Result<PresenceStats, Failure>) + Send;

/// Counts, and whether there may be more to take out first.
fn counted(reply: Value) -> Result<(PresenceStats, bool), Failure> {
    let parts = parts(reply).ok_or(Failure::Refused)?;
    let numbers: Vec<u64> = parts.into_iter().filter_map(number).collect();
    let &[clients, users, more] = &numbers[..] else { return Err(Failure::Refused) };
    Ok((PresenceStats { clients: clients as usize, users: users as usize }, more > 0))
}

fn call(script: Script, place: Place<'_>, arguments: usize, bytes: usize) -> Command {
    let kinds = if place.may_have_fields { &KINDS[..] } else { &KINDS[..3] };
    named(script, place, kinds, (arguments, bytes + 3 * NUMBER_BYTES))
}

/// Begins a call with the names of `kinds`, and room for so many arguments of so many bytes.
fn named(
    script: Script,
    place: Place<'_>,
    kinds: &[Kind],
    (arguments, bytes): (usize, usize),
) -> Command {
    let name = |kind: &Kind| place.keys.of(*kind, place.channel);
    let names: Vec<String> = kinds.iter().map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    script.call(&names, arguments, bytes)
}

/// What presence consists of, in the order that its scripts have; the last two where a Redis has ends of hash fields.
const KINDS: [Kind; 5] = [Kind::Ends, Kind::Members, Kind::Users, Kind::Clients, Kind::Tallies];
/// Members that one call of a script takes out.
const SWEEP_MAX: u64 = 1000;
/// A thousand years.
const TTL_MS_MAX: u64 = 31_557_600_000_000;
/// Room for a number.
const NUMBER_BYTES: usize = 24;
