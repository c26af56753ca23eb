//! Evaluates the answers of broker and presence for a new subscription: its position, and the missed publications (protocol §9).
//! In: a pending channel with all answers → out: the top of the stream and the result, or the error.
//! Uses: `recovery` for the rules. Never: makes the subscription.
//! Changed here: positions in a subscribe result.

use fanwire_broker::Position;
use fanwire_policy::recovery::{self, Unrecovered};
use fanwire_protocol::{ErrorCode, SubscribeResult};

use crate::pending::{PendingChannel, Tracking};

/// The top of the stream, and the result with its position and missed publications.
pub(super) fn decide(
    pending_channel: &mut PendingChannel,
) -> Result<(Position, SubscribeResult), ErrorCode> {
    pending_channel.appeared.take().expect(COMPLETE)?;
    let read = pending_channel.slice.take().expect(COMPLETE)?;
    let tracking = pending_channel.tracking;
    let (data, was_recovering) =
        (std::mem::take(&mut pending_channel.data), pending_channel.was_recovering);
    if let Some(switch) = pending_channel.switch.take() {
        let filter = pending_channel.terms.as_ref().and_then(|terms| terms.filter.as_deref());
        let top = read.top;
        let result = switch.result(read, filter)?;
        return Ok((top, SubscribeResult { data, ..result }));
    }
    if !tracking.has_position() {
        let result = SubscribeResult { data, was_recovering, ..Default::default() };
        return Ok((Position::default(), result));
    }
    let top = read.top;
    let claimed = pending_channel.claimed.as_ref();
    let filter = pending_channel.terms.as_ref().and_then(|terms| terms.filter.as_deref());
    let mode = pending_channel.mode;
    let history_size = pending_channel.history_size;
    let mut unrecovered = None;
    let missed = claimed.and_then(|claimed| {
        let claimed = claimed.borrowed();
        unrecovered = Some(Unrecovered::cause(mode, claimed, &read, history_size));
        recovery::recover(mode, claimed, read, filter)
    });
    pending_channel.unrecovered = unrecovered.filter(|_| missed.is_none());
    if missed.is_none() && claimed.is_some_and(|claimed| claimed.only_recovered) {
        return Err(ErrorCode::UNRECOVERABLE_POSITION);
    }
    // A client that recovered continues from its own position, publication by publication.
    let offset = match (&missed, claimed) {
        (Some(_), Some(claimed)) => claimed.offset,
        _ => top.offset,
    };
    let result = SubscribeResult {
        positioned: true,
        recoverable: tracking == Tracking::Recoverable,
        offset,
        epoch: top.epoch.to_string(),
        was_recovering,
        recovered: missed.is_some(),
        publications: missed.unwrap_or_default(),
        data,
        ..SubscribeResult::default()
    };
    Ok((top, result))
}

const COMPLETE: &str = "every answer has come";
