//! The `presence` command (protocol §17): who is in a channel.
//! In: a PresenceRequest → out: a PresenceResult, or why not.
//! Uses: channel rules, presence through the node. Never: subscriptions, except to see whether there is one.
//! Change here: order of the checks. Who is where is kept behind `crate::presence`.

use fanwire_protocol::{PresenceRequest, PresenceResult, Reply};

use super::{Begun, Step, Turn, named};
use crate::channel::may_see_presence;

pub(super) fn handle(turn: &mut Turn<'_>, request: PresenceRequest) -> Begun {
    let channel = request.channel;
    named(&channel)?;
    let namespace = turn.node.rules().resolve(&channel)?;
    may_see_presence(turn.who(), namespace, turn.place_of(&channel).is_some())?;
    Step::of(turn.node.members(&channel, turn.now), |members| {
        let presence =
            (members.iter()).map(|info| (info.client.clone(), info.as_ref().clone())).collect();
        Reply { presence: Some(PresenceResult { presence }), ..Reply::default() }
    })
}
