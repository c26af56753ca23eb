//! Calls of the program that runs the server: publish, presence, history, subscriptions, disconnects.
//! In: calls from any thread → out: answers that are ready or pending.
//! Uses the node's methods for the server API and the backlog of the shards. Never: HTTP, sessions.
//! Changed here: what a program may call. The checks of each call live in `fanwire_node`.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use bytes::Bytes;
use fanwire_broker::{
    Answer, ClientId, DeliveryClass, Position, PresenceStats, PublishOptions, StreamSlice,
};
use fanwire_cluster::{ConnectionSelector, ServerSubscription};
use fanwire_fanout::Shards;
use fanwire_node::{
    Counts, Node, Page,
    area::{Place, View},
};
use fanwire_protocol::{ClientInfo, Disconnect, ErrorCode, Publication};

use fanwire_shard::INBOX_BYTES_MAX;

/// The calls of a running server, for the program around it. Cheap to clone; any thread may use it.
///
/// No call blocks. With the memory engine an [`Answer`] is ready at once; with Redis it is pending until Redis answered.
/// Await it in async code, call [`Answer::wait`] on a thread, or [`Answer::then`] to be called back. The errors are those
/// of the server API. After the server stopped, publications have no subscribers and no effect.
///
/// ```
/// use std::thread;
///
/// use fanwire::{
///     ConnectionSelector, Disconnect, EmbeddedServer, ErrorCode, Page, Position, Publication, PublicationOptions, config::Config,
/// };
///
/// let mut config = Config::default();
/// config.http_server.address = "127.0.0.1".to_owned();
/// config.http_server.port = 0; // any free port
/// let server = EmbeddedServer::start(config)?;
///
/// let handle = server.handle();
/// let publisher = thread::spawn(move || -> Result<Position, ErrorCode> {
///     handle.publish("news", r#"{"text":"hello"}"#).wait()?;
///     let tags = [("language".to_owned(), "en".to_owned())].into();
///     let publication = Publication { data: r#"{"text":"bye"}"#.into(), tags, ..Publication::default() };
///     let options = PublicationOptions { idempotency_key: "bye-1".to_owned(), ..PublicationOptions::default() };
///     handle.publish_with("news", publication, options).wait()
/// });
/// publisher.join().expect("the thread ends")?;
///
/// let handle = server.handle();
/// let everything = Page::default();
/// assert_eq!(handle.history("news", &everything).wait(), Err(ErrorCode::NOT_AVAILABLE)); // no history there
/// let ada = ConnectionSelector { user: "ada".to_owned(), ..ConnectionSelector::default() };
/// handle.disconnect(ada, Disconnect::FORCE_RECONNECT).wait()?;
/// server.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Handle {
    node: Arc<Node>,
    shards: Arc<Shards>,
}

/// Choices of a program about a publication, for [`Handle::publish_with`]. The default has none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicationOptions {
    /// The server publishes once for a key and answers a repeated call with the first position; "" = no key.
    pub idempotency_key: String,
    /// The publication is not stored and gets no offset.
    pub skip_history: bool,
    /// Subscribers that negotiated deltas may get a delta.
    pub delta: bool,
    /// The server publishes only if it is larger than the stored version; 0 = no check. It works only with history.
    pub version: u64,
    /// Versions are compared when this is "" or equal to the stored epoch; a different epoch accepts every version.
    pub version_epoch: String,
    /// A connection that does not receive the publication live. History and recovery return it to every client.
    pub exclude_client: Option<ClientId>,
    /// `None` = as the namespace of the channel says.
    pub delivery: Option<DeliveryClass>,
}

impl From<PublicationOptions> for PublishOptions {
    fn from(options: PublicationOptions) -> Self {
        Self {
            idempotency_key: options.idempotency_key,
            skip_history: options.skip_history,
            delta: options.delta,
            version: options.version,
            version_epoch: options.version_epoch,
            exclude_client: options.exclude_client,
            delivery: options.delivery,
            ..Self::default()
        }
    }
}

impl Handle {
    pub(crate) fn new(node: Arc<Node>, shards: Arc<Shards>) -> Self {
        Self { node, shards }
    }

    /// Publishes `data` with the options of the channel's namespace. Subscribers with the JSON protocol need JSON.
    ///
    /// # Errors
    /// Those of [`publish_with`](Self::publish_with).
    pub fn publish(&self, channel: &str, data: impl Into<Bytes>) -> Answer<Position, ErrorCode> {
        let publication = Publication { data: data.into(), ..Publication::default() };
        self.publish_with(channel, publication, PublicationOptions::default())
    }

    /// Publishes with tags and options. Returns the position in the stream, empty without history.
    ///
    /// # Errors
    /// 111 while more than 32 MiB of publications wait for a shard: publish again after a millisecond. 102 unknown
    /// namespace; 107 impossible name, data of another format than the namespace demands, or
    /// [`Latest`](fanwire_broker::DeliveryClass::Latest) where subscribers rely on every publication; 100 engine failure.
    pub fn publish_with(
        &self,
        channel: &str,
        publication: Publication,
        options: PublicationOptions,
    ) -> Answer<Position, ErrorCode> {
        if self.shards.backlog_bytes() > INBOX_BYTES_MAX {
            return Answer::now(Err(ErrorCode::TOO_MANY_REQUESTS));
        }
        self.node.channels().publish(channel, publication, options.into(), Instant::now())
    }

    /// Publishes at a place of a channel with places (`area_tile_size`): to the subscribers whose view touches its tile.
    ///
    /// # Errors
    /// Those of [`publish_with`](Self::publish_with); 107 for an impossible place, or a channel without places.
    pub fn publish_at(
        &self,
        place: Place,
        channel: &str,
        data: impl Into<Bytes>,
    ) -> Answer<Position, ErrorCode> {
        if self.shards.backlog_bytes() > INBOX_BYTES_MAX {
            return Answer::now(Err(ErrorCode::TOO_MANY_REQUESTS));
        }
        let publication = Publication { data: data.into(), ..Publication::default() };
        let options = PublishOptions::default();
        self.node.channels().publish_at(place, channel, publication, options, Instant::now())
    }

    /// Sets what a subscriber of a channel with places sees, by its client id, if it is connected to this node. Its shard does that
    /// soon after the call.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name, client id or view, or a channel without places.
    pub fn set_view(&self, client: &str, channel: &str, view: View) -> Result<(), ErrorCode> {
        let client = ClientId::parse(client).ok_or(ErrorCode::BAD_REQUEST)?;
        self.node.connections().set_view(client, channel, view)
    }

    /// Returns a page of the channel's stream.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name; 108 no history there; 112 `since` has another epoch; 100 engine failure.
    pub fn history(&self, channel: &str, page: &Page) -> Answer<StreamSlice, ErrorCode> {
        self.node.channels().history(channel, page, Instant::now())
    }

    /// Drops the stored publications of a channel; offset and epoch stay.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name; 108 no history there; 100 engine failure.
    pub fn remove_history(&self, channel: &str) -> Answer<(), ErrorCode> {
        self.node.channels().remove_history(channel, Instant::now())
    }

    /// Returns the members of a channel.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name; 108 no presence there; 100 engine failure.
    pub fn presence(&self, channel: &str) -> Answer<Vec<Arc<ClientInfo>>, ErrorCode> {
        self.node.channels().presence(channel, Instant::now())
    }

    /// Returns the numbers of members and of distinct users of a channel.
    ///
    /// # Errors
    /// Those of [`presence`](Self::presence).
    pub fn presence_stats(&self, channel: &str) -> Answer<PresenceStats, ErrorCode> {
        self.node.channels().presence_stats(channel, Instant::now())
    }

    /// Subscribes the connections of `target`, on every node. Answers when those of this node are subscribed.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name or an end in the past; 100 engine failure.
    pub fn subscribe(
        &self,
        target: ConnectionSelector,
        subscription: ServerSubscription,
    ) -> Answer<(), ErrorCode> {
        self.node.connections().subscribe(target, subscription, Instant::now())
    }

    /// Ends the subscriptions of `target` to `channel`, or to all channels, on every node.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name; 100 when another node was not reached.
    pub fn unsubscribe(
        &self,
        target: ConnectionSelector,
        channel: Option<&str>,
    ) -> Answer<(), ErrorCode> {
        self.node.connections().unsubscribe(target, channel)
    }

    /// Disconnects the connections of `target`, on every node. The reason is cut to 123 bytes, the limit of a close frame.
    ///
    /// # Errors
    /// 107 for a code that is not allowed in a close frame; 100 when another node was not reached.
    pub fn disconnect(
        &self,
        target: ConnectionSelector,
        disconnect: Disconnect,
    ) -> Answer<(), ErrorCode> {
        if !disconnect.is_close_code() {
            return Answer::now(Err(ErrorCode::BAD_REQUEST));
        }
        self.node.connections().disconnect(target, disconnect)
    }

    /// Returns the channels that match a glob ("" = all), each with its number of subscribers on all nodes.
    ///
    /// # Errors
    /// 107 invalid glob; 111 too many surveys; 100 a node did not answer.
    pub fn channels(&self, pattern: &str) -> Answer<BTreeMap<String, u32>, ErrorCode> {
        self.node.list_channels(pattern, Instant::now())
    }

    /// Returns the totals of this node.
    pub fn counts(&self) -> Counts {
        self.node.counts()
    }
}
