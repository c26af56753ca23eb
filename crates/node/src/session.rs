//! One connection at rest: identity, subscriptions, deadlines.
//! In: values that the session table and the commands write → out: the same values, small, without a task and without a buffer.
//! Uses: shared strings. Never: sockets, other sessions, encoding.
//! Changed here: the state per connection (every byte counts a million times). Its behaviour lives in
//! `session_table.rs`, `hub/` and `command/`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fanwire_auth::TokenId;
use fanwire_broker::ClientId;
use fanwire_policy::filter::{Filter, SubscriptionFilter};
use fanwire_policy::hooks::ClientContext;
use fanwire_policy::options::ClientOptions;
use fanwire_protocol::{ClientInfo, Commands, Encoding};
use smallvec::SmallVec;
use uuid::Uuid;

use crate::client_apps::ClientApp;
use crate::clock::{Clock, Moment};
use crate::index::{SubscriberIndex, SubscriptionIndex};
use crate::last_event_id::LastEventId;

/// Identifies a connection of a shard: a dense index, and a generation that differs when the index is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionKey {
    /// Below 2^31; tables are as long as the highest index, so reuse low ones first.
    pub index: u32,
    pub generation: u32,
}

/// Attributes of a connection when it opens.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    pub encoding: Encoding,
    /// Keepalive by native WebSocket pings: the connect result then has neither `ping` nor `pong` (protocol §1). With
    /// [`CommandSource::None`] in addition to those of the protocol (§25).
    pub frame_ping: bool,
    /// Transport name as reported to backends (protocol §24), for one `websocket`.
    pub transport: &'static str,
    pub command_source: CommandSource,
    /// User id from `client.user_id_http_header`, when the request carried it.
    pub user: Option<String>,
    /// The last event that a client without commands has, when its request names one.
    pub last_event_id: Option<LastEventId>,
    /// Headers of the request for hooks, names in lower case; one entry for each value.
    pub headers: Vec<(String, Bytes)>,
}

impl ConnectionInfo {
    /// The context that hooks receive; the headers move there.
    pub(crate) fn take_context(&mut self) -> ClientContext {
        let mut context = ClientContext::default();
        context.transport = self.transport;
        context.protocol = self.encoding.name();
        context.headers = std::mem::take(&mut self.headers);
        context
    }
}

/// How the commands of a client reach its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandSource {
    /// Commands come on the client's connection.
    Connection,
    /// Commands come in requests of their own (protocol §24), which name its secret session id.
    Requests,
    /// Not at all (protocol §25): its first message is a connect request, and what it receives are pushes, which the shell
    /// sends bare ([`bare_push`](fanwire_protocol::bare_push)).
    None,
}

impl CommandSource {
    /// The commands in a message of the client.
    pub(crate) fn commands(self, encoding: Encoding, message: &[u8]) -> Commands<'_> {
        match self {
            Self::Connection | Self::Requests => Commands::new(encoding, message),
            Self::None => Commands::of_connect_request(encoding, message),
        }
    }
}

/// An expiry time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime {
    /// Unix second; `None` = never.
    pub(crate) expire_at: Option<u64>,
}

/// The state of one connection. With one subscription it owns no heap block of its own.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) generation: u32,
    pub(crate) phase: Phase,
    pub(crate) encoding: Encoding,
    pub(crate) frame_ping: bool,
    pub(crate) command_source: CommandSource,
    /// A ping was sent and its pong is outstanding. Only one may be (protocol §6).
    pub(crate) awaits_pong: bool,
    /// The shell does not read it now.
    pub(crate) is_held: bool,
    /// The secret part of its session id; none where commands come on its connection.
    pub(crate) secret: Option<Box<Uuid>>,
    /// Facts of the request that opened the connection, until its connect.
    pub(crate) request: Option<Box<RequestFacts>>,
    /// Facts for hooks and the server API; `None` when there are no hooks and no `meta`.
    pub(crate) context: Option<Arc<ClientContext>>,
    /// "" until connect.
    pub(crate) user: Arc<str>,
    /// The client id; nil until connect.
    pub(crate) id: Uuid,
    /// `conn_info`; empty = none.
    pub(crate) info: Bytes,
    /// Subscriptions: at most `client.channel_limit`, and the tiles in view.
    pub(crate) subscriptions: SmallVec<[Subscription; 1]>,
    /// Unix second at which the credentials expire, or `NO_EXPIRY`.
    pub(crate) expire_at: u64,
    /// Time of the next ping; before connect, time at which the connection becomes stale.
    pub(crate) beat_at: Moment,
    /// Deadline of the pong, if `awaits_pong`.
    pub(crate) pong_by: Moment,
    /// Transport, name and version of the client's program.
    pub(crate) app: Arc<ClientApp>,
    /// Unix time at which it connected; two parts, because they fit between other fields.
    connected_second: u32,
    connected_millis: u16,
    /// Only with a token, or with channels from a hook.
    pub(crate) grant: Option<Box<ConnectionGrant>>,
}

/// Attributes of a request that a connect uses.
#[derive(Debug)]
pub(crate) struct RequestFacts {
    /// User id from the shell.
    pub(crate) user: Option<Box<str>>,
    pub(crate) last_event_id: Option<LastEventId>,
}

/// Attributes of a connection from its credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionGrant {
    /// Hash of the channels that they granted, to detect a change at refresh (protocol §21).
    pub(crate) channels_hash: u64,
    /// `None` for credentials from a hook.
    pub(crate) token: Option<TokenId>,
}

/// Phase of a connection (protocol §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waits for `connect`.
    Open,
    /// `connect` was answered with an error: nothing is processed any more.
    Refused,
    Connected,
}

/// One subscription of a session, with its indices in the hub's tables.
#[derive(Debug)]
pub(crate) struct Subscription {
    /// Index of the channel in `Subscribers`.
    pub(crate) channel: u32,
    /// Its own index in the channel's list of subscribers.
    pub(crate) subscriber: SubscriberIndex,
    /// The subscription is of a tile in the view of another subscription; the client does not see it.
    pub(crate) is_tile: bool,
    /// Made by the server (token or `connect.subs`), not by a subscribe command.
    pub(crate) server_side: bool,
    /// The subscription ends when it misses a publication; the channel's `PositionTracker` has its position.
    pub(crate) positioned: bool,
    /// Its result, which was not sent yet, contains publications.
    pub(crate) recovers: bool,
    /// The session is in the presence of the channel.
    pub(crate) present: bool,
    /// Its join was sent to others, and its leave will be.
    pub(crate) announced: bool,
    /// The subscription receives joins and leaves.
    pub(crate) wants_join_leave: bool,
    /// Maps have entries because of it (`map_presence.rs`).
    pub(crate) has_entries: bool,
    /// Only when a token or a filter sets something.
    pub(crate) terms: Option<Box<SubscriptionGrant>>,
}

/// Attributes of a subscription from its token, and its filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubscriptionGrant {
    /// `chan_info`; empty = none.
    pub(crate) info: Bytes,
    /// Unix second, or `NO_EXPIRY`.
    pub(crate) expire_at: u64,
    /// Filter of publications, shared with the tiles of a view; `None` = the subscription gets all.
    pub(crate) filter: Option<Arc<SubscriptionFilter>>,
    /// A hook refreshes the subscription at its expiry, and not the client.
    pub(crate) is_refreshed_by_hook: bool,
    /// The subscription token, if it came with one.
    pub(crate) token: Option<Box<TokenId>>,
}

impl Session {
    pub(crate) fn new(
        key: ConnectionKey,
        mut connection: ConnectionInfo,
        app: Arc<ClientApp>,
        has_hooks: bool,
        no_user: Arc<str>,
        stale_at: Moment,
    ) -> Self {
        let context = has_hooks.then(|| Arc::new(connection.take_context()));
        Self {
            generation: key.generation,
            phase: Phase::Open,
            encoding: connection.encoding,
            frame_ping: connection.frame_ping,
            command_source: connection.command_source,
            awaits_pong: false,
            is_held: false,
            secret: None,
            request: RequestFacts::boxed(connection.user, connection.last_event_id),
            context,
            user: no_user,
            id: Uuid::nil(),
            info: Bytes::new(),
            subscriptions: SmallVec::new(),
            expire_at: NO_EXPIRY,
            beat_at: stale_at,
            pong_by: Moment::NEVER,
            app,
            connected_second: 0,
            connected_millis: 0,
            grant: None,
        }
    }

    /// Sets the Unix time of the connect in milliseconds.
    pub(crate) fn set_connected_at(&mut self, unix_ms: u64) {
        self.connected_second = u32::try_from(unix_ms / 1000).unwrap_or(u32::MAX);
        self.connected_millis = (unix_ms % 1000) as u16;
    }

    pub(crate) fn connected_at_ms(&self) -> u64 {
        u64::from(self.connected_second) * 1000 + u64::from(self.connected_millis)
    }

    pub(crate) fn subscription(&self, index: SubscriptionIndex) -> &Subscription {
        &self.subscriptions[index.0 as usize]
    }

    pub(crate) fn subscription_mut(&mut self, index: SubscriptionIndex) -> &mut Subscription {
        &mut self.subscriptions[index.0 as usize]
    }

    /// The last subscription for which `is` holds: only later ones move when it ends.
    pub(crate) fn last_subscription(
        &self,
        is: impl FnMut(&Subscription) -> bool,
    ) -> Option<SubscriptionIndex> {
        self.subscriptions.iter().rposition(is).map(|index| SubscriptionIndex(index as u32))
    }

    /// How many channels the client is subscribed to.
    pub(crate) fn channel_count(&self) -> usize {
        self.subscriptions.iter().filter(|subscription| !subscription.is_tile).count()
    }

    /// Whether its connect succeeded.
    pub(crate) fn is_connected(&self) -> bool {
        self.phase == Phase::Connected
    }

    /// Facts for a hook.
    pub(crate) fn context(&self) -> Arc<ClientContext> {
        self.context.clone().unwrap_or_default()
    }

    /// Replaces [`ClientContext::meta`], for hooks and the server API; an empty one changes nothing.
    pub(crate) fn set_meta(&mut self, meta: Bytes) {
        if !meta.is_empty() {
            Arc::make_mut(self.context.get_or_insert_default()).meta = meta;
        }
    }

    /// Sets [`ClientContext::labels`], where hooks may ask for them.
    pub(crate) fn share_labels(&mut self) {
        let labels = &self.app.labels;
        if let Some(context) = self.context.as_mut().filter(|_| !labels.is_empty()) {
            Arc::make_mut(context).labels = Arc::clone(labels);
        }
    }

    /// The client id as text, as on the wire.
    pub(crate) fn client(&self) -> String {
        self.id.to_string()
    }

    /// The session id, which a client sends with commands in requests of their own, and the server API can name; "" where
    /// commands come on the connection.
    pub(crate) fn session_id(&self) -> String {
        let id = |secret: &Uuid| format!("{}.{secret}", self.id);
        self.secret.as_deref().map(id).unwrap_or_default()
    }

    /// The publisher of a publication, as other clients see it; `subscription` when it is subscribed to the channel.
    pub(crate) fn client_info(&self, subscription: Option<&Subscription>) -> ClientInfo {
        self.info_as(subscription.and_then(|subscription| subscription.terms.as_deref()))
    }

    /// The client as other clients see it in a channel whose subscription has these terms.
    pub(crate) fn info_as(&self, terms: Option<&SubscriptionGrant>) -> ClientInfo {
        ClientInfo {
            user: self.user.as_ref().to_owned(),
            client: self.client(),
            conn_info: self.info.clone(),
            chan_info: terms.map(|terms| terms.info.clone()).unwrap_or_default(),
        }
    }

    pub(crate) fn client_id(&self) -> ClientId {
        ClientId::from_bytes(self.id.into_bytes())
    }

    /// The earliest deadline of this session.
    pub(crate) fn deadline(
        &self,
        clock: &Clock,
        options: &ClientOptions,
        expired_close_delay: Duration,
    ) -> Moment {
        if self.phase != Phase::Connected {
            return self.beat_at;
        }
        let beat = if self.awaits_pong { self.pong_by } else { self.beat_at };
        let expiry = closing(clock, self.expire_at, expired_close_delay);
        let subscriptions = self
            .subscriptions
            .iter()
            .map(|subscription| subscription.closing(clock, options.expired_sub_close_delay));
        subscriptions.fold(beat.min(expiry), Moment::min)
    }
}

impl RequestFacts {
    /// `None` when nothing is set, which is the usual case and costs no heap block.
    fn boxed(user: Option<String>, last_event_id: Option<LastEventId>) -> Option<Box<Self>> {
        let is_empty = user.is_none() && last_event_id.is_none();
        (!is_empty).then(|| Box::new(Self { user: user.map(Into::into), last_event_id }))
    }
}

impl Subscription {
    /// Whether others know of it, until it is no longer renewed.
    pub(crate) fn is_renewed(&self) -> bool {
        self.present || self.has_entries
    }

    /// Unix second, or `NO_EXPIRY`.
    pub(crate) fn expire_at(&self) -> u64 {
        self.terms.as_ref().map_or(NO_EXPIRY, |terms| terms.expire_at)
    }

    /// The time at which it ends, or a hook refreshes it; `delay` is the grace in which the client may refresh it.
    pub(crate) fn closing(&self, clock: &Clock, delay: Duration) -> Moment {
        let delay = if self.is_refreshed_by_hook() { Duration::ZERO } else { delay };
        closing(clock, self.expire_at(), delay)
    }

    pub(crate) fn is_refreshed_by_hook(&self) -> bool {
        self.terms.as_ref().is_some_and(|terms| terms.is_refreshed_by_hook)
    }

    /// Its filter; `None` = all publications.
    pub(crate) fn filter(&self) -> Option<&Arc<SubscriptionFilter>> {
        self.terms.as_ref()?.filter.as_ref()
    }

    /// Whether its filter lets a publication with these tags through.
    pub(crate) fn wants(&self, tags: &BTreeMap<String, String>) -> bool {
        self.filter().is_none_or(|filter| filter.matches(tags))
    }

    /// Its filter, with another one of the server.
    pub(crate) fn filter_by_server(&self, of_server: Option<Filter>) -> SubscriptionFilter {
        let of_client = self.filter().and_then(|filter| filter.of_client.clone());
        SubscriptionFilter { of_server, of_client }
    }
}

impl SubscriptionGrant {
    /// `None` when nothing is set, which is the usual case and costs no heap block.
    pub(crate) fn boxed(info: Bytes, expire_at: Option<u64>) -> Option<Box<Self>> {
        let expire_at = expire_at.unwrap_or(NO_EXPIRY);
        (!info.is_empty() || expire_at != NO_EXPIRY).then(|| Box::new(Self::new(info, expire_at)))
    }

    fn new(info: Bytes, expire_at: u64) -> Self {
        Self { info, expire_at, filter: None, is_refreshed_by_hook: false, token: None }
    }

    fn empty() -> Box<Self> {
        Box::new(Self::new(Bytes::new(), NO_EXPIRY))
    }

    /// The same terms from a token, if there is one.
    pub(crate) fn by_token(terms: Option<Box<Self>>, token: Option<TokenId>) -> Option<Box<Self>> {
        let Some(token) = token else { return terms };
        let mut terms = terms.unwrap_or_else(Self::empty);
        terms.token = Some(Box::new(token));
        Some(terms)
    }

    /// The same terms, of a subscription that a hook refreshes if `by_hook`.
    pub(crate) fn refreshed(terms: Option<Box<Self>>, by_hook: bool) -> Option<Box<Self>> {
        let mut terms = terms?;
        terms.is_refreshed_by_hook = by_hook && terms.expire_at != NO_EXPIRY;
        Some(terms)
    }

    /// The same terms with this filter instead of theirs.
    pub(crate) fn filtering(
        terms: Option<Box<Self>>,
        filter: Option<Arc<SubscriptionFilter>>,
    ) -> Option<Box<Self>> {
        if filter.is_none() && terms.is_none() {
            return None;
        }
        let mut terms = terms.unwrap_or_else(Self::empty);
        terms.filter = filter;
        Some(terms)
    }
}

/// The end of a lifetime: its Unix second plus a grace in which the client may refresh.
pub(crate) fn closing(clock: &Clock, expire_at: u64, delay: Duration) -> Moment {
    if expire_at == NO_EXPIRY {
        return Moment::NEVER;
    }
    clock.moment_of_unix(expire_at, delay)
}

/// Never expires.
pub(crate) const NO_EXPIRY: u64 = u64::MAX;

#[cfg(test)]
mod tests;
