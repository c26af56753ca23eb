//! The hub of one shard: its sessions and their commands and notices (steps 4 and 6 of the route). Single-threaded and pure.
//! In: opened connections, whole WebSocket messages, notices, the time → out: effects in an `Outbox`.
//! Uses: `session_table` for state, `command` for client commands. Never: sockets, clocks, locks of its own.
//! Change here: the interface for a shard. Notices: `hub/notices.rs`, `hub/control_commands.rs`; timers: `hub/timers.rs`.

mod batches;
mod checks;
mod connections;
mod control_commands;
mod notices;
mod receive;
mod refresh;
mod refusals;
mod resume;
mod revocations;
mod timers;
mod unidirectional;
mod views;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fanwire_protocol::{Disconnect, Reply, UnsubscribeCode, encode_reply, encode_unsubscribe_push};

use crate::command::CommandContext;
use crate::counters::HubCounters;
use crate::node::Node;
use crate::notice::Notice;
use crate::outbox::Outbox;
use crate::registry::ShardId;
use crate::session::{ConnectionInfo, ConnectionKey};
use crate::session_table::SessionTable;
use crate::settings::NodeSettings;
use batches::Batches;

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
    /// The time of the last input, for the log.
    now: Option<Instant>,
}

impl Hub {
    /// The hub of the attached shard `shard`.
    pub fn new(node: Arc<Node>, shard: ShardId) -> Self {
        let settings = node.settings();
        let session_table = SessionTable::new(shard);
        let batches = Batches::default();
        Self { node, settings, session_table, batches, scratch: Vec::new(), now: None }
    }

    /// A connection opened. It is closed if it does not connect within `client.stale_close_delay`.
    pub fn open(&mut self, key: ConnectionKey, hello: ConnectionInfo, now: Instant) {
        self.session_table.open(&self.node, key, hello, now);
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
    pub fn pong(&mut self, key: ConnectionKey) {
        if let Some(session) = self.session_table.session_mut(key)
            && session.frame_ping
        {
            session.awaits_pong = false;
        }
    }

    /// The shell stopped reading a connection, or reads it again. While it does not read, a missing pong is no
    /// timeout.
    pub fn held(&mut self, key: ConnectionKey, is_held: bool, now: Instant) {
        if let Some(session) = self.session_table.session_mut(key) {
            session.is_held = is_held;
            if !is_held {
                self.await_pong_again(key, self.node.clock().moment(now));
            }
        }
    }

    /// Handles a notice: a publication, or a command of the server API.
    pub fn notice(&mut self, notice: Notice, now: Instant, out: &mut impl Outbox) {
        self.now = Some(now);
        if let Some(rest) = self.rest(&notice) {
            self.node.inbox(self.session_table.shard()).push(rest);
        }
        match notice {
            Notice::Broadcast(broadcast) if broadcast.receiver().is_some() => {
                self.deliver_to_receiver(&broadcast, now, out);
            }
            Notice::Broadcast(broadcast) => match broadcast.batch_options() {
                Some(options) => self.batches.push(&broadcast, options, now),
                None => self.broadcast(&broadcast, now, out),
            },
            Notice::Position { channel, look } => {
                // The top was read after the publications that wait here.
                let batch = self.batches.take(&channel);
                self.broadcast_all(&batch, now, out);
                self.compare_positions(&channel, look, self.node.clock().moment(now), out);
            }
            Notice::PossibleGap(channel) => {
                self.session_table.pending_mut().report_possible_gap(&channel);
                self.session_table.report_possible_gap(&channel, self.node.clock().moment(now));
            }
            Notice::AwaitedResult(arrival) => self.arrive(*arrival, now, out),
            Notice::JoinLeave(join_leave) => self.announce(&join_leave, out),
            Notice::Disconnect { target, disconnect } => {
                self.disconnect_target(&target, &disconnect, out);
            }
            Notice::Unsubscribe { target, channel, code } => {
                self.unsubscribe_target(&target, channel.as_deref(), code, out);
            }
            Notice::Subscribe { target, command } => {
                self.subscribe_target(&target, &command, now, out);
            }
            Notice::Refreshed(refreshed) => self.refreshed(*refreshed, now, out),
            Notice::Refresh { target, renewal } => self.refresh_target(&target, &renewal, now, out),
            Notice::Commands { client, secret, data } => {
                self.receive_emulated(client, secret, &data, now, out);
            }
            Notice::View { client, channel, view } => self.set_view(client, &channel, view, out),
            Notice::ClockStep => self.session_table.reschedule(&self.node),
            Notice::Supersede { user } => self.supersede(&user, out),
            Notice::ListConnections { target, list } => self.list_connections(&target, &list, out),
            Notice::ListPage { from, limit, list } => self.list_page(from, limit, &list),
            Notice::CheckTokens { user, from } => self.check_tokens(user, from, now, out),
        }
    }

    /// Runs due timers: pings, presence updates, position checks, and the ends of stale, silent and expired
    /// connections and subscriptions. Call after the notices of the turn.
    pub fn advance(&mut self, now: Instant, out: &mut impl Outbox) {
        self.now = Some(now);
        self.session_table.shared_replies_mut().drop_unused(now);
        while let Some(batch) = self.batches.pop_due(now) {
            self.broadcast_all(&batch, now, out);
        }
        let moment = self.node.clock().moment(now);
        while let Some(index) = self.session_table.pop_due(moment) {
            self.fire(index, moment, out);
        }
        while let Some(index) = self.session_table.pop_renewal(moment) {
            self.session_table.renew_presence(&self.node, index, now);
        }
        while let Some(channel) = self.session_table.pop_check(moment) {
            self.check_positions(channel, now, out);
        }
    }

    /// Returns the time to call [`advance`](Self::advance) next. Nothing may be due then.
    pub fn next_deadline(&self) -> Option<Instant> {
        let moment = self.session_table.next_deadline();
        let timer = moment.and_then(|moment| self.node.clock().instant(moment));
        timer.into_iter().chain(self.batches.next_deadline()).min()
    }

    /// The socket is gone or closing: removes the session from all channels. Idempotent.
    pub fn close(&mut self, key: ConnectionKey, _now: Instant) {
        self.session_table.forget(&self.node, key, &Disconnect::CONNECTION_CLOSED);
    }

    /// Counters, readable from any thread.
    pub fn counters(&self) -> &Arc<HubCounters> {
        self.session_table.counters()
    }

    /// The node and the tables, borrowed at once.
    pub(crate) fn parts(&mut self) -> (&Node, &mut SessionTable) {
        (&self.node, &mut self.session_table)
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
                    let record = |place, channel: &str| out.recovered(key, place, channel);
                    self.session_table.recovered(key.index, record);
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
        let was_there = self.session_table.forget(&self.node, key, disconnect);
        if was_there {
            self.counters().count_disconnect(disconnect.code);
        }
        was_there
    }

    /// Ends the subscription at `place` of a session and sends an unsubscribe push. Nothing of that channel is sent
    /// afterwards.
    fn end_subscription(
        &mut self,
        key: ConnectionKey,
        place: usize,
        code: UnsubscribeCode,
        out: &mut impl Outbox,
    ) {
        let Some(encoding) = self.session_table.session(key).map(|session| session.encoding) else {
            return;
        };
        let Some(channel) = self.session_table.channel_at(key.index, place) else { return };
        self.end_view(key, &channel, out);
        let Some(place) = self.session_table.place_of(key.index, &channel) else { return };
        let last = self.session_table.leave(&self.node, key.index, place);
        out.ended(key.index, place as u32, last);
        self.counters().server_unsubscribes.add(1);
        self.scratch.clear();
        encode_unsubscribe_push(encoding, &channel, code.code, code.reason, &mut self.scratch);
        out.send(key, &self.scratch);
    }
}

/// Whether a reply contains recovered publications.
fn has_recovered(reply: &Reply) -> bool {
    let pushed = reply.push.as_ref().and_then(|push| push.connect.as_ref());
    let of_connect = reply.connect.iter().map(|connect| &connect.subs);
    let of_connect =
        of_connect.chain(pushed.map(|connect| &connect.subs)).flat_map(|it| it.values());
    reply.subscribe.iter().chain(of_connect).any(|result| !result.publications.is_empty())
}

/// Capacity kept after a large reply.
const SCRATCH_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests;
