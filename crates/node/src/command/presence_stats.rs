//! The `presence_stats` command (protocol §17), whose feature is not there yet: 108 in every channel.
//! In: a PresenceStatsRequest → out: 102 or 107 for an impossible channel, else 108 (not available), as where the option is off.
//! Uses: channel rules. Never: state.
//! Change here: everything about presence_stats, once channels keep it.

use fanwire_protocol::{ErrorCode, PresenceStatsRequest};

use super::{Answer, Turn, named};

pub(super) fn handle(turn: &mut Turn<'_>, request: PresenceStatsRequest) -> Answer {
    named(&request.channel)?;
    turn.node.rules().resolve(&request.channel)?;
    Err(ErrorCode::NOT_AVAILABLE.into())
}
