//! Tests of bytes that were read from a connection and not processed before the connection ends.
//! In: connections that wait for their application, with more input → out: whether the rest is processed.
//! Uses one turn's state on the test's own thread, and sockets without a handshake; turns of threads are in `fanwire/tests/it/fairness.rs`.
//! Changed here: expectations of `shard::turn` that need private state.

use std::{
    io::Write as _,
    net::{TcpListener, TcpStream},
    sync::Arc,
};

use rustls::version::TLS13;

use super::*;
use crate::{
    CloseCause, Inbox, Peer, Permit, ReceivedMessage, ShardSettings, prepare,
    tls::testing::connected,
};

#[test]
fn the_close_of_a_peer_is_heard_behind_the_message_that_its_connection_ended_with() {
    let (mut turn, mut peer) = waiting_with(&[TEXT, CLOSE].concat(), &[]);
    turn.serve(ShardMessage::Notice(CloseNotice));
    settle(&mut turn);
    assert_eq!(turn.out.connections.len(), 0, "the close of the peer had arrived");
    let mut received = Vec::new();
    peer.read_to_end(&mut received).expect("an orderly end");
    assert_eq!(received, [0x88, 2, 0x0b, 0xb8], "our close, 3000, and the end of the stream");
}

#[test]
fn a_connection_that_is_to_close_is_read_on_within_the_frame_where_it_was_left() {
    let all = [TEXT, TEXT, CLOSE].concat();
    let (first, second) = all.split_at(TEXT.len() + 3);
    let (mut turn, _peer) = waiting_with(first, second);
    turn.serve(ShardMessage::Notice(CloseNotice));
    settle(&mut turn);
    assert_eq!(turn.out.connections.len(), 0, "the close of the peer had arrived");
    assert_eq!(turn.out.counters.protocol_failures.value(), 0);
}

#[test]
fn records_of_a_connection_that_waits_are_kept_as_plaintext_and_processed_later() {
    let (session, mut client) = connected(&TLS13);
    let (socket, mut peer) = pair();
    let mut turn = turn();
    turn.open(Arrival { tls: Some(session), ..arrival(socket, Vec::new(), ()) });
    let key = turn.application.key.expect("it came");
    peer.write_all(&client.encrypted(&[TEXT, TEXT, CLOSE].concat())).expect("it is open");
    turn.read(key.index, false);
    let connection = &turn.out.connections[key.index as usize];
    assert_eq!((turn.application.received, &*connection.rest), (1, &[TEXT, CLOSE].concat()[..]));
    turn.serve(ShardMessage::Notice(CloseNotice));
    settle(&mut turn);
    assert_eq!(turn.out.connections.len(), 0, "the close of the peer had arrived");
    let mut records = Vec::new();
    peer.read_to_end(&mut records).expect("an orderly end");
    assert_eq!(client.receive(&records), [0x88, 2, 0x0b, 0xb8]);
    assert!(client.0.process_new_packets().expect("valid records").peer_has_closed());
}

#[test]
fn what_a_session_has_to_send_when_it_arrives_is_sent_first() {
    let (mut session, mut client) = connected(&TLS13);
    session.push(b"rest of the head").expect("it is open");
    let (socket, mut peer) = pair();
    let mut turn = turn();
    turn.open(Arrival { tls: Some(session), ..arrival(socket, Vec::new(), ()) });
    let key = turn.application.key.expect("it came");
    turn.out.send(key, b"a");
    turn.out.flush();
    turn.out.abort(key);
    turn.out.flush();
    let mut records = Vec::new();
    peer.read_to_end(&mut records).expect("an orderly end");
    assert_eq!(client.receive(&records), b"rest of the head\x81\x01a");
    assert_eq!(turn.out.counters.queued_bytes.value(), 0);
}

#[test]
fn a_record_that_cannot_be_decrypted_is_answered_with_an_alert_and_ends_the_connection() {
    let (session, mut client) = connected(&TLS13);
    let (socket, mut peer) = pair();
    let mut turn = turn();
    turn.open(Arrival { tls: Some(session), ..arrival(socket, Vec::new(), ()) });
    let key = turn.application.key.expect("it came");
    let mut bytes = client.encrypted(TEXT);
    bytes.extend([23, 3, 3, 0, 40]);
    bytes.extend([7; 40]);
    peer.write_all(&bytes).expect("it is open");
    turn.read(key.index, false);
    turn.out.flush();
    assert_eq!(turn.application.received, 1, "what was right before it");
    assert!(turn.out.connections.is_empty());
    assert_eq!(turn.out.counters.protocol_failures.value(), 1);
    let mut records = Vec::new();
    peer.read_to_end(&mut records).expect("an orderly end");
    client.0.read_tls(&mut &records[..]).expect("memory is readable");
    let alert = client.0.process_new_packets().expect_err("an alert");
    assert_eq!(alert, rustls::Error::AlertReceived(rustls::AlertDescription::BadRecordMac));
}

#[test]
fn a_turn_without_events_reads_sockets_only_while_publications_wait() {
    let (socket, mut peer) = pair();
    let mut turn = turn();
    turn.open(arrival(socket, Vec::new(), ()));
    peer.write_all(TEXT).expect("it is open");
    let mut events = Events::with_capacity(1);
    turn.turn(&mut events);
    assert_eq!(turn.application.received, 0);
    // The system may run another thread until it is too late for a turn to look.
    for _ in 0..1_000 {
        if turn.application.received == 0 {
            let no_task = ShardMessage::Wake(0, 0);
            turn.inboxes.own().push(no_task, 1);
            turn.turn(&mut events);
        }
    }
    assert_eq!(turn.application.received, 1);
}

/// A turn with one connection whose application waits since the first message; the second part is in its socket.
fn waiting_with(read: &[u8], unread: &[u8]) -> (Turn<HoldingApplication>, TcpStream) {
    let (socket, mut peer) = pair();
    peer.write_all(unread).expect("less than a socket holds");
    let mut turn = turn();
    turn.open(arrival(socket, read.to_vec(), ()));
    assert_eq!(turn.application.received, 1);
    (turn, peer)
}

/// A socket for a shard, and its peer.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (socket, _) = listener.accept().expect("it has come");
    prepare(&socket).expect("an open socket");
    (socket, peer)
}

fn arrival<H>(socket: TcpStream, early: Vec<u8>, opening: H) -> Arrival<H> {
    Arrival {
        socket,
        tls: None,
        early,
        connection: NewConnection::raw(
            Peer::default(),
            opening,
            Permit::acquire(&Arc::default(), 0).expect("no limit"),
        ),
    }
}

fn turn() -> Turn<HoldingApplication> {
    let poll = Poll::new().expect("a poller");
    let waker = mio::Waker::new(poll.registry(), WAKER).expect("a waker");
    let inboxes = Inboxes { all: vec![Inbox::new(waker)], own: 0 };
    let out = ConnectionWriter::for_test(ShardSettings::default());
    Turn::new(HoldingApplication::default(), out, poll, inboxes, InputLimits::default())
}

/// Runs turns as long as the next one would begin at once, whatever sockets and timers do.
fn settle<A: Application>(turn: &mut Turn<A>) {
    let mut events = Events::with_capacity(1);
    while turn.poll_timeout() == Some(Duration::ZERO) {
        turn.turn(&mut events);
    }
}

/// Holds its connection at every message; a notice closes it.
#[derive(Default)]
struct HoldingApplication {
    key: Option<SlotKey>,
    received: usize,
}

struct CloseNotice;

impl Application for HoldingApplication {
    type Notice = CloseNotice;
    type Opening = ();

    fn open(&mut self, key: SlotKey, (): (), _now: Instant, _out: &mut ConnectionWriter) {
        self.key = Some(key);
    }

    fn receive(
        &mut self,
        key: SlotKey,
        _: ReceivedMessage<'_>,
        _now: Instant,
        out: &mut ConnectionWriter,
    ) -> usize {
        self.received += 1;
        out.hold(key);
        1
    }

    fn notice(&mut self, _: CloseNotice, _now: Instant, out: &mut ConnectionWriter) {
        out.close(self.key.expect("it came"), 3000, "");
    }

    fn advance(&mut self, _now: Instant, _out: &mut ConnectionWriter) {}

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn close(&mut self, _: SlotKey, _: CloseCause, _: Instant, _: &ConnectionWriter) {}
}

/// "a", in a text frame with a mask of zeros.
const TEXT: &[u8] = &[0x81, 0x81, 0, 0, 0, 0, b'a'];
/// A close frame without a code.
const CLOSE: &[u8] = &[0x88, 0x80, 0, 0, 0, 0];
