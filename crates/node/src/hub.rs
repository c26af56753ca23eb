//! The hub of one shard: its sessions and their commands and notices (steps 4 and 6 of the route). Single-threaded and pure.
//! In: opened connections, whole WebSocket messages, notices, the time → out: effects in an `Outbox`.
//! Uses: `session_table` for state, `command` for client commands. Never: sockets, clocks, locks of its own.
//! Changed here: the interface for a shard. Notices: `hub/notices.rs`, `hub/control_commands.rs`; timers: `hub/timers.rs`.

mod batches;
mod checks;
mod control_commands;
mod departures;
mod notices;
mod polls;
mod receive;
mod refresh;
mod refusals;
mod resume;
mod revocations;
mod selection;
mod takeover;
mod timers;
mod unidirectional;
mod views;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fanwire_policy::NodeSettings;
use fanwire_policy::channel::NamespaceId;
use fanwire_protocol::{
    Disconnect, Encoding, Reply, UnsubscribeCode, encode_reply, encode_unsubscribe_push,
};

use crate::command::CommandContext;
use crate::counters::HubCounters;
use crate::deadlines;
use crate::flight_log;
use crate::index::{SubscriptionIndex, SubscriptionKey};
use crate::map_presence::MapPresence;
use crate::map_release;
use crate::node::Node;
use crate::notice::Notice;
use crate::outbox::Outbox;
use crate::pending::Deferred;
use crate::registry::ShardId;
use crate::session::{ConnectionInfo, ConnectionKey};
use crate::session_effects;
use crate::session_table::SessionTable;
use crate::shard_question::{ShardQuestion, ShardView};
use batches::Batches;
pub use departures::choose_departures;
pub use takeover::can_move;

/// The sessions and subscriber lists of one shard.
///
/// A subscribe reply precedes every publication of its channel: the session joins the registry *before* the reply is
/// written, so it misses no publication accepted afterwards; it enters the subscriber list only with the reply, so no
/// publication is written before. With a broker that answers at once nothing is buffered in between; else
/// `pending.rs` buffers.
pub struct Hub {
    node: Arc<Node>,
    /// Settings of the last command; a reload replaces them.
    settings: Arc<NodeSettings>,
    session_table: SessionTable,
    batches: Batches,
    /// Buffer for encoding one message; its capacity stays between turns up to `SCRATCH_BYTES_MAX`.
    scratch: Vec<u8>,
    /// Replies to publishes of the message that is read now, whose publications the publisher is to receive first.
    /// Empty between messages.
    publish_replies: Vec<Reply>,
    /// The time of the last input, for the log.
    now: Option<Instant>,
    /// Index of the session at which the search for clients to send away goes on.
    departures_from: u32,
}

impl Hub {
    /// The hub of the attached shard `shard`.
    pub fn new(node: Arc<Node>, shard: ShardId) -> Self {
        let settings = node.settings();
        let mut session_table = SessionTable::new(shard);
        let namespaces = NamespaceId::count(&node.options().channel);
        session_table.counters = Arc::new(HubCounters::of_namespaces(namespaces));
        let batches = Batches::default();
        Self {
            node,
            settings,
            session_table,
            batches,
            scratch: Vec::new(),
            publish_replies: Vec::new(),
            now: None,
            departures_from: 0,
        }
    }

    /// A connection opened. It is closed if it does not connect within `client.stale_close_delay`.
    pub fn open(&mut self, key: ConnectionKey, connection: ConnectionInfo, now: Instant) {
        session_effects::open(&self.node, &mut self.session_table, key, connection, now);
    }

    /// Processes one whole WebSocket message; ignored when the session is gone. Of many commands the first ones run
    /// now, the others after the messages that are in the shard's inbox now.
    ///
    /// Returns how many commands ran, so that a shell can be fair to its connections.
    pub fn receive(
        &mut self,
        key: ConnectionKey,
        frame: &[u8],
        now: Instant,
        out: &mut impl Outbox,
    ) -> usize {
        self.now = Some(now);
        self.receive_frame(key, frame, Bytes::copy_from_slice, now, out)
    }

    /// A native pong frame arrived. Used with [`ConnectionInfo::frame_ping`] only; an unsolicited one is ignored (RFC 6455
    /// §5.5.3).
    pub fn pong(&mut self, key: ConnectionKey, now: Instant) {
        if let Some(session) = self.session_table.session_mut(key)
            && session.frame_ping
            && std::mem::take(&mut session.awaits_pong)
        {
            flight_log::pong(&self.node, &mut self.session_table, key, now);
        }
    }

    /// The socket of a connection takes no bytes and this many are queued, or with 0 it took all. For the flight recorder.
    pub fn stalled(&mut self, key: ConnectionKey, queued_bytes: usize, now: Instant) {
        if self.session_table.session(key).is_some() {
            let now_ms = self.node.clock().unix_ms(now);
            self.session_table.recorder.stall(key.index, queued_bytes as u64, now_ms);
        }
    }

    /// The shell stopped reading a connection, or reads it again. While it does not read, a missing pong is no
    /// timeout.
    pub fn held(&mut self, key: ConnectionKey, is_held: bool, now: Instant) {
        if let Some(session) = self.session_table.session_mut(key) {
            session.is_held = is_held;
            if !is_held {
                let now = self.node.clock().moment(now);
                timers::await_pong_again(&self.node, &mut self.session_table, key, now);
            }
        }
    }

    /// Handles a notice: a publication, or a command of the server API.
    pub fn notice(&mut self, notice: Notice, now: Instant, out: &mut impl Outbox) {
        self.now = Some(now);
        if let Some(rest) = selection::rest(&self.session_table, &notice) {
            self.node.inbox(self.session_table.shard).push(rest);
        }
        match notice {
            Notice::Broadcast(broadcast) => self.take_broadcast(&broadcast, now, out),
            Notice::KeyUpdate(broadcast) => self.update_key(&broadcast, out),
            Notice::Position { channel, check } => {
                // The top was read after the publications that wait here.
                let batch = self.batches.take(&channel);
                batch.iter().for_each(|broadcast| self.broadcast(broadcast, now, out));
                let now = self.node.clock().moment(now);
                let lost = checks::compare(&mut self.session_table, &channel, check, now);
                self.end_lost(&lost, out);
            }
            Notice::PossibleGap(channel) => {
                self.session_table.pending.report_possible_gap(&channel);
                let check_at = deadlines::gap_check(&self.node, now);
                self.session_table.report_possible_gap(&channel, check_at);
                let lost = checks::invalidated(&self.node, &self.session_table, &channel);
                self.end_lost(&lost, out);
            }
            Notice::AwaitedResult(arrival) => self.arrive(*arrival, now, out),
            Notice::JoinLeave(join_leave) => {
                let unreadable = notices::announce(&mut self.session_table, &join_leave, out);
                self.disconnect_all(&unreadable, &Disconnect::INAPPROPRIATE_PROTOCOL, out);
            }
            Notice::Left(channel) => {
                self.node.channels().leave(&channel, self.session_table.shard);
            }
            Notice::Disconnect { target, disconnect } => {
                let keys = selection::matching_or_connecting(&self.session_table, &target);
                self.disconnect_all(&keys, &disconnect, out);
            }
            Notice::Unsubscribe { target, channel, code } => {
                let work = || Deferred::Unsubscribe(channel.clone(), code);
                self.execute_for(&target, work, now, out);
            }
            Notice::Subscribe { target, command } => {
                self.execute_for(&target, || Deferred::Subscribe(Arc::clone(&command)), now, out);
            }
            Notice::Refreshed(refreshed) => self.refreshed(*refreshed, now, out),
            Notice::Refresh { target, renewal } => {
                let work = || Deferred::Refresh(Box::new(renewal.clone()));
                self.execute_for(&target, work, now, out);
            }
            Notice::Commands { client, secret, data } => {
                let key = selection::with_secret(&mut self.session_table, client, secret);
                if let Some(key) = key {
                    self.receive_frame(key, &data, |rest| data.slice_ref(rest), now, out);
                }
            }
            Notice::View { client, channel, view } => {
                self.node.refresh_settings(&mut self.settings);
                self.set_view(client, &channel, view, out);
            }
            Notice::ClockStep => deadlines::reschedule(&self.node, &mut self.session_table),
            Notice::Supersede { user } => {
                let keys = selection::superseded(&self.node, &self.session_table, &user);
                self.disconnect_all(&keys, &Disconnect::CONNECTION_LIMIT, out);
            }
            Notice::Question(question) => answer(self, &question, now, out),
            Notice::CheckTokens { user, from } => self.check_tokens(user, from, now, out),
        }
    }

    /// Runs due timers: pings, presence updates, position checks, and the ends of stale, silent and expired
    /// connections and subscriptions. Call after the notices of the turn.
    pub fn advance(&mut self, now: Instant, out: &mut impl Outbox) {
        self.now = Some(now);
        self.session_table.shared_replies.drop_unused(now);
        while let Some(batch) = self.batches.pop_due(now) {
            batch.iter().for_each(|broadcast| self.broadcast(broadcast, now, out));
        }
        let moment = self.node.clock().moment(now);
        while let Some(index) = self.session_table.timers.sessions.pop(moment) {
            self.fire(index, moment, out);
        }
        while let Some(index) = self.session_table.timers.renewals.pop(moment) {
            session_effects::renew_presence(&self.node, &mut self.session_table, index, now);
        }
        while let Some(index) = self.session_table.timers.tracked_keys.pop(moment) {
            self.expire_tracked_keys(index, now);
        }
        while let Some(index) = self.session_table.timers.reservations.pop(moment) {
            map_release::end_overdue_buffers(&self.node, &mut self.session_table, index, now);
        }
        while let Some(channel) = self.session_table.timers.checks.pop(moment) {
            let lost = checks::check(&self.node, &mut self.session_table, channel, now);
            self.end_lost(&lost, out);
        }
    }

    /// Returns the time to call [`advance`](Self::advance) next. Nothing may be due then.
    pub fn next_deadline(&self) -> Option<Instant> {
        let moment = self.session_table.timers.next_deadline();
        let timer = moment.and_then(|moment| self.node.clock().instant(moment));
        timer.into_iter().chain(self.batches.next_deadline()).min()
    }

    /// The socket is gone or closing: removes the session from all channels. Idempotent.
    pub fn close(&mut self, key: ConnectionKey, now: Instant) {
        let closed = &Disconnect::CONNECTION_CLOSED;
        flight_log::closed(&self.node, &mut self.session_table, key, closed, now);
        disappear_from_maps(&self.node, &self.session_table, key, now);
        session_effects::end_session(&self.node, &mut self.session_table, key, closed);
    }

    /// Counters, readable from any thread.
    pub fn counters(&self) -> &Arc<HubCounters> {
        &self.session_table.counters
    }

    /// The context of a command that begins or continues now.
    fn context(&mut self, key: ConnectionKey, now: Instant) -> CommandContext<'_> {
        self.node.refresh_settings(&mut self.settings);
        CommandContext::new(&self.node, &self.settings, &mut self.session_table, key, now)
    }

    /// Writes one reply and returns its bytes. A payload that is not JSON ends a JSON session with 3506.
    pub(crate) fn send(
        &mut self,
        key: ConnectionKey,
        reply: &Reply,
        out: &mut impl Outbox,
    ) -> usize {
        let Some(session) = self.session_table.session(key) else { return 0 };
        self.scratch.clear();
        match encode_reply(session.encoding, reply, &mut self.scratch) {
            Ok(()) => {
                out.send(key, &self.scratch);
                if has_recovered(reply) {
                    report_recovered(&mut self.session_table, key, out);
                }
            }
            Err(_) => self.disconnect(key, &Disconnect::INAPPROPRIATE_PROTOCOL, out),
        }
        let bytes = self.scratch.len();
        self.scratch.clear();
        self.scratch.shrink_to(SCRATCH_BYTES_MAX);
        bytes
    }

    /// Disconnects a client: removes the session and asks the shell to close. Does nothing when it is gone already.
    pub fn disconnect(
        &mut self,
        key: ConnectionKey,
        disconnect: &Disconnect,
        out: &mut impl Outbox,
    ) {
        self.log_disconnect(key, disconnect, || out.address(key));
        self.end(key, disconnect, out);
    }

    fn disconnect_all(
        &mut self,
        keys: &[ConnectionKey],
        disconnect: &Disconnect,
        out: &mut impl Outbox,
    ) {
        keys.iter().for_each(|key| self.disconnect(*key, disconnect, out));
    }

    /// Removes a session as [`close`](Self::close) does, for a client whose connection the shell ended with a code of the server.
    pub fn disconnected(
        &mut self,
        key: ConnectionKey,
        disconnect: &Disconnect,
        address: Option<SocketAddr>,
        now: Instant,
    ) {
        self.now = Some(now);
        self.log_disconnect(key, disconnect, || address);
        self.remove(key, disconnect);
    }

    /// Disconnects a client as [`disconnect`](Self::disconnect) does, when the cause is logged already.
    fn end(&mut self, key: ConnectionKey, disconnect: &Disconnect, out: &mut impl Outbox) {
        if self.remove(key, disconnect) {
            out.disconnect(key, disconnect);
        }
    }

    /// Removes the session of a client that the server disconnected, and counts it. Returns whether it existed.
    fn remove(&mut self, key: ConnectionKey, disconnect: &Disconnect) -> bool {
        if let Some(now) = self.now {
            flight_log::closed(&self.node, &mut self.session_table, key, disconnect, now);
            disappear_from_maps(&self.node, &self.session_table, key, now);
        }
        let was_there =
            session_effects::end_session(&self.node, &mut self.session_table, key, disconnect);
        if was_there {
            self.counters().count_disconnect(disconnect.code);
        }
        was_there
    }

    /// Ends a subscription of a session and sends an unsubscribe push. Nothing of that channel is sent afterwards.
    fn end_subscription(
        &mut self,
        key: ConnectionKey,
        subscription: SubscriptionIndex,
        code: UnsubscribeCode,
        out: &mut impl Outbox,
    ) {
        let node = &self.node;
        let table = &mut self.session_table;
        if table.session(key).is_none() {
            return;
        }
        let Some(channel) = table.channel_of(key.index, subscription).cloned() else { return };
        for moved in session_effects::end_view(node, table, key.index, &channel) {
            out.ended(key.index, moved);
        }
        let Some(own) = table.subscription_to(key.index, &channel) else { return };
        if let Some(now) = self.now {
            let ended = SubscriptionKey { connection: key.index, channel: &channel };
            flight_log::unsubscribed(node, table, ended, Some(code), now);
            MapPresence { node, session_table: table, now }.disappear(key.index, own);
        }
        out.ended(key.index, session_effects::end_subscription(node, table, key.index, own));
        table.counters.server_unsubscribes.add(1);
        self.write(key, out, |encoding, scratch| {
            encode_unsubscribe_push(encoding, &channel, code.code, code.reason, scratch);
        });
    }

    /// Sends a push that `encode` writes.
    fn write(
        &mut self,
        key: ConnectionKey,
        out: &mut impl Outbox,
        encode: impl FnOnce(Encoding, &mut Vec<u8>),
    ) {
        let Some(session) = self.session_table.session(key) else { return };
        self.scratch.clear();
        encode(session.encoding, &mut self.scratch);
        out.send(key, &self.scratch);
        self.scratch.shrink_to(SCRATCH_BYTES_MAX);
    }
}

/// A session is about to end.
fn disappear_from_maps(
    node: &Node,
    session_table: &SessionTable,
    key: ConnectionKey,
    now: Instant,
) {
    MapPresence { node, session_table, now }.disappear_from_all_of(key);
}

/// Answers a question from the state of a shard: in several turns if it is about many connections.
fn answer(hub: &Hub, question: &ShardQuestion, now: Instant, out: &impl Outbox) {
    let shard = ShardView {
        session_table: &hub.session_table,
        node_name: &hub.node.options().name,
        now_ms: hub.node.clock().unix_ms(now),
        address: &|key| out.address(key),
        queued_bytes: &|index| out.queued_bytes(index),
    };
    if let Some(rest) = question.ask(&shard) {
        hub.node.inbox(hub.session_table.shard).push(Notice::Question(rest));
    }
}

/// The last message to a session contained the recovered publications of its subscriptions.
fn report_recovered(session_table: &mut SessionTable, key: ConnectionKey, out: &mut impl Outbox) {
    session_table.recovered(key.index, |own, channel| out.recovered(key, own, channel));
}

/// Whether a reply contains recovered publications.
fn has_recovered(reply: &Reply) -> bool {
    let pushed = reply.push.as_ref().and_then(|push| push.connect.as_ref());
    let of_connect = reply
        .connect
        .iter()
        .map(|connect| &connect.subs)
        .chain(pushed.map(|connect| &connect.subs))
        .flat_map(|it| it.values());
    reply.subscribe.iter().chain(of_connect).any(|result| !result.publications.is_empty())
}

/// Capacity kept after a large reply.
const SCRATCH_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests;
