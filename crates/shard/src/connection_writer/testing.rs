//! A `ConnectionWriter` without a shard, for tests of applications.
//! In: settings, sockets of a test → out: connections whose frames the test reads, and the counters.
//! Uses `ConnectionWriter` as a turn does. Never: part of a build that is not a test (feature `testing`).
//! Changed here: what a test may do in the place of a turn.

use std::net::TcpStream;
use std::sync::Arc;

use super::ConnectionWriter;
use crate::connection::{Connection, any};
use crate::counters::ShardCounters;
use crate::{Coding, Compression, Permit, ShardSettings, SlotKey, Transport, prepare};

impl ConnectionWriter {
    /// A `ConnectionWriter` without a shard.
    pub fn for_test(settings: ShardSettings) -> Self {
        Self::new(settings, Arc::default())
    }

    /// Opens a connection on a socket of the test, without a poller.
    ///
    /// # Panics
    /// If the socket is closed.
    pub fn open_for_test(
        &mut self,
        socket: TcpStream,
        is_binary: bool,
        compression: Compression,
    ) -> SlotKey {
        prepare(&socket).expect("an open socket");
        let permit = Permit::acquire(&Arc::default(), 0).expect("no limit");
        let mut connection =
            Connection::new(mio::net::TcpStream::from_std(socket), 1, false, compression, permit);
        connection.is_binary = is_binary;
        SlotKey { index: self.connections.insert(connection) as u32, generation: 1 }
    }

    /// Opens a response on a socket of the test, with `head` before its body.
    ///
    /// # Panics
    /// If the socket is closed.
    pub fn open_body_for_test(
        &mut self,
        socket: TcpStream,
        transport: Transport,
        is_binary: bool,
        coding: Option<Coding>,
        head: &[u8],
    ) -> SlotKey {
        let key = self.open_for_test(socket, is_binary, Compression::Raw);
        self.connections[key.index as usize].transport = transport;
        self.begin_response(key, coding, head.to_vec());
        key
    }

    /// The transport that the connection had been opened with.
    ///
    /// # Panics
    /// If the connection is gone.
    pub fn set_transport_for_test(&mut self, key: SlotKey, transport: Transport) {
        any(&mut self.connections, key).expect("an open connection").transport = transport;
    }

    /// The turn sets this before it serves the last message of its inbox.
    pub fn serve_last_for_test(&mut self, is_last: bool) {
        self.is_last = is_last;
    }

    /// The turn calls this for a socket that is writable again.
    pub fn writable_for_test(&mut self, key: SlotKey) {
        self.writable(key.index);
    }

    /// The turn calls this at its end.
    pub fn flush_for_test(&mut self) {
        self.flush();
    }

    /// Whether frames are still to be written.
    pub fn is_busy_for_test(&self) -> bool {
        self.connections.iter().any(|(_, connection)| !connection.queue.is_empty())
    }

    /// The counters of the shard.
    pub fn counters_for_test(&self) -> &ShardCounters {
        &self.counters
    }
}
