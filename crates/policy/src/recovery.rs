//! Recovery (protocol §9): whether a returning subscriber can get everything it missed, in stream and cache mode.
//! In: its position, the answer of the broker → out: recovered or not, and the publications for it.
//! Uses: positions, publications and filters. Never: sessions, brokers; it only describes the query.
//! Changed here: the rules of recovery. `command/subscribe/` checks permission and makes the reply.

use fanwire_broker::{Query, StreamSlice};
use fanwire_protocol::Publication;

use crate::filter::SubscriptionFilter;
use crate::options::RecoveryMode;

/// The position that a subscriber claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedPosition<'a> {
    pub offset: u64,
    /// Epoch in the request: "" matches the epoch of any stream, except in cache mode; `_` matches none.
    pub epoch: &'a str,
}

/// Why a position was not recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrecovered {
    /// The position is of another epoch, or ahead of the stream.
    Epoch,
    /// More publications are missing than `client.recovery_max_publication_limit`.
    Limit,
    /// More publications are missing than `history_size` keeps.
    Size,
    /// The missing publications are older than `history_ttl`, or were removed.
    Ttl,
}

impl Unrecovered {
    pub const ALL: [Self; 4] = [Self::Epoch, Self::Limit, Self::Size, Self::Ttl];

    /// The label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Epoch => "epoch",
            Self::Limit => "limit",
            Self::Size => "size",
            Self::Ttl => "ttl",
        }
    }

    pub fn explanation(self) -> &'static str {
        match self {
            Self::Epoch => "its position is of another history of the channel",
            Self::Limit => "it missed more publications than client.recovery_max_publication_limit",
            Self::Size => "it missed more publications than history_size keeps",
            Self::Ttl => "what it missed is older than history_ttl, or was removed",
        }
    }

    /// The cause, should [`recover`] find the publications of `read` incomplete.
    pub fn cause(
        mode: RecoveryMode,
        claimed: ClaimedPosition<'_>,
        read: &StreamSlice,
        history_size: usize,
    ) -> Self {
        let oldest = read.publications.first().map(|oldest| oldest.offset);
        match (mode, oldest) {
            (RecoveryMode::Stream, _)
                if !read.continues(claimed.offset, claimed.epoch)
                    || claimed.offset > read.top.offset =>
            {
                Self::Epoch
            }
            (RecoveryMode::Stream, Some(oldest)) if has_all_after(claimed.offset, oldest, read) => {
                Self::Limit
            }
            (RecoveryMode::Stream, Some(_)) if read.dropped.is_some() => {
                if read.publications.len() >= history_size { Self::Size } else { Self::Ttl }
            }
            (RecoveryMode::Stream, Some(oldest)) => {
                let kept = read.top.offset.saturating_sub(oldest) + 1;
                if kept >= history_size as u64 { Self::Size } else { Self::Ttl }
            }
            _ => Self::Ttl,
        }
    }
}

/// The query for a recovery; `limit` 0 = unlimited. In cache mode with a filter, so many publications are read, newest
/// first.
pub fn query(
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

/// The publications between the claimed position and the top, without those that the filter drops; `None` when
/// they are not available.
pub fn recover(
    mode: RecoveryMode,
    claimed: ClaimedPosition<'_>,
    read: StreamSlice,
    filter: Option<&SubscriptionFilter>,
) -> Option<Vec<Publication>> {
    match mode {
        RecoveryMode::Stream => recover_stream(claimed, read, filter),
        RecoveryMode::Cache => recover_cache(claimed, read, filter),
    }
}

/// Whether history has all publications after `offset` if `oldest` is the first of them there. Those that a newer publication
/// of their growing message replaced are not missing.
fn has_all_after(offset: u64, oldest: u64, read: &StreamSlice) -> bool {
    match read.dropped {
        Some(dropped) => offset >= dropped,
        None => oldest.checked_sub(1) == Some(offset),
    }
}

/// Everything after the claimed position, without a gap, up to the top. Publications that the filter drops count as
/// present.
fn recover_stream(
    claimed: ClaimedPosition<'_>,
    read: StreamSlice,
    filter: Option<&SubscriptionFilter>,
) -> Option<Vec<Publication>> {
    let same_epoch = read.continues(claimed.offset, claimed.epoch);
    let complete = match (read.publications.first(), read.publications.last()) {
        (Some(first), Some(last)) => {
            has_all_after(claimed.offset, first.offset, &read) && last.offset == read.top.offset
        }
        _ => claimed.offset == read.top.offset,
    };
    let StreamSlice { mut publications, .. } = read;
    if !same_epoch || !complete {
        return None;
    }
    if let Some(filter) = filter {
        publications.retain(|publication| filter.matches(&publication.tags));
    }
    Some(publications)
}

/// The newest publication, with a filter the newest one that matches, unless the subscriber has it. When none of the
/// stored ones matches, an older one may have, unless all of them came after the claimed position. Ahead of the stream, which lost its end
/// then, a subscriber cannot know.
fn recover_cache(
    claimed: ClaimedPosition<'_>,
    read: StreamSlice,
    filter: Option<&SubscriptionFilter>,
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
        && claimed.offset <= top.offset
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
