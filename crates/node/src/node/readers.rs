//! Readers without a connection: whether a request may read a channel over HTTP, and for how long.
//! In: a request with its token, `now` → out: a permit, or the refusal as clients know it.
//! Uses: verifiers, channel rules, hooks, blocks and revocations. Never: sessions, a clock.
//! Changed here: which credentials read what. The rules of clients are in `channel/permission.rs`, for sessions and readers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_auth::{TokenError, TokenId, Verifier};
use fanwire_policy::NodeSettings;
use fanwire_policy::channel::{Decider, SubscribeDecision, Who, may_read_history};
use fanwire_policy::hooks::{ClientContext, ConnectEvent, ConnectGrant, Rejection, SubscribeEvent};
use fanwire_policy::options::{Namespace, ProxyRoute};
use fanwire_protocol::{ClientInfo, ErrorCode};

use super::Node;
use crate::session::ConnectionInfo;

/// A request to read a channel.
#[derive(Clone, Debug)]
pub struct ReadRequest<'a> {
    /// A subscription token or a connection token; "" = none.
    pub token: &'a str,
    pub channel: &'a str,
    /// The client, as if it opened a connection with this request.
    pub client: ConnectionInfo,
}

/// The permission of one reader to read a channel. It ends with its token, and when the server API blocks the user or
/// revokes the token ([`Node::still_permits`]).
#[derive(Clone, Debug)]
pub struct ReadPermit {
    channel: String,
    user: String,
    token: Option<TokenId>,
    is_of_subscription_token: bool,
    /// Unix second.
    expire_at: Option<u64>,
}

/// Why a request may not read a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    Error(ErrorCode),
    /// A hook refused it, or made no decision.
    Hook(Rejection),
}

/// A reader whose user is known.
struct IdentifiedReader {
    permit: ReadPermit,
    client: ClientInfo,
    context: ClientContext,
    /// The server would subscribe the user to the channel at connect.
    is_subscribed: bool,
}

impl Node {
    /// Decides whether a request may read a channel with a history: with a subscription token for it and for any client; else
    /// if its user may connect, subscribe to the channel and, as a subscriber, read its history. Hooks are asked as for a
    /// connection and a subscription.
    ///
    /// # Errors
    /// 101 for a bad token, 109 for an expired or revoked one; 103 without permission, and for a grant with a filter, 102 for an unknown namespace, 107 for an
    /// impossible name, 108 without history, 110 for a grant that ended; 100 before revocations or the published key of the
    /// token are known. The rejection of a hook.
    pub async fn may_read(
        &self,
        request: ReadRequest<'_>,
        now: Instant,
    ) -> Result<ReadPermit, ReadError> {
        let settings = self.settings();
        let unix = self.unix(now);
        let namespace = settings.channels.resolve(request.channel)?;
        if !namespace.retention().keeps_history() {
            return Err(ErrorCode::NOT_AVAILABLE.into());
        }
        if let Some(permit) = subscription(&settings, &request, unix)? {
            self.still_permits(&permit, now)?;
            return Ok(permit);
        }
        let mut reader = self.reader(&settings, request, unix).await?;
        self.still_permits(&reader.permit, now)?;
        if !reader.is_subscribed {
            let ends_at = self.subscribe_reader(&settings, namespace, &mut reader).await?;
            reader.permit.limit_to(ends_at, &settings);
        }
        let who = who(&settings, &reader.permit.user);
        may_read_history(who, namespace, true)?;
        // The user may have been blocked while a hook decided.
        self.still_permits(&reader.permit, now)?;
        Ok(reader.permit)
    }

    /// Checks that a permit has not ended at `now`.
    ///
    /// # Errors
    /// 109, 110 after its time; 100 before revocations are known.
    pub fn still_permits(&self, permit: &ReadPermit, now: Instant) -> Result<(), ErrorCode> {
        let unix = self.unix(now);
        let revocations = self.revocations();
        if !revocations.are_known() {
            return Err(ErrorCode::INTERNAL);
        }
        if permit.expire_at.is_some_and(|at| at <= unix) {
            return Err(ErrorCode::EXPIRED);
        }
        let table = revocations.table();
        let user = &permit.user;
        let channel = permit.is_of_subscription_token.then_some(permit.channel.as_str());
        let is_revoked = |token| table.refuses(token, user, channel, unix);
        if table.blocks(user, unix) || permit.token.as_ref().is_some_and(is_revoked) {
            return Err(ErrorCode::TOKEN_EXPIRED);
        }
        Ok(())
    }

    /// How long a permit lasts from `now` on; `None` = for ever.
    pub fn permitted_for(&self, permit: &ReadPermit, now: Instant) -> Option<Duration> {
        let end_ms = permit.expire_at?.saturating_mul(1000);
        Some(Duration::from_millis(end_ms.saturating_sub(self.clock().unix_ms(now))))
    }

    /// The user of a request: of the connect hook, the token, the trusted header, or none, as of a session.
    async fn reader(
        &self,
        settings: &NodeSettings,
        request: ReadRequest<'_>,
        unix: u64,
    ) -> Result<IdentifiedReader, ReadError> {
        let ReadRequest { token, channel, client: mut connection } = request;
        let client = self.chance().id().to_string();
        let verifier = settings.connection_verifier();
        let mut context = connection.take_context();
        let verifies = !token.is_empty() && verifier.is_enabled();
        let hook = self.hooks().connect.as_ref().filter(|_| !verifies);
        let granted = match hook {
            Some(hook) => {
                let mut event = ConnectEvent::new(client.clone(), Arc::new(context.clone()));
                event.token = token.to_owned();
                hook.call(event, ProxyRoute::default()).await.map_err(ReadError::Hook)?
            }
            None => None,
        };
        let (grant, token) = match granted {
            Some(grant) => (grant, None),
            None => identified(settings, token, connection.user, unix)?,
        };
        let personal = settings.channels.personal_channel(&grant.user).ok().flatten();
        if let Some(granted) = grant.channels.get(channel) {
            refuse_filter(&granted.server_tags_filter)?;
        }
        let is_subscribed =
            grant.channels.contains_key(channel) || personal.is_some_and(|own| own == channel);
        (context.meta, context.labels) = (grant.meta, Arc::new(grant.labels));
        let mut permit = ReadPermit {
            channel: channel.to_owned(),
            user: grant.user.clone(),
            token,
            is_of_subscription_token: false,
            expire_at: None,
        };
        permit.limit_to(grant.expire_at, settings);
        let conn_info = grant.info;
        let client = ClientInfo { user: grant.user, client, conn_info, chan_info: Bytes::new() };
        Ok(IdentifiedReader { permit, client, context, is_subscribed })
    }

    /// Checks that the user of a reader may subscribe. Returns the Unix second at which that ends.
    async fn subscribe_reader(
        &self,
        settings: &NodeSettings,
        namespace: &Namespace,
        reader: &mut IdentifiedReader,
    ) -> Result<Option<u64>, ReadError> {
        let who = who(settings, &reader.permit.user);
        let channel = &reader.permit.channel;
        let decide = |decider| settings.channels.may_subscribe(who, channel, namespace, decider);
        let mut decision = decide(self.hooks().decider(namespace));
        if decision == SubscribeDecision::AskHook {
            // A stream of publications needs a subscriber that it goes to.
            let hook = self
                .hooks()
                .subscribe
                .as_ref()
                .filter(|_| !namespace.subscribe_stream_proxy.enabled);
            let context = Arc::new(reader.context.clone());
            let event =
                SubscribeEvent::new(reader.client.clone(), context, channel.clone(), Bytes::new());
            let hook = hook.ok_or(ErrorCode::PERMISSION_DENIED)?;
            let route = namespace.route_of_subscribes();
            if let Some(grant) = hook.call(event, route).await.map_err(ReadError::Hook)? {
                refuse_filter(&grant.server_tags_filter)?;
                return Ok(grant.expire_at);
            }
            decision = decide(Decider::Rules);
        }
        match decision {
            SubscribeDecision::Allowed => Ok(None),
            SubscribeDecision::Denied(error) => Err(error.into()),
            _ => Err(ErrorCode::PERMISSION_DENIED.into()),
        }
    }
}

impl ReadPermit {
    /// The user; "" = anonymous.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Ends the permit at this Unix second, too. Insecure mode does not enforce expiry (protocol §5).
    fn limit_to(&mut self, expire_at: Option<u64>, settings: &NodeSettings) {
        let ends = [self.expire_at, expire_at.filter(|_| !settings.options.client.insecure)];
        self.expire_at = ends.into_iter().flatten().min();
    }
}

/// The reader that no hook identifies: by its token, by the user in the trusted header, or without a user.
fn identified(
    settings: &NodeSettings,
    token: &str,
    user: Option<String>,
    unix: u64,
) -> Result<(ConnectGrant, Option<TokenId>), ErrorCode> {
    let options = &settings.options.client;
    if token.is_empty() {
        let is_open = options.allow_anonymous_connect_without_token || options.insecure;
        let user = user.or(is_open.then(String::new)).ok_or(ErrorCode::UNAUTHORIZED)?;
        return Ok((ConnectGrant { user, ..ConnectGrant::default() }, None));
    }
    let verifier = settings.connection_verifier();
    let lookup = verifier.lookup_key(token, unix).map_err(|_| ErrorCode::INTERNAL)?;
    let claims = verifier.connection(token, lookup.as_ref(), unix).map_err(refusal)?;
    if claims.user.is_empty() && options.disallow_anonymous_connection_tokens {
        return Err(ErrorCode::PERMISSION_DENIED);
    }
    let token = TokenId::new(&claims.uid, claims.issued_at);
    let grant = ConnectGrant {
        user: claims.user,
        info: claims.info,
        expire_at: claims.expire_at,
        channels: claims.channels,
        meta: claims.meta,
        labels: claims.labels,
        ..ConnectGrant::default()
    };
    Ok((grant, Some(token)))
}

/// The permit of a subscription token for the channel; `None` for what is none.
///
/// # Errors
/// 109 for an expired one, 103 for one of another channel or of one client, 100 before its published key is known.
fn subscription(
    settings: &NodeSettings,
    request: &ReadRequest<'_>,
    unix: u64,
) -> Result<Option<ReadPermit>, ErrorCode> {
    let token = request.token;
    let channel = request.channel;
    if token.is_empty() {
        return Ok(None);
    }
    let verifier: &Verifier = settings.subscription_verifier();
    let lookup = verifier.lookup_key(token, unix).map_err(|_| ErrorCode::INTERNAL)?;
    match verifier.subscription(token, lookup.as_ref(), unix) {
        Ok(claims) if claims.channel == channel && claims.client.is_empty() => {
            if claims.expire_at.is_some_and(|at| at <= unix) {
                return Err(ErrorCode::TOKEN_EXPIRED);
            }
            refuse_filter(&claims.server_tags_filter)?;
            Ok(Some(ReadPermit {
                channel: claims.channel,
                user: claims.user,
                token: Some(TokenId::new(&claims.uid, claims.issued_at)),
                is_of_subscription_token: true,
                expire_at: claims.expire_at,
            }))
        }
        Ok(_) => Err(ErrorCode::PERMISSION_DENIED),
        // It may be a connection token.
        Err(_) => Ok(None),
    }
}

/// Refuses a reader to whom the server hides a part of the channel, because a stream is read as it is stored.
///
/// # Errors
/// 103 for a filter.
fn refuse_filter(server_tags_filter: &[u8]) -> Result<(), ErrorCode> {
    if server_tags_filter.is_empty() { Ok(()) } else { Err(ErrorCode::PERMISSION_DENIED) }
}

fn who<'a>(settings: &NodeSettings, user: &'a str) -> Who<'a> {
    Who { user, insecure: settings.options.client.insecure }
}

fn refusal(error: TokenError) -> ErrorCode {
    match error {
        TokenError::Expired => ErrorCode::TOKEN_EXPIRED,
        TokenError::Pending | TokenError::Unavailable => ErrorCode::INTERNAL,
        TokenError::Invalid(_) | TokenError::Disabled => ErrorCode::UNAUTHORIZED,
    }
}

impl From<ErrorCode> for ReadError {
    fn from(error: ErrorCode) -> Self {
        Self::Error(error)
    }
}

#[cfg(test)]
mod tests;
