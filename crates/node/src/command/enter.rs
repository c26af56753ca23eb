//! How a session enters a channel (protocol §8, §9), for `subscribe` and the server-side subscriptions of `connect` alike.
//! In: a channel that may be entered, what the client wishes → out: a subscription and its result, or neither.
//! Uses: the roster, broker and presence through the node, `recovery`. Never: asks who may enter.
//! Change here: the order of entering, and what a subscribe result says about positions. Checks live in the commands.

use fanwire_protocol::{ErrorCode, SubscribeRequest, SubscribeResult};

use super::Turn;
use crate::broker::{Position, Query};
use crate::channel::{has_presence_access, may_read_history};
use crate::options::{Namespace, RecoveryMode};
use crate::recovery::{self, Claim};
use crate::session::Terms;
use crate::token::Overrides;

/// What is known of a subscription before it is made.
pub(super) struct Entry<'a> {
    pub(super) channel: &'a str,
    pub(super) server_side: bool,
    pub(super) terms: Option<Box<Terms>>,
    pub(super) tracking: Tracking,
    /// The position the client wants to go on from.
    pub(super) claim: Option<Claim<'a>>,
    /// The client rather has error 112 than a subscription with a gap.
    pub(super) only_recovered: bool,
}

/// How a subscription follows the stream of its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tracking {
    /// Gaps are noticed.
    positioned: bool,
    /// Gaps can be filled; implies `positioned`.
    recoverable: bool,
}

impl Tracking {
    /// As the namespace or a token forces it, or as the client wishes where it is allowed to or may read history anyway.
    pub(super) fn of(
        turn: &Turn<'_>,
        namespace: &Namespace,
        overrides: Overrides,
        request: Option<&SubscribeRequest>,
    ) -> Self {
        if !namespace.retention().keeps_history() {
            return Self::default();
        }
        let may_read = || may_read_history(turn.who(), namespace, true).is_ok();
        let wished = |wish: fn(&SubscribeRequest) -> bool, allowed: bool| {
            request.is_some_and(wish) && (allowed || may_read())
        };
        let recoverable = overrides.force_recovery.unwrap_or(namespace.force_recovery)
            || wished(|request| request.recoverable, namespace.allow_recovery);
        let positioned = recoverable
            || overrides.force_positioning.unwrap_or(namespace.force_positioning)
            || wished(|request| request.positioned, namespace.allow_positioning);
        Self { positioned, recoverable }
    }
}

/// The claim of a request, if it wants to recover.
pub(super) fn claim(request: &SubscribeRequest) -> Option<Claim<'_>> {
    let SubscribeRequest { recover, offset, epoch, .. } = request;
    recover.then_some(Claim { offset: *offset, epoch })
}

/// Subscribes: first the place in the lists, then the look into the stream, so that no publication falls between them.
/// Those that come twice, in the result and through the inbox, are told apart by their offsets (`hub/watch.rs`).
///
/// # Errors
/// 100 when the broker failed; 112 when only a recovered subscription was wanted. Nothing is left behind then.
pub(super) fn enter(
    turn: &mut Turn<'_>,
    namespace: &Namespace,
    mut entry: Entry<'_>,
) -> Result<SubscribeResult, ErrorCode> {
    let (index, terms) = (turn.key.index, entry.terms.take());
    let place = turn.roster.join(turn.node, index, entry.channel, entry.server_side, terms);
    match look(turn, namespace, &entry) {
        Ok((top, result)) => {
            if entry.tracking.positioned {
                turn.roster.watch(turn.node, index, place, top, turn.now);
            }
            count(turn, &result);
            Ok(result)
        }
        Err(error) => {
            turn.roster.leave(turn.node, index, place);
            Err(error)
        }
    }
}

/// How a subscription is seen by others, and sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Visibility {
    /// It is in the presence of the channel.
    present: bool,
    /// Its join and its leave are announced.
    announced: bool,
    /// It hears of joins and leaves.
    hears: bool,
}

impl Visibility {
    /// As the namespace or a token says; joins and leaves are heard by force, or where the client wishes and may know.
    pub(super) fn of(
        turn: &Turn<'_>,
        namespace: &Namespace,
        overrides: Overrides,
        request: Option<&SubscribeRequest>,
    ) -> Self {
        let announced = overrides.join_leave.unwrap_or(namespace.join_leave);
        let wished = announced
            && request.is_some_and(|request| request.join_leave)
            && has_presence_access(turn.who(), namespace, true);
        let forced = overrides.force_push_join_leave.unwrap_or(namespace.force_push_join_leave);
        let present = overrides.presence.unwrap_or(namespace.presence);
        Self { present, announced, hears: forced || wished }
    }
}

/// Makes the client known in the channel it has just entered. Its join comes through the inbox, so after the reply.
///
/// # Errors
/// 100 when the store of presence failed. The subscription is gone then.
pub(super) fn appear(
    turn: &mut Turn<'_>,
    channel: &str,
    visibility: Visibility,
) -> Result<(), ErrorCode> {
    if visibility == Visibility::default() {
        return Ok(());
    }
    let (node, index) = (turn.node, turn.key.index);
    let place = turn.place_of(channel).expect("the session has entered");
    if visibility.present
        && let Err(error) = turn.roster.appear(node, index, place, turn.now)
    {
        turn.roster.leave(node, index, place);
        return Err(error);
    }
    if visibility.hears {
        turn.roster.hear(index, place);
    }
    if visibility.announced {
        turn.roster.announce(node, index, place);
    }
    Ok(())
}

/// The top of the stream, and what the result says about it and about what was missed.
fn look(
    turn: &Turn<'_>,
    namespace: &Namespace,
    entry: &Entry<'_>,
) -> Result<(Position, SubscribeResult), ErrorCode> {
    let Tracking { positioned, recoverable } = entry.tracking;
    if !positioned {
        return Ok(Default::default());
    }
    let mode = namespace.force_recovery_mode;
    let automatic = (namespace.auto_cache_recover && mode == RecoveryMode::Cache)
        .then_some(Claim { offset: 0, epoch: "" });
    let claim = entry.claim.or(automatic).filter(|_| recoverable);
    let limit = turn.node.options().client.recovery_max_publication_limit;
    let query = claim.map_or(Query::TOP, |claim| recovery::query(mode, claim, limit));
    let read = turn.node.stretch(entry.channel, query, namespace.retention(), turn.now)?;
    let top = read.top;
    let missed = claim.and_then(|claim| recovery::recover(mode, claim, read));
    let asked = recoverable && entry.claim.is_some();
    if missed.is_none() && asked && entry.only_recovered {
        return Err(ErrorCode::UNRECOVERABLE_POSITION);
    }
    // A client that recovered moves on from its own position, publication by publication.
    let offset = match (&missed, claim) {
        (Some(_), Some(claim)) => claim.offset,
        _ => top.offset,
    };
    let result = SubscribeResult {
        positioned,
        recoverable,
        offset,
        epoch: top.epoch.to_string(),
        was_recovering: claim.is_some(),
        recovered: missed.is_some(),
        publications: missed.unwrap_or_default(),
        ..SubscribeResult::default()
    };
    Ok((top, result))
}

fn count(turn: &Turn<'_>, result: &SubscribeResult) {
    let counters = turn.roster.counters();
    counters.subscriptions_accepted.add(1);
    if result.was_recovering {
        let outcome =
            if result.recovered { &counters.recoveries } else { &counters.failed_recoveries };
        outcome.add(1);
        counters.recovered_publications.add(result.publications.len() as u64);
    }
}
