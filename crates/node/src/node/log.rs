//! Log lines of a node that repeat: each kind is written once in a while, with the number of those left out.
//! In: refusals and warnings, `now` → out: lines, or none.
//! Uses: throttles. Never: sessions; `hub/refusals.rs` writes the lines of refusals.
//! Changed here: the text and the level of such a line.

use std::time::Instant;

use fanwire_protocol::ErrorCode;
use fanwire_telemetry::{Burst, LogThrottle, RefusalEvent, excerpt};

use fanwire_policy::recovery::Unrecovered;

/// The throttles of a node.
pub struct NodeLog {
    warnings: LogThrottle,
    refusals: LogThrottle,
}

/// The level at which a refusal is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalLevel {
    /// One line for this many refusals of a kind.
    Info(u64),
    Debug,
}

impl RefusalLevel {
    /// Level debug, if such lines are written.
    pub(crate) fn of_debug() -> Option<Self> {
        tracing::enabled!(tracing::Level::DEBUG).then_some(Self::Debug)
    }

    /// The number of refusals, at level info.
    pub fn count(self) -> Option<u64> {
        match self {
            Self::Info(count) => Some(count),
            Self::Debug => None,
        }
    }
}

impl Default for NodeLog {
    fn default() -> Self {
        Self { warnings: LogThrottle::default(), refusals: LogThrottle::for_refusals() }
    }
}

impl NodeLog {
    /// Counts a refusal, by a client command or the server API. `None` if it is not logged.
    pub fn level(&self, refusal: RefusalEvent<'_>, now: Instant) -> Option<RefusalLevel> {
        match self.refusals.record_event(refusal, now) {
            Some(repeats) => Some(RefusalLevel::Info(repeats.count())),
            None => RefusalLevel::of_debug(),
        }
    }

    /// Writes how many refusals were left out, for each kind that has ended.
    pub(super) fn tick(&self, now: Instant) {
        for Burst { kind, count, causes, users, addresses } in self.refusals.ended(now) {
            tracing::info!(count, kind, causes, users, addresses, "refusals that were not logged");
        }
    }

    /// Warns once a minute that users connect who cannot have a personal channel.
    pub(crate) fn no_personal_channel(&self, now: Instant) {
        if let Some(repeats) = self.warnings.record("personal channel", now) {
            tracing::warn!(
                "a user id contains channel.user_boundary or channel.user_separator: the connection has no personal channel, \
                 because other users could subscribe to it{repeats}"
            );
        }
    }

    /// Says at level info why subscribers were not recovered, each cause once in a while.
    pub(crate) fn unrecovered(&self, cause: Unrecovered, user: &str, channel: &str, now: Instant) {
        if let Some(repeats) = self.warnings.record(cause.name(), now) {
            tracing::info!(
                cause = cause.name(),
                user = excerpt(user),
                channel = excerpt(channel),
                "a subscriber was not recovered: {}{repeats}",
                cause.explanation()
            );
        }
    }

    /// Says once in a while that a subscribe of the server API failed, whose caller is on another node.
    pub(crate) fn failed_subscribe(
        &self,
        error: ErrorCode,
        user: &str,
        channel: &str,
        now: Instant,
    ) {
        if let Some(repeats) = self.warnings.record("subscribe of the server API", now) {
            tracing::warn!(
                code = error.code,
                user = excerpt(user),
                channel = excerpt(channel),
                "a connection was not subscribed by the server API, because the engine failed here: the caller does not know{repeats}"
            );
        }
    }

    /// Says once in a while that a refresh failed.
    pub(crate) fn failed_refresh(&self, cause: &str, now: Instant) {
        if let Some(repeats) = self.warnings.record("refresh", now) {
            tracing::warn!(%cause, "a refresh failed: the connection goes on, and it is tried again in a minute{repeats}");
        }
    }

    /// Warns that a change of blocks and revocations of another node did not fit.
    pub(super) fn full_revocations(&self, now: Instant) {
        if let Some(repeats) = self.warnings.record("revocations", now) {
            tracing::warn!(
                "the table of blocks and revocations is full: a change of another node was not made{repeats}"
            );
        }
    }
}
