//! The `rpc` command (protocol §20): only the built-in ping exists.
//! In: an RpcRequest → out: an empty result for the ping, 104 for other methods, 108 when no method is configured.
//! Uses: options. Never: calls a backend.
//! Change here: methods that the server answers itself.

use fanwire_protocol::{ErrorCode, Reply, RpcRequest, RpcResult};

use super::{CommandContext, Done};

pub(super) fn handle(context: &mut CommandContext<'_>, request: RpcRequest) -> Done {
    let options = &context.settings.options.rpc;
    if !options.ping {
        return Err(ErrorCode::NOT_AVAILABLE.into());
    }
    if request.method != options.ping_method {
        return Err(ErrorCode::METHOD_NOT_FOUND.into());
    }
    Ok(Reply { rpc: Some(RpcResult::default()), ..Reply::default() })
}
