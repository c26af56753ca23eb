//! The `presence` command (protocol §17): who is in a channel.
//! In: a PresenceRequest → out: a PresenceResult, or why not.
//! Uses: channel rules, presence through the node. Never: subscriptions, except to see whether there is one.
//! Change here: order of the checks. Who is where is kept behind `crate::presence`, the reply is made in `encode_job.rs`.

use fanwire_protocol::PresenceRequest;

use super::{Begun, Step, Turn, named};
use crate::channel::may_see_presence;
use crate::encode_job::Found;

pub(super) fn handle(turn: &mut Turn<'_>, request: PresenceRequest) -> Begun {
    let channel = request.channel;
    named(&channel)?;
    let namespace = turn.resolve(&channel)?;
    may_see_presence(turn.who(), namespace, turn.place_of(&channel).is_some())?;
    Step::of(turn.node.members(&channel, turn.now), |members| Found::Members(members).into())
}
