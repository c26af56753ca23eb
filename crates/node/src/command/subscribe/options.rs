//! What a subscription is to be: how it follows its stream, how it is seen, whether it gets deltas (protocol §8, §11, §19).
//! In: a namespace, the overrides of a token, a request → out: the options with which the subscription begins.
//! Uses: permission rules. Never: broker, presence, the table of sessions.
//! Change here: which options a client gets of those it asks for.

use bytes::Bytes;
use fanwire_auth::Overrides;
use fanwire_protocol::SubscribeRequest;

use crate::channel::{has_presence_access, may_read_history};
use crate::command::CommandContext;
use crate::options::{Namespace, RecoveryMode};
use crate::pending::{Tracking, Visibility};
use crate::recovery::ClaimedPosition;
use crate::session::Terms;
use crate::subscribers::DeltaState;

/// What is known of a subscription before it is made.
pub(in crate::command) struct SubscribeParameters<'a> {
    pub(in crate::command) channel: &'a str,
    pub(in crate::command) server_side: bool,
    pub(in crate::command) terms: Option<Box<Terms>>,
    pub(in crate::command) tracking: Tracking,
    /// It gets deltas, to begin with like this.
    pub(in crate::command) delta: Option<DeltaState>,
    pub(in crate::command) visibility: Visibility,
    /// The position the client names.
    pub(in crate::command) claimed: Option<ClaimedPosition<'a>>,
    /// It wants to go on from there.
    pub(in crate::command) recovers: bool,
    /// The client rather has error 112 than a subscription with a gap.
    pub(in crate::command) only_recovered: bool,
    /// What it is given if it recovers.
    pub(in crate::command) mode: RecoveryMode,
    pub(in crate::command) data: Bytes,
}

impl Tracking {
    /// As the namespace or a token forces it, or as the client wishes where it is allowed to or may read history anyway.
    pub(in crate::command) fn of(
        context: &CommandContext<'_>,
        namespace: &Namespace,
        overrides: Overrides,
        request: Option<&SubscribeRequest>,
    ) -> Self {
        if !namespace.retention().keeps_history() {
            return Self::default();
        }
        let may_read = || may_read_history(context.who(), namespace, true).is_ok();
        let wished = |parameters: fn(&SubscribeRequest) -> bool, allowed: bool| {
            request.is_some_and(parameters) && (allowed || may_read())
        };
        let recoverable = overrides.force_recovery.unwrap_or(namespace.force_recovery)
            || wished(|request| request.recoverable, namespace.allow_recovery);
        let positioned = recoverable
            || overrides.force_positioning.unwrap_or(namespace.force_positioning)
            || wished(|request| request.positioned, namespace.allow_positioning);
        Self { positioned, recoverable }
    }
}

/// How a subscription begins that gets deltas: when the client wishes and the namespace allows it. With a filter never:
/// what is skipped would be missing from the base of the next one (protocol §11).
pub(in crate::command) fn deltas(
    namespace: &Namespace,
    tracking: Tracking,
    request: &SubscribeRequest,
) -> Option<DeltaState> {
    let is_allowed = request.tf.is_none() && namespace.allows_delta(&request.delta);
    is_allowed.then_some(match tracking.positioned {
        true => DeltaState::AwaitsStream,
        false if namespace.keep_latest_publication => DeltaState::AwaitsLatest,
        false => DeltaState::Full,
    })
}

impl Visibility {
    /// As the namespace or a token says; joins and leaves are heard by force, or where the client wishes and may know.
    pub(in crate::command) fn of(
        context: &CommandContext<'_>,
        namespace: &Namespace,
        overrides: Overrides,
        request: Option<&SubscribeRequest>,
    ) -> Self {
        let announced = overrides.join_leave.unwrap_or(namespace.join_leave);
        let wished = announced
            && request.is_some_and(|request| request.join_leave)
            && has_presence_access(context.who(), namespace, true);
        let forced = overrides.force_push_join_leave.unwrap_or(namespace.force_push_join_leave);
        let present = overrides.presence.unwrap_or(namespace.presence);
        Self { present, announced, wants_join_leave: forced || wished }
    }
}

/// The position that a request names, whether it wants to recover or not.
pub(in crate::command) fn claimed(request: &SubscribeRequest) -> ClaimedPosition<'_> {
    ClaimedPosition { offset: request.offset, epoch: &request.epoch }
}

#[cfg(test)]
mod tests;
