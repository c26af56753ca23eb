//! The `sub_refresh` command (protocol §21): a new subscription token before the old one has run out.
//! In: a SubRefreshRequest → out: the new lifetime, an error, or a disconnect.
//! Uses: subscription tokens, `lifetime`. Never: subscribes.
//! Change here: what a subscription refresh renews. Enforcement of expiry lives in `hub/timers.rs`.

use fanwire_protocol::{Disconnect, ErrorCode, Reply, SubRefreshRequest, SubRefreshResult};

use super::lifetime::Lifetime;
use super::{Done, Turn, credentials, named};
use crate::session::Terms;

pub(super) fn handle(turn: &mut Turn<'_>, request: SubRefreshRequest) -> Done {
    named(&request.channel)?;
    let place = turn.place_of(&request.channel).ok_or(ErrorCode::PERMISSION_DENIED)?;
    if request.r#type != 0 {
        return Err(ErrorCode::NOT_AVAILABLE.into()); // shared poll channels (protocol §28)
    }
    if turn.session().subscriptions[place].server_side {
        return Err(Disconnect::BAD_REQUEST.into()); // the server keeps these alive, not the client
    }
    if request.token.is_empty() {
        return Err(ErrorCode::BAD_REQUEST.into());
    }
    let refusals = (Disconnect::SUBSCRIPTION_EXPIRED.into(), Disconnect::INVALID_TOKEN.into());
    let named = (request.channel.as_str(), request.token.as_str());
    let claims = credentials::of_subscription(turn, named, refusals)?;
    let lifetime = Lifetime::of(turn, claims.expire_at)?;
    let terms = &mut turn.session_mut().subscriptions[place].terms;
    let filter = terms.take().and_then(|terms| terms.filter);
    *terms = Terms::filtering(Terms::boxed(claims.info, lifetime.expire_at), filter);
    turn.roster.schedule(turn.node, turn.key.index);
    let (expires, ttl) = (lifetime.expires(), lifetime.ttl(turn));
    let result = SubRefreshResult { expires, ttl, ..SubRefreshResult::default() };
    Ok(Reply { sub_refresh: Some(result), ..Reply::default() })
}
