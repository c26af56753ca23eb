//! Hooks (the port for programs that embed a node, and for event proxies): decisions about client commands, and reports.
//! In: events of clients → out: grants or rejections, ready or pending; nothing for reports.
//! Uses: values of the protocol. Never: threads, timeouts; the program around the node has them.
//! Changed here: what a hook receives and what it may grant. `command/hook.rs` asks, `hub/timers.rs` refreshes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use fanwire_area::ViewChange;
use fanwire_auth::{ChannelGrant, Overrides};
use fanwire_broker::map::KeyMode;
use fanwire_broker::{Abandoned, Answer, OccupancyReport, Position};
use fanwire_protocol::{ClientInfo, Disconnect, ProtocolError};

use crate::channel::Decider;
use crate::options::{Namespace, ProxyRoute};
use crate::shared_poll::PollAnswer;

/// The functions that a node calls. They run on the thread of a shard, so they must return at once; what takes time is
/// a pending answer. A session waits for one answer at most, and its later commands wait behind it.
///
/// An answer `None` decides nothing: the node continues as without the hook. Of a refresh it means that the connection
/// or the subscription expired.
///
/// # Grants
/// One rule holds for the grants of all hooks. A grant is a struct whose fields are all public, and each of them is a choice of the
/// program: numbers and positions that the node assigns are no fields. Its `Default` permits the request as the client made it, adds
/// nothing to it, and never expires. A program names the fields that it sets: `ConnectGrant { user, ..ConnectGrant::default() }`. Grants
/// are therefore not `#[non_exhaustive]`, and a new field does not break that line. Events are `#[non_exhaustive]`: a program reads them.
/// The answer to an rpc call is its data alone, because the reply of the protocol has no other field.
#[derive(Default)]
pub struct Hooks {
    /// Authenticates a connect that has no token, or one that no configured key can verify.
    pub connect: Option<Hook<ConnectEvent, ConnectGrant>>,
    /// Gives a connection a new expiry time when the old one has passed. With this hook clients do not refresh.
    pub refresh: Option<Hook<RefreshEvent, RefreshGrant>>,
    /// Gives a subscription a new expiry time when the old one has passed. Where it applies clients need not refresh.
    pub sub_refresh: Option<Hook<RefreshEvent, RefreshGrant>>,
    /// Decides about a subscribe without a token, to a channel that is neither private nor of listed users.
    pub subscribe: Option<Hook<SubscribeEvent, SubscribeGrant>>,
    /// Decides about a publish, before the permissions of the namespace.
    pub publish: Option<Hook<PublishEvent, PublishGrant>>,
    /// Decides about a publish into a map, before the permissions of the namespace.
    pub map_publish: Option<Hook<MapEvent, MapGrant>>,
    /// The same for the removal of a key.
    pub map_remove: Option<Hook<MapEvent, MapGrant>>,
    /// Answers a call of a method that the node does not have, with the data of the result.
    pub rpc: Option<Hook<RpcEvent, Bytes>>,
    /// Returns the values of keys of a shared poll channel. The node calls it outside of the threads of shards.
    pub shared_poll_refresh: Option<Hook<PollEvent, PollAnswer>>,
    /// Receives reports, of each client in order.
    pub report: Option<Box<dyn Fn(ClientReport) + Send + Sync>>,
    /// Receives messages of nodes about occupied channels, with the uid of the sender; must be short.
    pub occupancy: Option<Box<dyn Fn(String, OccupancyReport) + Send + Sync>>,
    /// Whether a subscription has a state around this node that another program cannot go on with: the id of the client and the
    /// channel. Its connection does not move to another program.
    pub stays: Option<Stays>,
    /// Names in lower case that [`ClientContext::emulated_headers`] keeps from `headers` of the connect command.
    pub emulated_headers: Vec<String>,
}

/// See [`Hooks::stays`].
pub type Stays = Box<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// A function that decides about an event.
pub struct Hook<Event, Grant> {
    decide: Box<dyn Fn(Event, ProxyRoute) -> Answer<Option<Grant>, Rejection> + Send + Sync>,
    /// Asked only where the options name a proxy.
    is_of_proxies: bool,
}

/// Facts about a connection that a hook may need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientContext {
    /// Name of the transport (protocol §24), such as `websocket`.
    pub transport: &'static str,
    /// `json` or `protobuf`.
    pub protocol: &'static str,
    /// Headers of the client's request whose names some proxy lists, in lower case; one entry for each value.
    pub headers: Vec<(String, Bytes)>,
    /// Headers of the connect command whose names some proxy lists, in lower case. The client chose them.
    pub emulated_headers: Vec<(String, String)>,
    /// JSON that the connection's token or a hook set, and clients never see; empty = none.
    pub meta: Bytes,
    /// Labels from the connection's token or a hook.
    pub labels: Arc<BTreeMap<String, String>>,
}

/// A connect without a token that a configured key can verify.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectEvent {
    /// The id that the client gets.
    pub client: String,
    pub context: Arc<ClientContext>,
    /// "" = none.
    pub token: String,
    /// Data of the connect command, as the client sent it; empty = none.
    pub data: Bytes,
    /// Name and version of the client's SDK, as it says.
    pub name: String,
    pub version: String,
    /// Server-side subscriptions that the client requests.
    pub channels: Vec<String>,
}

/// A connection or a subscription whose expiry time has passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefreshEvent {
    pub client: ClientInfo,
    pub context: Arc<ClientContext>,
    /// Channel of the subscription; `None` for a connection.
    pub channel: Option<Arc<str>>,
}

/// A subscribe command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscribeEvent {
    pub client: ClientInfo,
    pub context: Arc<ClientContext>,
    pub channel: String,
    /// Data of the subscribe command; empty = none.
    pub data: Bytes,
}

/// A publish command. The data has the format of the namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublishEvent {
    /// The client, with `chan_info` if it is subscribed to the channel.
    pub client: ClientInfo,
    pub context: Arc<ClientContext>,
    pub channel: String,
    pub data: Bytes,
}

/// A publish command that sets or removes a key of a map. The data of a removal are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapEvent {
    pub command: PublishEvent,
    /// As the client sent it; may be empty.
    pub key: String,
}

/// An rpc command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RpcEvent {
    pub client: ClientInfo,
    pub context: Arc<ClientContext>,
    pub method: String,
    pub data: Bytes,
}

/// Keys of a shared poll channel, whose values the node needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollEvent {
    pub channel: Arc<str>,
    /// Each key once, with the version that the node knows; 0 = none, or a value is needed whatever its version.
    pub keys: Vec<(Arc<str>, u64)>,
}

/// Credentials and attributes of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectGrant {
    /// "" = anonymous.
    pub user: String,
    /// `conn_info`, which others see in presence, joins and publications; empty = none.
    pub info: Bytes,
    /// Unix second at which the connection expires; `None` = never. In the past: error 110.
    pub expire_at: Option<u64>,
    /// Data of the connect result; empty = none.
    pub data: Bytes,
    /// Channels to which the server subscribes the client.
    pub channels: BTreeMap<String, ChannelGrant>,
    /// [`ClientContext::meta`] of later events; empty = none.
    pub meta: Bytes,
    /// Texts by which the server API selects connections; those of the token are replaced.
    pub labels: BTreeMap<String, String>,
    /// The subscriptions that the client requests are not made.
    pub ignores_request: bool,
}

/// Attributes of a permitted subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscribeGrant {
    /// `chan_info`, which others see in presence, joins and publications; empty = none.
    pub info: Bytes,
    /// Data of the subscribe result; empty = none.
    pub data: Bytes,
    /// Options that differ from those of the namespace.
    pub overrides: Overrides,
    /// Unix second at which the subscription expires; `None` = never. In the past: error 110.
    pub expire_at: Option<u64>,
    /// Positions, recovery, joins and leaves that the client requests are not given.
    pub ignores_request: bool,
    /// A tag filter as JSON text, which the client's own filter cannot widen; empty = none. An invalid one is error 103.
    pub server_tags_filter: Bytes,
}

/// The new expiry time and attributes of a connection or a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefreshGrant {
    /// Unix second at which it expires; `None` = never.
    pub expire_at: Option<u64>,
    /// `conn_info` or `chan_info` from now on; empty = as before.
    pub info: Bytes,
    /// [`ClientContext::meta`] of later events; empty = as before. A refresh of a subscription does not change it.
    pub meta: Bytes,
    /// The tag filter of the subscription from now on, as JSON text; empty = as before.
    pub server_tags_filter: Bytes,
}

/// Attributes of a permitted publication. The client gets an empty result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishGrant {
    /// Data in place of those that the client sent; `None` = those of the client.
    pub data: Option<Bytes>,
    pub tags: BTreeMap<String, String>,
    /// "" = the key that the namespace takes from the data, if any.
    pub idempotency_key: String,
    /// The publication is not stored and gets no offset.
    pub skip_history: bool,
    /// Subscribers that negotiated deltas may get a delta. It replaces `delta_publish` of the namespace.
    pub delta: bool,
    /// The node publishes only if it is larger than the stored version; 0 = no check. It works only with history.
    pub version: u64,
    /// Versions are compared when this is "" or equal to the stored epoch; a different epoch accepts every version.
    pub version_epoch: String,
    /// The program has processed the publication itself; the node publishes nothing.
    pub is_processed: bool,
}

/// Attributes of a permitted change of a map: a new value or the removal of a key. The client gets an empty result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapGrant {
    /// The key in place of the one that the client sent; `None` = that of the client.
    pub key: Option<String>,
    /// Data in place of those that the client sent; `None` = those of the client. A removal has no data.
    pub data: Option<Bytes>,
    /// Tags of the new value; a removal without tags has those of the value.
    pub tags: BTreeMap<String, String>,
    /// "" = none.
    pub idempotency_key: String,
    /// The change is made only if this is the epoch, and the offset of the last change of the key.
    pub expected: Option<Position>,
    /// Whether the key may, or has to, exist for a new value.
    pub key_mode: KeyMode,
    /// The value is set only if it is larger than the version of the entry; 0 = no check.
    pub version: u64,
    /// Versions are compared when this is "" or equal to that of the entry.
    pub version_epoch: String,
    /// Subscribers that negotiated deltas may get one against the value before.
    pub delta: bool,
}

/// The refusal of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// An error reply. Codes of applications are 400 to 1999. A refused refresh ends the connection with 3005.
    Error(ProtocolError),
    /// The end of the connection. Codes of applications are 4000 to 4999, without reconnect from 4500 on.
    Disconnect(Disconnect),
    /// The hook made no decision, for this cause: the connection ends with 3004 and the client reconnects. After a failed
    /// refresh the connection continues for a minute and is refreshed again.
    Failed(Cow<'static, str>),
    /// The backend made no decision, for this cause: the client gets error 100, which is temporary. After a refresh as
    /// with `Failed`.
    Unavailable(Cow<'static, str>),
}

/// Report about a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientReport {
    /// The connect of a client succeeded. Its subscriptions by then are reported next.
    Connected { client: ClientInfo },
    /// A subscription began, with this data of the client's request: the client gets what is published from now on.
    Subscribed { client: ClientInfo, channel: Arc<str>, data: Bytes },
    /// The view of a subscriber of a channel with places touches other tiles.
    ViewChanged { client: ClientInfo, channel: Arc<str>, change: ViewChange },
    /// A subscription ended, also when its connection ended.
    Unsubscribed { client: ClientInfo, channel: Arc<str> },
    /// The connection of a connected client ended; 3000 if the client closed it, or its network.
    Disconnected { client: ClientInfo, disconnect: Disconnect },
}

impl ConnectEvent {
    /// The event of a client without token, data and requested channels.
    pub fn new(client: String, context: Arc<ClientContext>) -> Self {
        Self { client, context, ..Self::default() }
    }
}

impl RefreshEvent {
    /// The event of a connection, or of a subscription to `channel`.
    pub fn new(client: ClientInfo, context: Arc<ClientContext>, channel: Option<Arc<str>>) -> Self {
        Self { client, context, channel }
    }
}

impl SubscribeEvent {
    /// The event of a subscribe command with `data`.
    pub fn new(
        client: ClientInfo,
        context: Arc<ClientContext>,
        channel: String,
        data: Bytes,
    ) -> Self {
        Self { client, context, channel, data }
    }
}

impl PublishEvent {
    /// The event of a publish command with `data`.
    pub fn new(
        client: ClientInfo,
        context: Arc<ClientContext>,
        channel: String,
        data: Bytes,
    ) -> Self {
        Self { client, context, channel, data }
    }
}

impl MapEvent {
    /// The event of a publish command with `key`.
    pub fn new(command: PublishEvent, key: String) -> Self {
        Self { command, key }
    }
}

impl RpcEvent {
    /// The event of a call of `method` with `data`.
    pub fn new(
        client: ClientInfo,
        context: Arc<ClientContext>,
        method: String,
        data: Bytes,
    ) -> Self {
        Self { client, context, method, data }
    }
}

impl<Event, Grant> Hook<Event, Grant> {
    /// A hook that is asked about every event of its kind.
    pub fn new(
        decide: impl Fn(Event) -> Answer<Option<Grant>, Rejection> + Send + Sync + 'static,
    ) -> Self {
        Self { decide: Box::new(move |event, _| decide(event)), is_of_proxies: false }
    }

    /// A hook that is asked about a channel or method only where the options name a proxy.
    pub fn of_proxies(
        decide: impl Fn(Event, ProxyRoute) -> Answer<Option<Grant>, Rejection> + Send + Sync + 'static,
    ) -> Self {
        Self { decide: Box::new(decide), is_of_proxies: true }
    }

    /// Asks the hook; `route` is for event proxies.
    pub fn call(&self, event: Event, route: ProxyRoute) -> Answer<Option<Grant>, Rejection> {
        (self.decide)(event, route)
    }

    /// Whether the hook is asked about a channel or method with this route.
    pub fn applies(&self, route: &ProxyRoute) -> bool {
        !self.is_of_proxies || route.proxy.is_some()
    }
}

impl<Event: Clone + Send + 'static, Grant: Send + 'static> Hook<Event, Grant> {
    /// One hook of two: `second` is asked about what `first` does not decide.
    fn chain(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        let (first, second) = match (first, second) {
            (Some(first), Some(second)) => (first, Arc::new(second)),
            (first, second) => return first.or(second),
        };
        let is_of_proxies = first.is_of_proxies && second.is_of_proxies;
        let decide = move |event: Event, route: ProxyRoute| match first
            .call(event.clone(), route.clone())
            .ready()
        {
            Ok(Ok(None)) => second.call(event, route),
            Ok(decided) => Answer::now(decided),
            Err(pending) => {
                let (promise, answer) = Answer::later();
                let second = Arc::clone(&second);
                pending.then(move |decided| match decided {
                    Ok(None) => second.call(event, route).then(|decided| promise.keep(decided)),
                    decided => promise.keep(decided),
                });
                answer
            }
        };
        Some(Self { decide: Box::new(decide), is_of_proxies })
    }
}

impl Hooks {
    /// Whether some hook decides about events.
    pub fn decide(&self) -> bool {
        self.connect.is_some()
            || self.refresh.is_some()
            || self.sub_refresh.is_some()
            || self.subscribe.is_some()
            || self.publish.is_some()
            || self.map_publish.is_some()
            || self.map_remove.is_some()
            || self.rpc.is_some()
    }

    /// Returns the authority that decides about a subscribe in a namespace, or a read, without a subscription token.
    pub fn decider(&self, namespace: &Namespace) -> Decider {
        let hook = self.subscribe.as_ref();
        if hook.is_some_and(|hook| hook.applies(&namespace.route_of_subscribes())) {
            Decider::Hook
        } else {
            Decider::Rules
        }
    }

    /// These hooks, and `next` for the events that they do not decide. Both receive reports.
    pub fn or(self, next: Self) -> Self {
        let mut emulated_headers = self.emulated_headers;
        emulated_headers.extend(next.emulated_headers);
        let report = match (self.report, next.report) {
            (Some(first), Some(second)) => {
                let both = move |report: ClientReport| {
                    first(report.clone());
                    second(report);
                };
                Some(Box::new(both) as Box<dyn Fn(ClientReport) + Send + Sync>)
            }
            (first, second) => first.or(second),
        };
        let stays = match (self.stays, next.stays) {
            (Some(first), Some(second)) => {
                let either = move |client: &str, channel: &str| {
                    first(client, channel) || second(client, channel)
                };
                Some(Box::new(either) as Stays)
            }
            (first, second) => first.or(second),
        };
        Self {
            connect: Hook::chain(self.connect, next.connect),
            refresh: Hook::chain(self.refresh, next.refresh),
            sub_refresh: Hook::chain(self.sub_refresh, next.sub_refresh),
            subscribe: Hook::chain(self.subscribe, next.subscribe),
            publish: Hook::chain(self.publish, next.publish),
            map_publish: Hook::chain(self.map_publish, next.map_publish),
            map_remove: Hook::chain(self.map_remove, next.map_remove),
            rpc: Hook::chain(self.rpc, next.rpc),
            shared_poll_refresh: Hook::chain(self.shared_poll_refresh, next.shared_poll_refresh),
            report,
            stays,
            occupancy: self.occupancy.or(next.occupancy),
            emulated_headers,
        }
    }
}

impl<Event, Grant> fmt::Debug for Hook<Event, Grant> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Hook")
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Hooks")
    }
}

impl Abandoned for Rejection {
    fn abandoned() -> Self {
        Self::Failed("the hook ended without an answer".into())
    }
}

impl From<Disconnect> for Rejection {
    fn from(disconnect: Disconnect) -> Self {
        Self::Disconnect(disconnect)
    }
}

impl From<ProtocolError> for Rejection {
    fn from(error: ProtocolError) -> Self {
        Self::Error(error)
    }
}

/// The answer of a hook to a command.
#[derive(Clone, Debug)]
pub enum CommandDecision {
    Connect(Option<ConnectGrant>),
    Subscribe(Option<SubscribeGrant>),
    Publish(Option<PublishGrant>),
    Map(Option<Box<MapGrant>>),
    Rpc(Option<Bytes>),
}

impl CommandDecision {
    pub fn into_connect(self) -> Option<ConnectGrant> {
        if let Self::Connect(granted) = self { granted } else { None }
    }

    pub fn into_subscribe(self) -> Option<SubscribeGrant> {
        if let Self::Subscribe(granted) = self { granted } else { None }
    }

    pub fn into_publish(self) -> Option<PublishGrant> {
        if let Self::Publish(granted) = self { granted } else { None }
    }

    pub fn of_map(granted: Option<MapGrant>) -> Self {
        Self::Map(granted.map(Box::new))
    }

    pub fn into_map(self) -> Option<MapGrant> {
        if let Self::Map(granted) = self { granted.map(|granted| *granted) } else { None }
    }

    pub fn into_rpc(self) -> Option<Bytes> {
        if let Self::Rpc(granted) = self { granted } else { None }
    }

    /// Approximate bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Connect(Some(grant)) => {
                let channels = grant.channels.iter();
                let each = |(name, channel): (&String, &ChannelGrant)| {
                    let filter = channel.server_tags_filter.len();
                    name.len() + channel.info.len() + channel.data.len() + filter
                };
                grant.info.len() + grant.data.len() + channels.map(each).sum::<usize>()
            }
            Self::Subscribe(Some(grant)) => {
                grant.info.len() + grant.data.len() + grant.server_tags_filter.len()
            }
            Self::Publish(Some(grant)) => grant.data.as_ref().map_or(0, Bytes::len),
            Self::Map(Some(grant)) => grant.data.as_ref().map_or(0, Bytes::len),
            Self::Rpc(Some(data)) => data.len(),
            _ => 0,
        }
    }
}
