//! Who a connection is (protocol §7): token, trusted header, anonymous or insecure, in this order.
//! In: the token of `connect` or `refresh` → out: credentials, or the error or disconnect of the failure mapping. Likewise
//! for the tokens of subscriptions.
//! Uses: `token::Verifier`. Never: changes a session.
//! Change here: the order of ways in, and what a bad token leads to. How tokens are read lives in `fanwire_auth`.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use fanwire_auth::{ChannelGrant, ConnectionClaims, KeyLookup, SubscriptionClaims, TokenError};
use fanwire_broker::Answer;
use fanwire_protocol::{Disconnect, ErrorCode, Request};

use super::{CommandContext, Refusal};
use crate::counters::TokenRefusal;

/// Server-side channels by name.
pub(super) type Grants = BTreeMap<String, ChannelGrant>;

/// What a connection may say about itself after authentication.
#[derive(Debug, Default)]
pub(super) struct Credentials {
    /// "" = anonymous.
    pub(super) user: String,
    pub(super) info: Bytes,
    /// Unix second.
    pub(super) expire_at: Option<u64>,
    pub(super) channels: Grants,
}

/// The credentials of a connect.
///
/// # Errors
/// Expired token 109, a key that is not here yet 100, bad token 3500, anonymous token where not allowed 3507, nothing to go by 3501.
pub(super) fn of(context: &CommandContext<'_>, token: &str) -> Result<Credentials, Refusal> {
    let options = &context.node.options().client;
    if !token.is_empty() {
        let claims = claims(context, token)?;
        if claims.user.is_empty() && options.disallow_anonymous_connection_tokens {
            return Err(Disconnect::PERMISSION_DENIED.into());
        }
        return Ok(claims.into());
    }
    if let Some(user) = context.session().header_user.as_deref() {
        return Ok(Credentials { user: user.to_owned(), ..Credentials::default() });
    }
    if options.allow_anonymous_connect_without_token || options.insecure {
        return Ok(Credentials::default());
    }
    Err(Disconnect::BAD_REQUEST.into())
}

/// Looks for the published key of a command's token, if it has one.
///
/// # Errors
/// An answer that comes when the key, which is being fetched, has come or failed.
pub(super) fn lookup_key(
    context: &CommandContext<'_>,
    request: &Request,
) -> Result<Option<KeyLookup>, Answer<(), ErrorCode>> {
    let (verifier, token) = match request {
        Request::Connect(request) => (context.node.connection_verifier(), &request.token),
        Request::Refresh(request) => (context.node.connection_verifier(), &request.token),
        Request::Subscribe(request) => (context.node.subscription_verifier(), &request.token),
        Request::SubRefresh(request) => (context.node.subscription_verifier(), &request.token),
        _ => return Ok(None),
    };
    if token.is_empty() {
        return Ok(None);
    }
    verifier.lookup_key(token, context.unix()).map_err(|fetching| {
        let (promise, answer) = Answer::later();
        fetching.then(move || promise.keep(Ok(())));
        answer
    })
}

fn claims(context: &CommandContext<'_>, token: &str) -> Result<ConnectionClaims, Refusal> {
    let verified =
        context.node.connection_verifier().connection(token, context.key_lookup(), context.unix());
    decided(context, verified, (ErrorCode::TOKEN_EXPIRED.into(), Disconnect::INVALID_TOKEN.into()))
}

/// What a subscription token says, when it is for this client and `channel`.
///
/// # Errors
/// As [`judged`]; 3500 for a token of another client or channel.
pub(super) fn of_subscription(
    context: &CommandContext<'_>,
    (channel, token): (&str, &str),
    refusals: (Refusal, Refusal),
) -> Result<SubscriptionClaims, Refusal> {
    let verified = context.node.subscription_verifier().subscription(
        token,
        context.key_lookup(),
        context.unix(),
    );
    let claims = decided(context, verified, refusals)?;
    let session = context.session();
    let is_ours = claims.is_for(&session.user, channel, &session.client());
    if is_ours { Ok(claims) } else { Err(foreign(context)) }
}

/// What a token is worth. One that is refused is counted with its cause, which no client is told.
///
/// # Errors
/// 100 where the key is not here now, else the first of `refusals` for a token whose time it is not, the second for any other.
fn decided<T>(
    context: &CommandContext<'_>,
    verified: Result<T, TokenError>,
    (expired, invalid): (Refusal, Refusal),
) -> Result<T, Refusal> {
    verified.map_err(|error| {
        context.session_table.counters().count_token_refusal(error.into());
        match error {
            TokenError::Expired => expired,
            TokenError::Pending | TokenError::Unavailable => ErrorCode::INTERNAL.into(),
            TokenError::Invalid(_) | TokenError::Disabled => invalid,
        }
    })
}

/// The refusal of a genuine token that is somebody else's.
fn foreign(context: &CommandContext<'_>) -> Refusal {
    context.session_table.counters().count_token_refusal(TokenRefusal::Foreign);
    Disconnect::INVALID_TOKEN.into()
}

/// The credentials of a refresh: the same user and the same server-side channels, or a disconnect.
///
/// # Errors
/// Expired token 3005, bad token or another user 3500, other channels 3010, a key that is not here yet 100.
pub(super) fn renewed(context: &CommandContext<'_>, token: &str) -> Result<Credentials, Refusal> {
    let verifier = context.node.connection_verifier();
    let verified = verifier.connection(token, context.key_lookup(), context.unix());
    let refusals = (Disconnect::EXPIRED.into(), Disconnect::INVALID_TOKEN.into());
    let claims = decided(context, verified, refusals)?;
    let session = context.session();
    if claims.user != *session.user {
        return Err(foreign(context));
    }
    if hash(&claims.channels) != session.grants_hash {
        return Err(Disconnect::INSUFFICIENT_STATE.into());
    }
    Ok(claims.into())
}

/// A fingerprint of the names, to compare a later token with an earlier one in 8 bytes.
pub(super) fn hash(channels: &Grants) -> u64 {
    let mut hasher = DefaultHasher::new();
    channels.len().hash(&mut hasher);
    channels.keys().for_each(|channel| channel.hash(&mut hasher));
    hasher.finish()
}

impl From<ConnectionClaims> for Credentials {
    fn from(claims: ConnectionClaims) -> Self {
        let ConnectionClaims { user, info, expire_at, channels, .. } = claims;
        Self { user, info, expire_at, channels }
    }
}
