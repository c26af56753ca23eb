//! Options of one namespace (Centrifugo v6 `channel.namespaces[NAME].*`), and values derived from several of them.
//! In: values from the configuration table → out: the same data, and the effective policy and retention.
//! May use: nothing. Never checks anything: that is `channel/build.rs`.
//! Changed here: defaults; the values of a key are in `choice.rs`.

use std::time::Duration;

use fanwire_area::Grid;
use fanwire_broker::map::MapRetention;
use fanwire_broker::{AppendLimits, Retention};

use super::{
    AreaOptions, ClientIdempotency, CompressionPolicy, DataFormat, DeliveryOptions, MapOptions,
    NamespaceLimits, NamespacePollOptions, ProxyChoice, ProxyRoute, Rate, RecoveryMode,
    SubscriptionType,
};

/// Rules for the channels of one namespace (`channel.namespaces[NAME].*`), everything off by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// `^[-a-zA-Z0-9_.]{2,}$`, unique.
    pub name: String,
    /// Pattern for the part of the name after the namespace; "" = any ASCII text.
    pub channel_regex: String,
    pub publication_data_format: DataFormat,
    /// Every authenticated client may subscribe.
    pub allow_subscribe_for_client: bool,
    /// Extends the above to user "".
    pub allow_subscribe_for_anonymous: bool,
    /// Every authenticated client may publish.
    pub allow_publish_for_client: bool,
    /// Every authenticated client that is subscribed may publish.
    pub allow_publish_for_subscriber: bool,
    /// Extends the two above to user "".
    pub allow_publish_for_anonymous: bool,
    /// A client's own publication is not sent to the connection that published it.
    pub exclude_publisher: bool,
    /// Publish commands of one connection in this namespace, allowed or not; more → 111.
    pub publish_rate: Rate,
    /// Subscribe commands of one connection in this namespace, allowed or not; more → 111.
    pub subscribe_rate: Rate,
    /// Limits of tenants.
    pub limits: NamespaceLimits,
    /// Every authenticated client may read history.
    pub allow_history_for_client: bool,
    /// Every authenticated client that is subscribed may read history.
    pub allow_history_for_subscriber: bool,
    /// Extends the two above to user "".
    pub allow_history_for_anonymous: bool,
    /// Subscribers are added to the presence of their channel.
    pub presence: bool,
    /// Joins and leaves of subscribers are sent to the subscribers that want them.
    pub join_leave: bool,
    /// Every subscriber receives joins and leaves; without it those that request them and may see presence.
    pub force_push_join_leave: bool,
    /// Every authenticated client may see who is present.
    pub allow_presence_for_client: bool,
    /// Every authenticated client that is subscribed may see who is present.
    pub allow_presence_for_subscriber: bool,
    /// Extends the two above to user "".
    pub allow_presence_for_anonymous: bool,
    /// Publications kept per channel; 0 = no history, and then `history_ttl` is zero, too.
    pub history_size: usize,
    /// How long publications are kept after the last one, in whole seconds.
    pub history_ttl: Duration,
    /// The kind of its channels.
    pub subscription_type: SubscriptionType,
    /// The entries and changes that its channels keep if they are maps.
    pub map: MapOptions,
    /// Clients send at most one value of a key in this time; zero = each.
    pub client_publish_debounce_interval: Duration,
    /// How the backend is polled, with `subscription_type` shared_poll.
    pub shared_poll: NamespacePollOptions,
    /// The subscribers of a channel are entries of the map with this prefix in front of its name, by client id; "" = no map.
    pub map_clients_presence_channel_prefix: String,
    /// The same by user id.
    pub map_users_presence_channel_prefix: String,
    /// Every subscription is recoverable; needs history.
    pub force_recovery: bool,
    /// Subscriptions are recoverable when the client asks.
    pub allow_recovery: bool,
    /// Every subscription is positioned.
    pub force_positioning: bool,
    /// Subscriptions are positioned when the client asks.
    pub allow_positioning: bool,
    /// How subscribers recover.
    pub force_recovery_mode: RecoveryMode,
    /// Subscribers in cache mode recover without a request.
    pub auto_cache_recover: bool,
    /// How long offset and epoch are kept, at least `history_ttl`; zero = as in `channel.history_meta_ttl`.
    pub history_meta_ttl: Duration,
    /// Limits of messages that backends append to.
    pub append: AppendLimits,
    /// Publications of clients have the idempotency key that a field of their payload names.
    pub client_idempotency: ClientIdempotency,
    /// Clients may choose publications by their tags.
    pub allow_tags_filter: bool,
    /// Kinds of deltas a subscriber may negotiate; only [`FOSSIL`](Self::FOSSIL) is supported.
    pub allowed_delta_types: Vec<String>,
    /// Every publication may be sent as a delta; without it those published with `delta`.
    pub delta_publish: bool,
    /// Deltas for subscriptions without positions too: shards keep the latest publication for them.
    pub keep_latest_publication: bool,
    /// Read the list of users after `user_boundary`.
    pub allow_user_limited_channels: bool,
    /// How publications are compressed; the node only stores it for its shell.
    pub compression: CompressionPolicy,
    /// Handling of publications for connections that take no bytes.
    pub delivery: DeliveryOptions,
    /// Whether its channels have places, and their tiles.
    pub areas: AreaOptions,
    /// Decides about subscribe commands.
    pub subscribe_proxy: ProxyChoice,
    /// Decides about publish commands.
    pub publish_proxy: ProxyChoice,
    /// Decides whether a subscription goes on when it expires.
    pub sub_refresh_proxy: ProxyChoice,
    /// Opens a stream of publications to each subscriber.
    pub subscribe_stream_proxy: ProxyChoice,
    /// Publish commands of subscribers go up those streams.
    pub subscribe_stream_proxy_bidirectional: bool,
}

impl Namespace {
    /// The supported kind of deltas (protocol §11).
    pub const FOSSIL: &'static str = "fossil";

    /// Whether subscribers may negotiate deltas of this kind.
    pub fn allows_delta(&self, kind: &str) -> bool {
        self.allowed_delta_types.iter().any(|allowed| allowed == kind)
    }

    /// Whether its channels are streams, and not maps or shared polls (protocol §27, §28).
    pub fn is_of_streams(&self) -> bool {
        self.subscription_type == SubscriptionType::Stream
    }

    /// How its map channels are kept; `None` where its channels are none.
    pub fn map_retention(&self) -> Option<MapRetention> {
        self.subscription_type.is_of_maps().then(|| self.map.retention())
    }

    /// Whether maps have entries because of its subscribers.
    pub fn has_entries_of_subscribers(&self) -> bool {
        let is_present = !self.map_clients_presence_channel_prefix.is_empty()
            || !self.map_users_presence_channel_prefix.is_empty();
        is_present || self.subscription_type.is_of_maps() && self.map.remove_client_on_unsubscribe
    }

    /// Whether subscribers may rely on every publication: they recover a stream, or learn of a gap in it.
    pub fn promises_every_publication(&self) -> bool {
        let recovers = self.force_recovery || self.allow_recovery;
        let is_positioned = self.force_positioning || self.allow_positioning;
        is_positioned || recovers && self.force_recovery_mode == RecoveryMode::Stream
    }

    /// The proxy that decides about a subscribe. A stream of publications wins over a decision by request.
    pub fn route_of_subscribes(&self) -> ProxyRoute {
        self.route_or(&self.subscribe_proxy)
    }

    /// The same for publish commands.
    pub fn route_of_publishes(&self) -> ProxyRoute {
        self.route_or(&self.publish_proxy)
    }

    fn route_or(&self, by_request: &ProxyChoice) -> ProxyRoute {
        if !self.subscribe_stream_proxy.enabled {
            return by_request.into();
        }
        let is_bidirectional = self.subscribe_stream_proxy_bidirectional;
        ProxyRoute { has_stream: true, is_bidirectional, ..(&self.subscribe_stream_proxy).into() }
    }

    /// The tiles of its channels, if they have places.
    pub fn grid(&self) -> Option<Grid> {
        let AreaOptions { tile_size, tiles_max, rings } = &self.areas;
        let grid = Grid::new(*tile_size, *tiles_max);
        (*tile_size > 0).then(|| grid.with_rings(rings).unwrap_or(grid))
    }

    /// How long publications are kept. Complete in a namespace from [`crate::channel::ChannelRules::resolve`].
    pub fn retention(&self) -> Retention {
        let size = self.history_size;
        let ttl = self.history_ttl;
        Retention { size, ttl, meta_ttl: self.history_meta_ttl }
    }

    /// The effective policy; never `Unset`.
    ///
    /// A client that publishes into a channel and observes the sizes of other users' compressed publications can test
    /// guesses about earlier publications (CRIME). A client that may read the channel gains nothing by that, so
    /// context is the default wherever publishing clients may read too, and where only the server API publishes.
    ///
    /// `is_private` is for channels with `channel.private_prefix`, which clients read only with a token.
    pub fn compression_policy(&self, is_private: bool) -> CompressionPolicy {
        let some_may_not_read = is_private
            || self.allow_user_limited_channels
            || !self.allow_subscribe_for_client
            || self.allow_publish_for_anonymous && !self.allow_subscribe_for_anonymous;
        let blind_publishers = self.allow_publish_for_client && some_may_not_read;
        match self.compression {
            CompressionPolicy::Unset if blind_publishers => CompressionPolicy::Standalone,
            CompressionPolicy::Unset => CompressionPolicy::Context,
            set => set,
        }
    }
}
