//! A shard that stops for a takeover: it pauses, then stands still, then runs on, here or with its connections in another program.
//! In: the steps of a freeze, connections of another program → out: records of connections; connections that go on where they were.
//! Uses the connections and the application's records. Never: decides about a takeover.
//! Changed here: which connections can move, and what a shard does while it stands still. The format is `saved_connection`.

use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        mpsc::{Receiver, Sender},
    },
    time::Instant,
};

use fanwire_ws::{InboundCompression, Reader};
use mio::{Interest, Token};

use super::{Application, Turn};
use crate::{
    budget::Budget,
    client_window::ClientWindow,
    connection::{Connection, Phase, SlotKey, any, open},
    freeze::{
        ConnectionSink, FreezeStep, FrozenCommand, GIVEN_MAX, MovableConnections, MovedConnections,
    },
    inbox::ShardMessage,
    new_connection::Permit,
    saved_connection::{SavedConnection, StreamState},
};

/// How far a shard has stopped.
pub(super) struct FreezeState<N, H> {
    /// It reads no socket, and begins no connection.
    pub(super) is_paused: bool,
    /// Dropped when no connection waits for an answer.
    settled: Option<Sender<()>>,
    /// Messages that begin connections.
    postponed: Vec<ShardMessage<N, H>>,
    /// The shard freezes at the end of the turn.
    order: Option<FreezeOrder>,
    /// Connections that another program may have.
    given: Vec<SlotKey>,
    /// Connections that another program had.
    taken: Vec<SlotKey>,
    /// It has run on and has not looked at its accepted sockets since.
    pub(super) has_run_on: bool,
}

/// Who waits for the freeze, and the commands behind it.
pub(super) struct FreezeOrder {
    begun: Sender<()>,
    commands: Receiver<FrozenCommand>,
}

impl<N, H> Default for FreezeState<N, H> {
    fn default() -> Self {
        Self {
            is_paused: false,
            settled: None,
            postponed: Vec::new(),
            order: None,
            given: Vec::new(),
            taken: Vec::new(),
            has_run_on: false,
        }
    }
}

impl<N, H> FreezeState<N, H> {
    /// Keeps a message that would begin a connection while the shard is paused. Returns any other message.
    pub(super) fn postpone(&mut self, message: ShardMessage<N, H>) -> Option<ShardMessage<N, H>> {
        let begins = matches!(
            message,
            ShardMessage::Accept(..) | ShardMessage::Open(_) | ShardMessage::Wake(..)
        );
        if self.is_paused && begins {
            self.postponed.push(message);
            return None;
        }
        Some(message)
    }
}

impl<A: Application> Turn<A> {
    pub(super) fn freeze_step(&mut self, step: FreezeStep) {
        match step {
            FreezeStep::Pause(settled) => {
                self.frozen.is_paused = true;
                self.frozen.settled = Some(settled);
            }
            FreezeStep::CloseOthers(_done) => {
                for key in self.open_keys() {
                    if !self.can_move(key) {
                        self.application.shut_down(key, &mut self.out);
                    }
                }
                self.report_closed();
            }
            FreezeStep::Count(counted) => {
                // Who does not wait for the result has ended the channel.
                let _ = counted.send(self.count_movable());
            }
            FreezeStep::Freeze(begun, commands) => {
                self.application.settle(self.out.now, &mut self.out);
                self.report_closed();
                self.frozen.order = Some(FreezeOrder { begun, commands });
            }
        }
    }

    /// Tells who waits that the shard has executed what it has read. The last step of a turn.
    pub(super) fn settle(&mut self) {
        if self.frozen.settled.is_some()
            && !self
                .out
                .connections
                .iter()
                .any(|(_, one)| one.phase == Phase::Open && one.is_waiting)
        {
            self.frozen.settled = None;
        }
    }

    /// Stands still, if the turn has ended with the order to do so. Blocks until the shard may run on.
    pub(super) fn stand_still(&mut self) {
        let Some(FreezeOrder { begun, commands }) = self.frozen.order.take() else { return };
        drop(begun);
        for command in commands {
            self.out.now = Instant::now();
            match command {
                // Who does not wait for the result has ended the channel.
                FrozenCommand::Give(sink, given) => drop(given.send(self.give(&*sink))),
                FrozenCommand::Take(moved, permits) => self.take_all(moved, permits),
                FrozenCommand::Wait(taken) => drop(taken.send(self.frozen.taken.len())),
                FrozenCommand::CloseTaken(_done) => self.close_taken(),
                FrozenCommand::Forget(_done) => self.forget(),
            }
        }
        self.frozen.is_paused = false;
        self.frozen.has_run_on = true;
        self.frozen.given.clear();
        self.frozen.taken = Vec::new();
        let postponed = self.frozen.postponed.drain(..).map(|message| (message, 0));
        self.messages.extend(postponed);
    }

    /// Looks at the accepted sockets, whose events were ignored.
    pub(super) fn read_requests_again(&mut self) {
        if std::mem::take(&mut self.frozen.has_run_on) {
            for slot in self.accepted.slots() {
                self.read_request(slot);
            }
        }
    }

    fn count_movable(&mut self) -> MovableConnections {
        let mut counts = MovableConnections::default();
        for key in self.open_keys() {
            let is_encrypted = self.out.connections[key.index as usize].is_encrypted();
            if self.can_move(key) {
                counts.movable += 1;
            } else if is_encrypted {
                counts.encrypted += 1;
            } else {
                counts.others += 1;
            }
        }
        counts
    }

    fn open_keys(&self) -> Vec<SlotKey> {
        let open = self.out.connections.iter().filter(|(_, one)| one.phase == Phase::Open);
        open.map(|(index, one)| one.key(index as u32)).collect()
    }

    fn give(&mut self, sink: &ConnectionSink) -> io::Result<usize> {
        let mut records = Vec::with_capacity(2 * RECORDS_BYTES);
        let mut keys = Vec::with_capacity(GIVEN_MAX);
        for key in self.open_keys() {
            let Some(record) = self.record(key) else { continue };
            record.append(&mut records);
            keys.push(key);
            if keys.len() == GIVEN_MAX || records.len() >= RECORDS_BYTES {
                self.give_some(&records, &keys, sink)?;
                records.clear();
                keys.clear();
            }
        }
        self.give_some(&records, &keys, sink)?;
        Ok(self.frozen.given.len())
    }

    fn give_some(
        &mut self,
        records: &[u8],
        keys: &[SlotKey],
        sink: &ConnectionSink,
    ) -> io::Result<()> {
        self.frozen.given.extend(keys);
        let connections = &self.out.connections;
        let socket = |key: &SlotKey| connections[key.index as usize].socket.as_fd();
        let sockets: Vec<BorrowedFd<'_>> = keys.iter().map(socket).collect();
        sink(records, &sockets)
    }

    /// Whether an open connection can move to another program.
    fn can_move(&mut self, key: SlotKey) -> bool {
        open(&mut self.out.connections, key)
            .is_some_and(|connection| !connection.is_encrypted() && !connection.is_waiting)
            && self.application.can_move(key)
    }

    /// The record of an open connection; `None` if it cannot move.
    fn record(&mut self, key: SlotKey) -> Option<SavedConnection> {
        let connection = open(&mut self.out.connections, key)?;
        if connection.is_encrypted() || connection.is_waiting {
            return None;
        }
        let application = self.application.save(key, self.out.now)?;
        let mut input = connection.reader.replay();
        input.extend_from_slice(&connection.rest);
        let window = &connection.window;
        Some(SavedConnection {
            transport: connection.transport,
            is_binary: connection.is_binary,
            compression: connection.compression,
            inbound: connection.reader.compression(),
            client_window: connection.reader.window(),
            address: connection.rare.as_ref().and_then(|rare| rare.address),
            has_small_buffer: connection.has_small_buffer,
            input,
            begun: connection.queue.begun().to_vec(),
            queued: connection.queue.unbegun().flat_map(|frame| frame.iter().copied()).collect(),
            stream: window.checksum().map(|checksum| StreamState {
                checksum,
                plaintext_bytes: window.plaintext_bytes(),
            }),
            application,
        })
    }

    /// Adds connections of another program. Those that cannot go on here are closed.
    fn take_all(&mut self, moved: MovedConnections, permits: Vec<Permit>) {
        let mut records = moved.records.as_slice();
        self.out.connections.reserve(moved.sockets.len());
        for (socket, permit) in moved.sockets.into_iter().zip(permits) {
            let record = SavedConnection::take_first(&mut records);
            let taken = record.and_then(|record| self.take(socket, record, permit));
            self.frozen.taken.extend(taken);
        }
    }

    /// Adds a connection of another program. `None` if it cannot go on here; then its socket closes.
    fn take(
        &mut self,
        socket: OwnedFd,
        record: SavedConnection,
        permit: Permit,
    ) -> Option<SlotKey> {
        let mut socket = mio::net::TcpStream::from_std(socket.into());
        let index = self.out.connections.vacant_key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        // Fails only if the kernel has no memory for one more watch.
        self.poll.registry().register(&mut socket, Token(index), interest).ok()?;
        self.generation = self.generation.wrapping_add(1);
        let new = Connection::new(socket, self.generation, false, record.compression, permit);
        let connection = resumed(new, &record, self.out.memory())?;
        self.out.counters.window_changed(0, connection.reader.window_bytes());
        self.out.counters.opened.add(1);
        let key = connection.key(index as u32);
        self.out.connections.insert(connection);
        let connection = &mut self.out.connections[key.index as usize];
        let address = connection.peer_address();
        self.out.sockets.resume(connection, key.index, &record.begun, &record.queued);
        if !self.application.adopt(key, &record.application, self.out.now) {
            drop(self.out.remove(key.index));
            return None;
        }
        if let Some(place) = self.application.place_of(address) {
            self.out.connections[key.index as usize].rare_mut()._place = Some(place);
        }
        // What comes, and what has come since, raises an event.
        if !record.input.is_empty() {
            self.out.released.push(key);
        }
        Some(key)
    }

    /// The other program has ended before it has given everything.
    fn close_taken(&mut self) {
        for key in std::mem::take(&mut self.frozen.taken) {
            self.out.abort(key);
        }
        self.report_closed();
    }

    /// Drops the connections that were given, without a byte. Their sockets stay open in the other program, so this poller would hear
    /// of them for as long as they are registered.
    fn forget(&mut self) {
        for key in std::mem::take(&mut self.frozen.given) {
            if any(&mut self.out.connections, key).is_none() {
                continue;
            }
            if let Some(mut connection) = self.out.remove(key.index) {
                let _gone = self.poll.registry().deregister(&mut connection.socket);
            }
        }
    }
}

/// A new connection in the state of its record, without its queue; `None` if there is no memory for the client's window.
fn resumed(
    mut connection: Connection,
    record: &SavedConnection,
    memory: &Arc<Budget>,
) -> Option<Connection> {
    if let InboundCompression::Takeover { window_bits } = record.inbound {
        let window = ClientWindow::reserve(memory, window_bits)?;
        connection.rare_mut()._client_window = Some(window.into_memory());
    }
    connection.reader = Reader::resumed(record.inbound, &record.client_window);
    if record.address.is_some() {
        connection.rare_mut().address = record.address;
    }
    connection.transport = record.transport;
    connection.is_binary = record.is_binary;
    connection.has_small_buffer = record.has_small_buffer;
    connection.rest = record.input.as_slice().into();
    if let Some(StreamState { checksum, plaintext_bytes }) = record.stream {
        connection.window.begin_stream(plaintext_bytes as usize, checksum);
    }
    Some(connection)
}

/// Records are given when they have so many bytes, or their sockets are [`GIVEN_MAX`].
const RECORDS_BYTES: usize = 128 << 10;

#[cfg(test)]
mod tests;
