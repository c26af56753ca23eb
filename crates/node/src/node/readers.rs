//! Readers without a connection: whether a token permits to read a channel over HTTP.
//! In: a token, a channel, `now` → out: permission, or the error as clients know it.
//! Uses: verifiers, channel rules, blocks and revocations. Never: sessions, hooks.
//! Change here: which token reads what. The rules of clients are in `channel/permission.rs`.

use std::time::Instant;

use fanwire_auth::TokenId;
use fanwire_auth::{TokenError, Verifier};
use fanwire_policy::NodeSettings;
use fanwire_policy::channel::{SubscribeDecision, Who, may_read_history};
use fanwire_protocol::ErrorCode;

use super::Node;

impl Node {
    /// Checks that a token permits to read a channel with a history: a subscription token for it and for any client, or a
    /// connection token, or none, of a user who may subscribe to it and, as a subscriber, read its history.
    ///
    /// # Errors
    /// 101 for a bad token, 109 for an expired or revoked one; 103 without permission, 102 for an unknown namespace, 107 for an
    /// impossible name, 108 without history; 100 before revocations or the published key of the token are known.
    pub fn may_read(&self, token: &str, channel: &str, now: Instant) -> Result<(), ErrorCode> {
        let settings = self.settings();
        let namespace = settings.channels.resolve(channel)?;
        if !namespace.retention().keeps_history() {
            return Err(ErrorCode::NOT_AVAILABLE);
        }
        let (unix, revocations) = (self.unix(now), self.revocations());
        if !revocations.are_known() {
            return Err(ErrorCode::INTERNAL);
        }
        let table = revocations.table();
        let is_refused = |user: &str, channel, token: Option<&TokenId>| {
            table.blocks(user, unix)
                || token.is_some_and(|token| table.refuses(token, user, channel, unix))
        };
        if let Some((user, token)) = subscription(&settings, token, channel, unix)? {
            let is_refused = is_refused(&user, Some(channel), Some(&token));
            return if is_refused { Err(ErrorCode::TOKEN_EXPIRED) } else { Ok(()) };
        }
        let client = &settings.options.client;
        let (user, token) = match token {
            "" if client.allow_anonymous_connect_without_token || client.insecure => {
                (String::new(), None)
            }
            "" => return Err(ErrorCode::UNAUTHORIZED),
            token => {
                let verifier = settings.connection_verifier();
                let lookup = verifier.lookup_key(token, unix).map_err(|_| ErrorCode::INTERNAL)?;
                let claims = verifier.connection(token, lookup.as_ref(), unix);
                let claims = claims.map_err(refusal)?;
                (claims.user, Some(TokenId::new(&claims.uid, claims.issued_at)))
            }
        };
        if is_refused(&user, None, token.as_ref()) {
            return Err(ErrorCode::TOKEN_EXPIRED);
        }
        let who = Who { user: &user, insecure: client.insecure };
        match settings.channels.may_subscribe(who, channel, namespace, false) {
            SubscribeDecision::Denied(error) => Err(error),
            _ => may_read_history(who, namespace, true),
        }
    }
}

/// The user and the identity of a subscription token for `channel`; `None` for what is none.
///
/// # Errors
/// 109 for an expired one, 103 for one of another channel or of one client, 100 before its published key is known.
fn subscription(
    settings: &NodeSettings,
    token: &str,
    channel: &str,
    unix: u64,
) -> Result<Option<(String, TokenId)>, ErrorCode> {
    if token.is_empty() {
        return Ok(None);
    }
    let verifier: &Verifier = settings.subscription_verifier();
    let lookup = verifier.lookup_key(token, unix).map_err(|_| ErrorCode::INTERNAL)?;
    match verifier.subscription(token, lookup.as_ref(), unix) {
        Ok(claims) if claims.channel == channel && claims.client.is_empty() => {
            let ends = claims.expire_at.is_some_and(|at| at <= unix);
            let token = TokenId::new(&claims.uid, claims.issued_at);
            if ends { Err(ErrorCode::TOKEN_EXPIRED) } else { Ok(Some((claims.user, token))) }
        }
        Ok(_) => Err(ErrorCode::PERMISSION_DENIED),
        // It may be a connection token.
        Err(_) => Ok(None),
    }
}

fn refusal(error: TokenError) -> ErrorCode {
    match error {
        TokenError::Expired => ErrorCode::TOKEN_EXPIRED,
        TokenError::Pending | TokenError::Unavailable => ErrorCode::INTERNAL,
        TokenError::Invalid(_) | TokenError::Disabled => ErrorCode::UNAUTHORIZED,
    }
}

#[cfg(test)]
mod tests;
