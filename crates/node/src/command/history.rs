//! The `history` command (protocol §18), whose feature is not there yet: 108 in every channel.
//! In: a HistoryRequest → out: 102 or 107 for an impossible channel, else 108 (not available), as where the option is off.
//! Uses: channel rules. Never: state.
//! Change here: everything about history, once channels keep it.

use fanwire_protocol::{ErrorCode, HistoryRequest};

use super::{Answer, Turn, named};

pub(super) fn handle(turn: &mut Turn<'_>, request: HistoryRequest) -> Answer {
    named(&request.channel)?;
    turn.node.rules().resolve(&request.channel)?;
    Err(ErrorCode::NOT_AVAILABLE.into())
}
