//! The node: what all shards and the server API share. A facade over registry, broker and the one door `deliver`.
//! In: API verbs with values and `now` → out: `Notice`s in the inboxes of the shards, positions, counts.
//! Uses: `registry`, `broker`, `presence`, `deliver`, `channel`, `token`. Never: sockets, sessions, HTTP.
//! Change here: verbs of the whole node. Per-connection behaviour lives in `hub/` and `command/`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fanwire_protocol::{
    ClientInfo, Disconnect, ErrorCode, Publication, StreamPosition, UnsubscribeCode,
};

use crate::announcement::Change;
use crate::answer::Answer;
use crate::broadcast::Prepare;
use crate::broker::{
    Broker, BrokerError, MemoryBroker, Position, PublishOptions, Query, Retention, Stretch,
};
use crate::channel::{Channels, check_data};
use crate::clock::Clock;
use crate::deliver::{Deliver, Door};
use crate::glob::Glob;
use crate::notice::{Inbox, Notice, ShardId, Target};
use crate::options::{Options, OptionsError};
use crate::presence::{MemoryPresence, Presence, PresenceStats};
use crate::registry::Registry;
use crate::token::Verifier;

/// One running node: options, channel rules, keys, registry, broker and presence. No sockets; time comes with the calls.
///
/// Lock order, outermost first: a stripe of the memory broker, then the door's inbox list or a stripe of the registry,
/// then the inbox of a shard. A stripe of the presence in memory is never held together with another lock.
pub struct Node {
    options: Options,
    channels: Channels,
    connection_verifier: Verifier,
    subscription_verifier: Verifier,
    clock: Clock,
    registry: Arc<Registry>,
    door: Arc<Door>,
    broker: Arc<dyn Broker>,
    presence: Arc<dyn Presence>,
}

/// A page of history, as clients and the server API ask for it (protocol §18).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Most publications; `None` = all, 0 = only the top of the stream.
    pub limit: Option<usize>,
    /// Only publications after this position, with `reverse` those before it. An empty epoch is that of any stream.
    pub since: Option<StreamPosition>,
    /// Newest first.
    pub reverse: bool,
}

/// How much is going on in the whole node.
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
    /// Memory that histories take in this process, roughly.
    pub history_bytes: usize,
}

impl Node {
    /// A node with the memory broker. Looks once at the clock, to know how instants relate to Unix time.
    ///
    /// # Errors
    /// The first option that cannot be used.
    pub fn new(options: Options) -> Result<Arc<Self>, OptionsError> {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ms = unix.as_millis().try_into().unwrap_or(u64::MAX);
        Self::starting_at(options, Instant::now(), unix_ms)
    }

    /// [`new`](Self::new) with a clock of the caller's: at instant `now` it is `unix_ms` (Unix time in milliseconds).
    ///
    /// # Errors
    /// The first option that cannot be used.
    pub fn starting_at(
        options: Options,
        now: Instant,
        unix_ms: u64,
    ) -> Result<Arc<Self>, OptionsError> {
        let history_bytes_max = options.channel.history_memory_max;
        Self::with_broker(options, now, unix_ms, |door| {
            Arc::new(MemoryBroker::new(door, history_bytes_max))
        })
    }

    /// [`starting_at`](Self::starting_at) with the broker that `make` puts in front of the node's door.
    ///
    /// # Errors
    /// The first option that cannot be used.
    pub fn with_broker(
        options: Options,
        now: Instant,
        unix_ms: u64,
        make: impl FnOnce(Arc<dyn Deliver>) -> Arc<dyn Broker>,
    ) -> Result<Arc<Self>, OptionsError> {
        Self::with_backends(options, now, unix_ms, make, Arc::new(MemoryPresence::new()))
    }

    /// [`with_broker`](Self::with_broker) with another place for presence.
    ///
    /// # Errors
    /// The first option that cannot be used.
    pub fn with_backends(
        options: Options,
        now: Instant,
        unix_ms: u64,
        make: impl FnOnce(Arc<dyn Deliver>) -> Arc<dyn Broker>,
        presence: Arc<dyn Presence>,
    ) -> Result<Arc<Self>, OptionsError> {
        options.validate()?;
        let client = &options.client;
        let skip_signature = client.insecure_skip_token_signature_verify;
        let verifier = |token, key| Verifier::new(token, key, skip_signature);
        let registry = Arc::new(Registry::new());
        let door = Arc::new(Door::new(Arc::clone(&registry)));
        Ok(Arc::new(Self {
            channels: Channels::new(&options.channel)?,
            connection_verifier: verifier(&client.token, "client.token")?,
            subscription_verifier: match &client.subscription_token {
                Some(token) => verifier(token, "client.subscription_token")?,
                None => verifier(&client.token, "client.token")?,
            },
            clock: Clock::new(now, unix_ms),
            broker: make(Arc::clone(&door) as _),
            registry,
            door,
            presence,
            options,
        }))
    }

    /// Adds the inbox of a further shard; before the first connection. At most 65,536 shards.
    ///
    /// # Panics
    /// At one more.
    pub fn attach(&self, inbox: Arc<dyn Inbox>) -> ShardId {
        self.door.attach(inbox)
    }

    /// Lets `prepare` add the shell's part to every broadcast; before the first connection, and once.
    ///
    /// # Panics
    /// At the second call.
    pub fn prepare_with(&self, prepare: Arc<dyn Prepare>) {
        self.door.prepare_with(prepare);
    }

    /// Whether a channel has subscribers on this node.
    pub fn has_listeners(&self, channel: &str) -> bool {
        self.registry.has_listeners(channel)
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Unix time was looked at again: at `now` it is `unix_ms`. Worth a call a minute, because system time is adjusted.
    pub fn synchronise(&self, now: Instant, unix_ms: u64) {
        self.clock.synchronise(now, unix_ms);
    }

    /// Publishes for the server API.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name or data of another format than the namespace demands; 100 broker failure.
    pub fn publish(
        &self,
        channel: &str,
        publication: Publication,
        options: PublishOptions,
        now: Instant,
    ) -> Answer<Position, ErrorCode> {
        let checked = self.channels.resolve(channel).and_then(|namespace| {
            check_data(namespace.publication_data_format, &publication.data)?;
            Ok(namespace.retention())
        });
        match checked {
            Ok(retention) => self.accept(channel, publication, &options, retention, now),
            Err(error) => Answer::now(Err(error)),
        }
    }

    /// Reads the history of a channel for the server API.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name, or newest first before offset 0; 108 no history there; 112 `since` has
    /// the epoch of another stream; 100 broker failure.
    pub fn history(&self, channel: &str, page: &Page, now: Instant) -> Answer<Stretch, ErrorCode> {
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
            Ok(_) => self.broker.remove_history(channel, now).map(temporary),
            Err(error) => Answer::now(Err(error)),
        }
    }

    /// How long the publications of a channel are kept.
    fn stored(&self, channel: &str) -> Result<Retention, ErrorCode> {
        let retention = self.channels.resolve(channel)?.retention();
        if retention.keeps_history() { Ok(retention) } else { Err(ErrorCode::NOT_AVAILABLE) }
    }

    /// Who is in a channel, for the server API.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name; 108 no presence there; 100 the store failed.
    pub fn presence(&self, channel: &str, now: Instant) -> Answer<Vec<Arc<ClientInfo>>, ErrorCode> {
        match self.keeps_presence(channel) {
            Ok(()) => self.members(channel, now),
            Err(error) => Answer::now(Err(error)),
        }
    }

    /// How many are in a channel, for the server API.
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
        if self.channels.resolve(channel)?.presence {
            Ok(())
        } else {
            Err(ErrorCode::NOT_AVAILABLE)
        }
    }

    /// Who is in a channel, for those who may know.
    ///
    /// # Errors
    /// 100 when the store failed.
    pub(crate) fn members(
        &self,
        channel: &str,
        now: Instant,
    ) -> Answer<Vec<Arc<ClientInfo>>, ErrorCode> {
        self.presence.members(channel, now).map(temporary)
    }

    /// How many are in a channel, for those who may know.
    ///
    /// # Errors
    /// 100 when the store failed.
    pub(crate) fn member_stats(
        &self,
        channel: &str,
        now: Instant,
    ) -> Answer<PresenceStats, ErrorCode> {
        self.presence.stats(channel, now).map(temporary)
    }

    /// A client is in a channel, or is still there.
    ///
    /// # Errors
    /// 100 when the store failed.
    pub(crate) fn appear(
        &self,
        channel: &str,
        info: ClientInfo,
        now: Instant,
    ) -> Answer<(), ErrorCode> {
        let ttl = self.options.client.presence_ttl;
        self.presence.add(channel, info, ttl, now).map(temporary)
    }

    /// A client left a channel. Where the store cannot be told, it stays until its time is over.
    pub(crate) fn disappear(&self, channel: &str, client: &str) {
        drop(self.presence.remove(channel, client));
    }

    /// Tells who wants to know that a client came or went. Where the broker cannot be asked nobody hears of it.
    pub(crate) fn announce(&self, channel: &str, change: Change, info: ClientInfo) {
        drop(self.broker.announce(channel, change, info));
    }

    /// Lets broker and presence give memory back of what has expired. Worth a call a second.
    pub fn sweep(&self, now: Instant) {
        self.broker.sweep(now);
        self.presence.sweep(now);
    }

    /// Publishes what has been checked already.
    ///
    /// # Errors
    /// 100 when the broker failed.
    pub(crate) fn accept(
        &self,
        channel: &str,
        publication: Publication,
        options: &PublishOptions,
        retention: Retention,
        now: Instant,
    ) -> Answer<Position, ErrorCode> {
        self.broker.publish(channel, publication, options, retention, now).map(temporary)
    }

    /// Reads what may be read.
    ///
    /// # Errors
    /// 107, 112 and 100 of [`history`](Self::history).
    pub(crate) fn read(
        &self,
        channel: &str,
        page: &Page,
        retention: Retention,
        now: Instant,
    ) -> Answer<Stretch, ErrorCode> {
        let since = page.since.as_ref();
        if page.reverse && since.is_some_and(|since| since.offset == 0) {
            return Answer::now(Err(ErrorCode::BAD_REQUEST));
        }
        let query = Query {
            limit: page.limit,
            since: since.map(|since| since.offset),
            reverse: page.reverse,
        };
        let epoch = since.map_or_else(String::new, |since| since.epoch.clone());
        self.broker.history(channel, query, retention, now).map(move |read| {
            let stretch = temporary(read)?;
            if !epoch.is_empty() && epoch != stretch.top.epoch.as_str() {
                return Err(ErrorCode::UNRECOVERABLE_POSITION);
            }
            Ok(stretch)
        })
    }

    /// From where a new subscriber of a channel goes on, which has joined already.
    ///
    /// # Errors
    /// 100 when the broker failed.
    pub(crate) fn follow(
        &self,
        channel: &str,
        query: Option<Query>,
        retention: Retention,
        now: Instant,
    ) -> Answer<Stretch, ErrorCode> {
        self.broker.follow(channel, query, retention, now).map(temporary)
    }

    /// Writes to a shard.
    pub(crate) fn inbox(&self, shard: ShardId) -> Arc<dyn Inbox> {
        self.door.inbox(shard)
    }

    /// Looks at the top of a channel's stream and tells it to every shard that listens: behind the publications up to it
    /// when the broker answers at once, and then it is returned, too; else when the answer comes. A broker that is away
    /// tells nobody anything.
    pub(crate) fn tell_position(&self, channel: &Arc<str>, now: Instant) -> Option<Position> {
        let retention = self.channels.resolve(channel).ok()?.retention();
        let (door, name) = (Arc::clone(&self.door), Arc::clone(channel));
        let tell = move |top, is_in_order| {
            let notice = Notice::Position { channel: Arc::clone(&name), top, is_in_order };
            door.tell(&name, &notice);
        };
        match self.broker.history(channel, Query::TOP, retention, now).ready() {
            Ok(read) => {
                let top = read.ok()?.top;
                tell(top, true);
                Some(top)
            }
            Err(later) => {
                later.then(move |read| read.into_iter().for_each(|read| tell(read.top, false)));
                None
            }
        }
    }

    /// Disconnects the connections of `target`, on every shard.
    pub fn disconnect(&self, target: Target, disconnect: Disconnect) {
        self.door.tell_all(&Notice::Disconnect { target, disconnect });
    }

    /// Ends the subscriptions of `target` to `channel`, or to all channels (then no name is checked).
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name.
    pub fn unsubscribe(
        &self,
        target: Target,
        channel: Option<&str>,
        code: UnsubscribeCode,
    ) -> Result<(), ErrorCode> {
        if let Some(channel) = channel {
            self.channels.resolve(channel)?;
        }
        self.door.tell_all(&Notice::Unsubscribe { target, channel: channel.map(Into::into), code });
        Ok(())
    }

    /// The channels that match a glob (`*`, `?`, `[a-z]`, `[!a]`, `{a,b}`; "" = all), each with its subscribers.
    ///
    /// # Errors
    /// 107 when the pattern is no glob.
    pub fn channels(&self, pattern: &str) -> Result<BTreeMap<String, u32>, ErrorCode> {
        let glob = Glob::new(pattern).ok_or(ErrorCode::BAD_REQUEST)?;
        let mut found = BTreeMap::new();
        self.registry.each_channel(|channel, subscribers| {
            if glob.matches(channel) {
                found.insert(channel.to_owned(), subscribers);
            }
        });
        Ok(found)
    }

    pub fn counts(&self) -> Counts {
        let (channels, subscriptions) = self.registry.channel_counts();
        let (users, connections) = self.registry.user_counts();
        let history_bytes = self.broker.history_bytes();
        Counts { connections, users, channels, subscriptions, history_bytes }
    }

    /// One more subscriber of `channel` on `shard`; returns the one copy of the name.
    pub(crate) fn join(&self, channel: &str, shard: ShardId) -> Arc<str> {
        let namespace = || self.channels.namespace_id(channel);
        self.registry.join(channel, shard, namespace, || self.broker.subscribe(channel))
    }

    /// One subscriber of `channel` less on `shard`.
    pub(crate) fn leave(&self, channel: &str, shard: ShardId) {
        self.registry.leave(channel, shard, || self.broker.unsubscribe(channel));
    }

    /// One more connection of `user`; `None` at `client.user_connection_limit`, which does not count anonymous ones.
    pub(crate) fn enter(&self, user: &str) -> Option<Arc<str>> {
        let limit = if user.is_empty() { 0 } else { self.options.client.user_connection_limit };
        self.registry.enter(user, limit)
    }

    /// One connection of `user` less.
    pub(crate) fn exit(&self, user: &str) {
        self.registry.exit(user);
    }

    pub(crate) fn rules(&self) -> &Channels {
        &self.channels
    }

    pub(crate) fn connection_verifier(&self) -> &Verifier {
        &self.connection_verifier
    }

    pub(crate) fn subscription_verifier(&self) -> &Verifier {
        &self.subscription_verifier
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }
}

/// What the client hears when a backend cannot be asked: a temporary error, so it tries again.
fn temporary<T>(result: Result<T, BrokerError>) -> Result<T, ErrorCode> {
    result.map_err(|_| ErrorCode::INTERNAL)
}
