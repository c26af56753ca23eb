//! The `unsubscribe` command (protocol §15): always answered with `{}`, because SDKs drop the connection on an error.
//! In: an UnsubscribeRequest → out: an empty result; afterwards nothing of that channel is sent.
//! Uses: the session table. Never: refuses.
//! Change here: the effect of an unsubscribe.

use fanwire_protocol::{Reply, UnsubscribeRequest, UnsubscribeResult};

use super::{CommandContext, Done, named};

pub(super) fn handle(context: &mut CommandContext<'_>, request: UnsubscribeRequest) -> Done {
    named(&request.channel)?;
    if let Some(place) = context.place_of(&request.channel) {
        let left = context.session_table.leave(context.node, context.key.index, place);
        context.backlog.ended = Some((place as u32, left.last));
    }
    Ok(Reply { unsubscribe: Some(UnsubscribeResult {}), ..Reply::default() })
}
