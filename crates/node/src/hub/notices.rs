//! Handles notices of channels: delivers broadcasts (step 6 of the route), joins and leaves.
//! In: broadcasts, joins and leaves → out: deliveries, join and leave pushes, disconnects.
//! Uses: `session_table` lists. Never: encodes a broadcast, beyond asking whether its JSON form exists.
//! Changed here: the delivery loop. `hub/control_commands.rs` executes commands of the server API.

use std::sync::Arc;
use std::time::Instant;

use fanwire_protocol::{Disconnect, Encoding, UnsubscribeCode};

use super::Hub;
use super::checks::{self, Lost};
use crate::broadcast::{Broadcast, DeltaMode};
use crate::clock::Moment;
use crate::counters::HubCounters;
use crate::delta::Saved;
use crate::flight_log;
use crate::index::{SubscriberIndex, SubscriptionIndex};
use crate::join_leave::JoinLeave;
use crate::outbox::Outbox;
use crate::session::ConnectionKey;
use crate::session_table::SessionTable;
use crate::subscribers::{PositionStep, Subscriber};

/// A broadcast for the subscribers of its channel.
struct BroadcastDelivery<'a> {
    /// Index of the channel.
    index: u32,
    broadcast: &'a Arc<Broadcast>,
    /// Every positioned subscriber has the publication before it.
    is_next: bool,
    now: Moment,
}

/// Subscribers that a broadcast could not be delivered to. The hub ends them.
#[derive(Debug, Default)]
struct Failed {
    /// They missed an earlier publication.
    lost: Lost,
    /// Their encoding cannot hold the data.
    unreadable: Vec<ConnectionKey>,
}

impl Hub {
    /// Delivers the broadcast to every subscriber of its channel on this shard, after ending those that it reached too late.
    pub(super) fn broadcast(
        &mut self,
        broadcast: &Arc<Broadcast>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let lagging = checks::lagging(&self.node, &self.session_table, broadcast, now);
        self.end_lost(&lagging, out);
        let moment = self.node.clock().moment(now);
        let hot_channels = self.node.diagnostics().hot_channels();
        let before = self.session_table.counters.deliveries.value();
        flight_log::deliveries(&self.node, &self.session_table, broadcast);
        let failed = deliver(&mut self.session_table, broadcast, moment, out);
        let deliveries = self.session_table.counters.deliveries.value() - before;
        if hot_channels.is_on() {
            hot_channels.count_deliveries(broadcast.channel(), deliveries);
        }
        let usage = &self.session_table.counters.namespaces[usize::from(broadcast.namespace().0)];
        usage.count(deliveries, broadcast.publication().data.len());
        self.end_lost(&failed.lost, out);
        self.disconnect_all(&failed.unreadable, &Disconnect::INAPPROPRIATE_PROTOCOL, out);
    }

    /// Ends subscriptions that lost their position: the client subscribes again and recovers (2500), or, for
    /// server-side subscriptions, reconnects (3010).
    pub(super) fn end_lost(
        &mut self,
        lost: &[(ConnectionKey, SubscriptionIndex)],
        out: &mut impl Outbox,
    ) {
        for (key, subscription) in lost {
            self.counters().lost_positions.add(1);
            let session = self.session_table.session(*key);
            if session.is_some_and(|session| session.subscription(*subscription).server_side) {
                self.disconnect(*key, &Disconnect::INSUFFICIENT_STATE, out);
            } else {
                self.end_subscription(
                    *key,
                    *subscription,
                    UnsubscribeCode::INSUFFICIENT_STATE,
                    out,
                );
            }
        }
    }
}

/// Delivers a broadcast: one walk over one dense list, no lookup and no allocation per subscriber, and one comparison
/// for the positions of all of them.
///
/// The JSON form is made first when there are JSON subscribers (once for all shards), because it may not exist.
fn deliver(
    session_table: &mut SessionTable,
    broadcast: &Arc<Broadcast>,
    now: Moment,
    out: &mut impl Outbox,
) -> Failed {
    session_table.pending.hold(broadcast);
    let subscribers = session_table.subscribers_mut();
    let Some(index) = subscribers.find(broadcast.channel()) else {
        return Failed::default(); // the last subscriber left while the notice was under way
    };
    let channel_subscribers = subscribers.channel_subscribers_mut(index);
    let position_tracker = channel_subscribers.position_tracker.as_deref_mut();
    let is_next = position_tracker
        .is_none_or(|position_tracker| position_tracker.take_for_all(broadcast.position(), now));
    let can_read = channel_subscribers.can_read(broadcast);
    let has_delta_states = channel_subscribers.filtered > 0 || channel_subscribers.deltas.is_some();
    let excluded = broadcast.excluded().and_then(|client| session_table.index_of(client));
    session_table.counters.broadcasts.add(1);
    if !is_next || !can_read {
        let delivery = BroadcastDelivery { index, broadcast, is_next, now };
        return deliver_one_by_one(session_table, &delivery, out);
    }
    if has_delta_states || excluded.is_some() {
        deliver_by_delta_state(session_table, index, broadcast, excluded, out);
        return Failed::default();
    }
    let list = &session_table.subscribers().channel_subscribers(index).list;
    session_table.counters.deliveries.add(list.len() as u64);
    out.deliver_to_all(list.iter().map(|one| (one.connection, one.subscription())), broadcast);
    Failed::default()
}

/// The same for channels where subscribers have deltas or filters, or a connection of this shard is excluded: a
/// second dense list has the delta state of each subscriber.
fn deliver_by_delta_state(
    session_table: &mut SessionTable,
    index: u32,
    broadcast: &Arc<Broadcast>,
    excluded: Option<u32>,
    out: &mut impl Outbox,
) {
    let mut deltas = session_table.subscribers_mut().channel_subscribers_mut(index).deltas.take();
    let channel_subscribers = session_table.subscribers().channel_subscribers(index);
    let tags = &broadcast.publication().tags;
    let mut patches = 0;
    let mut unwanted = 0;
    let mut spared = 0;
    for (own, subscriber) in (0..).map(SubscriberIndex).zip(&channel_subscribers.list) {
        if excluded == Some(subscriber.connection) {
            deltas.iter_mut().for_each(|deltas| deltas.skip(own));
            spared += 1;
            continue;
        }
        let has_filter = subscriber.has_filter();
        if has_filter && !session_table.wants(*subscriber, tags) {
            deltas.iter_mut().for_each(|deltas| deltas.skip(own));
            unwanted += 1;
            continue;
        }
        let delta_mode = deltas
            .as_mut()
            .map_or(DeltaMode::Plain, |deltas| deltas.send(own, broadcast, has_filter));
        patches += u64::from(delta_mode == DeltaMode::Patch);
        out.deliver(subscriber.connection, subscriber.subscription(), broadcast, delta_mode);
    }
    let counters = &session_table.counters;
    counters.deliveries.add(channel_subscribers.list.len() as u64 - unwanted - spared);
    counters.filtered_publications.add(unwanted);
    broadcast.leave_out(unwanted + spared);
    count_patches(counters, broadcast, patches);
    deltas.iter_mut().for_each(|deltas| deltas.settle(broadcast));
    session_table.subscribers_mut().channel_subscribers_mut(index).deltas = deltas;
}

/// Counts the deliveries of a patch.
pub(super) fn count_patches(counters: &HubCounters, broadcast: &Broadcast, deltas: u64) {
    if let Some(patch) = (deltas > 0).then(|| broadcast.patch()).flatten() {
        let saved = broadcast.publication().data.len() - patch.len();
        counters.count_deltas(Saved { deltas, bytes: deltas * saved as u64 });
    }
}

/// The rare case, one subscriber after the other: data that is not JSON reaches the Protobuf subscribers, the
/// JSON ones are disconnected with 3506 (protocol §3); positioned subscribers do not get a publication that they
/// have, and those that missed an earlier one lose their position (protocol §10). Excluded connections and those
/// whose filter does not match get nothing, and their position advances.
fn deliver_one_by_one(
    session_table: &mut SessionTable,
    delivery: &BroadcastDelivery<'_>,
    out: &mut impl Outbox,
) -> Failed {
    let BroadcastDelivery { index, broadcast, is_next, now } = *delivery;
    let position = broadcast.position();
    let excluded = broadcast.excluded();
    let mut failed = Failed::default();
    let mut patches = 0;
    let mut deltas = session_table.subscribers_mut().channel_subscribers_mut(index).deltas.take();
    let channel_subscribers = session_table.subscribers().channel_subscribers(index);
    for (own, subscriber) in (0..).map(SubscriberIndex).zip(&channel_subscribers.list) {
        let session = session_table.at(subscriber.connection).expect("subscribers have sessions");
        let key = ConnectionKey { index: subscriber.connection, generation: session.generation };
        let subscription = session.subscription(subscriber.subscription());
        let position_tracker = channel_subscribers
            .position_tracker
            .as_deref()
            .filter(|_| subscription.positioned && !is_next);
        let tags = &broadcast.publication().tags;
        match position_tracker.map_or(PositionStep::Next, |position_tracker| {
            position_tracker.step(subscriber.connection, position)
        }) {
            PositionStep::Known => {}
            PositionStep::Lost => failed.lost.push((key, subscriber.subscription())),
            PositionStep::Next if excluded == Some(session.client_id()) => {
                deltas.iter_mut().for_each(|deltas| deltas.skip(own));
                broadcast.leave_out(1);
            }
            PositionStep::Next if !subscription.wants(tags) => {
                deltas.iter_mut().for_each(|deltas| deltas.skip(own));
                session_table.counters.filtered_publications.add(1);
                broadcast.leave_out(1);
            }
            PositionStep::Next => {
                let has_filter = subscriber.has_filter();
                let delta_mode = deltas
                    .as_mut()
                    .map_or(DeltaMode::Plain, |deltas| deltas.send(own, broadcast, has_filter));
                if !broadcast.exists_for(session.encoding, delta_mode) {
                    failed.unreadable.push(key);
                    continue;
                }
                patches += u64::from(delta_mode == DeltaMode::Patch);
                session_table.counters.deliveries.add(1);
                out.deliver(
                    subscriber.connection,
                    subscriber.subscription(),
                    broadcast,
                    delta_mode,
                );
            }
        }
    }
    deltas.iter_mut().for_each(|deltas| deltas.settle(broadcast));
    let channel_subscribers = session_table.subscribers_mut().channel_subscribers_mut(index);
    channel_subscribers.deltas = deltas;
    if let Some(position_tracker) = channel_subscribers.position_tracker.as_deref_mut()
        && !is_next
    {
        position_tracker.settle(position, now);
    }
    count_patches(&session_table.counters, broadcast, patches);
    failed
}

/// Sends a join or leave to the subscribers that want it. Without such subscribers nothing is encoded and no list
/// is walked. A client that left and returned before its leave arrived does not receive that leave.
///
/// Returns the connections whose encoding cannot hold it.
pub(super) fn announce(
    session_table: &mut SessionTable,
    join_leave: &JoinLeave,
    out: &mut impl Outbox,
) -> Vec<ConnectionKey> {
    let subscribers = session_table.subscribers();
    let Some(index) = subscribers.find(join_leave.channel()) else { return Vec::new() };
    if subscribers.channel_subscribers(index).join_leave_subscribers == 0 {
        return Vec::new();
    }
    let leaver = join_leave.leaver().and_then(|client| session_table.index_of(client));
    let channel_subscribers = session_table.subscribers().channel_subscribers(index);
    let mut unreadable = Vec::new();
    let others = |one: &&Subscriber| one.wants_join_leave() && leaver != Some(one.connection);
    for subscriber in channel_subscribers.list.iter().filter(others) {
        let session = session_table.at(subscriber.connection).expect("subscribers have sessions");
        let key = ConnectionKey { index: subscriber.connection, generation: session.generation };
        match join_leave.message(session.encoding) {
            Some(message) => out.send(key, message),
            None => unreadable.push(key),
        }
    }
    unreadable
}

impl Broadcast {
    /// Whether the push exists for an encoding and a delta mode. Encodes only the plain JSON form.
    pub(super) fn exists_for(&self, encoding: Encoding, delta_mode: DeltaMode) -> bool {
        match (encoding, delta_mode) {
            (Encoding::Protobuf, _) => true,
            (Encoding::Json, DeltaMode::Plain) => self.message(encoding).is_some(),
            (Encoding::Json, DeltaMode::Full | DeltaMode::Patch) => self.is_json(),
        }
    }
}
