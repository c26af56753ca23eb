//! The `send` command (protocol §20): a message without reply, for which there is no receiver.
//! In: a SendRequest → out: disconnect 3508.
//! Uses: nothing. Never: replies; `send` has none.
//! Change here: the receiver of such messages, once there is one.

use fanwire_protocol::{Disconnect, SendRequest};

use super::{CommandContext, ReplyResult};
use crate::refusal::Refusal;

pub(super) fn handle(_turn: &mut CommandContext<'_>, _request: SendRequest) -> ReplyResult {
    Err(Refusal::disconnect(Disconnect::NOT_AVAILABLE, NO_RECEIVER))
}

const NO_RECEIVER: &str =
    "the server has no receiver for send; publish to a channel, or call your backend over HTTP";
