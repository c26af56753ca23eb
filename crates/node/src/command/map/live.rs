//! The switch of a subscribe to a map channel from pages to live (protocol §27).
//! In: a position and the entries of the last page → out: a pending channel, of which the rest is as of every other subscribe.
//! Uses: registry, maps and presence through the node. Never: phases.
//! Changed here: which calls precede the subscription. Its result is in `map/live.rs`, `command/subscribe/commit.rs` makes it.

use std::sync::Arc;

use fanwire_broker::map::ChangesQuery;
use fanwire_broker::{Position, StreamSlice};
use fanwire_policy::options::RecoveryMode;
use fanwire_protocol::{Disconnect, ErrorCode, Publication};

use crate::command::{CommandContext, CommandStep, StepResult};
use crate::map::live::LiveSwitch;
use crate::map::paging::PendingPage;
use crate::pending::{
    BufferedMessages, HeldChanges, OwnedPosition, Part, PendingChannel, PendingSubscribe,
    Reservation, SubscribeOrigin, Tracking,
};
use crate::refusal::CommandError;
use crate::session::Lifetime;

/// Begins to follow the channel, and reads what has changed after `since`.
///
/// # Errors
/// 110 when the lifetime of the subscription is over; 112 when an ephemeral map changed more often than its buffer holds, or may
/// have changed without that.
pub(super) fn go_live(
    context: &mut CommandContext<'_>,
    page: &PendingPage,
    since: Position,
    entries: Vec<Publication>,
) -> StepResult {
    let reservations = &mut context.session_table.pending.reservations;
    let reserved = reservations.take(context.key.index, &page.channel);
    let reservation = reserved.ok_or(ErrorCode::PERMISSION_DENIED)?;
    let has_stream = reservation.paging.has_stream();
    let changes_max = reservation.grant.live_changes_max;
    let recovers = page.request.recovers && !reservation.paging.has_entries();
    let followed = if has_stream {
        follow(context, &page.channel, since, changes_max)
    } else {
        take_held(context, &reservation)?
    };
    let Reservation { grant, .. } = reservation;
    if let Err(expired) = Lifetime::of(context, grant.lifetime.expire_at) {
        context.node.channels().leave(&followed.channel, context.session_table.shard);
        return Err(expired.into());
    }
    let appeared = if grant.visibility.present {
        let me = context.session().info_as(grant.terms.as_deref());
        let appear = context.node.channels().appear(&followed.channel, me, context.now);
        context.soon(appear, |result| Part::Presence(0, result))
    } else {
        Some(Ok(()))
    };
    let claimed = recovers.then(|| {
        let Position { offset, epoch } = page.request.since;
        OwnedPosition { offset, epoch: epoch.to_string(), only_recovered: true }
    });
    let pending_channel = PendingChannel {
        channel: followed.channel,
        server_side: false,
        terms: grant.terms,
        tracking: followed.tracking,
        delta: grant.delta,
        visibility: grant.visibility,
        mode: RecoveryMode::Stream,
        claimed,
        unrecovered: None,
        history_size: 0,
        was_recovering: recovers,
        data: grant.data,
        requested_data: grant.requested_data,
        view: None,
        switch: Some(Box::new(LiveSwitch {
            since,
            has_stream,
            changes_max,
            entries,
            recovers,
            publish_debounce: grant.publish_debounce,
        })),
        slice: followed.slice,
        appeared,
        large: None,
        held_from: 0,
        buffered: BufferedMessages::default(),
    };
    let origin = SubscribeOrigin::Subscribe(grant.lifetime);
    Ok(CommandStep::Enter(Box::new(PendingSubscribe::new(vec![pending_channel], origin))))
}

/// A channel whose later changes reach the shard.
struct Followed {
    channel: Arc<str>,
    tracking: Tracking,
    /// The changes before the subscription; `None` while they are read.
    slice: Option<Result<StreamSlice, ErrorCode>>,
}

/// Reads one change more than a client may lack, to find out whether there are more.
fn follow(
    context: &CommandContext<'_>,
    channel: &str,
    since: Position,
    changes_max: usize,
) -> Followed {
    let channel = context.node.channels().join(channel, context.session_table.shard);
    let limit = changes_max.saturating_add(1);
    let query = ChangesQuery { since: Some(since), limit: Some(limit), reverse: false };
    let answer = context.node.maps().follow(&channel, Some(query), context.now);
    let slice = context.soon(answer, |result| Part::StreamSlice(0, result));
    Followed { channel, tracking: Tracking::Recoverable, slice }
}

/// Takes the changes that were buffered since before the first page.
fn take_held(
    context: &mut CommandContext<'_>,
    reservation: &Reservation,
) -> Result<Followed, CommandError> {
    let HeldChanges::From(first) = reservation.held else {
        return Err(CommandError::disconnect(Disconnect::SLOW, TOO_SLOW));
    };
    let channel = Arc::clone(&reservation.channel);
    let held = context.session_table.pending.end_to_hold(&channel, first);
    let Some(held) = held.ok().filter(|held| !held.may_have_gap) else {
        context.node.channels().leave(&channel, context.session_table.shard);
        return Err(CommandError::error(ErrorCode::UNRECOVERABLE_POSITION, BUFFER_EXCEEDED));
    };
    let changes = held.broadcasts.iter().map(|broadcast| broadcast.publication().clone());
    let slice = StreamSlice { publications: changes.collect(), ..StreamSlice::default() };
    Ok(Followed { channel, tracking: Tracking::None, slice: Some(Ok(slice)) })
}

pub(super) const TOO_SLOW: &str =
    "the client took longer than map.subscribe_catch_up_timeout to read the map";
const BUFFER_EXCEEDED: &str =
    "the map changed more often than the buffer of its channel holds while the client read it";
