//! Sessions and subscriptions of one shard: linked tables, and the few operations that keep them consistent.
//! In: opens, connects, joins, leaves, removals → out: sessions, subscriber lists, timers and counters, all consistent; what ended.
//! Uses: `session`, `subscribers`, `pending`, `wheel`. Pure. Never: encodes, sends, decides, calls the node.
//! Changed here: what changes together when a session or a subscription comes or goes. `session_effects.rs` tells it to others.

mod filters;
mod saving;
pub(crate) mod selection;
mod trackers;
mod views;

use std::collections::BTreeMap;
use std::sync::Arc;

use fanwire_broker::{ClientId, Position};
use fanwire_policy::RateLimits;
use fanwire_protocol::ClientInfo;
use fanwire_recorder::FlightRecorder;

use crate::broadcast::{Broadcast, DeltaMode};
use crate::client_apps::ClientApps;
use crate::clock::Moment;
use crate::counters::HubCounters;
use crate::index::{MovedSubscription, SubscriberIndex, SubscriptionIndex};
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
use trackers::Trackers;
use views::Views;

/// The tables of one shard.
///
/// Invariants, after every call: `sessions[i].subscriptions[p]` has (channel c, subscriber q) exactly when
/// `subscribers[c].list[q]` has (connection i, subscription p), with the same flags for filter and joins; a channel has a
/// position tracker exactly as long as it has positioned subscribers, which it counts; a channel counts its
/// subscribers that receive joins and leaves and those with a filter; a session is in the list of its user exactly
/// when it is connected, and in `clients` then, once that table is in use; the counters count exactly these. The caller
/// keeps the registry of the node equal.
#[derive(Debug)]
pub(crate) struct SessionTable {
    pub(crate) shard: ShardId,
    /// Sessions by connection index.
    sessions: Vec<Option<Session>>,
    subscribers: Subscribers,
    users: Users,
    clients: Clients,
    pub(crate) timers: Timers,
    pub(crate) counters: Arc<HubCounters>,
    no_user: Arc<str>,
    pub(crate) limits: RateLimits,
    pub(crate) pending: PendingCommands,
    pub(crate) shared_replies: SharedReplies,
    pub(crate) recorder: FlightRecorder,
    views: Views,
    /// Keys of shared poll channels.
    pub(crate) trackers: Trackers,
    apps: ClientApps,
}

/// The timers of one shard.
#[derive(Debug)]
pub(crate) struct Timers {
    /// The earliest deadline of each session, by connection index.
    pub(crate) sessions: Wheel,
    /// Times at which the presence of a session in its channels must be renewed, by connection index.
    pub(crate) renewals: Wheel,
    /// Times at which the positions of a channel's subscribers must be compared with the stream, by index of the channel.
    pub(crate) checks: Wheel,
    /// Times at which subscribes in progress that hold a buffer have taken too long, by connection index.
    pub(crate) reservations: Wheel,
    /// Times at which signatures of tracked keys may have expired, by connection index.
    pub(crate) tracked_keys: Wheel,
}

impl Timers {
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        let of_presence = [&self.renewals, &self.tracked_keys];
        let wheels =
            [&self.sessions, &self.checks, &self.reservations].into_iter().chain(of_presence);
        wheels.filter_map(Wheel::next_deadline).min()
    }
}

/// A subscription that ended; the node does not know it yet.
#[derive(Debug)]
#[must_use]
pub(crate) struct EndedSubscription {
    pub(crate) channel: Arc<str>,
    pub(crate) subscription: Subscription,
    pub(crate) moved: MovedSubscription,
    /// Keys that the connection tracked in it.
    pub(crate) tracked: Vec<Arc<str>>,
}

/// A session that ended, with what ended before it; the node does not know it yet.
#[derive(Debug)]
#[must_use]
pub(crate) struct EndedSession {
    pub(crate) session: Session,
    pub(crate) subscriptions: Vec<EndedSubscription>,
    /// Channels of its pending subscribe.
    pub(crate) pending: Vec<PendingChannel>,
}

/// The initial state of a subscription.
pub(crate) struct NewSubscription {
    pub(crate) server_side: bool,
    pub(crate) is_tile: bool,
    pub(crate) terms: Option<Box<SubscriptionGrant>>,
}

/// The first position of a subscription.
pub(crate) struct FirstPosition {
    pub(crate) position: Position,
    pub(crate) now: Moment,
    /// The positions of the channel are checked then, if this is the first one.
    pub(crate) check_at: Moment,
}

impl SessionTable {
    pub(crate) fn new(shard: ShardId) -> Self {
        Self {
            shard,
            sessions: Vec::new(),
            subscribers: Subscribers::default(),
            users: Users::default(),
            clients: Clients::default(),
            timers: Timers {
                sessions: Wheel::new(),
                renewals: Wheel::new(),
                checks: Wheel::new(),
                reservations: Wheel::new(),
                tracked_keys: Wheel::new(),
            },
            counters: Arc::default(),
            no_user: "".into(),
            limits: RateLimits::default(),
            pending: PendingCommands::default(),
            shared_replies: SharedReplies::default(),
            recorder: FlightRecorder::default(),
            views: Views::default(),
            trackers: Trackers::default(),
            apps: ClientApps::default(),
        }
    }

    /// Adds a session that waits for `connect` until `stale_at`, at an index without a session.
    pub(crate) fn open(
        &mut self,
        key: ConnectionKey,
        connection: ConnectionInfo,
        has_hooks: bool,
        stale_at: Moment,
    ) {
        debug_assert!(self.at(key.index).is_none(), "a second session");
        let index = key.index as usize;
        if self.sessions.len() <= index {
            self.sessions.resize_with(index + 1, || None);
        }
        let app = self.apps.shared(connection.transport, "", "", BTreeMap::new());
        let session =
            Session::new(key, connection, app, has_hooks, Arc::clone(&self.no_user), stale_at);
        self.sessions[index] = Some(session);
        self.counters.sessions.add(1);
        self.timers.sessions.set(key.index, stale_at);
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
        name: &str,
        version: &str,
        labels: BTreeMap<String, String>,
    ) {
        let session = self.sessions[index as usize].as_mut().expect(LIVES);
        session.app = self.apps.shared(session.app.transport, name, version, labels);
        session.share_labels();
    }

    /// Marks the session as connected by `user`, which has entered the node already.
    pub(crate) fn admit(&mut self, index: u32, user: Arc<str>) {
        self.enter(index, user);
        self.counters.connections_accepted.add(1);
    }

    /// The same for a session that another program has admitted.
    pub(crate) fn enter(&mut self, index: u32, user: Arc<str>) {
        self.users.add(&user, index);
        let session = self.expect_session(index);
        session.user = user;
        session.request = None;
        session.phase = Phase::Connected;
        let app = Arc::clone(&session.app);
        self.counters.clients_like(&app).add(1);
        self.clients.add(index, &self.sessions);
        self.counters.connections.add(1);
    }

    /// Subscribes a session to a channel that it is not subscribed to, and that it has joined in the registry. Later
    /// publications are delivered to it. Returns its index.
    pub(crate) fn add_subscription(
        &mut self,
        index: u32,
        channel: &Arc<str>,
        new_subscription: NewSubscription,
    ) -> SubscriptionIndex {
        debug_assert!(self.subscription_to(index, channel).is_none(), "a second subscription");
        let NewSubscription { server_side, is_tile, terms } = new_subscription;
        let session = self.sessions[index as usize].as_mut().expect(LIVES);
        let own = SubscriptionIndex(session.subscriptions.len() as u32);
        let is_filtered = terms.as_ref().is_some_and(|terms| terms.filter.is_some());
        let subscriber = Subscriber::new(index, own);
        let (channel, subscriber) =
            self.subscribers.add(Arc::clone(channel), subscriber, session.encoding);
        self.subscribers.channel_subscribers_mut(channel).mark_filter(subscriber, is_filtered);
        let subscription = Subscription {
            channel,
            subscriber,
            server_side,
            is_tile,
            positioned: false,
            recovers: false,
            present: false,
            announced: false,
            wants_join_leave: false,
            has_entries: false,
            terms,
        };
        session.subscriptions.push(subscription);
        self.counters.subscriptions.add(u64::from(!is_tile));
        own
    }

    /// Makes a subscription of a session positioned. The first one of a channel sets its check.
    pub(crate) fn track_position(
        &mut self,
        index: u32,
        subscription: SubscriptionIndex,
        first: FirstPosition,
    ) {
        let FirstPosition { position, now, check_at } = first;
        let subscription = self.expect_session(index).subscription_mut(subscription);
        debug_assert!(!subscription.positioned, "tracked already");
        subscription.positioned = true;
        let channel = subscription.channel;
        let channel_subscribers = self.subscribers.channel_subscribers_mut(channel);
        if channel_subscribers.position_tracker.is_none() {
            self.timers.checks.set(channel, check_at);
        }
        channel_subscribers
            .position_tracker
            .get_or_insert_with(|| Box::new(PositionTracker::new(now)))
            .join(index, position);
    }

    /// The next reply contains recovered publications of a subscription of a session.
    pub(crate) fn recover(&mut self, index: u32, subscription: SubscriptionIndex) {
        self.expect_session(index).subscription_mut(subscription).recovers = true;
    }

    /// The connection of a client, if it is on this shard.
    pub(crate) fn index_of(&mut self, client: ClientId) -> Option<u32> {
        self.clients.find(client, &self.sessions)
    }

    /// Calls `see` with index and channel of the subscriptions of a session whose recovered publications were just
    /// sent.
    pub(crate) fn recovered(&mut self, index: u32, mut see: impl FnMut(SubscriptionIndex, &str)) {
        let Some(session) = self.sessions[index as usize].as_mut() else { return };
        for (own, subscription) in (0..).zip(&mut session.subscriptions) {
            if std::mem::take(&mut subscription.recovers) {
                see(
                    SubscriptionIndex(own),
                    &self.subscribers.channel_subscribers(subscription.channel).channel,
                );
            }
        }
    }

    /// Enables deltas for a subscription of a session.
    pub(crate) fn agree(&mut self, index: u32, subscription: SubscriptionIndex, mark: DeltaState) {
        let session = self.expect_session(index);
        let encoding = session.encoding;
        let subscription = session.subscription(subscription);
        let channel = subscription.channel;
        let subscriber = subscription.subscriber;
        self.subscribers.channel_subscribers_mut(channel).agree(subscriber, encoding, mark);
    }

    /// The delta mode of a buffered broadcast for a subscription of a session.
    pub(crate) fn catch_up(
        &mut self,
        index: u32,
        subscription: SubscriptionIndex,
        broadcast: &Broadcast,
    ) -> DeltaMode {
        let has_filter = self.expect_session(index).subscription(subscription).filter().is_some();
        let deltas_of_own = self.deltas_of(index, subscription);
        deltas_of_own
            .map_or(DeltaMode::Plain, |(deltas, own)| deltas.catch_up(own, broadcast, has_filter))
    }

    /// A buffered broadcast is not sent to a subscription of a session.
    pub(crate) fn skip(&mut self, index: u32, subscription: SubscriptionIndex) {
        if let Some((deltas, own)) = self.deltas_of(index, subscription) {
            deltas.skip(own);
        }
    }

    /// The delta states of the channel of a subscription, and its own index among them.
    fn deltas_of(
        &mut self,
        index: u32,
        subscription: SubscriptionIndex,
    ) -> Option<(&mut Deltas, SubscriberIndex)> {
        let subscription = self.expect_session(index).subscription(subscription);
        let channel = subscription.channel;
        let subscriber = subscription.subscriber;
        let deltas = self.subscribers.channel_subscribers_mut(channel).deltas.as_deref_mut()?;
        Some((deltas, subscriber))
    }

    /// Removes a positioned subscriber of `channel` from the position tracker.
    fn stop_tracking(&mut self, channel: u32, index: u32) {
        let position_tracker =
            &mut self.subscribers.channel_subscribers_mut(channel).position_tracker;
        if position_tracker.as_mut().is_none_or(|position_tracker| position_tracker.leave(index)) {
            *position_tracker = None;
            self.timers.checks.clear(channel);
        }
    }

    /// The session is in the presence of the channel of a subscription. The first one sets the renewal, at `renew_at`.
    pub(crate) fn appeared(
        &mut self,
        index: u32,
        subscription: SubscriptionIndex,
        renew_at: impl FnOnce() -> Moment,
    ) {
        let session = self.sessions[index as usize].as_mut().expect(LIVES);
        let is_first = !session.subscriptions.iter().any(Subscription::is_renewed);
        let subscription = session.subscription_mut(subscription);
        debug_assert!(!subscription.present, "present already");
        subscription.present = true;
        if is_first {
            self.timers.renewals.set(index, renew_at());
        }
    }

    /// Maps have entries because of a subscription of a session. The first one sets the renewal, at `renew_at`.
    pub(crate) fn has_entries(
        &mut self,
        index: u32,
        subscription: SubscriptionIndex,
        renew_at: impl FnOnce() -> Moment,
    ) {
        let session = self.sessions[index as usize].as_mut().expect(LIVES);
        let is_first = !session.subscriptions.iter().any(Subscription::is_renewed);
        session.subscription_mut(subscription).has_entries = true;
        if is_first {
            self.timers.renewals.set(index, renew_at());
        }
    }

    /// Lets a subscription of a session receive joins and leaves from now on.
    pub(crate) fn want_join_leave(&mut self, index: u32, subscription: SubscriptionIndex) {
        let subscription = self.expect_session(index).subscription_mut(subscription);
        debug_assert!(!subscription.wants_join_leave, "wants_join_leave already");
        subscription.wants_join_leave = true;
        let channel = subscription.channel;
        let subscriber = subscription.subscriber;
        self.subscribers.channel_subscribers_mut(channel).want_join_leave(subscriber);
    }

    /// The join of a subscription is published now, and its leave when it ends. Returns its channel and client.
    pub(crate) fn announce(
        &mut self,
        index: u32,
        subscription: SubscriptionIndex,
    ) -> (Arc<str>, ClientInfo) {
        let session = self.sessions[index as usize].as_mut().expect(LIVES);
        session.subscription_mut(subscription).announced = true;
        let subscription = session.subscription(subscription);
        let channel = &self.subscribers.channel_subscribers(subscription.channel).channel;
        (Arc::clone(channel), session.client_info(Some(subscription)))
    }

    /// The channels in whose presence a session is, each with its client.
    pub(crate) fn presences(&self, index: u32) -> impl Iterator<Item = (&Arc<str>, ClientInfo)> {
        self.at(index).into_iter().flat_map(|session| {
            let present = session.subscriptions.iter().filter(|one| one.present);
            present.map(|subscription| {
                let channel = self.subscribers.channel_subscribers(subscription.channel);
                (&channel.channel, session.client_info(Some(subscription)))
            })
        })
    }

    /// Ends a subscription of a session. Its last subscription moves to that index.
    pub(crate) fn end_subscription(
        &mut self,
        index: u32,
        subscription: SubscriptionIndex,
    ) -> EndedSubscription {
        let session = self.sessions[index as usize].as_mut().expect(LIVES);
        let encoding = session.encoding;
        let ended = session.subscriptions.swap_remove(subscription.0 as usize);
        let last = SubscriptionIndex(session.subscriptions.len() as u32);
        if last != subscription {
            let moved = session.subscription(subscription);
            self.subscribers.moved(moved.channel, moved.subscriber, subscription);
        }
        let channel_subscribers = self.subscribers.channel_subscribers_mut(ended.channel);
        let channel = Arc::clone(&channel_subscribers.channel);
        channel_subscribers.join_leave_subscribers -= u32::from(ended.wants_join_leave);
        channel_subscribers.filtered -= u32::from(ended.filter().is_some());
        if ended.positioned {
            self.stop_tracking(ended.channel, index);
        }
        if let Some(moved) = self.subscribers.remove(ended.channel, ended.subscriber, encoding) {
            let other = self.expect_session(moved.connection);
            other.subscription_mut(moved.subscription()).subscriber = ended.subscriber;
        }
        self.counters.subscriptions.subtract(u64::from(!ended.is_tile));
        let moved = MovedSubscription { to: subscription, from: last };
        let tracked = self.trackers.end(index, &channel);
        EndedSubscription { channel, subscription: ended, moved, tracked }
    }

    /// Removes a session from all tables. Idempotent; `None` when it was gone.
    pub(crate) fn end_session(&mut self, key: ConnectionKey) -> Option<EndedSession> {
        let count = self.session(key)?.subscriptions.len() as u32;
        let last_first = (0..count).rev().map(SubscriptionIndex);
        let subscriptions = last_first.map(|one| self.end_subscription(key.index, one)).collect();
        let pending = self.pending.forget(key).map_or(Vec::new(), |pending| pending.channels);
        self.timers.sessions.clear(key.index);
        self.timers.renewals.clear(key.index);
        self.timers.reservations.clear(key.index);
        self.timers.tracked_keys.clear(key.index);
        self.limits.forget(key.index);
        self.views.forget(key.index);
        let session = self.sessions[key.index as usize].take()?;
        self.counters.sessions.subtract(1);
        if session.is_connected() {
            self.users.remove(&session.user, key.index);
            self.clients.remove(key.index, session.client_id());
            self.counters.connections.subtract(1);
            self.counters.clients_like(&session.app).subtract(1);
        }
        Some(EndedSession { session, subscriptions, pending })
    }

    /// The channels of the subscriptions of a session.
    pub(crate) fn channels_of(&self, index: u32) -> impl Iterator<Item = &Arc<str>> {
        let subscriptions = self.at(index).into_iter().flat_map(|session| &session.subscriptions);
        subscriptions.map(|one| &self.subscribers.channel_subscribers(one.channel).channel)
    }

    /// Whether a session tracks keys of shared poll channels.
    pub(crate) fn tracks_keys(&self, index: u32) -> bool {
        self.channels_of(index).any(|channel| self.trackers.keys(index, channel).is_some())
    }

    /// The channel of a subscription of a session.
    pub(crate) fn channel_of(
        &self,
        index: u32,
        subscription: SubscriptionIndex,
    ) -> Option<&Arc<str>> {
        let subscription = self.at(index)?.subscriptions.get(subscription.0 as usize)?;
        Some(&self.subscribers.channel_subscribers(subscription.channel).channel)
    }

    /// A session's subscription to a channel. Scans the shorter of the two lists.
    pub(crate) fn subscription_to(&self, index: u32, channel: &str) -> Option<SubscriptionIndex> {
        let channel = self.subscribers.find(channel)?;
        let channel_subscribers = &self.subscribers.channel_subscribers(channel).list;
        let own = &self.at(index)?.subscriptions;
        if own.len() <= channel_subscribers.len() {
            let place = own.iter().position(|subscription| subscription.channel == channel)?;
            return Some(SubscriptionIndex(place as u32));
        }
        let subscriber =
            channel_subscribers.iter().find(|subscriber| subscriber.connection == index)?;
        Some(subscriber.subscription())
    }

    /// Schedules the check of a channel's positions at `at`, or earlier, when a possible gap ends.
    pub(crate) fn schedule_check(&mut self, channel: u32, at: Moment) {
        let position_tracker =
            self.subscribers.channel_subscribers(channel).position_tracker.as_deref();
        let until = position_tracker
            .and_then(|position_tracker| position_tracker.possible_gap)
            .map(|possible_gap| possible_gap.until);
        self.timers.checks.set(channel, until.map_or(at, |until| at.min(until)));
    }

    /// Publications of a channel may have been lost: the positions of its subscribers are checked at `check_at`.
    pub(crate) fn report_possible_gap(&mut self, channel: &str, check_at: Moment) {
        let Some(channel) = self.subscribers.find(channel) else { return };
        if let Some(position_tracker) =
            self.subscribers.channel_subscribers_mut(channel).position_tracker.as_deref_mut()
        {
            position_tracker.may_have_gap = true;
            self.schedule_check(channel, check_at);
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

    fn expect_session(&mut self, index: u32) -> &mut Session {
        self.sessions[index as usize].as_mut().expect(LIVES)
    }
}

const LIVES: &str = "indices in the tables belong to sessions that are here";

#[cfg(test)]
mod tests;
