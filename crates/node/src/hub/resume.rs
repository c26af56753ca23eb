//! Continues a session after a wait: the command that waited, then the deferred ones, in order.
//! In: answers of broker, presence, key providers and hooks, as notices → out: replies, buffered publications, later commands.
//! Uses: `pending`, the commands. Never: broker or presence themselves.
//! Changed here: what follows a wait. `pending.rs` keeps the state during one.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fanwire_protocol::{Disconnect, Encoding, Reply};

use super::notices::count_patches;
use super::receive::{COMMAND_BYTES, COMMANDS_AT_ONCE, await_turn, channel_of_command};
use super::unidirectional::refused_connect;
use super::{Hub, report_recovered, timers};
use crate::broadcast::{Broadcast, DeltaMode};
use crate::command::Effects;
use crate::flight_log;
use crate::index::SubscriptionIndex;
use crate::outbox::Outbox;
use crate::pending::{Awaited, AwaitedResult, DeferLimitExceeded, Deferred, Part};
use crate::session::{ConnectionKey, Phase, Session};

impl Hub {
    /// One of the results that a session waits for. A result for a wait that was given up is dropped.
    pub(super) fn arrive(&mut self, arrival: AwaitedResult, now: Instant, out: &mut impl Outbox) {
        let key = arrival.key;
        if let Some(command) = self.session_table.pending.calls.take(&arrival) {
            return self.conclude_call(key, &command, arrival.part, now, out);
        }
        let Some(awaited) = self.session_table.pending.awaiting(&arrival) else { return };
        let came = match (awaited, arrival.part) {
            (Awaited::Enter(pending_subscribe), part) => {
                pending_subscribe.arrive(part);
                if !pending_subscribe.is_complete() {
                    return;
                }
                None
            }
            (_, part) => Some(part),
        };
        let Some((id, work)) = self.session_table.pending.take_work(key) else { return };
        let encoding = self.session_table.session(key).map(|session| session.encoding);
        let channel = encoding.and_then(|encoding| channel(encoding, &work));
        let mut context = self.context(key, now);
        if let Awaited::Reply(command) = work {
            context.command = command;
        }
        let outcome = match (work, came) {
            (Awaited::Enter(pending_subscribe), _) => context.finish(id, *pending_subscribe),
            (Awaited::Key(command), _) => context.begin_kept(&command),
            (
                Awaited::CommandDecision(command) | Awaited::Call(command),
                Some(Part::CommandDecision(decision)),
            ) => context.begin_decided(&command, *decision),
            (Awaited::Page(page), Some(Part::Page(read))) => context.page_read(id, *page, *read),
            (Awaited::Turn, _) => Ok(None),
            (Awaited::OwnPublications(replies), _) => {
                self.send_publish_replies(key, replies, out);
                return self.resume(key, 0, now, out);
            }
            (_, Some(Part::Outcome(outcome))) => context.arrived(id, *outcome),
            (_, Some(Part::Encoded(message))) => context.encoded(id, message),
            _ => unreachable!("only a pending subscribe waits for streams and presence"),
        };
        let mut effects = context.effects;
        if let Some(refused) = &mut effects.log.refused {
            refused.channel = channel;
        }
        let weight = self.conclude(key, outcome, effects, out);
        self.await_own_publications(key, out);
        self.resume(key, weight, now, out);
    }

    /// Answers an rpc for which the session did not wait.
    fn conclude_call(
        &mut self,
        key: ConnectionKey,
        command: &Bytes,
        part: Part,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let Part::CommandDecision(decision) = part else { unreachable!("a call waits for a hook") };
        let mut context = self.context(key, now);
        let outcome = context.begin_decided(command, *decision);
        let effects = context.effects;
        let weight = self.conclude(key, outcome, effects, out);
        if self.session_table.pending.wait_no_longer(key) {
            self.resume(key, weight, now, out);
        }
    }

    /// Sends the outcome of a command: its reply or the disconnect, then publications that arrived during the wait.
    ///
    /// Returns how many small commands would have taken as long.
    pub(crate) fn conclude(
        &mut self,
        key: ConnectionKey,
        outcome: Result<Option<Reply>, Disconnect>,
        effects: Effects,
        out: &mut impl Outbox,
    ) -> usize {
        let mut bytes = effects.reply.compared;
        let mut positions = effects.reply.positions.into_iter();
        if effects.log.begins
            && let Some(address) = out.address(key)
        {
            let address = address.ip();
            self.session_table.recorder.set_address(key.index, address);
            if let Some(now) = self.now {
                flight_log::keep_listed(&self.node, &mut self.session_table, key, address, now);
            }
        }
        for moved in effects.connection.ended {
            out.ended(key.index, moved);
        }
        if let Some(refused) = effects.log.refused {
            self.log_command(key, &refused, out);
        }
        let session = self.session_table.session(key);
        let transforms = &self.settings.options.client.connect_code_to_unidirectional_disconnect;
        let refused = session.and_then(|one| refused_connect(one, &outcome, transforms));
        if let Some((code, text, disconnect)) = refused {
            if self.remove(key, &disconnect) {
                out.refuse(key, code, text, &disconnect);
            }
            return 0;
        }
        match outcome {
            Ok(Some(reply))
                if effects.reply.follows_own_publication || !self.publish_replies.is_empty() =>
            {
                self.publish_replies.push(reply);
            }
            Ok(reply) => {
                let position = if reply.is_some() { positions.next() } else { None };
                if let Some(position) = position {
                    out.position(key, position);
                }
                bytes += reply.map_or(0, |reply| self.send(key, &reply, out));
            }
            Err(disconnect) => {
                let replies = std::mem::take(&mut self.publish_replies);
                self.send_publish_replies(key, replies, out);
                self.end(key, &disconnect, out);
                return 0;
            }
        }
        if !effects.reply.messages.is_empty() {
            bytes += effects.reply.messages.iter().map(Bytes::len).sum::<usize>();
            for message in &effects.reply.messages {
                if let Some(position) = positions.next() {
                    out.position(key, position);
                }
                out.send(key, message);
            }
            report_recovered(&mut self.session_table, key, out);
        }
        if let Some(encode_job) = effects.reply.encode_job {
            out.offload(encode_job);
        }
        if !effects.reply.pushes.is_empty() {
            // Recovered publications of server-side subscriptions.
            for push in &effects.reply.pushes {
                if let Some(position) = positions.next() {
                    out.position(key, position);
                }
                bytes += self.send(key, push, out);
            }
            report_recovered(&mut self.session_table, key, out);
        }
        if let Some(unresumed) = effects.reply.unresumed {
            out.unrecovered(key, unresumed.name(), unresumed.explanation());
        }
        let more = bytes / COMMAND_BYTES + effects.connection.deliveries.len();
        if self.deliver_buffered(key, effects.connection.deliveries, out) {
            let lost: Vec<_> =
                effects.connection.lost.into_iter().rev().map(|own| (key, own)).collect();
            self.end_lost(&lost, out);
        }
        more
    }

    /// Delivers a broadcast or adds it to a batch. One for a single receiver comes after the publications that wait for a
    /// batch, if the receiver is subscribed on this shard.
    pub(super) fn take_broadcast(
        &mut self,
        broadcast: &Arc<Broadcast>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let Some(receiver) = broadcast.receiver() else {
            return match broadcast.batch_options() {
                Some(options) => self.batches.push(broadcast, options, now),
                None => self.broadcast(broadcast, now, out),
            };
        };
        let batch = self.batches.take(broadcast.channel());
        batch.iter().for_each(|broadcast| self.broadcast(broadcast, now, out));
        let Some(index) = self.session_table.index_of(receiver) else { return };
        let own = self.session_table.subscription_to(index, broadcast.channel());
        if let (Some(key), Some(own)) = (self.session_table.key_at(index), own) {
            self.deliver_buffered(key, vec![(own, Arc::clone(broadcast))], out);
        }
    }

    /// Delivers publications that were buffered while the session subscribed. Returns whether the session continues.
    fn deliver_buffered(
        &mut self,
        key: ConnectionKey,
        deliveries: Vec<(SubscriptionIndex, Arc<Broadcast>)>,
        out: &mut impl Outbox,
    ) -> bool {
        for (own, broadcast) in deliveries {
            let Some(session) = self.session_table.session(key) else { return false };
            if broadcast.excluded() == Some(session.client_id()) {
                self.session_table.skip(key.index, own);
                broadcast.leave_out(1);
                continue;
            }
            if !session.subscription(own).wants(&broadcast.publication().tags) {
                self.session_table.skip(key.index, own);
                self.counters().filtered_publications.add(1);
                broadcast.leave_out(1);
                continue;
            }
            let encoding = session.encoding;
            let delta_mode = self.session_table.catch_up(key.index, own, &broadcast);
            if !broadcast.exists_for(encoding, delta_mode) {
                self.disconnect(key, &Disconnect::INAPPROPRIATE_PROTOCOL, out);
                return false;
            }
            self.counters().deliveries.add(1);
            count_patches(self.counters(), &broadcast, u64::from(delta_mode == DeltaMode::Patch));
            out.deliver(key.index, own, &broadcast, delta_mode);
        }
        true
    }

    /// If the session has to wait, defers `what`; above the limit the session is disconnected, and the client
    /// recovers when it reconnects.
    pub(crate) fn defer(
        &mut self,
        key: ConnectionKey,
        what: impl FnOnce() -> Deferred,
        out: &mut impl Outbox,
    ) -> bool {
        self.session_table.pending.defer(key, what).unwrap_or_else(|DeferLimitExceeded| {
            self.disconnect(key, &Disconnect::TOO_MANY_REQUESTS, out);
            true
        })
    }

    /// Runs deferred work until the session waits again, nothing is left, or the share of this turn is used up.
    fn resume(&mut self, key: ConnectionKey, mut done: usize, now: Instant, out: &mut impl Outbox) {
        while let Some(next) = self.session_table.pending.next_deferred(key) {
            done += self.run_deferred(key, next, now, out);
            if done >= COMMANDS_AT_ONCE
                && self.session_table.session(key).is_some()
                && !self.session_table.pending.waits(key)
            {
                await_turn(&self.node, &mut self.session_table, key);
            }
        }
        if !self.session_table.pending.waits(key) {
            let now = self.node.clock().moment(now);
            timers::await_pong_again(&self.node, &mut self.session_table, key, now);
            out.release(key);
        }
    }

    /// Returns how many commands ran.
    pub(super) fn run_deferred(
        &mut self,
        key: ConnectionKey,
        what: Deferred,
        now: Instant,
        out: &mut impl Outbox,
    ) -> usize {
        let is_refused = |session: &Session| session.phase == Phase::Refused;
        match what {
            Deferred::Rest(_) if self.session_table.session(key).is_some_and(is_refused) => {}
            Deferred::Frame(frame) | Deferred::Rest(frame) => {
                let keep = |part| frame.slice_ref(part);
                return self.receive_frame(key, &frame, keep, now, out);
            }
            Deferred::Unsubscribe(channel, code) => {
                self.unsubscribe_one(key, channel.as_deref(), code, out);
            }
            Deferred::Subscribe(command) => self.subscribe_one(key, &command, now, out),
            Deferred::Refresh(renewal) => self.refresh_one(key, &renewal, now, out),
        }
        1
    }
}

/// The channel of work that waits, for the log: the first one of a connect.
fn channel(encoding: Encoding, work: &Awaited) -> Option<Arc<str>> {
    match work {
        Awaited::Enter(pending_subscribe) => {
            pending_subscribe.channels.first().map(|first| Arc::clone(&first.channel))
        }
        Awaited::Key(command) | Awaited::CommandDecision(command) => {
            channel_of_command(encoding, command)
        }
        Awaited::Page(page) => Some(Arc::clone(&page.channel)),
        Awaited::Reply(_) | Awaited::Call(_) | Awaited::Turn | Awaited::OwnPublications(_) => None,
    }
}
