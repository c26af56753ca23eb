//! Tests of connections with TLS: which frames share a record, and what becomes of records that a socket does not take.
//! In: frames for a connection → out: the plaintext that its peer reads, and the levels of the queue.
//! Uses a `ConnectionWriter` on the test's own thread, real sockets and rustls; never a poller.
//! Changed here: expectations of `connection_writer::records`.

use std::{
    io::{ErrorKind, Read},
    net::{TcpListener, TcpStream},
};

use fanwire_ws::{Compression, Opcode};
use rustls::{
    SupportedProtocolVersion,
    version::{TLS12, TLS13},
};

use super::*;
use crate::connection::{Phase, is_open};
use crate::connection_writer::ConnectionWriter;
use crate::{
    CloseCause, ShardSettings, SlotKey, Transport,
    queue::Frame,
    tls::testing::{TestClient, connected},
};

#[test]
fn frames_of_a_turn_share_a_record_and_a_send() {
    for version in VERSIONS {
        let mut pair = Pair::new(version);
        pair.publish(b"one");
        pair.publish(b"two");
        pair.out.flush();
        let before = pair.received_bytes;
        assert_eq!(pair.read(), b"\x81\x03one\x81\x03two");
        assert_eq!(pair.out.counters.writes.value(), 1);
        let record = pair.received_bytes - before;
        assert!((10 + 22..=10 + 29).contains(&record), "one record: {record}");
        let counted = pair.out.counters.of(Transport::WebSocket, false).wire_bytes_out.value();
        assert_eq!(counted, record as u64, "bytes of records are counted");
    }
}

#[test]
fn behind_the_last_message_of_a_turn_a_frame_leaves_at_once() {
    let mut pair = Pair::new(&TLS13);
    pair.out.is_last = true;
    pair.publish(b"one");
    assert_eq!(pair.read(), b"\x81\x03one");
    assert!(!pair.out.is_busy_for_test());
}

#[test]
fn large_and_many_frames_are_divided_over_records() {
    for version in VERSIONS {
        let mut pair = Pair::new(version);
        pair.out.settings.queue_bytes_max = 10 << 20;
        let mut expected = Vec::new();
        for size in [100_000, 1, PLAINTEXT_BYTES_MAX - 4, 20_000, 3] {
            expected.extend(pair.publish(&vec![b'x'; size]));
        }
        for _ in 0..200 {
            expected.extend(pair.publish(&[b'y'; 300]));
        }
        assert!(pair.read_all() == expected);
        assert_eq!(pair.out.counters.queued_bytes.value(), 0);
    }
}

#[test]
fn what_a_socket_does_not_take_waits_as_records_and_counts() {
    let mut pair = Pair::new(&TLS13);
    pair.out.is_last = true;
    let mut expected = pair.publish(&vec![b'x'; 2 << 20]);
    assert!(
        pair.out.connection(pair.key.index).is_some_and(Connection::is_blocked),
        "no socket holds so much"
    );
    let queued = |pair: &Pair| {
        let connection = &pair.out.connections[pair.key.index as usize];
        let frames: usize = connection.queue.slices().iter().map(|slice| slice.len()).sum();
        (connection.queue.bytes(), frames, connection.unsent_records())
    };
    let (bytes, frames, records) = queued(&pair);
    assert_eq!(bytes, frames + records);
    assert!(records > 0 && records <= RECORDS_BYTES_MAX);
    pair.out.flush();
    assert_eq!(pair.out.counters.queued_bytes.value(), bytes as u64);
    pair.out.settings.queue_bytes_max = 100_000;
    expected.extend(pair.publish(b"two"));
    assert!(pair.read_all() == expected, "in order");
    assert_eq!(queued(&pair), (0, 0, 0));
}

#[test]
fn a_slow_connection_gets_what_was_begun_and_its_close_frame() {
    for version in VERSIONS {
        let mut pair = Pair::new(version);
        pair.out.is_last = true;
        let mut expected = pair.publish(&vec![b'x'; 2 << 20]);
        for _ in 0..20 {
            pair.publish(&[b'y'; 60_000]);
        }
        pair.publish(&vec![b'y'; 1 << 20]);
        assert!(!is_open(&pair.out.connections, pair.key), "its queue was full");
        expected.extend(b"\x88\x06\x03\xf0slow");
        assert!(pair.read_all() == expected, "frames that were not begun are dropped");
    }
}

#[test]
fn records_that_are_only_encrypted_are_not_dropped_with_the_frames() {
    let mut pair = Pair::new(&TLS13);
    // The socket takes no byte of this record, as if it had been full before.
    let connection = &mut pair.out.connections[pair.key.index as usize];
    let session = connection.tls_mut().expect("a session");
    session.push(b"\x81\x03one").expect("it is open");
    pair.out.sockets.count_answers(
        &mut pair.out.connections[pair.key.index as usize],
        pair.key.index,
        0,
    );
    pair.publish(b"two");
    pair.out.close_and_drop_queue(pair.key, 3000, "end", CloseCause::Other);
    assert_eq!(pair.read_all(), b"\x81\x03one\x88\x05\x0b\xb8end");
}

#[test]
fn levels_fall_to_zero_when_a_blocked_connection_ends() {
    let mut pair = Pair::new(&TLS13);
    pair.out.is_last = true;
    pair.publish(&vec![b'x'; 2 << 20]);
    pair.out.abort(pair.key);
    pair.out.flush();
    let counters = &pair.out.counters;
    assert_eq!((counters.queued_bytes.value(), counters.blocked.value()), (0, 0));
}

#[test]
fn connections_end_with_close_notify() {
    for version in VERSIONS {
        let mut pair = Pair::new(version);
        pair.out.close(pair.key, 3000, "end");
        pair.out.peer_closed(pair.key, Some(3000));
        assert_eq!(pair.read_all(), b"\x88\x05\x0b\xb8end");
        assert!(pair.ended(), "close_notify, then the end of the stream");
        assert!(pair.out.connections.is_empty());

        let mut pair = Pair::new(version);
        pair.out.send_close(pair.key, 1002, "bad", Phase::Failed, CloseCause::Other);
        assert_eq!(pair.read_all(), b"\x88\x05\x03\xeabad");
        assert!(pair.ended(), "our side is closed");
        assert!(!pair.out.connections.is_empty(), "it waits for the peer to leave");
        pair.out.flush_one(pair.key.index);
        assert_eq!(pair.out.counters.queued_bytes.value(), 0);
    }
}

const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

/// A connection and its peer.
struct Pair {
    out: ConnectionWriter,
    key: SlotKey,
    peer: TcpStream,
    client: TestClient,
    received_bytes: usize,
}

impl Pair {
    fn new(version: &'static SupportedProtocolVersion) -> Self {
        let mut out = ConnectionWriter::for_test(ShardSettings::default());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        peer.set_nonblocking(true).expect("a socket");
        let (socket, _) = listener.accept().expect("it has come");
        let key = out.open_for_test(socket, false, Compression::Raw);
        let (session, client) = connected(version);
        out.connection_mut(key.index).expect("it is open").limit_send_buffer();
        out.sockets.encrypt_with(&mut out.connections[key.index as usize], key.index, session);
        Self { out, key, peer, client, received_bytes: 0 }
    }

    /// Returns the frame.
    fn publish(&mut self, message: &[u8]) -> Vec<u8> {
        let frame = Frame::from(self.out.framers().shared().frame(Opcode::Text, false, message));
        self.out.push(self.key.index, &frame, message, None);
        frame.to_vec()
    }

    /// The plaintext of what has arrived.
    fn read(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.peer.read_to_end(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
        self.received_bytes += bytes.len();
        self.client.receive(&bytes)
    }

    /// Writes and reads until nothing is left.
    fn read_all(&mut self) -> Vec<u8> {
        let mut plaintext = Vec::new();
        self.out.flush();
        loop {
            let part = self.read();
            if part.is_empty() && !self.out.is_busy_for_test() {
                return plaintext;
            }
            plaintext.extend(part);
            self.out.writable_for_test(self.key);
            self.out.flush();
        }
    }

    /// Whether the peer has read close_notify and the end of the stream.
    fn ended(&mut self) -> bool {
        self.peer.set_nonblocking(false).expect("a socket");
        let mut rest = Vec::new();
        self.peer.read_to_end(&mut rest).expect("an orderly end");
        self.client.receive(&rest);
        self.client.0.process_new_packets().expect("valid records").peer_has_closed()
    }
}
