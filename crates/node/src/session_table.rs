//! Sessions and subscriptions of one shard: linked tables, and the few operations that keep them consistent.
//! In: opens, connects, joins, leaves, removals → out: sessions, subscriber lists, due timers, counters and registry, all consistent.
//! Uses: `session`, `subscribers`, `pending`, `wheel`, the node's registry. Never: encodes, sends, decides.
//! Change here: what changes together when a session or a subscription comes or goes. Rules live in `command/`.

mod views;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_broker::{Change, ClientId, Position};
use fanwire_protocol::Disconnect;

use crate::broadcast::{Broadcast, DeltaMode};
use crate::client_apps::ClientApps;
use crate::clock::Moment;
use crate::counters::HubCounters;
use crate::hooks::ClientReport;
use crate::limits::Limits;
use crate::node::Node;
use crate::pending::{PendingChannel, PendingCommands};
use crate::registry::ShardId;
use crate::session::{
    ConnectionInfo, ConnectionKey, Phase, Session, Subscription, SubscriptionGrant,
};
use crate::shared_replies::SharedReplies;
use crate::subscribers::{
    Clients, DeltaState, Deltas, PositionTracker, Subscriber, Subscribers, Users,
};
use crate::wheel::Wheel;
pub(crate) use views::EndedPlace;
use views::Views;

/// The tables of one shard.
///
/// Invariants, after every call: `sessions[i].subscriptions[p]` has (channel c, place q) exactly when
/// `subscribers[c].list[q]` has (connection i, place p), with the same flags for filter and joins; a channel has a
/// position tracker exactly as long as it has positioned subscribers, which it counts; a channel counts its
/// subscribers that receive joins and leaves and those with a filter; a session is in the list of its user exactly
/// when it is connected, and in `clients` then, once that table is in use; registry and counters count exactly these.
#[derive(Debug)]
pub(crate) struct SessionTable {
    shard: ShardId,
    /// Sessions by connection index.
    sessions: Vec<Option<Session>>,
    subscribers: Subscribers,
    users: Users,
    clients: Clients,
    wheel: Wheel,
    /// Timers by connection index: the presence of a session in its channels must be renewed.
    renewals: Wheel,
    /// Timers by index of the channel: the positions of its subscribers must be compared with the stream.
    checks: Wheel,
    counters: Arc<HubCounters>,
    no_user: Arc<str>,
    limits: Limits,
    pending: PendingCommands,
    shared_replies: SharedReplies,
    views: Views,
    apps: ClientApps,
}

/// The initial state of a subscription.
pub(crate) struct NewSubscription {
    pub(crate) server_side: bool,
    pub(crate) is_tile: bool,
    pub(crate) terms: Option<Box<SubscriptionGrant>>,
}

impl SessionTable {
    pub(crate) fn new(shard: ShardId) -> Self {
        Self {
            shard,
            sessions: Vec::new(),
            subscribers: Subscribers::default(),
            users: Users::default(),
            clients: Clients::default(),
            wheel: Wheel::new(),
            renewals: Wheel::new(),
            checks: Wheel::new(),
            counters: Arc::default(),
            no_user: "".into(),
            limits: Limits::default(),
            pending: PendingCommands::default(),
            shared_replies: SharedReplies::default(),
            views: Views::default(),
            apps: ClientApps::default(),
        }
    }

    /// Adds a session that waits for `connect`. An earlier session at its index is removed.
    pub(crate) fn open(
        &mut self,
        node: &Node,
        key: ConnectionKey,
        hello: ConnectionInfo,
        now: Instant,
    ) {
        if let Some(old) = self.key_at(key.index) {
            self.forget(node, old, &Disconnect::CONNECTION_CLOSED);
        }
        let index = key.index as usize;
        if self.sessions.len() <= index {
            self.sessions.resize_with(index + 1, || None);
        }
        let stale_at = node.clock().moment(now).after(node.options().client.stale_close_delay);
        let has_hooks = node.hooks().decide();
        let app = self.apps.shared(hello.transport, "", "", BTreeMap::new());
        let session = Session::new(key, hello, app, has_hooks, Arc::clone(&self.no_user), stale_at);
        self.sessions[index] = Some(session);
        self.counters.sessions.add(1);
        self.wheel.set(key.index, stale_at);
    }

    /// The session of a key; `None` when it is gone or its index was reused.
    pub(crate) fn session(&self, key: ConnectionKey) -> Option<&Session> {
        self.at(key.index).filter(|session| session.generation == key.generation)
    }

    pub(crate) fn session_mut(&mut self, key: ConnectionKey) -> Option<&mut Session> {
        let session = self.sessions.get_mut(key.index as usize)?.as_mut()?;
        (session.generation == key.generation).then_some(session)
    }

    pub(crate) fn at(&self, index: u32) -> Option<&Session> {
        self.sessions.get(index as usize)?.as_ref()
    }

    /// An index after those of all sessions.
    pub(crate) fn index_end(&self) -> u32 {
        self.sessions.len() as u32
    }

    pub(crate) fn key_at(&self, index: u32) -> Option<ConnectionKey> {
        self.at(index).map(|session| ConnectionKey { index, generation: session.generation })
    }

    /// Sets name and version of the client's program, and its labels.
    pub(crate) fn set_app(
        &mut self,
        index: u32,
        (name, version): (&str, &str),
        labels: BTreeMap<String, String>,
    ) {
        let session = self.sessions[index as usize].as_mut().expect(LIVES);
        session.app = self.apps.shared(session.app.transport, name, version, labels);
        session.share_labels();
    }

    /// Marks the session as connected by `user`, which has entered the node already.
    pub(crate) fn admit(&mut self, index: u32, user: Arc<str>) {
        self.users.add(&user, index);
        let session = self.expect_session(index);
        session.user = user;
        session.header_user = None;
        session.phase = Phase::Connected;
        self.clients.add(index, &self.sessions);
        self.counters.connections.add(1);
        self.counters.connections_accepted.add(1);
    }

    /// Subscribes a session to a channel that it is not subscribed to, and that it has joined in the registry. Later
    /// publications are delivered to it. Returns its place.
    pub(crate) fn add_subscription(
        &mut self,
        index: u32,
        channel: &Arc<str>,
        new_subscription: NewSubscription,
    ) -> usize {
        debug_assert!(self.place_of(index, channel).is_none(), "a second subscription");
        let NewSubscription { server_side, is_tile, terms } = new_subscription;
        let session = self.sessions[index as usize].as_mut().expect(LIVES);
        let own_place = session.subscriptions.len() as u32;
        let is_filtered = terms.as_ref().is_some_and(|terms| terms.filter.is_some());
        let subscriber = match Subscriber::new(index, own_place) {
            subscriber if is_filtered => subscriber.with_filter(),
            subscriber => subscriber,
        };
        let (channel, place) =
            self.subscribers.add(Arc::clone(channel), subscriber, session.encoding);
        self.subscribers.channel_subscribers_mut(channel).filtered += u32::from(is_filtered);
        let subscription = Subscription {
            channel,
            place,
            server_side,
            is_tile,
            positioned: false,
            recovers: false,
            present: false,
            announced: false,
            wants_join_leave: false,
            terms,
        };
        session.subscriptions.push(subscription);
        self.counters.subscriptions.add(u64::from(!is_tile));
        own_place as usize
    }

    /// Makes the subscription at `place` of a session positioned, at `position`.
    pub(crate) fn position_tracker(
        &mut self,
        node: &Node,
        index: u32,
        place: usize,
        position: Position,
        now: Instant,
    ) {
        let (now, check_delay) = (node.clock().moment(now), self.check_delay(node));
        let session = self.sessions[index as usize].as_mut().expect(LIVES);
        let subscription = &mut session.subscriptions[place];
        debug_assert!(!subscription.positioned, "watched already");
        subscription.positioned = true;
        let channel = subscription.channel;
        let channel_subscribers = self.subscribers.channel_subscribers_mut(channel);
        if channel_subscribers.position_tracker.is_none() {
            let due = check_delay.map_or(Moment::NEVER, |delay| now.after(delay));
            self.checks.set(channel, due);
        }
        channel_subscribers
            .position_tracker
            .get_or_insert_with(|| Box::new(PositionTracker::new(now)))
            .join(index, position);
    }

    /// The next reply contains recovered publications of the subscription at `place` of a session.
    pub(crate) fn recover(&mut self, index: u32, place: usize) {
        self.expect_session(index).subscriptions[place].recovers = true;
    }

    /// The connection of a client, if it is on this shard.
    pub(crate) fn index_of(&mut self, client: ClientId) -> Option<u32> {
        self.clients.find(client, &self.sessions)
    }

    /// Whether the filter of a subscriber matches these tags.
    pub(crate) fn wants(&self, subscriber: Subscriber, tags: &BTreeMap<String, String>) -> bool {
        let session = self.at(subscriber.connection).expect(LIVES);
        let filter = session.subscriptions[subscriber.place() as usize].filter();
        filter.is_none_or(|filter| filter.matches(tags))
    }

    /// Calls `see` with place and channel of the subscriptions of a session whose recovered publications were just
    /// sent.
    pub(crate) fn recovered(&mut self, index: u32, mut see: impl FnMut(u32, &str)) {
        let Some(session) = self.sessions[index as usize].as_mut() else { return };
        for (place, subscription) in (0..).zip(&mut session.subscriptions) {
            if std::mem::take(&mut subscription.recovers) {
                see(place, &self.subscribers.channel_subscribers(subscription.channel).channel);
            }
        }
    }

    /// Enables deltas for the subscription at `place` of a session.
    pub(crate) fn agree(&mut self, index: u32, place: usize, mark: DeltaState) {
        let session = self.expect_session(index);
        let (encoding, subscription) = (session.encoding, &session.subscriptions[place]);
        let (channel, place) = (subscription.channel, subscription.place);
        self.subscribers.channel_subscribers_mut(channel).agree(place, encoding, mark);
    }

    /// The delta mode of a buffered broadcast for the subscription at `place` of a session.
    pub(crate) fn catch_up(
        &mut self,
        index: u32,
        place: usize,
        broadcast: &Broadcast,
    ) -> DeltaMode {
        let found = self.deltas_of(index, place);
        found.map_or(DeltaMode::Plain, |(deltas, place)| deltas.catch_up(place, broadcast))
    }

    /// A buffered broadcast is not sent to the subscription at `place` of a session.
    pub(crate) fn skip(&mut self, index: u32, place: usize) {
        if let Some((deltas, place)) = self.deltas_of(index, place) {
            deltas.skip(place);
        }
    }

    /// The delta states of the channel of the subscription at `place` of a session, and its own index among them.
    fn deltas_of(&mut self, index: u32, place: usize) -> Option<(&mut Deltas, usize)> {
        let subscription = &self.expect_session(index).subscriptions[place];
        let (channel, place) = (subscription.channel, subscription.place as usize);
        let deltas = self.subscribers.channel_subscribers_mut(channel).deltas.as_deref_mut()?;
        Some((deltas, place))
    }

    /// Removes a positioned subscriber of `channel` from the position tracker.
    fn stop_tracking(&mut self, channel: u32, index: u32) {
        let position_tracker =
            &mut self.subscribers.channel_subscribers_mut(channel).position_tracker;
        if position_tracker.as_mut().is_none_or(|position_tracker| position_tracker.leave(index)) {
            *position_tracker = None;
            self.checks.clear(channel);
        }
    }

    /// The session is in the presence of the channel of the subscription at `place`; it is renewed from now on.
    pub(crate) fn appeared(&mut self, node: &Node, index: u32, place: usize, now: Instant) {
        let session = self.sessions[index as usize].as_mut().expect(LIVES);
        let is_first = !session.subscriptions.iter().any(|subscription| subscription.present);
        debug_assert!(!session.subscriptions[place].present, "present already");
        session.subscriptions[place].present = true;
        if is_first {
            // Sessions that subscribed at the same moment are renewed at different ones.
            let interval = node.options().client.presence_update_interval;
            let first = interval.mul_f64(rand::random_range(0.5..1.0));
            self.renewals.set(index, node.clock().moment(now).after(first));
        }
    }

    /// Lets the subscription at `place` of a session receive joins and leaves from now on.
    pub(crate) fn want_join_leave(&mut self, index: u32, place: usize) {
        let subscription = &mut self.expect_session(index).subscriptions[place];
        debug_assert!(!subscription.wants_join_leave, "wants_join_leave already");
        subscription.wants_join_leave = true;
        let (channel, place) = (subscription.channel, subscription.place);
        self.subscribers.channel_subscribers_mut(channel).want_join_leave(place);
    }

    /// Publishes the join of the subscription at `place` of a session; its leave follows when it ends.
    pub(crate) fn announce(&mut self, node: &Node, index: u32, place: usize) {
        let session = self.sessions[index as usize].as_mut().expect(LIVES);
        session.subscriptions[place].announced = true;
        let info = session.client_info(Some(&session.subscriptions[place]));
        let channel = session.subscriptions[place].channel;
        node.channels().announce(
            &self.subscribers.channel_subscribers(channel).channel,
            Change::Join,
            info,
        );
    }

    /// Renews the presence of a session in all its channels, and schedules the next renewal.
    pub(crate) fn renew_presence(&mut self, node: &Node, index: u32, now: Instant) {
        let Some(session) = self.at(index) else { return };
        let mut is_present = false;
        for subscription in session.subscriptions.iter().filter(|one| one.present) {
            is_present = true;
            let channel = &self.subscribers.channel_subscribers(subscription.channel).channel;
            // A failed renewal is repeated at the next interval.
            drop(node.channels().appear(channel, session.client_info(Some(subscription)), now));
        }
        if is_present {
            let interval = node.options().client.presence_update_interval;
            self.renewals.set(index, node.clock().moment(now).after(interval));
        }
    }

    /// Ends the subscription at `place` of a session. Its last subscription moves to that place; returns where that was, the
    /// same place if none moved.
    pub(crate) fn leave(&mut self, node: &Node, index: u32, place: usize) -> u32 {
        let session = self.sessions[index as usize].as_mut().expect(LIVES);
        let encoding = session.encoding;
        let ended = session.subscriptions.swap_remove(place);
        let last = session.subscriptions.len() as u32;
        if let Some(moved) = session.subscriptions.get(place) {
            self.subscribers.moved(moved.channel, moved.place, place as u32);
        }
        let channel = Arc::clone(&self.subscribers.channel_subscribers(ended.channel).channel);
        if let Some(report) = node.hooks().report.as_ref().filter(|_| !ended.is_tile) {
            let client =
                self.sessions[index as usize].as_ref().expect(LIVES).client_info(Some(&ended));
            report(ClientReport::Unsubscribed { client, channel: Arc::clone(&channel) });
        }
        if ended.wants_join_leave {
            self.subscribers.channel_subscribers_mut(ended.channel).join_leave_subscribers -= 1;
        }
        if ended.filter().is_some() {
            self.subscribers.channel_subscribers_mut(ended.channel).filtered -= 1;
        }
        if ended.positioned {
            self.stop_tracking(ended.channel, index);
        }
        if let Some(moved) = self.subscribers.remove(ended.channel, ended.place, encoding) {
            let other = self.expect_session(moved.connection);
            other.subscriptions[moved.place() as usize].place = ended.place;
        }
        if ended.present {
            let client = self.expect_session(index).client();
            node.channels().disappear(&channel, &client);
        }
        node.channels().leave(&channel, self.shard);
        if ended.announced {
            let info = self.expect_session(index).client_info(Some(&ended));
            node.channels().announce(&channel, Change::Leave, info);
        }
        self.counters.subscriptions.subtract(u64::from(!ended.is_tile));
        last
    }

    /// Removes a session from all tables, because of `disconnect`. Idempotent; false when it was gone.
    pub(crate) fn forget(
        &mut self,
        node: &Node,
        key: ConnectionKey,
        disconnect: &Disconnect,
    ) -> bool {
        let Some(session) = self.session(key) else { return false };
        for place in (0..session.subscriptions.len()).rev() {
            self.leave(node, key.index, place);
        }
        if let Some(pending_subscribe) = self.pending.forget(key) {
            self.abandon(node, key.index, pending_subscribe.channels);
        }
        self.wheel.clear(key.index);
        self.limits.forget(key.index);
        self.views.forget(key.index);
        self.renewals.clear(key.index);
        let session = self.sessions[key.index as usize].take().expect(LIVES);
        self.counters.sessions.subtract(1);
        if session.phase == Phase::Connected {
            self.users.remove(&session.user, key.index);
            self.clients.remove(key.index, session.client_id());
            node.registry().exit(&session.user);
            self.counters.connections.subtract(1);
            if let Some(report) = &node.hooks().report {
                let (client, disconnect) = (session.client_info(None), disconnect.clone());
                report(ClientReport::Disconnected { client, disconnect });
            }
        }
        true
    }

    /// Undoes a pending subscribe: leaves its channels in registry and presence.
    pub(crate) fn abandon(&self, node: &Node, index: u32, channels: Vec<PendingChannel>) {
        let client = self.at(index).expect(LIVES).client();
        for pending_channel in channels {
            if pending_channel.visibility.present {
                node.channels().disappear(&pending_channel.channel, &client);
            }
            node.channels().leave(&pending_channel.channel, self.shard);
        }
    }

    /// The channel of the subscription at `place` of a session.
    pub(crate) fn channel_at(&self, index: u32, place: usize) -> Option<Arc<str>> {
        let subscription = self.at(index)?.subscriptions.get(place)?;
        Some(Arc::clone(&self.subscribers.channel_subscribers(subscription.channel).channel))
    }

    /// The place of a session's subscription to a channel. Scans the shorter of the two lists.
    pub(crate) fn place_of(&self, index: u32, channel: &str) -> Option<usize> {
        let channel = self.subscribers.find(channel)?;
        let channel_subscribers = &self.subscribers.channel_subscribers(channel).list;
        let own = &self.at(index)?.subscriptions;
        if own.len() <= channel_subscribers.len() {
            return own.iter().position(|subscription| subscription.channel == channel);
        }
        let pending_channel =
            channel_subscribers.iter().find(|subscriber| subscriber.connection == index)?;
        Some(pending_channel.place() as usize)
    }

    /// Sets the session's timer to its earliest deadline.
    pub(crate) fn schedule(&mut self, node: &Node, index: u32) {
        self.wheel.set(index, self.deadline(node, index));
    }

    /// Sets the timers of all sessions.
    pub(crate) fn reschedule(&mut self, node: &Node) {
        for index in 0..self.sessions.len() as u32 {
            self.schedule(node, index);
        }
    }

    /// Whether a deadline of the session has passed at `now`.
    pub(crate) fn is_due(&self, node: &Node, index: u32, now: Moment) -> bool {
        self.deadline(node, index) <= now
    }

    fn deadline(&self, node: &Node, index: u32) -> Moment {
        let (clock, options) = (node.clock(), &node.options().client);
        let delay = expired_close_delay(node);
        self.at(index).map_or(Moment::NEVER, |session| session.deadline(clock, options, delay))
    }

    /// The next session whose timer is due.
    pub(crate) fn pop_due(&mut self, now: Moment) -> Option<u32> {
        self.wheel.pop(now)
    }

    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        let wheels = [&self.wheel, &self.renewals, &self.checks];
        wheels.into_iter().filter_map(Wheel::next_deadline).min()
    }

    /// The next session whose presence must be renewed.
    pub(crate) fn pop_renewal(&mut self, now: Moment) -> Option<u32> {
        self.renewals.pop(now)
    }

    /// The next channel whose positions must be checked.
    pub(crate) fn pop_check(&mut self, now: Moment) -> Option<u32> {
        self.checks.pop(now)
    }

    /// Time from a confirmed position to the next check; `None` = never. The shards check one after the other, so
    /// that the notice of the first one spares the others the read.
    pub(crate) fn check_delay(&self, node: &Node) -> Option<Duration> {
        let delay = node.options().client.channel_position_check_delay;
        (!delay.is_zero()).then(|| delay + CHECK_DISTANCE * u32::from(self.shard.0))
    }

    /// Schedules the check of a channel's positions at `at`, or earlier, when a possible gap ends.
    pub(crate) fn schedule_check(&mut self, channel: u32, at: Moment) {
        let position_tracker =
            self.subscribers.channel_subscribers(channel).position_tracker.as_deref();
        let until = position_tracker
            .and_then(|position_tracker| position_tracker.possible_gap)
            .map(|possible_gap| possible_gap.until);
        self.checks.set(channel, until.map_or(at, |until| at.min(until)));
    }

    /// Publications of a channel may have been lost: the positions of its subscribers are checked soon.
    pub(crate) fn report_possible_gap(&mut self, channel: &str, now: Moment) {
        let Some(channel) = self.subscribers.find(channel) else { return };
        if let Some(position_tracker) =
            self.subscribers.channel_subscribers_mut(channel).position_tracker.as_deref_mut()
        {
            position_tracker.may_have_gap = true;
            let soon = DOUBT.mul_f64(rand::random_range(0.0..1.0)); // not all channels at one moment
            self.schedule_check(channel, now.after(soon));
        }
    }

    pub(crate) fn subscribers_mut(&mut self) -> &mut Subscribers {
        &mut self.subscribers
    }

    pub(crate) fn subscribers(&self) -> &Subscribers {
        &self.subscribers
    }

    pub(crate) fn users(&self) -> &Users {
        &self.users
    }

    pub(crate) fn pending(&self) -> &PendingCommands {
        &self.pending
    }

    pub(crate) fn pending_mut(&mut self) -> &mut PendingCommands {
        &mut self.pending
    }

    pub(crate) fn shared_replies_mut(&mut self) -> &mut SharedReplies {
        &mut self.shared_replies
    }

    pub(crate) fn shard(&self) -> ShardId {
        self.shard
    }

    pub(crate) fn limits_mut(&mut self) -> &mut Limits {
        &mut self.limits
    }

    pub(crate) fn counters(&self) -> &Arc<HubCounters> {
        &self.counters
    }

    fn expect_session(&mut self, index: u32) -> &mut Session {
        self.sessions[index as usize].as_mut().expect(LIVES)
    }
}

/// How long a connection continues after its expiry time: until the client refreshes it, or no time with a refresh hook.
pub(crate) fn expired_close_delay(node: &Node) -> Duration {
    match node.hooks().refresh {
        Some(_) => Duration::ZERO,
        None => node.options().client.expired_close_delay,
    }
}

/// Between the checks of two shards: some ticks of the wheel.
const CHECK_DISTANCE: Duration = Duration::from_millis(100);

/// After a broken connection the checks of all channels are spread over this time.
const DOUBT: Duration = Duration::from_secs(2);

const LIVES: &str = "indices in the tables belong to sessions that are here";

#[cfg(test)]
mod tests;
