//! Handles notices of channels: delivers broadcasts (step 6 of the route), joins and leaves.
//! In: broadcasts, joins and leaves → out: deliveries, join and leave pushes, disconnects.
//! Uses: `session_table` lists. Never: encodes a broadcast, beyond asking whether its JSON form exists.
//! Change here: the delivery loop. `hub/control_commands.rs` executes commands of the server API.

use std::sync::Arc;
use std::time::Instant;

use fanwire_protocol::{Disconnect, Encoding};

use super::Hub;
use crate::broadcast::{Broadcast, DeltaMode};
use crate::clock::Moment;
use crate::delta::Saved;
use crate::join_leave::JoinLeave;
use crate::outbox::Outbox;
use crate::session::ConnectionKey;
use crate::subscribers::{PositionStep, Subscriber};

impl Hub {
    /// Delivers the broadcast to every subscriber of its channel on this shard: one walk over one dense list, no
    /// lookup and no allocation per subscriber, and one comparison for the positions of all of them.
    ///
    /// The JSON form is made first when there are JSON subscribers (once for all shards), because it may not exist.
    pub(super) fn broadcast(
        &mut self,
        broadcast: &Arc<Broadcast>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        self.end_lagging(broadcast, now, out);
        self.session_table.pending_mut().hold(broadcast);
        let subscribers = self.session_table.subscribers_mut();
        let Some(index) = subscribers.find(broadcast.channel()) else {
            return; // the last subscriber left while the notice was under way
        };
        let channel_subscribers = subscribers.channel_subscribers_mut(index);
        let moment = self.node.clock().moment(now);
        let position_tracker = channel_subscribers.position_tracker.as_deref_mut();
        let is_next = position_tracker.is_none_or(|position_tracker| {
            position_tracker.take_for_all(broadcast.position(), moment)
        });
        let can_read = channel_subscribers.can_read(broadcast);
        let has_delta_states =
            channel_subscribers.filtered > 0 || channel_subscribers.deltas.is_some();
        let excluded = broadcast.excluded().and_then(|client| self.session_table.index_of(client));
        let channel_subscribers = self.session_table.subscribers().channel_subscribers(index);
        let counters = self.session_table.counters();
        counters.broadcasts.add(1);
        if !is_next || !can_read {
            return self.broadcast_one_by_one(index, broadcast, (is_next, moment), out);
        }
        if has_delta_states || excluded.is_some() {
            return self.broadcast_by_delta_state(index, broadcast, excluded, out);
        }
        counters.deliveries.add(channel_subscribers.list.len() as u64);
        let receivers = channel_subscribers.list.iter().map(|one| (one.connection, one.place()));
        out.deliver_to_all(receivers, broadcast);
    }

    /// Delivers the broadcasts of a batch.
    pub(super) fn broadcast_all(
        &mut self,
        batch: &[Arc<Broadcast>],
        now: Instant,
        out: &mut impl Outbox,
    ) {
        batch.iter().for_each(|broadcast| self.broadcast(broadcast, now, out));
    }

    /// The same for channels where subscribers have deltas or filters, or a connection of this shard is excluded: a
    /// second dense list has the delta state of each subscriber.
    fn broadcast_by_delta_state(
        &mut self,
        index: u32,
        broadcast: &Arc<Broadcast>,
        excluded: Option<u32>,
        out: &mut impl Outbox,
    ) {
        let mut deltas =
            self.session_table.subscribers_mut().channel_subscribers_mut(index).deltas.take();
        let channel_subscribers = self.session_table.subscribers().channel_subscribers(index);
        let tags = &broadcast.publication().tags;
        let (mut patches, mut unwanted, mut spared) = (0, 0, 0);
        for (at, subscriber) in channel_subscribers.list.iter().enumerate() {
            if excluded == Some(subscriber.connection) {
                deltas.iter_mut().for_each(|deltas| deltas.skip(at));
                spared += 1;
                continue;
            }
            if subscriber.has_filter() && !self.session_table.wants(*subscriber, tags) {
                unwanted += 1; // and it gets no deltas, so none of them is missed
                continue;
            }
            let delta_mode =
                deltas.as_mut().map_or(DeltaMode::Plain, |deltas| deltas.send(at, broadcast));
            patches += u64::from(delta_mode == DeltaMode::Patch);
            out.deliver(subscriber.connection, subscriber.place(), broadcast, delta_mode);
        }
        self.counters().deliveries.add(channel_subscribers.list.len() as u64 - unwanted - spared);
        self.counters().filtered_publications.add(unwanted);
        deltas.iter_mut().for_each(|deltas| deltas.settle(broadcast));
        self.session_table.subscribers_mut().channel_subscribers_mut(index).deltas = deltas;
        self.count_patches(broadcast, patches);
    }

    pub(super) fn count_patches(&self, broadcast: &Broadcast, deltas: u64) {
        if let Some(patch) = (deltas > 0).then(|| broadcast.patch()).flatten() {
            let saved = broadcast.publication().data.len() - patch.len();
            self.counters().count_deltas(Saved { deltas, bytes: deltas * saved as u64 });
        }
    }

    /// The rare case, one subscriber after the other: data that is not JSON reaches the Protobuf subscribers, the
    /// JSON ones are disconnected with 3506 (protocol §3); positioned subscribers do not get a publication that they
    /// have, and those that missed an earlier one lose their position (protocol §10). Excluded connections and those
    /// whose filter does not match get nothing, and their position advances.
    fn broadcast_one_by_one(
        &mut self,
        index: u32,
        broadcast: &Arc<Broadcast>,
        (is_next, now): (bool, Moment),
        out: &mut impl Outbox,
    ) {
        let (position, excluded) = (broadcast.position(), broadcast.excluded());
        let (mut refused, mut lost, mut patches) = (Vec::new(), Vec::new(), 0);
        let mut deltas =
            self.session_table.subscribers_mut().channel_subscribers_mut(index).deltas.take();
        let channel_subscribers = self.session_table.subscribers().channel_subscribers(index);
        for (at, subscriber) in channel_subscribers.list.iter().enumerate() {
            let session =
                self.session_table.at(subscriber.connection).expect("subscribers have sessions");
            let key =
                ConnectionKey { index: subscriber.connection, generation: session.generation };
            let subscription = &session.subscriptions[subscriber.place() as usize];
            let position_tracker = channel_subscribers
                .position_tracker
                .as_deref()
                .filter(|_| subscription.positioned && !is_next);
            let tags = &broadcast.publication().tags;
            match position_tracker.map_or(PositionStep::Next, |position_tracker| {
                position_tracker.step(subscriber.connection, position)
            }) {
                PositionStep::Known => {}
                PositionStep::Lost => lost.push((key, subscriber.place() as usize)),
                PositionStep::Next if excluded == Some(session.client_id()) => {
                    deltas.iter_mut().for_each(|deltas| deltas.skip(at));
                }
                PositionStep::Next if subscription.filter().is_some_and(|it| !it.matches(tags)) => {
                    deltas.iter_mut().for_each(|deltas| deltas.skip(at));
                    self.counters().filtered_publications.add(1);
                }
                PositionStep::Next => {
                    let delta_mode =
                        deltas.as_mut().map_or(DeltaMode::Plain, |one| one.send(at, broadcast));
                    if !broadcast.exists_for(session.encoding, delta_mode) {
                        refused.push(key);
                        continue;
                    }
                    patches += u64::from(delta_mode == DeltaMode::Patch);
                    self.counters().deliveries.add(1);
                    out.deliver(subscriber.connection, subscriber.place(), broadcast, delta_mode);
                }
            }
        }
        deltas.iter_mut().for_each(|deltas| deltas.settle(broadcast));
        let channel_subscribers =
            self.session_table.subscribers_mut().channel_subscribers_mut(index);
        channel_subscribers.deltas = deltas;
        if let Some(position_tracker) = channel_subscribers.position_tracker.as_deref_mut()
            && !is_next
        {
            position_tracker.settle(position, now);
        }
        self.count_patches(broadcast, patches);
        self.end_lost(&lost, out);
        for key in refused {
            self.disconnect(key, &Disconnect::INAPPROPRIATE_PROTOCOL, out);
        }
    }

    /// Sends a join or leave to the subscribers that want it. Without such subscribers nothing is encoded and no list
    /// is walked. A client that left and returned before its leave arrived does not receive that leave.
    pub(super) fn announce(&mut self, join_leave: &JoinLeave, out: &mut impl Outbox) {
        let subscribers = self.session_table.subscribers();
        let Some(index) = subscribers.find(join_leave.channel()) else { return };
        if subscribers.channel_subscribers(index).join_leave_subscribers == 0 {
            return;
        }
        let leaver = join_leave.leaver().and_then(|client| self.session_table.index_of(client));
        let channel_subscribers = self.session_table.subscribers().channel_subscribers(index);
        let mut refused = Vec::new();
        let others = |one: &&Subscriber| one.wants_join_leave() && leaver != Some(one.connection);
        for subscriber in channel_subscribers.list.iter().filter(others) {
            let session =
                self.session_table.at(subscriber.connection).expect("subscribers have sessions");
            let key =
                ConnectionKey { index: subscriber.connection, generation: session.generation };
            match join_leave.message(session.encoding) {
                Some(message) => out.send(key, message),
                None => refused.push(key),
            }
        }
        for key in refused {
            self.disconnect(key, &Disconnect::INAPPROPRIATE_PROTOCOL, out);
        }
    }
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
