//! The `send` command (protocol §20): a message without reply, for the program around the node or a backend.
//! In: a SendRequest → out: the question of an rpc with the method `rpc.send_method`; disconnect 3508 without that option.
//! Uses: options, `rpc`. Never: replies; `CommandContext::reply` drops what an rpc would return.
//! Changed here: who receives such messages.

use fanwire_protocol::{Disconnect, RpcRequest, SendRequest};

use super::{CommandContext, StepResult, rpc};
use crate::refusal::CommandError;

pub(super) fn handle(context: &mut CommandContext<'_>, request: SendRequest) -> StepResult {
    let method = context.settings.options.rpc.send_method.clone();
    if method.is_empty() {
        return Err(CommandError::disconnect(Disconnect::NOT_AVAILABLE, NO_RECEIVER));
    }
    rpc::handle(context, RpcRequest { method, data: request.data })
}

const NO_RECEIVER: &str =
    "the server has no receiver for send; publish to a channel, or call your backend over HTTP";
