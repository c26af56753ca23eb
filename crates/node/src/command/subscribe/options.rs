//! Options of a subscription: stream tracking, visibility, deltas (protocol §8, §11, §19).
//! In: a namespace, the overrides of a token, a request → out: the options with which the subscription begins.
//! Uses: permission rules. Never: broker, presence, the table of sessions.
//! Changed here: which requested options a client gets.

use bytes::Bytes;
use fanwire_auth::Overrides;
use fanwire_policy::channel::{has_presence_access, may_read_history};
use fanwire_policy::options::{Namespace, RecoveryMode};
use fanwire_policy::recovery::ClaimedPosition;
use fanwire_protocol::SubscribeRequest;

use crate::command::CommandContext;
use crate::pending::{GridView, Tracking, Visibility};
use crate::session::SubscriptionGrant;
use crate::subscribers::DeltaState;

/// Parameters of a subscription that is about to start.
pub(in crate::command) struct SubscribeParameters<'a> {
    pub(in crate::command) channel: &'a str,
    pub(in crate::command) server_side: bool,
    pub(in crate::command) terms: Option<Box<SubscriptionGrant>>,
    pub(in crate::command) tracking: Tracking,
    /// The initial delta state, with deltas.
    pub(in crate::command) delta: Option<DeltaState>,
    pub(in crate::command) visibility: Visibility,
    /// The position from the request.
    pub(in crate::command) claimed: Option<ClaimedPosition<'a>>,
    /// The client requests recovery from that position.
    pub(in crate::command) recovers: bool,
    /// The client prefers error 112 to a subscription with a gap.
    pub(in crate::command) only_recovered: bool,
    /// How it recovers.
    pub(in crate::command) mode: RecoveryMode,
    pub(in crate::command) data: Bytes,
    /// Data of the client's request, for reports.
    pub(in crate::command) requested_data: Bytes,
    /// First view of the client, in a channel with places.
    pub(in crate::command) view: Option<Box<GridView>>,
}

impl Tracking {
    /// Options that the namespace or a token forces, or that the client requests and is allowed to, or may have
    /// because it may read history.
    pub(in crate::command) fn of(
        context: &CommandContext<'_>,
        namespace: &Namespace,
        overrides: Overrides,
        request: Option<&SubscribeRequest>,
    ) -> Self {
        if !namespace.retention().keeps_history() {
            return Self::None;
        }
        let may_read = || may_read_history(context.who(), namespace, true).is_ok();
        let requested = |parameters: fn(&SubscribeRequest) -> bool, allowed: bool| {
            request.is_some_and(parameters) && (allowed || may_read())
        };
        if overrides.force_recovery.unwrap_or(namespace.force_recovery)
            || requested(|request| request.recoverable, namespace.allow_recovery)
        {
            return Self::Recoverable;
        }
        if overrides.force_positioning.unwrap_or(namespace.force_positioning)
            || requested(|request| request.positioned, namespace.allow_positioning)
        {
            return Self::Positioned;
        }
        Self::None
    }

    /// Whether the subscription knows its position in the stream.
    pub(in crate::command) fn has_position(self) -> bool {
        self != Self::None
    }
}

/// The initial delta state, when the client requests deltas and the namespace allows them. Not with a filter: the
/// publications it skips would be missing from the base of the next delta (protocol §11).
pub(in crate::command) fn deltas(
    namespace: &Namespace,
    tracking: Tracking,
    request: &SubscribeRequest,
) -> Option<DeltaState> {
    let is_allowed = request.tf.is_none() && namespace.allows_delta(&request.delta);
    is_allowed.then_some(match tracking.has_position() {
        true => DeltaState::AwaitsStream,
        false if namespace.keep_latest_publication => DeltaState::AwaitsLatest,
        false => DeltaState::Full,
    })
}

impl Visibility {
    /// Returns the settings of the namespace or a token; joins and leaves are sent by force, or when the client
    /// requests them and may see presence.
    pub(in crate::command) fn of(
        context: &CommandContext<'_>,
        namespace: &Namespace,
        overrides: Overrides,
        request: Option<&SubscribeRequest>,
    ) -> Self {
        let announced = overrides.join_leave.unwrap_or(namespace.join_leave);
        let requested = announced
            && request.is_some_and(|request| request.join_leave)
            && has_presence_access(context.who(), namespace, true);
        let forced = overrides.force_push_join_leave.unwrap_or(namespace.force_push_join_leave);
        let present = overrides.presence.unwrap_or(namespace.presence);
        let has_entries = namespace.has_entries_of_subscribers();
        Self { present, announced, wants_join_leave: forced || requested, has_entries }
    }
}

/// The position in a request, with or without recovery.
pub(in crate::command) fn claimed(request: &SubscribeRequest) -> ClaimedPosition<'_> {
    ClaimedPosition { offset: request.offset, epoch: &request.epoch }
}

#[cfg(test)]
mod tests;
