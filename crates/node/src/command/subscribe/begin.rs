//! First step of a subscribe (protocol §8): registry, stream, presence.
//! In: the options of a subscription → out: a pending channel, with answers that are ready or pending.
//! Uses: broker and presence through the node. Never: permissions.
//! Changed here: which calls precede a subscription, and their order.

use fanwire_broker::Query;
use fanwire_policy::options::{Namespace, RecoveryMode};
use fanwire_policy::recovery::{self, ClaimedPosition};

use super::options::SubscribeParameters;
use crate::command::CommandContext;
use crate::pending::{BufferedMessages, OwnedPosition, Part, PendingChannel, Tracking};

/// Starts to subscribe: first the registry, so that everything published from now on reaches this shard; then the
/// stream and the presence, concurrently. The session has its id by now.
pub(in crate::command) fn begin(
    context: &mut CommandContext<'_>,
    namespace: &Namespace,
    parameters: SubscribeParameters<'_>,
    number: usize,
) -> PendingChannel {
    let channel = context.node.channels().join(parameters.channel, context.session_table.shard);
    let mode = parameters.mode;
    let claimed = effective_claim(&parameters, namespace);
    let was_recovering = parameters.recovers || claimed.is_some();
    let limit = context.settings.options.client.recovery_max_publication_limit;
    let query = parameters.tracking.has_position().then(|| {
        let is_filtered = parameters.terms.as_ref().is_some_and(|terms| terms.filter.is_some());
        claimed.as_ref().map_or(Query::TOP, |claimed| {
            recovery::query(mode, claimed.borrowed(), limit, is_filtered)
        })
    });
    let follow =
        context.node.channels().follow(&channel, query, namespace.retention(), context.now);
    let slice = context.soon(follow, move |result| Part::StreamSlice(number, result));
    let appeared = if parameters.visibility.present {
        let me = context.session().info_as(parameters.terms.as_deref());
        let appear = context.node.channels().appear(&channel, me, context.now);
        context.soon(appear, move |result| Part::Presence(number, result))
    } else {
        Some(Ok(()))
    };
    let SubscribeParameters {
        server_side,
        terms,
        tracking,
        delta,
        visibility,
        data,
        requested_data,
        view,
        ..
    } = parameters;
    let held_from = 0;
    let buffered = BufferedMessages::default();
    PendingChannel {
        channel,
        server_side,
        terms,
        tracking,
        delta,
        visibility,
        mode,
        claimed,
        unrecovered: None,
        history_size: namespace.history_size,
        was_recovering,
        data,
        requested_data,
        view,
        switch: None,
        slice,
        appeared,
        large: None,
        held_from,
        buffered,
    }
}

/// The position that the client claims, or that the namespace sets. Only a stream subscription is refused for missing
/// publications: an empty cache would be refused for ever.
fn effective_claim(
    parameters: &SubscribeParameters<'_>,
    namespace: &Namespace,
) -> Option<OwnedPosition> {
    let is_automatic = namespace.auto_cache_recover && parameters.mode == RecoveryMode::Cache;
    if parameters.tracking != Tracking::Recoverable || !parameters.recovers && !is_automatic {
        return None;
    }
    let ClaimedPosition { offset, epoch } =
        parameters.claimed.unwrap_or(ClaimedPosition { offset: 0, epoch: "" });
    let only_recovered = parameters.only_recovered && parameters.mode == RecoveryMode::Stream;
    Some(OwnedPosition { offset, epoch: epoch.to_owned(), only_recovered })
}
