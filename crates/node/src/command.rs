//! Client commands: one file per command, and the rules that all of them share (protocol §5: life cycle, order, ids).
//! In: one command of a session, or a control command for it → out: a reply, nothing yet, or one disconnect.
//! Uses: `session_table`, the node, `pending`. Never: sends by itself; a command returns its reply or refusal.
//! Change here: rules for every command. Each command has a file; `hub/receive.rs` reads messages of many commands.

mod connect;
mod context;
mod credentials;
mod history;
mod hook;
mod lifetime;
mod presence;
mod presence_stats;
mod publish;
mod rates;
mod refresh;
mod rpc;
mod send;
mod server_subscribe;
mod sub_refresh;
mod subscribe;
mod unsubscribe;

use std::sync::Arc;

use fanwire_protocol::{Disconnect, Refresh, Reply};

use fanwire_cluster::{Renewal, ServerSubscribe};

use crate::refusal::Refusal;
pub(crate) use context::{Backlog, CommandContext};
use context::{Begun, CommandStep, Done};

/// Subscribes a connected session that does not wait, for the server API.
///
/// # Errors
/// The disconnect of a session that cannot have one more subscription.
pub(crate) fn subscribe_by_server(
    context: &mut CommandContext<'_>,
    command: &Arc<ServerSubscribe>,
) -> Result<Option<Reply>, Disconnect> {
    match server_subscribe::begin(context, command) {
        Ok(Some(step)) => context.step(NO_COMMAND, step),
        Ok(None) => Ok(None),
        Err(disconnect) => context.reply(NO_COMMAND, Err(disconnect.into())),
    }
}

/// Sets the lifetime of a connected session, for the server API. `None` when the lifetime is over already.
pub(crate) fn refresh_by_order(
    context: &mut CommandContext<'_>,
    renewal: &Renewal,
) -> Option<Refresh> {
    server_subscribe::refresh(context, renewal).ok()
}

/// Every command on a channel must name one (protocol §5.5).
fn named(channel: &str) -> Result<(), Refusal> {
    if channel.is_empty() {
        return Err(Refusal::disconnect(Disconnect::BAD_REQUEST, "the command names no channel"));
    }
    Ok(())
}

/// The id of pushes, which answer no command.
pub(crate) const NO_COMMAND: u32 = 0;
