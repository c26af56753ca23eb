//! The `presence` command (protocol §17): the members of a channel.
//! In: a PresenceRequest → out: a PresenceResult, or an error.
//! Uses: channel rules, presence through the node. Never: subscriptions, except whether there is one.
//! Changed here: order of the checks. `crate::presence` stores members, `encode_job.rs` makes the reply.

use fanwire_policy::channel::may_see_presence;
use fanwire_protocol::PresenceRequest;

use super::{CommandContext, CommandStep, StepResult, named};
use crate::encode_job::ReplySource;

pub(super) fn handle(context: &mut CommandContext<'_>, request: PresenceRequest) -> StepResult {
    let channel = request.channel;
    named(&channel)?;
    let namespace = context.resolve(&channel)?;
    may_see_presence(context.who(), namespace, context.subscription_to(&channel).is_some())?;
    CommandStep::of(context.node.channels().members(&channel, context.now), |members| {
        ReplySource::Members(members).into()
    })
}
