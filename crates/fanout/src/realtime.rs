//! Fanwire's application on a shard: a hub of sessions behind the shard's sockets.
//! In: messages, notices and time from the shard → out: replies batched per turn, publications as frames shared by all receivers.
//! Uses `node` for every decision and `ws` for frames; never a socket, never a rule of its own.
//! Changed here: how the hub's effects become frames. What a session does lives in `node`, how frames leave in `shard`.

mod backlog;
mod encode_worker;
mod frames;
mod receipts;
mod response;
#[cfg(test)]
mod testing;

use std::{net::SocketAddr, sync::Arc, time::Instant};

use fanwire_node::{
    Broadcast, ConnectionKey, DeltaMode, EncodeJob, Hub, HubCounters, Inbox, MovedSubscription,
    Node, Notice, Outbox, ShardId, SubscriptionIndex, broker::Position, can_move,
    choose_departures,
};
use fanwire_protocol::{
    Disconnect, Encoding, MESSAGES_PER_FRAME_MAX, bare_push, encode_disconnect_push, join,
};

pub use self::backlog::BacklogCounters;
use self::backlog::{Backlogs, Waiting};
pub use self::encode_worker::EncodeWorker;
use self::frames::Frames;
use self::response::PendingResponses;
pub use self::response::{ConnectError, MakeResponse, NewSession, PendingResponse};
use crate::clock::unix_ms;
use crate::compression::{Contexts, PreparedBroadcast, TextKind};
use crate::event;
use fanwire_shard::{
    Application, CloseCause, Compression, Connection, ConnectionWriter, CountedPlace,
    EmbeddedPublication, PeerFormat, ReceivedMessage, SendAway, SlotKey, Transport, WindowIndex,
};

/// One shard's hub, with the frames of the broadcast it is delivering.
pub struct Realtime {
    node: Arc<Node>,
    hub: Hub,
    batch: MessageBatch,
    frames: Frames,
    backlogs: Backlogs,
    /// Receivers of the broadcast that is being delivered that need not wait; empty in between.
    ready: Vec<(u32, SubscriptionIndex)>,
    encode_worker: EncodeWorker,
    responses: PendingResponses,
    joins_pushes: bool,
}

/// The counters of one shard's application.
#[derive(Clone, Debug)]
pub struct RealtimeCounters {
    pub hub: Arc<HubCounters>,
    /// Counters of waiting publications, by namespace.
    pub backlogs: Arc<[BacklogCounters]>,
}

/// The shards of a Fanwire server.
pub type Shards = fanwire_shard::Shards<Realtime>;

/// The inbox of a shard, as `node` uses it.
pub struct ShardInbox(pub fanwire_shard::Inbox<Notice, NewSession>);

impl Inbox for ShardInbox {
    fn push(&self, notice: Notice) {
        let prepared = match &notice {
            Notice::Broadcast(broadcast) | Notice::KeyUpdate(broadcast) => {
                broadcast.prepared::<PreparedBroadcast>().map_or(0, PreparedBroadcast::bytes)
            }
            _ => 0,
        };
        let bytes = notice.payload_bytes() + prepared + NOTICE_BYTES;
        self.0.push(fanwire_shard::ShardMessage::Notice(notice), bytes);
    }

    fn is_congested(&self) -> bool {
        self.0.is_congested()
    }
}

impl Realtime {
    /// Makes the application of one shard of `node`. `contexts` prepares its broadcasts; `encode_worker` runs its
    /// large encode jobs.
    pub fn new(
        node: Arc<Node>,
        shard: ShardId,
        contexts: Arc<Contexts>,
        encode_worker: EncodeWorker,
    ) -> Self {
        let backlogs = Backlogs::new(contexts.counters().len());
        let frames = Frames::new(contexts);
        let hub = Hub::new(node.clone(), shard);
        Self {
            node,
            hub,
            batch: Default::default(),
            frames,
            backlogs,
            ready: Default::default(),
            encode_worker,
            responses: PendingResponses::default(),
            joins_pushes: false,
        }
    }

    /// Whether pushes for one unidirectional WebSocket that leave together are joined in one message
    /// (`uni_websocket.join_push_messages`).
    pub fn join_pushes(mut self, joins_pushes: bool) -> Self {
        self.joins_pushes = joins_pushes;
        self
    }

    pub fn counters(&self) -> RealtimeCounters {
        RealtimeCounters { hub: self.hub.counters().clone(), backlogs: self.backlogs.counters() }
    }

    /// Runs one step of the hub, then sends the messages that it left in the batch.
    fn step<T>(
        &mut self,
        out: &mut ConnectionWriter,
        step: impl FnOnce(&mut Hub, &mut HubWriter<'_>) -> T,
    ) -> T {
        let Self { hub, batch, frames, backlogs, ready, encode_worker, responses, .. } = self;
        let joins_pushes = self.joins_pushes;
        let mut connection_writer = HubWriter {
            out,
            batch,
            frames,
            backlogs,
            ready,
            encode_worker,
            responses,
            joins_pushes,
        };
        let result = step(hub, &mut connection_writer);
        connection_writer.send_batch();
        self.frames.finish();
        result
    }
}

impl Application for Realtime {
    type Notice = Notice;
    type Opening = NewSession;

    fn turn(&mut self, now: Instant) {
        self.node.synchronise(now, unix_ms());
    }

    fn open(
        &mut self,
        key: SlotKey,
        opening: NewSession,
        now: Instant,
        _out: &mut ConnectionWriter,
    ) {
        self.responses.open(key.index, opening.response);
        self.hub.open(connection(key), opening.connection, now);
    }

    fn receive(
        &mut self,
        key: SlotKey,
        message: ReceivedMessage<'_>,
        now: Instant,
        out: &mut ConnectionWriter,
    ) -> usize {
        let commands =
            self.step(out, |hub, out| hub.receive(connection(key), message.bytes(), now, out));
        if PONGS.contains(&message.bytes()) { 0 } else { commands }
    }

    fn held(&mut self, key: SlotKey, is_held: bool, now: Instant) {
        self.hub.held(connection(key), is_held, now);
    }

    fn notice(&mut self, notice: Notice, now: Instant, out: &mut ConnectionWriter) {
        let accepted_at = match &notice {
            Notice::Broadcast(broadcast) | Notice::KeyUpdate(broadcast) => {
                Some(broadcast.accepted_at())
            }
            _ => None,
        };
        self.step(out, |hub, out| hub.notice(notice, now, out));
        if let Some(accepted_at) = accepted_at {
            out.note_latency(accepted_at);
        }
    }

    fn pong(&mut self, key: SlotKey, now: Instant, _out: &mut ConnectionWriter) {
        self.hub.pong(connection(key), now);
    }

    fn stalled(&mut self, key: SlotKey, queued_bytes: usize, now: Instant) {
        self.hub.stalled(connection(key), queued_bytes, now);
    }

    /// Sends waiting publications until the socket blocks again. Each is encoded now, against the peer's current window.
    fn drain(&mut self, key: SlotKey, now: Instant, out: &mut ConnectionWriter) {
        while let Some(waiting) = self.backlogs.pop(key.index, now) {
            let Waiting { broadcast, subscription, delta_mode } = &waiting;
            self.frames.deliver(key.index, *subscription, broadcast, *delta_mode, out);
            receipts::observe_late(broadcast, key.index, out);
            let queued = out.connection(key.index).map_or(0, Connection::queued_bytes);
            if queued >= DRAIN_BYTES && !out.write(key.index) {
                break;
            }
        }
        self.frames.finish();
        if self.backlogs.has_waiting(key.index)
            && let Some(connection) = out.connection_mut(key.index)
        {
            connection.notify_drain();
        }
    }

    fn advance(&mut self, now: Instant, out: &mut ConnectionWriter) {
        self.step(out, |hub, out| hub.advance(now, out));
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.hub.next_deadline()
    }

    fn close(&mut self, key: SlotKey, end: CloseCause, now: Instant, out: &ConnectionWriter) {
        self.backlogs.remove(key.index);
        self.responses.close(key.index);
        let index = key.index;
        let key = connection(key);
        let disconnect = match end {
            CloseCause::Slow => Disconnect::SLOW,
            CloseCause::WriteTimeout => Disconnect::WRITE_ERROR,
            CloseCause::Other => return self.hub.close(key, now),
        };
        let address = out.connection(index).and_then(Connection::peer_address);
        self.hub.disconnected(key, &disconnect, address, now);
    }

    fn departures(&mut self, wanted: SendAway, now: Instant) -> Vec<SlotKey> {
        let SendAway { connections, min_age, .. } = wanted;
        let keys = choose_departures(&mut self.hub, connections, min_age, now);
        keys.into_iter().map(key).collect()
    }

    /// Sends what waits for others of its channel, and every waiting publication: it is in the queue that moves.
    fn settle(&mut self, now: Instant, out: &mut ConnectionWriter) {
        self.step(out, |hub, out| hub.flush(now, out));
        for index in self.backlogs.connections() {
            while let Some(waiting) = self.backlogs.pop(index, now) {
                let Waiting { broadcast, subscription, delta_mode } = &waiting;
                self.frames.deliver(index, *subscription, broadcast, *delta_mode, out);
                receipts::observe_late(broadcast, index, out);
            }
        }
        self.frames.finish();
    }

    fn can_move(&mut self, key: SlotKey) -> bool {
        !self.responses.is_pending(key.index) && can_move(&mut self.hub, connection(key))
    }

    fn save(&mut self, key: SlotKey, now: Instant) -> Option<Vec<u8>> {
        if self.responses.is_pending(key.index) {
            return None;
        }
        self.hub.save(connection(key), now)
    }

    fn adopt(&mut self, key: SlotKey, saved: &[u8], now: Instant) -> bool {
        self.hub.adopt(connection(key), saved, now)
    }

    fn place_of(&self, address: Option<SocketAddr>) -> Option<CountedPlace> {
        Some(Box::new(self.node.channels().usage().addresses().adopt(address?.ip())?))
    }

    fn shut_down(&mut self, key: SlotKey, out: &mut ConnectionWriter) {
        self.step(out, |hub, out| hub.disconnect(connection(key), &Disconnect::SHUTDOWN, out));
    }
}

/// Messages for one connection alone, which leave together in one WebSocket message (client protocol §2, §23).
#[derive(Default)]
struct MessageBatch {
    connection: Option<ConnectionKey>,
    messages: usize,
    bytes: Vec<u8>,
    /// Start of the last message in `bytes`.
    last: usize,
    embedded: Vec<EmbeddedPublication>,
    /// The position to which the next message brings its client.
    position: Option<(ConnectionKey, Position)>,
}

/// The hub's view of the `ConnectionWriter`.
struct HubWriter<'a> {
    out: &'a mut ConnectionWriter,
    batch: &'a mut MessageBatch,
    frames: &'a mut Frames,
    backlogs: &'a mut Backlogs,
    ready: &'a mut Vec<(u32, SubscriptionIndex)>,
    encode_worker: &'a EncodeWorker,
    responses: &'a mut PendingResponses,
    joins_pushes: bool,
}

impl HubWriter<'_> {
    fn send_batch(&mut self) {
        if let Some(connection) = self.batch.connection.take() {
            self.out.send_embedding(key(connection), &self.batch.bytes, &self.batch.embedded);
            self.batch.embedded.clear();
            self.batch.bytes.clear();
            self.batch.bytes.shrink_to(BATCH_BYTES_KEPT);
            self.batch.messages = 0;
        }
    }

    /// The batch, to which the next message for a connection is to be appended.
    fn begin_message(
        &mut self,
        connection: ConnectionKey,
        transport: Transport,
        encoding: Encoding,
    ) -> &mut Vec<u8> {
        let messages_max = match transport {
            Transport::UniWebSocket if !self.joins_pushes => 1,
            Transport::UniGrpc => 1, // pushes have no lengths of their own
            _ => MESSAGES_PER_FRAME_MAX,
        };
        if self.batch.connection != Some(connection) || self.batch.messages >= messages_max {
            self.send_batch();
            self.batch.connection = Some(connection);
        } else if transport != Transport::UniEventStream {
            join(encoding, &mut self.batch.bytes);
        }
        self.batch.last = self.batch.bytes.len();
        self.batch.messages += 1;
        &mut self.batch.bytes
    }

    /// Returns whether the broadcast needs no frame now: it waits until the socket drains, or too much waits and the
    /// connection ended as slow.
    fn waits(
        &mut self,
        connection: u32,
        subscription: SubscriptionIndex,
        broadcast: &Arc<Broadcast>,
        delta_mode: DeltaMode,
    ) -> bool {
        let Some(peer) = self.out.connection_mut(connection) else { return false };
        let mut is_blocked = peer.is_blocked();
        if broadcast.latest().is_some() {
            peer.limit_send_buffer();
            // A state that does not fit is no reason to end the connection.
            is_blocked |= !self.out.takes(connection, message_bytes_max(broadcast))
                && !self.out.write(connection);
        }
        if !is_blocked || !self.backlogs.hold(connection, subscription, broadcast, delta_mode) {
            return false;
        }
        if self.out.takes(connection, self.backlogs.reliable_bytes(connection)) {
            self.out.connection_mut(connection).into_iter().for_each(Connection::notify_drain);
        } else {
            self.out.close_as_slow(connection);
        }
        true
    }

    fn deliver_reliable(&mut self, connection: u32, waiting: Vec<Waiting>) {
        for Waiting { broadcast, subscription, delta_mode } in waiting {
            self.frames.deliver(connection, subscription, &broadcast, delta_mode, self.out);
            receipts::observe_late(&broadcast, connection, self.out);
        }
    }
}

impl Outbox for HubWriter<'_> {
    fn send(&mut self, connection: ConnectionKey, message: &[u8]) {
        if let Some((coding, head)) = self.responses.begin(connection.index) {
            self.out.begin_response(key(connection), coding, head);
        }
        let format = self.out.connection(connection.index).map(Connection::format);
        let transport = format.map_or(Transport::WebSocket, |peer| peer.transport);
        let encoding = encoding(format.is_some_and(|peer| peer.is_binary));
        let message = if transport.is_unidirectional() {
            bare_push(encoding, message).expect("such a session receives only pushes")
        } else {
            message
        };
        let known = self.batch.position.take().filter(|(of, _)| *of == connection);
        let position = known.map(|(_, position)| position).unwrap_or_default();
        let batched = self.begin_message(connection, transport, encoding);
        match transport {
            Transport::UniEventStream => event::write(position, message, batched),
            _ => batched.extend_from_slice(message),
        }
    }

    fn position(&mut self, connection: ConnectionKey, position: Position) {
        self.batch.position = Some((connection, position));
    }

    fn unrecovered(&mut self, connection: ConnectionKey, reason: &str, explanation: &str) {
        let Some(format) = self.out.connection(connection.index).map(Connection::format) else {
            return;
        };
        let is_event = format.transport == Transport::UniEventStream;
        let batched = self.begin_message(connection, format.transport, Encoding::Json);
        event::write_unrecovered(is_event, reason, explanation, batched);
    }

    fn recovered(
        &mut self,
        connection: ConnectionKey,
        subscription: SubscriptionIndex,
        channel: &str,
    ) {
        debug_assert_eq!(self.batch.connection, Some(connection));
        let Some(PeerFormat { is_binary, transport, compression: Compression::Context { .. } }) =
            self.out.connection(connection.index).map(Connection::format)
        else {
            return;
        };
        let MessageBatch { bytes, last, embedded, .. } = &mut *self.batch;
        let kind = TextKind::of(transport, encoding(is_binary));
        let part = self.frames.contexts().embedded_part(channel, kind, &bytes[*last..]);
        embedded.extend(part.map(|(at, embedded_part)| EmbeddedPublication {
            window: WindowIndex(subscription.0),
            at: *last + at,
            embedded_part,
        }));
    }

    fn deliver(
        &mut self,
        connection: u32,
        subscription: SubscriptionIndex,
        broadcast: &Arc<Broadcast>,
        delta_mode: DeltaMode,
    ) {
        self.send_batch();
        if let Some(observer) = receipts::observer(broadcast) {
            let receiver = std::iter::once((connection, subscription));
            return self.deliver_observed(receiver, broadcast, delta_mode, &observer);
        }
        if !self.waits(connection, subscription, broadcast, delta_mode) {
            self.frames.deliver(connection, subscription, broadcast, delta_mode, self.out);
        }
    }

    fn deliver_to_all(
        &mut self,
        receivers: impl Iterator<Item = (u32, SubscriptionIndex)>,
        broadcast: &Arc<Broadcast>,
    ) {
        self.send_batch();
        if let Some(observer) = receipts::observer(broadcast) {
            return self.deliver_observed(receivers, broadcast, DeltaMode::Plain, &observer);
        }
        if !self.backlogs.concern(broadcast) {
            return self.frames.deliver_to_all(receivers, broadcast, self.out);
        }
        let mut ready = std::mem::take(self.ready);
        ready.extend(receivers.filter(|(connection, subscription)| {
            !self.waits(*connection, *subscription, broadcast, DeltaMode::Plain)
        }));
        self.frames.deliver_to_all(ready.drain(..), broadcast, self.out);
        *self.ready = ready;
    }

    fn ended(&mut self, connection: u32, moved: MovedSubscription) {
        let [to, from] = [moved.to, moved.from].map(|subscription| WindowIndex(subscription.0));
        let MessageBatch { connection: batched, embedded, .. } = &mut *self.batch;
        if batched.is_some_and(|batched| batched.index == connection) {
            embedded.retain(|publication| publication.window != to);
            let last = embedded.iter_mut().filter(|publication| publication.window == from);
            last.for_each(|publication| publication.window = to);
        }
        let reliable = self.backlogs.ended(connection, moved);
        if !reliable.is_empty() {
            self.send_batch();
            self.deliver_reliable(connection, reliable);
        }
        if from != to
            && let Some(connection) = self.out.connection_mut(connection)
        {
            connection.moved(from, to);
        }
    }

    fn offload(&mut self, encode_job: EncodeJob) {
        self.encode_worker.offload(encode_job);
    }

    fn ping(&mut self, connection: ConnectionKey) {
        self.send_batch();
        self.out.ping(key(connection));
    }

    fn queued_bytes(&self, connection: u32) -> usize {
        self.out.connection(connection).map_or(0, Connection::queued_bytes)
    }

    fn address(&self, connection: ConnectionKey) -> Option<SocketAddr> {
        self.out.connection(connection.index)?.peer_address()
    }

    fn hold(&mut self, connection: ConnectionKey) {
        self.out.hold(key(connection));
    }

    fn release(&mut self, connection: ConnectionKey) {
        self.out.release(key(connection));
    }

    fn refuse(
        &mut self,
        connection: ConnectionKey,
        code: u32,
        text: &str,
        disconnect: &Disconnect,
    ) {
        match self.responses.refuse(connection.index, code, text) {
            Some(response) => self.out.refuse(key(connection), response),
            None => self.disconnect(connection, disconnect),
        }
    }

    fn disconnect(&mut self, connection: ConnectionKey, disconnect: &Disconnect) {
        let Disconnect { code, reason } = disconnect;
        if let Some(response) = self.responses.refuse(connection.index, (*code).into(), reason) {
            return self.out.refuse(key(connection), response);
        }
        self.send_batch();
        let reliable = self.backlogs.remove(connection.index);
        self.deliver_reliable(connection.index, reliable);
        let key = key(connection);
        match disconnect.code {
            // This code is never sent: the peer's transport closes without a close frame (client protocol §5.9).
            code if code == Disconnect::CONNECTION_CLOSED.code => self.out.abort(key),
            code if code == Disconnect::SLOW.code => {
                self.out.close_and_drop_queue(key, code, &disconnect.reason, CloseCause::Other);
            }
            code => self.out.close(key, code, &disconnect.reason),
        }
    }
}

/// The message with which a connection without close frames ends, or a unidirectional one.
pub fn last_message(format: PeerFormat, code: u16, reason: &str) -> Vec<u8> {
    let encoding = encoding(format.is_binary);
    let mut message = Vec::new();
    encode_disconnect_push(encoding, code, reason, &mut message);
    if format.transport.is_unidirectional() {
        message = bare_push(encoding, &message).expect("it is a push").to_vec();
    }
    if format.transport == Transport::UniEventStream {
        let push = std::mem::take(&mut message);
        event::write(Position::default(), &push, &mut message);
    }
    message
}

/// A limit for the bytes of a message, in any form: as a JSON text, quotes are escaped.
fn message_bytes_max(broadcast: &Broadcast) -> usize {
    2 * broadcast.publication().data.len() + ENVELOPE_BYTES_MAX
}

/// Channel, tags and keys of a push, for all but extreme tags.
const ENVELOPE_BYTES_MAX: usize = 4 << 10;

/// The buffer shrinks to this size after a rare large reply.
const BATCH_BYTES_KEPT: usize = 64 << 10;

/// Bytes that a socket gets in one write after it drained.
const DRAIN_BYTES: usize = 64 << 10;

/// Answers to pings, as clients write them in either encoding (protocol §6).
const PONGS: [&[u8]; 2] = [b"{}", b"\0"];

/// Approximate bytes of a notice in an inbox in addition to its payload.
const NOTICE_BYTES: usize = 256;

fn connection(key: SlotKey) -> ConnectionKey {
    ConnectionKey { index: key.index, generation: key.generation }
}

fn key(connection: ConnectionKey) -> SlotKey {
    SlotKey { index: connection.index, generation: connection.generation }
}

fn encoding(is_binary: bool) -> Encoding {
    if is_binary { Encoding::Protobuf } else { Encoding::Json }
}

#[cfg(test)]
mod tests;
