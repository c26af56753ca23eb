//! Methods of the node for the server API: each checks names and rules, then calls a port.
//! In: channels, selectors, values and `now` → out: positions, streams, counts, or an error.
//! Uses: channel rules, broker, presence, the router, the cluster. Never: sessions, HTTP.
//! Change here: methods for the server API. `backends.rs` has the calls of sessions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use fanwire_area::{Place, Tile, View};
use fanwire_broker::{
    Answer, ClientId, Deliver, DeliverOptions, DeliveryClass, Position, PresenceStats,
    PublishOptions, Retention, StreamSlice,
};
use fanwire_protocol::{ClientInfo, Disconnect, ErrorCode, Publication, UnsubscribeCode};

use super::Node;
use super::backends::{Page, temporary};
use crate::channel::check_data;
use crate::glob::Glob;
use crate::notice::Notice;
use crate::tiles::{is_tile, tile_channel};
use fanwire_cluster::ConnectionSelector;
use fanwire_cluster::{ControlCommand, ViewCommand};

/// Totals of the whole node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections whose connect succeeded.
    pub connections: usize,
    /// Distinct user ids among them; the empty one counts as one.
    pub users: usize,
    /// Channels with at least one subscriber.
    pub channels: usize,
    /// Subscriptions of all connections.
    pub subscriptions: usize,
    /// Approximate bytes of histories in this process.
    pub history_bytes: usize,
}

impl Node {
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
        let settings = self.settings();
        let checked = settings.channels.resolve_trusted(channel).and_then(|namespace| {
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
            Ok(namespace.retention())
        });
        match checked {
            Ok(retention) => self.publish_checked(channel, publication, &options, retention, now),
            Err(error) => Answer::now(Err(error)),
        }
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
        let checked = settings.channels.resolve_trusted(channel).and_then(|namespace| {
            namespace.grid().ok_or(ErrorCode::BAD_REQUEST)?;
            check_data(namespace.publication_data_format, &publication.data)?;
            Ok(namespace.retention())
        });
        match checked {
            Ok(retention) => {
                let channel = tile_channel(channel, tile);
                self.publish_checked(&channel, publication, &options, retention, now)
            }
            Err(error) => Answer::now(Err(error)),
        }
    }

    /// Sets what a subscriber of a channel with places sees, if it is connected to this node.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name or view, or a channel without places.
    pub fn set_view(&self, client: ClientId, channel: &str, view: View) -> Result<(), ErrorCode> {
        let settings = self.settings();
        let grid = settings.channels.resolve_trusted(channel)?.grid();
        let grid = grid.ok_or(ErrorCode::BAD_REQUEST)?;
        grid.change(&view, &[]).map_err(|_| ErrorCode::BAD_REQUEST)?;
        let notice = Notice::View { client, channel: channel.into(), view };
        self.router.send_to_shards(channel, &notice);
        Ok(())
    }

    /// Sets a view as [`set_view`](Self::set_view) does, for a client that may be connected to any node.
    ///
    /// # Errors
    /// The errors of `set_view`; 100 when the command did not reach all nodes. This node has it by then.
    pub fn set_view_on_every_node(
        &self,
        client: ClientId,
        channel: &str,
        view: View,
    ) -> Answer<(), ErrorCode> {
        if let Err(error) = self.set_view(client, channel, view) {
            return Answer::now(Err(error));
        }
        self.cluster.command(ControlCommand::View(ViewCommand {
            client: client.to_string(),
            channel: channel.to_owned(),
            view: view.to_json(),
        }))
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

    /// Disconnects the connections of `target`, on every shard of every node.
    ///
    /// # Errors
    /// 100 when the command did not reach all nodes; the shards of this node have it by then.
    pub fn disconnect(
        &self,
        target: ConnectionSelector,
        disconnect: Disconnect,
    ) -> Answer<(), ErrorCode> {
        let sent = self.cluster.command(ControlCommand::disconnect(&target, &disconnect));
        self.router.send_to_all_shards(&Notice::Disconnect { target, disconnect });
        sent
    }

    /// Ends the subscriptions of `target` to `channel`, or to all channels (then no name is checked), on every node.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name; 100 when the command did not reach all nodes; the shards of this
    /// node have it by then.
    pub fn unsubscribe(
        &self,
        target: ConnectionSelector,
        channel: Option<&str>,
    ) -> Answer<(), ErrorCode> {
        if let Some(Err(error)) = channel.map(|channel| self.check_channel(channel)) {
            return Answer::now(Err(error));
        }
        let sent = self.cluster.command(ControlCommand::unsubscribe(&target, channel));
        self.send_unsubscribe(target, channel);
        sent
    }

    pub(super) fn send_unsubscribe(&self, target: ConnectionSelector, channel: Option<&str>) {
        self.end_subscription(target, channel, UnsubscribeCode::SERVER);
    }

    /// Ends the subscriptions of `target` to `channel`, or to all channels, on this node.
    pub fn end_subscription(
        &self,
        target: ConnectionSelector,
        channel: Option<&str>,
        code: UnsubscribeCode,
    ) {
        let channel = channel.map(Into::into);
        self.router.send_to_all_shards(&Notice::Unsubscribe { target, channel, code });
    }

    /// Checks a channel name, for methods that then refuse the channel's kind.
    ///
    /// # Errors
    /// 102 for an unknown namespace, 107 for an invalid name.
    pub fn check_channel(&self, channel: &str) -> Result<(), ErrorCode> {
        self.settings().channels.resolve_trusted(channel).map(drop)
    }

    /// The channels that match a glob (`*`, `?`, `[a-z]`, `[!a]`, `{a,b}`; "" = all), each with its subscribers on all
    /// nodes.
    ///
    /// # Errors
    /// 107 for an invalid glob; 111 when too many surveys run; 100 when the other nodes could not be asked, or one
    /// of them did not answer within 10 s.
    pub fn channels(
        &self,
        pattern: &str,
        now: Instant,
    ) -> Answer<BTreeMap<String, u32>, ErrorCode> {
        match self.own_channels(pattern) {
            Ok(own) => self.cluster.survey(pattern, own, now),
            Err(error) => Answer::now(Err(error)),
        }
    }

    pub(super) fn own_channels(&self, pattern: &str) -> Result<BTreeMap<String, u32>, ErrorCode> {
        let glob = Glob::new(pattern).ok_or(ErrorCode::BAD_REQUEST)?;
        let mut found = BTreeMap::new();
        self.registry.each_channel(|channel, subscribers| {
            if glob.matches(channel) && !is_tile(channel) {
                found.insert(channel.to_owned(), subscribers);
            }
        });
        Ok(found)
    }

    /// Returns how many histories in memory were dropped since the start, for `channel.history_memory_max`.
    pub fn history_evictions(&self) -> u64 {
        self.broker.history_evictions()
    }

    pub fn counts(&self) -> Counts {
        let (channels, subscriptions) = self.registry.channel_counts();
        let (users, connections) = self.registry.user_counts();
        let history_bytes = self.broker.history_bytes();
        Counts { connections, users, channels, subscriptions, history_bytes }
    }
}
