//! Whether a subscriber that comes back has missed anything it can still be given (protocol §9): stream and cache mode.
//! In: the position it had, what the broker read for it → out: recovered or not, and the publications it gets.
//! Uses: positions, publications and filters. Never: sessions, brokers; the query is only described here.
//! Change here: the rules of recovery. Who may recover, and what is replied, lives in `command/subscribe/`.

use fanwire_broker::{Query, StreamSlice};
use fanwire_protocol::Publication;

use crate::filter::Filter;
use crate::options::RecoveryMode;

/// Where a subscriber says it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClaimedPosition<'a> {
    pub(crate) offset: u64,
    /// As the client wrote it: "" is the epoch of any stream, except in cache mode; `_` is never the epoch of one.
    pub(crate) epoch: &'a str,
}

/// What to read from the broker for a recovery; `limit` 0 = unlimited. In cache mode a filter has so many publications
/// looked at, newest first.
pub(crate) fn query(
    mode: RecoveryMode,
    claimed: ClaimedPosition<'_>,
    limit: usize,
    is_filtered: bool,
) -> Query {
    let limit = (limit > 0).then_some(limit);
    match mode {
        RecoveryMode::Stream => Query { limit, since: Some(claimed.offset), reverse: false },
        RecoveryMode::Cache if is_filtered => Query { limit, since: None, reverse: true },
        RecoveryMode::Cache => Query { limit: Some(1), since: None, reverse: true },
    }
}

/// The publications that bring the subscriber from its claim to the top, without those that its filter drops; `None` when
/// that is not possible.
pub(crate) fn recover(
    mode: RecoveryMode,
    claimed: ClaimedPosition<'_>,
    read: StreamSlice,
    filter: Option<&Filter>,
) -> Option<Vec<Publication>> {
    match mode {
        RecoveryMode::Stream => recover_stream(claimed, read, filter),
        RecoveryMode::Cache => recover_cache(claimed, read, filter),
    }
}

/// Everything after the claim, without a hole, up to the top. What a filter drops fills no hole and makes none.
fn recover_stream(
    claimed: ClaimedPosition<'_>,
    read: StreamSlice,
    filter: Option<&Filter>,
) -> Option<Vec<Publication>> {
    let same_epoch = read.continues(claimed.offset, claimed.epoch);
    let StreamSlice { mut publications, top, .. } = read;
    let complete = match (publications.first(), publications.last()) {
        (Some(first), Some(last)) => {
            first.offset.checked_sub(1) == Some(claimed.offset) && last.offset == top.offset
        }
        _ => claimed.offset == top.offset,
    };
    if !same_epoch || !complete {
        return None;
    }
    if let Some(filter) = filter {
        publications.retain(|publication| filter.matches(&publication.tags));
    }
    Some(publications)
}

/// The newest publication, with a filter the newest one that matches, unless it is known already. When none of those that are
/// kept matches, an older one may have, unless all of them came after the claim.
fn recover_cache(
    claimed: ClaimedPosition<'_>,
    read: StreamSlice,
    filter: Option<&Filter>,
) -> Option<Vec<Publication>> {
    let is_named = claimed.offset > 0 && !claimed.epoch.is_empty();
    let has_epoch = is_named && read.continues(claimed.offset, claimed.epoch);
    let StreamSlice { publications, top, .. } = read;
    let is_there = has_epoch && claimed.offset == top.offset;
    let is_complete = publications.first().is_some_and(|newest| newest.offset == top.offset);
    if !is_there && !is_complete {
        return None;
    }
    let is_seamless = has_epoch
        && publications
            .last()
            .is_some_and(|oldest| oldest.offset <= claimed.offset.saturating_add(1));
    let knows = |offset| has_epoch && (offset..=top.offset).contains(&claimed.offset);
    let is_wanted = |one: &Publication| filter.is_none_or(|filter| filter.matches(&one.tags));
    let newest = publications.into_iter().find(is_wanted);
    if newest.is_none() && !is_there && !is_seamless {
        return None;
    }
    Some(newest.into_iter().filter(|newest| !knows(newest.offset)).collect())
}

#[cfg(test)]
mod tests;
