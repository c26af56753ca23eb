//! Authentication (protocol §7): token, trusted header, anonymous or insecure, in this order.
//! In: the token of `connect` or `refresh` → out: credentials, or the error or disconnect of the failure mapping. The same for
//! subscription tokens.
//! Uses: `fanwire_auth::Verifier`. Never: changes a session.
//! Changed here: the order of credentials, and the consequence of a bad token. `fanwire_auth` verifies tokens.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use fanwire_auth::TokenId;
use fanwire_auth::{ChannelGrant, ConnectionClaims, KeyLookup, SubscriptionClaims, TokenError};
use fanwire_broker::Answer;
use fanwire_policy::hooks::ConnectGrant;
use fanwire_protocol::{Disconnect, ErrorCode, Request};

use super::CommandContext;
use crate::counters::TokenErrorKind;
use crate::refusal::CommandError;
use crate::session::ConnectionGrant;

/// Server-side channels by name.
pub(super) type Grants = BTreeMap<String, ChannelGrant>;

/// The authenticated identity of a connection.
#[derive(Debug, Default)]
pub(super) struct Credentials {
    /// "" = anonymous.
    pub(super) user: String,
    pub(super) info: Bytes,
    /// Unix second.
    pub(super) expire_at: Option<u64>,
    /// Application data for the connect result.
    pub(super) data: Bytes,
    pub(super) channels: Grants,
    /// `meta` of the connection; empty = none.
    pub(super) meta: Bytes,
    /// Texts by which the server API selects connections.
    pub(super) labels: BTreeMap<String, String>,
    /// The subscriptions that the client requests are not made.
    pub(super) ignores_request: bool,
    /// The identity of the token; `None` without one.
    pub(super) token: Option<TokenId>,
}

/// The credentials of a connect.
///
/// # Errors
/// Expired token 109, key not fetched yet 100, bad token 3500, anonymous token where not allowed 3507, no credentials
/// 3501.
pub(super) fn of(context: &CommandContext<'_>, token: &str) -> Result<Credentials, CommandError> {
    let options = &context.settings.options.client;
    if !token.is_empty() {
        let claims = claims(context, token)?;
        if claims.user.is_empty() && options.disallow_anonymous_connection_tokens {
            return Err(CommandError::disconnect(Disconnect::PERMISSION_DENIED, NO_USER));
        }
        return Ok(granted(claims));
    }
    if let Some(user) = context.session().request.as_ref().and_then(|it| it.user.as_deref()) {
        return Ok(Credentials { user: user.to_owned(), ..Credentials::default() });
    }
    if options.allow_anonymous_connect_without_token || options.insecure {
        return Ok(Credentials::default());
    }
    let is_asked = context.node.hooks().connect.is_some();
    Err(CommandError::disconnect(
        Disconnect::BAD_REQUEST,
        if is_asked { NO_RESULT } else { NO_TOKEN },
    ))
}

/// Looks up the published key of a command's token, if it has one.
///
/// # Errors
/// An answer that completes when the fetch of the key has succeeded or failed.
pub(super) fn lookup_key(
    context: &CommandContext<'_>,
    request: &Request,
) -> Result<Option<KeyLookup>, Answer<(), ErrorCode>> {
    let (verifier, token) = match request {
        Request::Connect(request) => (context.settings.connection_verifier(), &request.token),
        Request::Refresh(request) => (context.settings.connection_verifier(), &request.token),
        Request::Subscribe(request) => (context.settings.subscription_verifier(), &request.token),
        Request::SubRefresh(request) => (context.settings.subscription_verifier(), &request.token),
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

fn claims(context: &CommandContext<'_>, token: &str) -> Result<ConnectionClaims, CommandError> {
    let verifier = context.settings.connection_verifier();
    let unix = context.unix();
    let verified = verifier.connection(token, context.key_lookup(), unix);
    let errors = TokenErrors {
        expired: ErrorCode::TOKEN_EXPIRED.into(),
        invalid: Disconnect::INVALID_TOKEN.into(),
    };
    decided(context, verified, errors, |error| verifier.explain(error, token, false, unix))
}

/// The errors for a token that does not verify.
pub(super) struct TokenErrors {
    /// The error of a token that is expired or not valid yet.
    pub(super) expired: CommandError,
    /// The error of any other token that is refused.
    pub(super) invalid: CommandError,
}

/// The user that a token belongs to.
pub(super) struct TokenOwner<'a> {
    pub(super) user: &'a str,
    /// The channel of a subscription token.
    pub(super) channel: Option<&'a str>,
}

/// Verifies a subscription token for this client and `channel`.
///
/// # Errors
/// As [`decided`]; 3500 for a token of another client or channel. [`check_token`] comes next.
pub(super) fn of_subscription(
    context: &CommandContext<'_>,
    channel: &str,
    token: &str,
    errors: TokenErrors,
) -> Result<(SubscriptionClaims, TokenId), CommandError> {
    let verifier = context.settings.subscription_verifier();
    let unix = context.unix();
    let verified = verifier.subscription(token, context.key_lookup(), unix);
    let explain = |error| verifier.explain(error, token, true, unix);
    let claims = decided(context, verified, errors, explain)?;
    let session = context.session();
    let is_ours = claims.is_for(&session.user, channel, &session.client());
    if !is_ours {
        return Err(foreign(context, FOREIGN_SUBSCRIPTION));
    }
    let token = TokenId::new(&claims.uid, claims.issued_at);
    Ok((claims, token))
}

/// Checks credentials of a connect against the server API's blocks and revocations.
///
/// # Errors
/// 3507 for a blocked user, 109 for a revoked token: the SDK then asks for another one; 100 before they are known.
pub(super) fn check_revocations(
    context: &CommandContext<'_>,
    user: &str,
    token: Option<&TokenId>,
) -> Result<(), CommandError> {
    if !context.node.revocations().are_known() {
        return Err(CommandError::from(ErrorCode::INTERNAL).because(NOT_LOADED));
    }
    if context.node.revocations().table().blocks(user, context.unix()) {
        return Err(CommandError::disconnect(Disconnect::PERMISSION_DENIED, BLOCKED));
    }
    let owner = TokenOwner { user, channel: None };
    check_token(context, &owner, token, ErrorCode::TOKEN_EXPIRED)
}

/// Checks the size of labels, because connections keep them.
///
/// # Errors
/// 3500
pub(super) fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), CommandError> {
    let bytes: usize = labels.iter().map(|(name, text)| name.len() + text.len()).sum();
    if labels.len() > LABELS_MAX || bytes > LABEL_BYTES_MAX {
        return Err(CommandError::disconnect(Disconnect::INVALID_TOKEN, MANY_LABELS));
    }
    Ok(())
}

/// Checks a token against the server API's revocations.
///
/// # Errors
/// `refusal` for a revoked token.
pub(super) fn check_token(
    context: &CommandContext<'_>,
    owner: &TokenOwner<'_>,
    token: Option<&TokenId>,
    error: impl Into<CommandError>,
) -> Result<(), CommandError> {
    let table = context.node.revocations().table();
    let unix = context.unix();
    if !token.is_some_and(|token| table.refuses(token, owner.user, owner.channel, unix)) {
        return Ok(());
    }
    context.session_table.counters.count_token_refusal(TokenErrorKind::Revoked);
    Err(error.into().because(REVOKED))
}

/// Converts the result of a verification. A refused token is counted with its cause.
///
/// # Errors
/// 100 when the key is not available now, else one of `errors`.
fn decided<T>(
    context: &CommandContext<'_>,
    verified: Result<T, TokenError>,
    errors: TokenErrors,
    explain: impl FnOnce(TokenError) -> String,
) -> Result<T, CommandError> {
    verified.map_err(|error| {
        context.session_table.counters.count_token_refusal(error.into());
        let command_error = match error {
            TokenError::Expired => errors.expired,
            TokenError::Pending | TokenError::Unavailable => ErrorCode::INTERNAL.into(),
            TokenError::Invalid(_) | TokenError::Disabled => errors.invalid,
        };
        command_error.because(explain(error))
    })
}

/// The refusal of a valid token of another user, client or channel.
fn foreign(context: &CommandContext<'_>, cause: &'static str) -> CommandError {
    context.session_table.counters.count_token_refusal(TokenErrorKind::Foreign);
    CommandError::disconnect(Disconnect::INVALID_TOKEN, cause)
}

/// The credentials of a refresh: the same user and the same server-side channels, or a disconnect.
///
/// # Errors
/// Expired token 3005, bad token or another user 3500, other channels 3010, key not fetched yet 100.
pub(super) fn renewed(
    context: &CommandContext<'_>,
    token: &str,
) -> Result<Credentials, CommandError> {
    let verifier = context.settings.connection_verifier();
    let unix = context.unix();
    let verified = verifier.connection(token, context.key_lookup(), unix);
    let errors = TokenErrors {
        expired: Disconnect::EXPIRED.into(),
        invalid: Disconnect::INVALID_TOKEN.into(),
    };
    let explain = |error| verifier.explain(error, token, false, unix);
    let claims = decided(context, verified, errors, explain)?;
    let session = context.session();
    if claims.user != *session.user {
        return Err(foreign(context, FOREIGN_REFRESH));
    }
    let own_hash = session.grant.as_ref().map(|grant| grant.channels_hash);
    if hash(&claims.channels) != own_hash.unwrap_or_else(|| hash(&Grants::new())) {
        return Err(CommandError::disconnect(Disconnect::INSUFFICIENT_STATE, OTHER_CHANNELS));
    }
    let renewed = granted(claims);
    let owner = TokenOwner { user: &renewed.user, channel: None };
    check_token(context, &owner, renewed.token.as_ref(), Disconnect::EXPIRED)?;
    Ok(renewed)
}

/// The attributes that a session keeps of its credentials.
pub(super) fn grant(channels: &Grants, token: Option<TokenId>) -> Option<Box<ConnectionGrant>> {
    let is_set = token.is_some() || !channels.is_empty();
    is_set.then(|| Box::new(ConnectionGrant { channels_hash: hash(channels), token }))
}

/// A hash of the names, to compare the channels of two tokens in 8 bytes.
fn hash(channels: &Grants) -> u64 {
    let mut hasher = DefaultHasher::new();
    channels.len().hash(&mut hasher);
    channels.keys().for_each(|channel| channel.hash(&mut hasher));
    hasher.finish()
}

fn granted(claims: ConnectionClaims) -> Credentials {
    let ConnectionClaims { user, info, expire_at, channels, meta, labels, uid, issued_at } = claims;
    let token = Some(TokenId::new(&uid, issued_at));
    Credentials { user, info, expire_at, channels, meta, labels, token, ..Credentials::default() }
}

impl From<ConnectGrant> for Credentials {
    fn from(grant: ConnectGrant) -> Self {
        let ConnectGrant { user, info, expire_at, data, channels, meta, labels, ignores_request } =
            grant;
        Self { user, info, expire_at, data, channels, meta, labels, ignores_request, token: None }
    }
}

/// Labels of a connection, and bytes of their names and texts.
const LABELS_MAX: usize = 32;
const LABEL_BYTES_MAX: usize = 2048;
const MANY_LABELS: &str = "more than 32 labels, or more than 2048 bytes of them";
const NO_TOKEN: &str = "no token, and client.allow_anonymous_connect_without_token is off";
const NO_RESULT: &str = "the connect proxy or hook gave no result, and client.allow_anonymous_connect_without_token is off";
const NO_USER: &str =
    "the token names no user, which client.disallow_anonymous_connection_tokens forbids";
const FOREIGN_SUBSCRIPTION: &str = "the token is for another channel, user or client";
const FOREIGN_REFRESH: &str = "the token is for another user than the connection";
const NOT_LOADED: &str = "blocks and revocations have not been read from Redis yet";
const BLOCKED: &str = "the server API blocked the user";
const REVOKED: &str = "the server API revoked the token";
const OTHER_CHANNELS: &str = "the token has other channels than the connection";
