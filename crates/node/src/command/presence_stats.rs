//! The `presence_stats` command (protocol §17): the number of members of a channel.
//! In: a PresenceStatsRequest → out: a PresenceStatsResult, or an error.
//! Uses: channel rules, presence through the node. Never: subscriptions, except whether there is one.
//! Changed here: order of the checks. `crate::presence` stores members.

use fanwire_broker::PresenceStats;
use fanwire_policy::channel::may_see_presence;
use fanwire_protocol::{PresenceStatsRequest, PresenceStatsResult, Reply};

use super::{CommandContext, CommandStep, StepResult, named};

pub(super) fn handle(
    context: &mut CommandContext<'_>,
    request: PresenceStatsRequest,
) -> StepResult {
    let channel = request.channel;
    named(&channel)?;
    let namespace = context.resolve(&channel)?;
    may_see_presence(context.who(), namespace, context.subscription_to(&channel).is_some())?;
    CommandStep::of(
        context.node.channels().member_stats(&channel, context.now),
        |PresenceStats { clients, users }| {
            let count = |number: usize| number.try_into().unwrap_or(u32::MAX);
            let stats =
                PresenceStatsResult { num_clients: count(clients), num_users: count(users) };
            Reply { presence_stats: Some(stats), ..Reply::default() }.into()
        },
    )
}
