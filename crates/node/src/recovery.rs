//! Whether a subscriber that comes back has missed anything it can still be given (protocol §9): stream and cache mode.
//! In: the position it had, what the broker read for it → out: recovered or not, and the publications it gets.
//! Uses: positions and publications. Never: sessions, brokers; the query is only described here.
//! Change here: the rules of recovery. Who may recover, and what is replied, lives in `command/enter.rs`.

use fanwire_protocol::Publication;

use crate::broker::{Query, Stretch};
use crate::options::RecoveryMode;

/// Where a subscriber says it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim<'a> {
    pub(crate) offset: u64,
    /// As the client wrote it: "" is the epoch of any stream, except in cache mode; `_` is never the epoch of one.
    pub(crate) epoch: &'a str,
}

/// What to read from the broker for a recovery; `limit` 0 = unlimited.
pub(crate) fn query(mode: RecoveryMode, claim: Claim<'_>, limit: usize) -> Query {
    match mode {
        RecoveryMode::Stream => {
            Query { limit: (limit > 0).then_some(limit), since: Some(claim.offset), reverse: false }
        }
        RecoveryMode::Cache => Query { limit: Some(1), since: None, reverse: true },
    }
}

/// The publications that bring the subscriber from its claim to the top; `None` when that is not possible.
pub(crate) fn recover(
    mode: RecoveryMode,
    claim: Claim<'_>,
    read: Stretch,
) -> Option<Vec<Publication>> {
    match mode {
        RecoveryMode::Stream => recover_stream(claim, read),
        RecoveryMode::Cache => recover_cache(claim, read),
    }
}

/// Everything after the claim, without a hole, up to the top.
fn recover_stream(
    claim: Claim<'_>,
    Stretch { publications, top }: Stretch,
) -> Option<Vec<Publication>> {
    let same_epoch = claim.epoch.is_empty() || claim.epoch == top.epoch.as_str();
    let complete = match (publications.first(), publications.last()) {
        (Some(first), Some(last)) => first.offset - 1 == claim.offset && last.offset == top.offset,
        _ => claim.offset == top.offset,
    };
    (same_epoch && complete).then_some(publications)
}

/// The newest publication, unless it is known already.
fn recover_cache(
    claim: Claim<'_>,
    Stretch { publications, top }: Stretch,
) -> Option<Vec<Publication>> {
    let is_there =
        claim.offset > 0 && claim.offset == top.offset && claim.epoch == top.epoch.as_str();
    match publications.first() {
        _ if is_there => Some(Vec::new()),
        Some(newest) if newest.offset == top.offset => Some(publications),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
