//! The loop of one shard: read sockets, serve the inbox, serve the timers, then write once per dirty connection.
//! In: readiness of sockets, inbox messages, time → out: calls of the application, and the bytes of its `ConnectionWriter`.
//! Uses its own poller on its own thread (docs/decisions/0001); owns its sockets, so nothing here is locked.
//! Changed here: the order of a turn and its fairness. The state of a connection lives in `connection`, writing in `connection_writer`.

mod closes;
mod events;
mod frozen;
mod records;
mod served;
mod share;
mod wait;

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read},
    sync::Arc,
    time::{Duration, Instant},
};

use fanwire_ws::{Event, Input, Pool, Reader};
use mio::{Events, Interest, Poll, Registry, Token};

use super::{
    InputLimits,
    accepted::AcceptedSockets,
    application::Application,
    connection::{CloseCause, Connection, PeerFormat, Phase, SlotKey, any},
    connection_writer::ConnectionWriter,
    inbox::{Arrival, Inboxes, ShardMessage, SizedMessage},
    new_connection::NewConnection,
    socket_tasks::SocketTasks,
    stop::{PacedCloses, Stopping},
    tls::TlsSession,
    transport::Framing,
};
use events::handle;
use frozen::FreezeState;
use share::Share;

pub(super) struct Turn<A: Application> {
    application: A,
    out: ConnectionWriter,
    poll: Poll,
    inboxes: Inboxes<A::Notice, A::Opening>,
    /// Messages taken from the inbox and not served yet.
    messages: VecDeque<SizedMessage<A::Notice, A::Opening>>,
    pool: Pool,
    limits: InputLimits,
    buffer: Box<[u8]>,
    /// Plaintext of the records that were read last.
    plaintext: Vec<u8>,
    /// Connections with more input than their share of a turn; the longest wait first.
    unread: VecDeque<SlotKey>,
    /// Connections that sent commands while some shard lagged; read again when no shard lags.
    held: Vec<SlotKey>,
    accepted: AcceptedSockets<A::Opening>,
    tasks: SocketTasks,
    generation: u32,
    stopping: Option<Stopping>,
    /// Connections that are sent away while the shard goes on.
    departing: Option<PacedCloses>,
    frozen: FreezeState<A::Notice, A::Opening>,
}

impl<A: Application> Turn<A> {
    pub(super) fn new(
        application: A,
        out: ConnectionWriter,
        poll: Poll,
        inboxes: Inboxes<A::Notice, A::Opening>,
        limits: InputLimits,
    ) -> Self {
        let inbox = inboxes.own().clone();
        let wake = move |slot, number| inbox.push(ShardMessage::Wake(slot, number), 0);
        Self {
            application,
            out,
            poll,
            inboxes,
            messages: VecDeque::new(),
            pool: Pool::new(),
            limits,
            buffer: vec![0; READ_BYTES].into(),
            plaintext: Vec::new(),
            unread: VecDeque::new(),
            held: Vec::new(),
            accepted: AcceptedSockets::default(),
            tasks: SocketTasks::new(Arc::new(wake)),
            generation: 0,
            stopping: None,
            departing: None,
            frozen: FreezeState::default(),
        }
    }

    /// The counters of the shard.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn counters(&self) -> &crate::counters::ShardCounters {
        &self.out.counters
    }

    /// A turn with the next events, after `timeout` without.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn turn_with_events(&mut self, timeout: Duration) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        self.poll.poll(&mut events, Some(timeout)).expect("a poller");
        self.turn(&mut events);
    }

    /// Whether frames are still to be written.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn is_busy(&self) -> bool {
        self.out.is_busy_for_test()
    }

    /// Runs until a message asks to stop and every connection is gone. Blocks the thread while there is nothing to do.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.is_over() {
            let polled = self.wait(&mut events);
            self.inboxes.own().stay_awake();
            match polled {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => {
                    result?;
                    self.turn(&mut events);
                    self.stand_still();
                }
            }
        }
        self.inboxes.own().end();
        Ok(())
    }

    fn is_over(&self) -> bool {
        let has_tasks = !self.tasks.is_empty();
        self.stopping.as_ref().is_some_and(|stopping| stopping.is_over(&self.out, has_tasks))
    }

    pub(super) fn turn(&mut self, events: &mut Events) {
        self.out.begin_turn();
        self.out.counters.turns.add(1);
        self.application.turn(self.out.now);
        let read_until = self.out.now + READS_TIME;
        if !self.frozen.is_paused {
            self.read_requests_again();
            self.read_pending(read_until);
        }
        self.read_events(events, read_until);
        self.gather(events);
        self.take_messages();
        if !self.frozen.is_paused {
            self.advance();
        }
        self.report_closed();
        self.out.flush();
        self.report_closed();
        self.drain();
        if !self.frozen.is_paused {
            self.run_postponed_tasks();
        }
        self.settle();
        self.out.end_turn();
    }

    /// Reads what publishers sent while the first publications of the turn were executed: it leaves in the same writes.
    fn gather(&mut self, events: &mut Events) {
        let until = self.out.now + GATHER_TIME;
        while self.inboxes.own().bytes() > 0 && Instant::now() < until {
            // The next turn meets an error again.
            let polled = self.poll.poll(events, Some(Duration::ZERO));
            if polled.is_err() || events.is_empty() {
                return;
            }
            self.read_events(events, until);
        }
    }

    /// Reads the sockets of these events; after `read_until` they wait for the next turn.
    fn read_events(&mut self, events: &Events, read_until: Instant) {
        for event in events.iter().filter(|event| event.token() != WAKER) {
            if let Some(slot) = SocketTasks::slot(event.token()) {
                self.run_task(slot, event, read_until);
                continue;
            }
            if let Some(slot) = AcceptedSockets::<A::Opening>::slot(event.token()) {
                if !self.frozen.is_paused {
                    self.read_request(slot);
                }
                continue;
            }
            let index = event.token().0 as u32;
            if event.is_writable() {
                self.out.writable(index);
            }
            if event.is_readable() || event.is_read_closed() || event.is_error() {
                if !self.frozen.is_paused && Instant::now() < read_until {
                    self.read(index, event.is_read_closed() || event.is_error());
                } else {
                    self.read_later(index);
                }
            }
        }
    }

    /// Tells the application which sockets took all bytes, and writes what it sends to them.
    fn drain(&mut self) {
        if self.out.drained.is_empty() {
            return;
        }
        for key in std::mem::take(&mut self.out.drained) {
            let Some(connection) = any(&mut self.out.connections, key) else { continue };
            if std::mem::take(&mut connection.awaits_drain) && connection.phase == Phase::Open {
                self.application.drain(key, self.out.now, &mut self.out);
            }
        }
        self.out.flush();
        self.report_closed();
    }

    /// Continues to read connections of an earlier turn, each within its share.
    fn read_pending(&mut self, until: Instant) {
        let mut again = std::mem::take(&mut self.out.released);
        if !self.held.is_empty() && !self.inboxes.are_congested() {
            for key in std::mem::take(&mut self.held) {
                if let Some(connection) = any(&mut self.out.connections, key) {
                    connection.is_held = false;
                    self.application.held(key, false, self.out.now);
                }
                again.push(key);
            }
        }
        for key in again {
            let is_unread =
                |connection: &mut Connection| std::mem::replace(&mut connection.is_unread, true);
            if !any(&mut self.out.connections, key).is_some_and(is_unread) {
                self.unread.push_back(key);
            }
        }
        for _ in 0..self.unread.len() {
            if Instant::now() >= until {
                return;
            }
            let Some(key) = self.unread.pop_front() else { return };
            if let Some(connection) = any(&mut self.out.connections, key) {
                connection.is_unread = false;
                self.read(key.index, true);
            }
        }
    }

    /// Leaves the rest of a connection's input for the next turn.
    fn read_later(&mut self, index: u32) {
        if let Some(connection) = self.out.connections.get_mut(index as usize)
            && connection.phase != Phase::Done
            && !std::mem::replace(&mut connection.is_unread, true)
        {
            self.unread.push_back(connection.key(index));
        }
    }

    fn advance(&mut self) {
        let now = self.out.now;
        self.out.advance();
        self.accepted.advance(self.poll.registry(), now);
        if self.application.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.application.advance(now, &mut self.out);
        }
        self.close_due();
    }

    /// Serves the inbox for at most [`MESSAGES_TIME`], so that sockets and timers are served, too; the rest waits for
    /// the next turn.
    ///
    /// It empties the inbox once, after the messages left by the last turn. What comes later keeps the shard awake.
    fn take_messages(&mut self) {
        let started = Instant::now();
        let mut is_taken = false;
        let mut is_late = false;
        let mut served = 0;
        loop {
            if self.messages.is_empty() && !is_taken {
                self.inboxes.own().take(&mut self.messages);
                is_taken = true;
            }
            if is_late {
                break;
            }
            let Some((message, bytes)) = self.messages.pop_front() else { break };
            self.out.is_last = is_taken && self.messages.is_empty();
            self.serve(message);
            served += bytes;
            is_late = started.elapsed() >= MESSAGES_TIME;
        }
        self.out.is_last = false;
        self.inboxes.own().served(served);
        if self.messages.is_empty() {
            self.messages.shrink_to(MESSAGES_KEPT);
        }
    }

    pub(super) fn serve(&mut self, message: ShardMessage<A::Notice, A::Opening>) {
        let Some(message) = self.frozen.postpone(message) else { return };
        match message {
            ShardMessage::Accept(socket, handler) if self.stopping.is_some() => {
                handler.decline(socket);
            }
            ShardMessage::Accept(socket, handler) => {
                let registry = self.poll.registry();
                let now = self.out.now;
                if let Some(slot) = self.accepted.insert(socket, handler, registry, now) {
                    self.read_request(slot);
                }
            }
            ShardMessage::Open(arrival) => self.open(*arrival),
            ShardMessage::Wake(slot, number) => self.tasks.wake(slot, number),
            ShardMessage::CloseLongestIdle => self.accepted.close_longest_idle(),
            ShardMessage::Notice(notice) => {
                self.application.notice(notice, self.out.now, &mut self.out);
                self.report_closed();
            }
            ShardMessage::SendAway(wanted) => self.send_away(wanted),
            ShardMessage::Freeze(step) => self.freeze_step(step),
            ShardMessage::Stop(stop) => {
                self.accepted.decline_all(self.poll.registry());
                self.stopping.get_or_insert_with(|| Stopping::new(&self.out, stop));
            }
        }
    }

    /// Reports blocked and closed connections to the application.
    fn report_closed(&mut self) {
        for (key, queued_bytes) in self.out.stalls.drain(..) {
            self.application.stalled(key, queued_bytes, self.out.now);
        }
        while let Some((key, end)) = self.out.closed.pop() {
            self.application.close(key, end, self.out.now, &self.out);
            self.out.counters.closed.add(1);
        }
    }

    pub(super) fn open(&mut self, arrival: Arrival<A::Opening>) {
        let Arrival { socket, tls, mut early, connection } = arrival;
        let transport = connection.transport;
        let is_binary = connection.is_binary;
        let socket = mio::net::TcpStream::from_std(socket);
        let Some(key) = self.begin(socket, tls, connection, Registry::register) else { return };
        let traffic = self.out.counters.of(transport, is_binary);
        traffic.wire_bytes_in.add(early.len() as u64);
        self.feed(key, &mut early, &mut Share::default());
        // Bytes that arrived before the registration raise no event.
        self.read(key.index, false);
    }

    /// Makes a connection of a socket, which `register` registers; sends its head, and receives the message in its request.
    fn begin(
        &mut self,
        mut socket: mio::net::TcpStream,
        tls: Option<Box<TlsSession>>,
        new: NewConnection<A::Opening>,
        register: impl FnOnce(&Registry, &mut mio::net::TcpStream, Token, Interest) -> io::Result<()>,
    ) -> Option<SlotKey> {
        let entry = self.out.connections.vacant_entry();
        let index = entry.key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        // Fails only if the kernel has no memory for one more watch. Then the socket is closed.
        register(self.poll.registry(), &mut socket, Token(index), interest).ok()?;
        self.generation = self.generation.wrapping_add(1);
        let key = SlotKey { index: index as u32, generation: self.generation };
        let NewConnection { transport, is_binary, coding, head, message, opening, .. } = new;
        let mut connection =
            Connection::new(socket, self.generation, new.may_inflate, new.compression, new.permit);
        if let Some(window) = new.client_window {
            let (reader, memory) = window.into_reader();
            connection.reader = reader;
            connection.rare_mut()._client_window = Some(memory);
        }
        if new.address.is_some() {
            connection.rare_mut().address = new.address;
        }
        if new.place.is_some() {
            connection.rare_mut()._place = new.place;
        }
        connection.is_binary = is_binary;
        connection.peer = new.peer;
        connection.transport = transport;
        let connection = entry.insert(connection);
        if let Some(session) = tls {
            self.out.sockets.encrypt_with(connection, key.index, session);
        }
        self.out.counters.opened.add(1);
        self.application.open(key, opening, self.out.now, &mut self.out);
        let is_websocket = transport.framing() == Framing::WebSocket;
        if !head.is_empty() && is_websocket {
            let connection = &mut self.out.connections[key.index as usize];
            self.out.sockets.append(connection, key.index, head.into());
        } else if !head.is_empty() {
            self.out.begin_response(key, coding, head);
        }
        if !is_websocket || !message.is_empty() {
            self.receive_first(key, is_binary, &message);
        }
        Some(key)
    }

    /// Receives the message in the request of a connection.
    fn receive_first(&mut self, key: SlotKey, is_binary: bool, message: &[u8]) {
        let text;
        let event = if is_binary {
            Event::Binary(message)
        } else {
            text = String::from_utf8_lossy(message);
            Event::Text(&text)
        };
        handle(&mut self.application, &mut self.out, key, event, &mut Share::default());
        self.report_closed();
    }

    /// Reads a connection within its share of one turn; `to_the_end` also looks for the end of the stream.
    fn read(&mut self, index: u32, to_the_end: bool) {
        if self.out.connections.get(index as usize).is_none_or(|connection| connection.is_unread) {
            return; // it had its share of this turn, or comes first in the next one
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        if !self.read_share(index, to_the_end, &mut buffer) {
            self.read_later(index);
        }
        self.buffer = buffer;
    }

    /// Returns whether the share was enough for all input.
    fn read_share(&mut self, index: u32, to_the_end: bool, buffer: &mut [u8]) -> bool {
        let mut share = Share::default();
        while share.is_left() {
            let Some(connection) = self.out.connections.get_mut(index as usize) else {
                return true;
            };
            if connection.is_held || connection.is_waiting {
                return true; // until it is released
            }
            let key = connection.key(index);
            let mut rest = std::mem::take(&mut connection.rest);
            if !rest.is_empty() {
                self.feed(key, &mut rest, &mut share);
                continue;
            }
            if connection.is_encrypted() {
                if self.read_records(key, to_the_end, buffer, &mut share) {
                    continue;
                }
                return true;
            }
            match connection.socket.read(buffer) {
                Ok(0) => self.out.peer_ended(key),
                Ok(count) => {
                    let PeerFormat { transport, is_binary, .. } = connection.format();
                    self.out.counters.of(transport, is_binary).wire_bytes_in.add(count as u64);
                    share.read(count);
                    self.feed(key, &mut buffer[..count], &mut share);
                    let connection = self.out.connections.get(index as usize);
                    let has_rest = connection.is_some_and(|connection| !connection.rest.is_empty());
                    if count == buffer.len() || to_the_end || has_rest {
                        continue;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.out.abort(key),
            }
            return true;
        }
        false
    }

    /// Passes bytes of the peer to its reader and every complete message to the application, within its share and while
    /// the application does not wait. The rest is kept.
    ///
    /// A connection that sent a command while some shard lags is held. Whether the command causes a broadcast is not
    /// checked, because a remote broker delivers it later and on another thread. Connections that only receive or
    /// answer pings go on.
    fn feed(&mut self, key: SlotKey, bytes: &mut [u8], share: &mut Share) {
        let Some(connection) = self.out.connections.get_mut(key.index as usize) else { return };
        let is_websocket = connection.transport.framing() == Framing::WebSocket;
        if !is_websocket || !matches!(connection.phase, Phase::Open | Phase::Closing) {
            return; // what follows a request is discarded
        }
        let limits = self.limits.of(connection.transport);
        let mut reader = std::mem::take(&mut connection.reader);
        let window_bytes = reader.window_bytes();
        let mut commands = 0;
        let mut input = Input::new(bytes);
        loop {
            match reader.receive(&mut input, &mut self.pool, limits) {
                Ok(None) => break,
                Ok(Some(event)) => {
                    commands += handle(&mut self.application, &mut self.out, key, event, share);
                }
                Err(failure) => {
                    self.out.counters.protocol_failures.add(1);
                    self.out.send_close(
                        key,
                        failure.close_code(),
                        &failure.to_string(),
                        Phase::Failed,
                        CloseCause::Other,
                    );
                }
            }
            match self.out.connections.get_mut(key.index as usize) {
                Some(one) if matches!(one.phase, Phase::Open | Phase::Closing) => {
                    if !input.is_empty() && (one.is_waiting || !share.is_left()) {
                        one.rest = input.rest().into();
                        break;
                    }
                }
                _ => {
                    reader = Reader::default();
                    break;
                }
            }
        }
        self.out.counters.window_changed(window_bytes, reader.window_bytes());
        if let Some(connection) = self.out.connections.get_mut(key.index as usize) {
            connection.reader = reader;
            if commands > 0 && self.inboxes.are_congested() {
                connection.is_held = true;
                self.held.push(key);
                self.application.held(key, true, self.out.now);
            }
        }
        self.report_closed();
    }
}

pub(super) const WAKER: Token = Token(usize::MAX);

/// The largest read; all connections of the shard share the buffer.
const READ_BYTES: usize = 64 * 1024;

const EVENTS_MAX: usize = 1024;

/// A turn reads at most this long before it serves messages and timers, so that many peers that send at once
/// alternate.
const READS_TIME: Duration = Duration::from_millis(20);

/// A turn with publications looks for others at most this long after it has begun.
const GATHER_TIME: Duration = Duration::from_micros(100);

/// A turn serves messages at most this long before it looks at sockets and timers again.
const MESSAGES_TIME: Duration = Duration::from_millis(20);

/// The storage shrinks to this length after a burst of messages.
const MESSAGES_KEPT: usize = 16 * 1024;

#[cfg(test)]
mod tests;
