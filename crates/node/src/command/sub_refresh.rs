//! The `sub_refresh` command (protocol §21): a new subscription token before the old one expires.
//! In: a SubRefreshRequest → out: the new lifetime, an empty result for an expired token, an error, or a disconnect.
//! Uses: subscription tokens, `lifetime`. Never: subscribes.
//! Changed here: what a subscription refresh renews. Enforcement of expiry lives in `hub/timers.rs`.

use fanwire_protocol::{Disconnect, ErrorCode, Reply, SubRefreshRequest, SubRefreshResult};

use super::credentials::{self, TokenErrors};
use super::{CommandContext, ReplyResult, filters, named, subscribe, track};
use crate::node::is_polled;
use crate::refusal::CommandError;
use crate::session::{Lifetime, SubscriptionGrant};

pub(super) fn handle(context: &mut CommandContext<'_>, request: SubRefreshRequest) -> ReplyResult {
    named(&request.channel)?;
    let own = context.subscription_to(&request.channel).ok_or(ErrorCode::PERMISSION_DENIED)?;
    if context.session().subscription(own).server_side {
        // The server keeps these alive, not the client.
        let cause = "the server made the subscription, so the client cannot refresh it";
        return Err(CommandError::disconnect(Disconnect::BAD_REQUEST, cause));
    }
    let namespace = context.resolve(&request.channel)?;
    if is_polled(namespace) && [track::TRACK, track::UNTRACK].contains(&request.r#type) {
        return track::handle(context, own, &namespace.shared_poll, &request);
    }
    if namespace.sub_refresh_proxy.enabled && context.refreshes_subscriptions(namespace) {
        let cause = "the sub_refresh proxy of the namespace renews the subscription";
        return Err(CommandError::disconnect(Disconnect::BAD_REQUEST, cause));
    }
    if request.token.is_empty() {
        return Err(CommandError::error(ErrorCode::BAD_REQUEST, "the command has no token"));
    }
    let errors = TokenErrors {
        expired: ErrorCode::TOKEN_EXPIRED.into(),
        invalid: Disconnect::INVALID_TOKEN.into(),
    };
    let verified = credentials::of_subscription(context, &request.channel, &request.token, errors);
    let (claims, token) = match verified {
        // Nothing is renewed: the subscription ends at its own expiry, and the SDK then gets a new token. A disconnect
        // would end the other subscriptions too (as in centrifuge 0.40), and some SDKs give up after an error.
        Err(error) if error.code() == ErrorCode::TOKEN_EXPIRED.code => {
            return Ok(reply(SubRefreshResult::default()));
        }
        claims => claims?,
    };
    subscribe::check_token(context, &request.channel, Some(&token))?;
    let of_server = filters::of_token(&claims.server_tags_filter)?;
    let lifetime = Lifetime::of(context, claims.expire_at)?;
    let terms = &mut context.session_mut().subscription_mut(own).terms;
    let old = terms.take();
    let by_hook = old.as_ref().is_some_and(|terms| terms.is_refreshed_by_hook);
    let filter = old.and_then(|terms| terms.filter);
    let renewed = SubscriptionGrant::boxed(claims.info, lifetime.expire_at);
    let renewed = SubscriptionGrant::refreshed(renewed, by_hook);
    let renewed = SubscriptionGrant::by_token(renewed, Some(token));
    *terms = SubscriptionGrant::filtering(renewed, filter);
    context.session_table.set_server_filter(context.key.index, own, of_server);
    context.schedule();
    let expires = lifetime.expires();
    let ttl = lifetime.ttl(context);
    Ok(reply(SubRefreshResult { expires, ttl, ..SubRefreshResult::default() }))
}

fn reply(result: SubRefreshResult) -> Reply {
    Reply { sub_refresh: Some(result), ..Reply::default() }
}
