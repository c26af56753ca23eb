//! The `sub_refresh` command of shared poll channels (protocol §28): the client tracks keys, or tracks them no longer.
//! In: signed keys with the versions that the client has → out: the lifetime of the signatures, then values that the client lacks.
//! Uses: signatures, the trackers of the shard, the node's shared polls. Never: polls; the node does, for all clients together.
//! Changed here: the order of the checks, and what a client gets at once.

use std::collections::BTreeMap;

use fanwire_auth::{TrackClaim, TrackError};
use fanwire_policy::options::NamespacePollOptions;
use fanwire_policy::shared_poll::{TooManyKeys, TrackedItem, TrackedKeys};
use fanwire_protocol::{
    ErrorCode, KeyedItem, Reply, SubRefreshRequest, SubRefreshResult, TrackBatch,
};
use hashbrown::HashSet;

use super::{CommandContext, ReplyResult};
use crate::deadlines;
use crate::index::SubscriptionIndex;
use crate::node::is_key;
use crate::refusal::CommandError;
use crate::session::Lifetime;

/// `type` of a request that tracks keys, and of one that untracks keys.
pub(super) const TRACK: i32 = 1;
pub(super) const UNTRACK: i32 = 2;

pub(super) fn handle(
    context: &mut CommandContext<'_>,
    own: SubscriptionIndex,
    options: &NamespacePollOptions,
    request: &SubRefreshRequest,
) -> ReplyResult {
    if request.r#type == UNTRACK {
        if request.untrack.is_empty() {
            return Err(CommandError::error(ErrorCode::BAD_REQUEST, NO_KEYS));
        }
        untrack(context, own, &request.untrack);
        return Ok(result(SubRefreshResult::default()));
    }
    check(context, options, request)?;
    let Verified { mut items, expire_at } = verify(context, request)?;
    let untracked: HashSet<&str> = request.untrack.iter().map(String::as_str).collect();
    items.retain(|item| !untracked.contains(item.key));
    track(context, own, options, items);
    untrack(context, own, &request.untrack);
    let lifetime = Lifetime { expire_at };
    // A signature that is accepted after its end has no time left: the client signs again at once.
    let is_over = expire_at.is_some_and(|at| at <= context.unix());
    let ttl = if is_over { 0 } else { lifetime.ttl(context) };
    Ok(result(SubRefreshResult { expires: lifetime.expires(), ttl, items: Vec::new() }))
}

fn result(result: SubRefreshResult) -> Reply {
    Reply { sub_refresh: Some(result), ..Reply::default() }
}

/// Checks that need no signature: there are keys, and not too many.
fn check(
    context: &CommandContext<'_>,
    options: &NamespacePollOptions,
    request: &SubRefreshRequest,
) -> Result<(), CommandError> {
    let items: Vec<_> = request.track.iter().flat_map(|batch| &batch.items).map(item).collect();
    let is_incomplete = request.track.iter().any(|batch| batch.items.is_empty());
    if items.is_empty() || is_incomplete || !items.iter().all(|item| is_key(item.key)) {
        return Err(CommandError::error(ErrorCode::BAD_REQUEST, NO_KEYS));
    }
    let none = TrackedKeys::default();
    let tracked = context.session_table.trackers.keys(context.key.index, &request.channel);
    tracked
        .unwrap_or(&none)
        .check_room(&items, &request.untrack, options.keys_max())
        .map_err(|TooManyKeys| CommandError::error(ErrorCode::LIMIT_EXCEEDED, TOO_MANY_KEYS))
}

fn item(item: &KeyedItem) -> TrackedItem<'_> {
    TrackedItem { key: &item.key, version: item.version, expires_at: None }
}

/// The keys of a request whose signatures are valid.
struct Verified<'a> {
    /// Each key once, as the last batch has it.
    items: Vec<TrackedItem<'a>>,
    /// The earliest end of a signature.
    expire_at: Option<u64>,
}

/// Verifies all batches.
fn verify<'a>(
    context: &CommandContext<'_>,
    request: &'a SubRefreshRequest,
) -> Result<Verified<'a>, CommandError> {
    let mut newest: BTreeMap<&str, TrackedItem<'_>> = BTreeMap::new();
    let mut expire_at = None;
    for TrackBatch { signature, items } in &request.track {
        let keys: Vec<&str> = items.iter().map(|item| item.key.as_str()).collect();
        let user = &context.session().user;
        let claim = TrackClaim { user, channel: &request.channel, keys: &keys };
        let verified = context.settings.track_verifier.verify(signature, claim, context.unix());
        let expires_at = verified.map_err(refusal)?;
        expire_at = [expire_at, expires_at].into_iter().flatten().min();
        for one in items {
            newest.insert(&one.key, TrackedItem { expires_at, ..item(one) });
        }
    }
    Ok(Verified { items: newest.into_values().collect(), expire_at })
}

fn refusal(error: TrackError) -> CommandError {
    match error {
        TrackError::NoSecret => CommandError::error(ErrorCode::INTERNAL, NO_SECRET),
        TrackError::Invalid => CommandError::error(ErrorCode::PERMISSION_DENIED, INVALID),
        TrackError::Expired => CommandError::error(ErrorCode::TOKEN_EXPIRED, EXPIRED),
    }
}

/// Tracks keys. Values that are known and that the client lacks follow the reply.
fn track(
    context: &mut CommandContext<'_>,
    own: SubscriptionIndex,
    options: &NamespacePollOptions,
    items: Vec<TrackedItem<'_>>,
) {
    let index = context.key.index;
    let Some(channel) = context.session_table.channel_of(index, own).cloned() else { return };
    let table = &mut *context.session_table;
    let with_newness = |item| (item, table.trackers.track(index, &channel, item));
    let tracked: Vec<_> = items.into_iter().map(with_newness).collect();
    let polls = context.node.shared_polls();
    let me = context.session().client_id();
    for update in polls.track(&channel, &tracked, options, context.now) {
        let trackers = &mut context.session_table.trackers;
        if !trackers.accept(index, &channel, &update.key, update.version) {
            continue;
        }
        let key = update.key.clone();
        let make = || polls.broadcast(&channel, update.clone(), me, context.now);
        let known = trackers.known(&channel, &key, update.version, make);
        context.effects.connection.deliveries.extend(known.map(|known| (own, known)));
    }
    deadlines::watch_tracked_keys(context.node, context.session_table, index, context.now);
}

/// Untracks keys; those that are not tracked are ignored.
fn untrack(context: &mut CommandContext<'_>, own: SubscriptionIndex, keys: &[String]) {
    let index = context.key.index;
    let Some(channel) = context.session_table.channel_of(index, own).cloned() else { return };
    let trackers = &mut context.session_table.trackers;
    let untracked = keys.iter().filter_map(|key| trackers.untrack(index, &channel, key)).collect();
    context.node.shared_polls().untrack(&channel, untracked);
}

const NO_KEYS: &str = "the command names no keys, or one that has not 1 to 255 bytes";
const TOO_MANY_KEYS: &str = "the client would track more keys than shared_poll.max_keys_per_connection of the namespace allows";
const NO_SECRET: &str = "shared_poll.hmac_secret_key is not set";
const INVALID: &str = "the signature is not of these keys in this order, this user, this channel and a secret of shared_poll";
const EXPIRED: &str = "the signature has expired";
