//! The `rpc` command (protocol §20): the built-in ping, the status of the user, and the methods of the program around the node or of a backend.
//! In: an RpcRequest → out: an empty result for the ping, the data of the hook, 104 for other methods, 108 when there are none.
//! Uses: options, the hook. Never: calls a backend.
//! Changed here: methods that the server answers itself.

use fanwire_policy::hooks::{CommandDecision, RpcEvent};
use fanwire_policy::options::ProxyRoute;
use fanwire_protocol::{ErrorCode, Reply, RpcRequest, RpcResult};

use super::hook::{HookDecision, RoutedHook};
use super::{CommandContext, CommandStep, StepResult};

pub(super) fn handle(context: &mut CommandContext<'_>, request: RpcRequest) -> StepResult {
    let options = &context.settings.options.rpc;
    if options.ping && request.method == options.ping_method {
        return Ok(result(RpcResult::default()));
    }
    if context.settings.options.user_status.enabled && request.method == UPDATE_USER_STATUS {
        return update_user_status(context);
    }
    let choice = options.proxy_of(&request.method).ok_or(ErrorCode::METHOD_NOT_FOUND)?;
    let event = |context: &CommandContext<'_>| {
        let session = context.session();
        RpcEvent::new(session.client_info(None), session.context(), request.method, request.data)
    };
    let route = ProxyRoute::from(choice);
    let hook = context.node.hooks().rpc.as_ref().filter(|hook| hook.applies(&route));
    let routed = hook.map(|hook| RoutedHook { hook, route });
    match context.ask(routed, event, CommandDecision::Rpc, CommandDecision::into_rpc)? {
        HookDecision::Pending(answer) => Ok(CommandStep::Ask(answer)),
        HookDecision::Made(Some(data)) => Ok(result(RpcResult { data })),
        HookDecision::Made(None) if options.ping || hook.is_some() => {
            Err(ErrorCode::METHOD_NOT_FOUND.into())
        }
        HookDecision::Made(None) => Err(ErrorCode::NOT_AVAILABLE.into()),
    }
}

/// Records that the user of the connection is active.
///
/// # Errors
/// 103 for the anonymous user.
fn update_user_status(context: &CommandContext<'_>) -> StepResult {
    let user = context.session().user.as_ref().to_owned();
    if user.is_empty() {
        return Err(ErrorCode::PERMISSION_DENIED.into());
    }
    CommandStep::of(context.node.users().update_status(&[user], None, context.unix()), |()| {
        Reply { rpc: Some(RpcResult::default()), ..Reply::default() }.into()
    })
}

fn result(result: RpcResult) -> CommandStep {
    CommandStep::Done(Reply { rpc: Some(result), ..Reply::default() }.into())
}

/// The method that Centrifugo PRO answers, too.
const UPDATE_USER_STATUS: &str = "update_user_status";
