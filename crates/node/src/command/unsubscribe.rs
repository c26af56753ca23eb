//! The `unsubscribe` command (protocol §15): always answered with `{}`, because SDKs drop the connection on an error.
//! In: an UnsubscribeRequest → out: an empty result; afterwards nothing of that channel is sent.
//! Uses: the session table. Never: refuses.
//! Change here: the effect of an unsubscribe.

use fanwire_protocol::{Reply, UnsubscribeRequest, UnsubscribeResult};

use super::{CommandContext, ReplyResult, named};

pub(super) fn handle(context: &mut CommandContext<'_>, request: UnsubscribeRequest) -> ReplyResult {
    named(&request.channel)?;
    let (node, index) = (context.node, context.key.index);
    context.backlog.ended = context.session_table.end_view(node, index, &request.channel);
    if let Some(place) = context.place_of(&request.channel) {
        let last = context.session_table.leave(node, index, place);
        context.backlog.ended.push((place as u32, last));
    }
    Ok(Reply { unsubscribe: Some(UnsubscribeResult {}), ..Reply::default() })
}
