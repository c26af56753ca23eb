//! What becomes of bytes that were read of a connection and not fed yet, when the connection ends.
//! In: connections that wait for their application, with more behind it → out: what is heard of the rest.
//! Uses one turn's state on the test's own thread, and sockets without a handshake; turns of threads are in `tests/it/fairness.rs`.
//! Changed here: expectations of `shard::turn` that need to look inside.

use std::{
    io::Write as _,
    net::{TcpListener, TcpStream},
    sync::Arc,
};

use fanwire_ws::Compression;

use super::*;
use crate::{CloseCause, Inbox, Peer, Permit, Settings, prepare};

#[test]
fn the_close_of_a_peer_is_heard_behind_the_message_that_its_connection_ended_with() {
    let (mut turn, mut peer) = waiting_with(&[TEXT, CLOSE].concat(), &[]);
    turn.serve(ShardMessage::Notice(Goodbye));
    settle(&mut turn);
    assert_eq!(turn.out.connections.len(), 0, "nobody waits for a close that came");
    let mut heard = Vec::new();
    peer.read_to_end(&mut heard).expect("an orderly end");
    assert_eq!(heard, [0x88, 2, 0x0b, 0xb8], "our close, 3000, and the end of the stream");
}

#[test]
fn a_connection_that_is_to_close_is_read_on_within_the_frame_where_it_was_left() {
    let all = [TEXT, TEXT, CLOSE].concat();
    let (first, second) = all.split_at(TEXT.len() + 3);
    let (mut turn, _peer) = waiting_with(first, second);
    turn.serve(ShardMessage::Notice(Goodbye));
    settle(&mut turn);
    assert_eq!(turn.out.connections.len(), 0, "nobody waits for a close that came");
    assert_eq!(turn.out.counters.protocol_failures.value(), 0);
}

/// A turn with one connection, whose application waits since its first message; the second part is in its socket.
fn waiting_with(read: &[u8], unread: &[u8]) -> (Turn<Holder>, TcpStream) {
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

fn arrival<H>(socket: TcpStream, early: Vec<u8>, hello: H) -> Arrival<H> {
    Arrival {
        socket,
        early,
        is_binary: false,
        compression: Compression::Raw,
        may_inflate: false,
        peer: Peer::default(),
        hello,
        permit: Permit::acquire(&Arc::default(), 0).expect("no limit"),
    }
}

fn turn() -> Turn<Holder> {
    let poll = Poll::new().expect("a poller");
    let waker = mio::Waker::new(poll.registry(), WAKER).expect("a waker");
    let inboxes = Inboxes { all: vec![Inbox::new(waker)], own: 0 };
    let out = ConnectionWriter::for_test(Settings::default());
    Turn::new(Holder::default(), out, poll, inboxes, Limits::default())
}

/// Takes turns as long as one would begin at once, whatever sockets and timers do.
fn settle<A: Application>(turn: &mut Turn<A>) {
    let events = Events::with_capacity(1);
    while turn.poll_timeout() == Some(Duration::ZERO) {
        turn.turn(&events);
    }
}

/// Waits with every message, for the one thing that it can be told: to end its connection.
#[derive(Default)]
struct Holder {
    key: Option<SlotKey>,
    received: usize,
}

struct Goodbye;

impl Application for Holder {
    type Notice = Goodbye;
    type Hello = ();

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

    fn notice(&mut self, _: Goodbye, _now: Instant, out: &mut ConnectionWriter) {
        out.close(self.key.expect("it came"), 3000, "");
    }

    fn advance(&mut self, _now: Instant, _out: &mut ConnectionWriter) {}

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn close(&mut self, _key: SlotKey, _end: CloseCause, _now: Instant) {}
}

/// "a", in a text frame with a mask of zeros.
const TEXT: &[u8] = &[0x81, 0x81, 0, 0, 0, 0, b'a'];
/// A close frame without a code.
const CLOSE: &[u8] = &[0x88, 0x80, 0, 0, 0, 0];
