//! The first step into a channel (protocol §8): the registry, the look into the stream, the presence.
//! In: the options of a subscription → out: a pending channel, whose answers are there or on their way.
//! Uses: broker and presence through the node. Never: asks who may enter.
//! Change here: what is asked before a subscription is made, and in which order.

use fanwire_broker::Query;

use super::options::SubscribeParameters;
use crate::command::CommandContext;
use crate::options::{Namespace, RecoveryMode};
use crate::pending::{BufferedMessages, OwnedPosition, Part, PendingChannel};
use crate::recovery::{self, ClaimedPosition};

/// Begins to enter a channel: first the registry, so that everything published from now on is on its way to this shard;
/// then the look into the stream and the presence, at once. The session has a name by now.
pub(in crate::command) fn begin(
    context: &mut CommandContext<'_>,
    namespace: &Namespace,
    parameters: SubscribeParameters<'_>,
    number: usize,
) -> PendingChannel {
    let channel = context.node.join(parameters.channel, context.session_table.shard());
    let mode = parameters.mode;
    let claimed = effective_claim(&parameters, namespace);
    let was_recovering = parameters.recovers || claimed.is_some();
    let limit = context.node.options().client.recovery_max_publication_limit;
    let query = parameters.tracking.positioned.then(|| {
        let is_filtered = parameters.terms.as_ref().is_some_and(|terms| terms.filter.is_some());
        claimed.as_ref().map_or(Query::TOP, |claimed| {
            recovery::query(mode, claimed.borrowed(), limit, is_filtered)
        })
    });
    let follow = context.node.follow(&channel, query, namespace.retention(), context.now);
    let stretch = context.soon(follow, move |result| Part::StreamSlice(number, result));
    let appeared = match parameters.visibility.present {
        true => {
            let me = context.session().info_as(parameters.terms.as_deref());
            let appear = context.node.appear(&channel, me, context.now);
            context.soon(appear, move |result| Part::Presence(number, result))
        }
        false => Some(Ok(())),
    };
    let SubscribeParameters { server_side, terms, tracking, delta, visibility, data, .. } =
        parameters;
    let (held_from, buffered) = (0, BufferedMessages::default());
    PendingChannel {
        channel,
        server_side,
        terms,
        tracking,
        delta,
        visibility,
        mode,
        claimed,
        was_recovering,
        data,
        stretch,
        appeared,
        large: None,
        held_from,
        buffered,
    }
}

/// The claim of the client, or the one that the namespace makes for it. Only a stream can be refused for what is missing: a
/// cache that holds nothing yet would be refused for ever.
fn effective_claim(
    parameters: &SubscribeParameters<'_>,
    namespace: &Namespace,
) -> Option<OwnedPosition> {
    let is_automatic = namespace.auto_cache_recover && parameters.mode == RecoveryMode::Cache;
    if !parameters.tracking.recoverable || !parameters.recovers && !is_automatic {
        return None;
    }
    let ClaimedPosition { offset, epoch } =
        parameters.claimed.unwrap_or(ClaimedPosition { offset: 0, epoch: "" });
    let only_recovered = parameters.only_recovered && parameters.mode == RecoveryMode::Stream;
    Some(OwnedPosition { offset, epoch: epoch.to_owned(), only_recovered })
}
