//! The `refresh` command (protocol §21): a new connection token before the old one expires.
//! In: a RefreshRequest → out: the new lifetime, 110 when it has passed, or a disconnect.
//! Uses: `credentials`, `lifetime`. Never: changes user or channels of a connection.
//! Changed here: what a refresh renews. Enforcement of expiry lives in `hub/timers.rs`.

use fanwire_protocol::{Disconnect, RefreshRequest, RefreshResult, Reply};

use super::{CommandContext, ReplyResult, credentials, filters};
use crate::refusal::CommandError;
use crate::session::{Lifetime, NO_EXPIRY};

pub(super) fn handle(context: &mut CommandContext<'_>, request: RefreshRequest) -> ReplyResult {
    if request.token.is_empty() {
        return Err(CommandError::disconnect(Disconnect::BAD_REQUEST, "the command has no token"));
    }
    if context.node.hooks().refresh.is_some() {
        return Err(CommandError::disconnect(Disconnect::BAD_REQUEST, REFRESHED_BY_SERVER));
    }
    let renewed = credentials::renewed(context, &request.token)?;
    let filters = filters::of_grants(&renewed.channels)?;
    let lifetime = Lifetime::of(context, renewed.expire_at)?;
    for (channel, of_server) in renewed.channels.keys().zip(filters) {
        if let Some(own) = context.subscription_to(channel) {
            context.session_table.set_server_filter(context.key.index, own, of_server);
        }
    }
    let session = context.session_mut();
    // A token without info leaves the info unchanged, as in Centrifugo.
    if !renewed.info.is_empty() {
        session.info = renewed.info;
    }
    session.grant = credentials::grant(&renewed.channels, renewed.token);
    session.expire_at = lifetime.expire_at.unwrap_or(NO_EXPIRY);
    context.schedule();
    let expires = lifetime.expires();
    let ttl = lifetime.ttl(context);
    let result = RefreshResult { expires, ttl, ..RefreshResult::default() };
    Ok(Reply { refresh: Some(result), ..Reply::default() })
}

const REFRESHED_BY_SERVER: &str = "the refresh hook of the server renews the connection";
