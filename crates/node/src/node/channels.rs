//! Channels of a node: what the server API and sessions do with them, over broker, presence and registry.
//! In: channels, publications, pages and `now` → out: positions, streams, members, or an error.
//! Uses: channel rules, the ports, the router. Never: sessions, HTTP.
//! Changed here: methods of the server API, with their checks. `channels/sessions.rs` has those after a session's checks.

mod growing;
mod sessions;
mod several;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fanwire_area::{Place, Tile};
use fanwire_broker::{
    Answer, Broker, BrokerError, ClientId, Deliver, DeliverOptions, DeliveryClass, Position,
    Presence, PresencePage, PresenceStats, PublishOptions, Retention, StreamSlice,
    SuppressedCounts,
};
use fanwire_policy::DebugList;
use fanwire_policy::channel::check_data;
use fanwire_policy::tiles::tile_channel;
use fanwire_policy::{CurrentSettings, NodeSettings};
use fanwire_protocol::{ClientInfo, ErrorCode, Publication};
use fanwire_telemetry::HotChannels;

use super::usage::TenantUsage;
use crate::clock::Clock;
use crate::deliver::BroadcastRouter;
use crate::registry::Registry;
pub(crate) use sessions::CheckedChannel;
pub use sessions::Page;

/// The channels of a node, with the ports that store and deliver them.
pub struct Channels {
    pub(super) settings: Arc<CurrentSettings>,
    pub(super) clock: Clock,
    pub(super) registry: Arc<Registry>,
    pub(super) router: Arc<BroadcastRouter>,
    pub(super) broker: Arc<dyn Broker>,
    pub(super) hot_channels: Arc<HotChannels>,
    pub(super) debug_list: Arc<DebugList>,
    pub(super) presence: Arc<dyn Presence>,
    /// `client.presence_ttl`.
    pub(super) presence_ttl: Duration,
    pub(super) usage: TenantUsage,
    /// Payloads that readers of streams of JSON did not get.
    pub(super) left_out: AtomicU64,
    /// Publications carry their time, because `client.channel_position_max_time_lag` is set.
    pub(super) sets_times: bool,
}

impl Channels {
    /// Publishes for the server API.
    ///
    /// # Errors
    /// Those of [`ChannelPublisher::publish`].
    pub fn publish(
        &self,
        channel: &str,
        publication: Publication,
        options: PublishOptions,
        now: Instant,
    ) -> Answer<Position, ErrorCode> {
        self.publisher().publish(channel, publication, options, now)
    }

    /// Reads the settings once, for a publication in many channels.
    pub fn publisher(&self) -> ChannelPublisher<'_> {
        ChannelPublisher { channels: self, settings: self.settings() }
    }

    /// The names of all channels with subscribers on this node.
    pub fn occupied(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.registry.each_channel(|name, _| names.push(name.to_owned()));
        names
    }

    /// Unsubscribes from those of these channels that have no subscriber on this node. Nothing may subscribe during the call.
    pub fn unsubscribe_vacant(&self, channels: &[String]) {
        let vacant = channels.iter().filter(|channel| !self.registry.has_listeners(channel));
        vacant.for_each(|channel| self.broker.unsubscribe(channel));
    }

    /// Publishes at a place of a channel with places: to the subscribers whose view touches the tile of the place.
    ///
    /// # Errors
    /// Those of [`publish`](Self::publish); 107 for an impossible place, or a channel without places.
    pub fn publish_at(
        &self,
        place: Place,
        channel: &str,
        publication: Publication,
        options: PublishOptions,
        now: Instant,
    ) -> Answer<Position, ErrorCode> {
        let settings = self.settings();
        let tile = settings.channels.resolve_trusted(channel).and_then(|namespace| {
            let grid = namespace.grid().ok_or(ErrorCode::BAD_REQUEST)?;
            grid.tile_of(place).map_err(|_| ErrorCode::BAD_REQUEST)
        });
        match tile {
            Ok(tile) => self.publish_in(tile, channel, publication, options, now),
            Err(error) => Answer::now(Err(error)),
        }
    }

    /// Publishes in a tile of a channel with places: to the subscribers whose view touches it.
    ///
    /// # Errors
    /// Those of [`publish`](Self::publish); 107 for a channel without places.
    pub fn publish_in(
        &self,
        tile: Tile,
        channel: &str,
        publication: Publication,
        options: PublishOptions,
        now: Instant,
    ) -> Answer<Position, ErrorCode> {
        let settings = self.settings();
        let checked = settings.channels.trusted_rules(channel).and_then(|rules| {
            rules.namespace.grid().ok_or(ErrorCode::BAD_REQUEST)?;
            check_data(rules.namespace.publication_data_format, &publication.data)?;
            Ok(rules)
        });
        match checked {
            Ok(rules) => {
                let name = tile_channel(channel, tile);
                let channel = CheckedChannel::of_stream(&name, rules);
                self.publish_checked(channel, publication, &options, now)
            }
            Err(error) => Answer::now(Err(error)),
        }
    }

    /// Sends a publication to one subscriber of a channel, if it is connected to this node. It is not stored and has no offset.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name, data of another format than the namespace demands.
    pub fn publish_to(
        &self,
        client: ClientId,
        channel: &str,
        publication: Publication,
        class: Option<DeliveryClass>,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let settings = self.settings();
        let namespace = settings.channels.resolve_trusted(channel)?;
        check_data(namespace.publication_data_format, &publication.data)?;
        let options = DeliverOptions { class, ..DeliverOptions::new(now) };
        self.router.deliver_to(Some(client), channel, publication, options);
        Ok(())
    }

    /// Whether a shard is far behind, so that who can wait with publications should.
    pub fn is_congested(&self) -> bool {
        self.router.is_congested()
    }

    /// Reads the history of a channel for the server API.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name, or newest first before offset 0; 108 no history there; 112 `since` has
    /// the epoch of another stream; 100 broker failure.
    pub fn history(
        &self,
        channel: &str,
        page: &Page,
        now: Instant,
    ) -> Answer<StreamSlice, ErrorCode> {
        match self.stored(channel) {
            Ok(retention) => self.read(channel, page, retention, now),
            Err(error) => Answer::now(Err(error)),
        }
    }

    /// Drops the stored publications of a channel; offset and epoch stay.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name; 108 no history there; 100 broker failure.
    pub fn remove_history(&self, channel: &str, now: Instant) -> Answer<(), ErrorCode> {
        match self.stored(channel) {
            Ok(_) => self.broker.remove_history(channel, now).map_err(temporary),
            Err(error) => Answer::now(Err(error)),
        }
    }

    /// How long the publications of a channel are kept.
    fn stored(&self, channel: &str) -> Result<Retention, ErrorCode> {
        let retention = self.settings().channels.resolve_trusted(channel)?.retention();
        if retention.keeps_history() { Ok(retention) } else { Err(ErrorCode::NOT_AVAILABLE) }
    }

    /// The members of a channel, for the server API.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name; 108 no presence there; 100 the store failed.
    pub fn presence(&self, channel: &str, now: Instant) -> Answer<Vec<Arc<ClientInfo>>, ErrorCode> {
        match self.keeps_presence(channel) {
            Ok(()) => self.members(channel, now),
            Err(error) => Answer::now(Err(error)),
        }
    }

    /// A page of the members of a channel, for the server API; see [`Presence::page`].
    ///
    /// # Errors
    /// Those of [`presence`](Self::presence).
    pub fn presence_page(
        &self,
        channel: &str,
        cursor: u64,
        limit: usize,
        now: Instant,
    ) -> Answer<PresencePage, ErrorCode> {
        match self.keeps_presence(channel) {
            Ok(()) => self.presence.page(channel, cursor, limit, now).map_err(temporary),
            Err(error) => Answer::now(Err(error)),
        }
    }

    /// The number of members of a channel, for the server API.
    ///
    /// # Errors
    /// Those of [`presence`](Self::presence).
    pub fn presence_stats(&self, channel: &str, now: Instant) -> Answer<PresenceStats, ErrorCode> {
        match self.keeps_presence(channel) {
            Ok(()) => self.member_stats(channel, now),
            Err(error) => Answer::now(Err(error)),
        }
    }

    fn keeps_presence(&self, channel: &str) -> Result<(), ErrorCode> {
        if self.settings().channels.resolve_trusted(channel)?.presence {
            Ok(())
        } else {
            Err(ErrorCode::NOT_AVAILABLE)
        }
    }

    /// Checks a channel name, for methods that then refuse the channel's kind.
    ///
    /// # Errors
    /// 102 for an unknown namespace, 107 for an invalid name.
    pub fn check(&self, channel: &str) -> Result<(), ErrorCode> {
        self.settings().channels.resolve_trusted(channel).map(drop)
    }

    /// Calls `observer` with the channel of each publication that reaches this node, subscribers or not. With the memory engine it
    /// is called under the channel's lock, after the publication is stored; it must be short and call no method of the node.
    ///
    /// # Panics
    /// If it is called twice.
    pub fn observe(&self, observer: impl Fn(&str) + Send + Sync + 'static) {
        self.router.observe(Box::new(observer));
    }

    /// Whether a channel has subscribers on this node.
    pub fn has_subscribers(&self, channel: &str) -> bool {
        self.registry.has_listeners(channel)
    }

    /// Returns how many histories in memory were dropped since the start, for `channel.history_memory_max`.
    pub fn history_evictions(&self) -> u64 {
        self.broker.history_evictions()
    }

    /// Subscriptions by namespace; "" for channels without one.
    pub fn subscriptions_by_namespace(&self) -> Vec<(String, usize)> {
        let counts = self.registry.subscriptions_by_namespace();
        self.settings().names().iter().cloned().zip(counts).collect()
    }

    /// Publications that this node gave to the broker since the start: of clients, backends and the server itself.
    pub fn published(&self) -> u64 {
        self.usage.publications()
    }

    /// Counts payloads that a reader of a stream of JSON did not get, because they are none.
    pub fn count_left_out(&self, payloads: u64) {
        self.left_out.fetch_add(payloads, Relaxed);
    }

    /// The count of [`count_left_out`](Self::count_left_out) since the start.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }

    /// The usage of tenants.
    pub fn usage(&self) -> &TenantUsage {
        &self.usage
    }

    /// Publications that were not published since the start, because of their idempotency key or version.
    pub fn suppressed_publications(&self) -> SuppressedCounts {
        self.broker.suppressed()
    }

    fn settings(&self) -> Arc<NodeSettings> {
        self.settings.read()
    }
}

/// Publishes with the settings of one moment.
pub struct ChannelPublisher<'a> {
    channels: &'a Channels,
    settings: Arc<NodeSettings>,
}

impl ChannelPublisher<'_> {
    /// Publishes for the server API.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name, a namespace of maps or shared polls, or data of another format than the
    /// namespace demands; 100 broker failure.
    pub fn publish(
        &self,
        channel: &str,
        publication: Publication,
        mut options: PublishOptions,
        now: Instant,
    ) -> Answer<Position, ErrorCode> {
        let checked = self.settings.channels.trusted_rules(channel).and_then(|rules| {
            let namespace = &rules.namespace;
            options.delta |= namespace.delta_publish;
            if !namespace.is_of_streams() {
                return Err(ErrorCode::BAD_REQUEST); // server API §4
            }
            if options.delivery == Some(DeliveryClass::Latest)
                && namespace.promises_every_publication()
            {
                return Err(ErrorCode::BAD_REQUEST);
            }
            check_data(namespace.publication_data_format, &publication.data)?;
            Ok(CheckedChannel::of_stream(channel, rules))
        });
        match checked {
            Ok(channel) => self.channels.publish_checked(channel, publication, &options, now),
            Err(error) => Answer::now(Err(error)),
        }
    }
}

/// Any backend failure is a temporary error for clients, so they try again.
pub(super) fn temporary(_: BrokerError) -> ErrorCode {
    ErrorCode::INTERNAL
}
