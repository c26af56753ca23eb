//! The `unsubscribe` command (protocol §15): always answered with `{}`, because SDKs drop the connection on an error.
//! In: an UnsubscribeRequest → out: an empty result; afterwards nothing of that channel is sent.
//! Uses: the session table. Never: refuses.
//! Changed here: the effect of an unsubscribe.

use fanwire_protocol::{Reply, UnsubscribeRequest, UnsubscribeResult};

use super::{CommandContext, ReplyResult, named};
use crate::flight_log;
use crate::index::SubscriptionKey;
use crate::map_presence::MapPresence;
use crate::map_release;
use crate::session_effects;

pub(super) fn handle(context: &mut CommandContext<'_>, request: UnsubscribeRequest) -> ReplyResult {
    named(&request.channel)?;
    let node = context.node;
    let index = context.key.index;
    map_release::end(node, context.session_table, index, &request.channel);
    let mut ended = session_effects::end_view(node, context.session_table, index, &request.channel);
    if let Some(own) = context.subscription_to(&request.channel) {
        let table = &mut *context.session_table;
        if let Some(channel) = table.channel_of(index, own).cloned() {
            let key = SubscriptionKey { connection: index, channel: &channel };
            flight_log::unsubscribed(node, table, key, None, context.now);
        }
        MapPresence { node, session_table: table, now: context.now }.disappear(index, own);
        ended.push(session_effects::end_subscription(node, table, index, own));
    }
    context.effects.connection.ended = ended;
    Ok(Reply { unsubscribe: Some(UnsubscribeResult {}), ..Reply::default() })
}
