//! The first step into a channel (protocol §8): the registry, the look into the stream, the presence.
//! In: the options of a subscription → out: a pending channel, whose answers are there or on their way.
//! Uses: broker and presence through the node. Never: asks who may enter.
//! Change here: what is asked before a subscription is made, and in which order.

use fanwire_broker::Query;

use super::options::SubscribeParameters;
use crate::command::Turn;
use crate::options::{Namespace, RecoveryMode};
use crate::pending::{BufferedMessages, OwnClaim, Part, PendingChannel};
use crate::recovery::{self, Claim};

/// Begins to enter a channel: first the registry, so that everything published from now on is on its way to this shard;
/// then the look into the stream and the presence, at once. The session has a name by now.
pub(in crate::command) fn begin(
    turn: &mut Turn<'_>,
    namespace: &Namespace,
    wish: SubscribeParameters<'_>,
    number: usize,
) -> PendingChannel {
    let channel = turn.node.join(wish.channel, turn.session_table.shard());
    let mode = wish.mode;
    let claim = effective_claim(&wish, namespace);
    let was_recovering = wish.recovers || claim.is_some();
    let limit = turn.node.options().client.recovery_max_publication_limit;
    let query = wish.tracking.positioned.then(|| {
        let is_filtered = wish.terms.as_ref().is_some_and(|terms| terms.filter.is_some());
        claim
            .as_ref()
            .map_or(Query::TOP, |claim| recovery::query(mode, claim.borrowed(), limit, is_filtered))
    });
    let follow = turn.node.follow(&channel, query, namespace.retention(), turn.now);
    let stretch = turn.soon(follow, move |result| Part::StreamSlice(number, result));
    let appeared = match wish.visibility.present {
        true => {
            let me = turn.session().info_as(wish.terms.as_deref());
            let appear = turn.node.appear(&channel, me, turn.now);
            turn.soon(appear, move |result| Part::Presence(number, result))
        }
        false => Some(Ok(())),
    };
    let SubscribeParameters { server_side, terms, tracking, delta, visibility, data, .. } = wish;
    let (held_from, held) = (0, BufferedMessages::default());
    PendingChannel {
        channel,
        server_side,
        terms,
        tracking,
        delta,
        visibility,
        mode,
        claim,
        was_recovering,
        data,
        stretch,
        appeared,
        large: None,
        held_from,
        held,
    }
}

/// The claim of the client, or the one that the namespace makes for it. Only a stream can be refused for what is missing: a
/// cache that holds nothing yet would be refused for ever.
fn effective_claim(wish: &SubscribeParameters<'_>, namespace: &Namespace) -> Option<OwnClaim> {
    let is_automatic = namespace.auto_cache_recover && wish.mode == RecoveryMode::Cache;
    if !wish.tracking.recoverable || !wish.recovers && !is_automatic {
        return None;
    }
    let Claim { offset, epoch } = wish.claim.unwrap_or(Claim { offset: 0, epoch: "" });
    let only_recovered = wish.only_recovered && wish.mode == RecoveryMode::Stream;
    Some(OwnClaim { offset, epoch: epoch.to_owned(), only_recovered })
}
