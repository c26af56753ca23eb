//! Back-pressure between shards: a client that publishes while another shard is behind waits, other clients do not.
//! In: two shards, one of them blocked → out: which connections are read.
//! Uses shards with a small application of its own; sockets without a handshake.
//! Changed here: expectations of `shard::inbox` and `shard::turn`.

use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

use fanwire_shard::{
    Application, Arrival, CloseCause, ConnectionWriter, INBOX_BYTES_MAX, Inbox, NewConnection,
    Peer, ReceivedMessage, ShardMessage, ShardSettings, Shards, SlotKey, Stop, prepare,
};
use fanwire_testing::{pause, wait_for};
use parking_lot::Mutex;

#[test]
fn a_client_is_not_read_while_another_shard_is_behind() {
    let (shards, stuck, go_on, held) = shards_with_a_blocked_second_one();
    let mut publisher = open(&shards);
    let _on_the_second_shard = open(&shards);
    let mut bystander = open(&shards);

    publisher.write_all(&POST).expect("sent");
    stuck.recv().expect("the second shard serves the letter, slowly");
    publisher.write_all(&ECHO).expect("sent, but not read");
    for _ in 0..3 {
        bystander.write_all(&PONG).expect("sent");
        assert_eq!(answer(&mut bystander), PONGED, "others are served");
    }
    publisher.set_nonblocking(true).expect("a socket");
    let error = publisher.read(&mut [0]).expect_err("nothing was answered");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    publisher.set_nonblocking(false).expect("a socket");
    assert_eq!(held.recv_timeout(PATIENCE), Ok(true), "and its application knows");

    go_on.send(()).expect("it waits for this");
    assert_eq!(answer(&mut publisher), ECHOED, "the publisher is read again");
    assert_eq!(held.recv_timeout(PATIENCE), Ok(false));
}

/// As with a remote broker: publications reach the shards from another thread.
#[test]
fn a_client_is_held_also_when_another_thread_sends_its_publications() {
    let (shards, stuck, go_on, held) = shards_with_a_blocked_second_one();
    let mut publisher = open(&shards);
    let _on_the_second_shard = open(&shards);
    let mut listener = open(&shards);
    shards.inboxes()[1].push(ShardMessage::Notice(()), INBOX_BYTES_MAX + 1);
    stuck.recv_timeout(PATIENCE).expect("the second shard serves the letter, slowly");

    publisher.write_all(&ECHO).expect("sent");
    assert_eq!(answer(&mut publisher), ECHOED, "what was read is done");
    assert_eq!(held.recv_timeout(PATIENCE), Ok(true), "and no more is read");
    publisher.write_all(&ECHO).expect("sent, but not read");
    for _ in 0..3 {
        listener.write_all(&PONG).expect("sent");
        assert_eq!(answer(&mut listener), PONGED, "who asks for nothing is read on");
    }
    publisher.set_nonblocking(true).expect("a socket");
    let error = publisher.read(&mut [0]).expect_err("nothing was answered");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    publisher.set_nonblocking(false).expect("a socket");

    go_on.send(()).expect("it waits for this");
    assert_eq!(held.recv_timeout(PATIENCE), Ok(false));
    assert_eq!(answer(&mut publisher), ECHOED, "the publisher is read again");
    assert!(held.try_recv().is_err(), "nobody else was held");
}

#[test]
fn a_message_that_arrives_while_a_shard_is_behind_is_processed() {
    let (shards, stuck, go_on, _held) = shards_with_a_blocked_second_one();
    let push = || shards.inboxes()[1].push(ShardMessage::Notice(()), 1);
    let serving = || stuck.recv_timeout(PATIENCE).expect("the next letter is served");
    let go_on_late = || {
        pause(LONGER_THAN_A_TURN);
        go_on.send(()).expect("it waits for this");
    };
    push();
    serving();
    push();
    push();
    go_on_late();
    serving(); // the second; the third is left for the next turn
    push();
    go_on_late();
    serving();
    go_on.send(()).expect("it waits for this");
    serving(); // the fourth, which woke the shard before the third was served
    go_on.send(()).expect("it waits for this");
}

#[test]
fn messages_that_a_shard_took_and_has_not_processed_count_as_backlog() {
    let (shards, stuck, go_on, _held) = shards_with_a_blocked_second_one();
    let push = |bytes| shards.inboxes()[1].push(ShardMessage::Notice(()), bytes);
    push(1);
    stuck.recv_timeout(PATIENCE).expect("the first letter is served");
    push(INBOX_BYTES_MAX);
    push(INBOX_BYTES_MAX);
    go_on.send(()).expect("it waits for this");
    stuck.recv_timeout(PATIENCE).expect("the second one is served, and both were taken");
    assert!(shards.backlog_bytes() >= 2 * INBOX_BYTES_MAX);
    assert!(shards.inboxes()[1].is_congested() && !shards.inboxes()[0].is_congested());
    go_on.send(()).expect("it waits for this");
    stuck.recv_timeout(PATIENCE).expect("the third one is served");
    go_on.send(()).expect("it waits for this");
    wait_for(|| shards.backlog_bytes() == 0, PATIENCE);
}

#[test]
fn a_socket_that_arrives_after_its_shard_stopped_is_closed() {
    let (shards, ..) = shards_with_a_blocked_second_one();
    assert!(!shards.are_stopping());
    shards.stop(Stop::default());
    assert!(shards.are_stopping());
    let mut late = open(&shards);
    late.set_read_timeout(Some(PATIENCE)).expect("a valid timeout");
    assert_eq!(late.read(&mut [0]).expect("an end, and in time"), 0);
    shards.inboxes()[0].push(ShardMessage::Notice(()), 1);
    assert_eq!(shards.backlog_bytes(), 0, "nothing waits for a shard that has ended");
}

/// Echoes texts. "pong" does not count as a command; "post" sends a message that exceeds the inbox limit of the second shard.
struct Poster {
    inboxes: Arc<OnceLock<Vec<Inbox<(), ()>>>>,
    stuck: Sender<()>,
    go_on: Arc<Mutex<Receiver<()>>>,
    held: Sender<bool>,
}

impl Application for Poster {
    type Notice = ();
    type Opening = ();

    fn open(&mut self, _key: SlotKey, (): (), _now: Instant, _out: &mut ConnectionWriter) {}

    fn receive(
        &mut self,
        key: SlotKey,
        message: ReceivedMessage<'_>,
        _now: Instant,
        out: &mut ConnectionWriter,
    ) -> usize {
        match message.bytes() {
            b"post" => {
                let second = &self.inboxes.get().expect("set before the first socket")[1];
                second.push(ShardMessage::Notice(()), INBOX_BYTES_MAX + 1);
            }
            other => out.send_as(key, false, other),
        }
        usize::from(message.bytes() != b"pong")
    }

    fn held(&mut self, _key: SlotKey, is_held: bool, _now: Instant) {
        let _ = self.held.send(is_held); // most tests do not listen
    }

    fn notice(&mut self, (): (), _now: Instant, _out: &mut ConnectionWriter) {
        self.stuck.send(()).expect("the test listens");
        self.go_on.lock().recv().expect("the test lets it go on");
    }

    fn advance(&mut self, _now: Instant, _out: &mut ConnectionWriter) {}

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn close(&mut self, _: SlotKey, _: CloseCause, _: Instant, _: &ConnectionWriter) {}
}

/// The shards, a signal that the second one is blocked, the sender that unblocks it, and whether a connection is held.
type BlockedShards = (Arc<Shards<Poster>>, Receiver<()>, Sender<()>, Receiver<bool>);

fn shards_with_a_blocked_second_one() -> BlockedShards {
    let (stuck, is_stuck) = channel();
    let (go_on, may_go_on) = channel();
    let (held, is_held) = channel();
    let may_go_on = Arc::new(Mutex::new(may_go_on));
    let inboxes: Arc<OnceLock<Vec<Inbox<(), ()>>>> = Arc::default();
    let seen = inboxes.clone();
    let make = move |_| Poster {
        inboxes: seen.clone(),
        stuck: stuck.clone(),
        go_on: may_go_on.clone(),
        held: held.clone(),
    };
    let shards = Shards::start(&ShardSettings { shards: 2, ..ShardSettings::default() }, make)
        .expect("two threads");
    inboxes.set(shards.inboxes().to_vec()).unwrap_or_else(|_| unreachable!("set once"));
    (shards, is_stuck, go_on, is_held)
}

/// A connection on the next shard, after its handshake.
fn open(shards: &Shards<Poster>) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let ours = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (socket, _) = listener.accept().expect("connected");
    prepare(&socket).expect("an open socket");
    shards.open(Arrival {
        socket,
        tls: None,
        early: Vec::new(),
        connection: NewConnection::raw(Peer::default(), (), shards.permit(0).expect("no limit")),
    });
    ours
}

fn answer(socket: &mut TcpStream) -> [u8; 6] {
    let mut bytes = [0; 6];
    socket.read_exact(&mut bytes).expect("an answer");
    bytes
}

/// Timeout of a test.
const PATIENCE: Duration = Duration::from_secs(20);
/// A shard polls its sockets again after 20 ms of processing messages.
const LONGER_THAN_A_TURN: Duration = Duration::from_millis(25);
/// Text frames with a mask of zeros.
const POST: [u8; 10] = *b"\x81\x84\0\0\0\0post";
const ECHO: [u8; 10] = *b"\x81\x84\0\0\0\0echo";
const ECHOED: [u8; 6] = *b"\x81\x04echo";
const PONG: [u8; 10] = *b"\x81\x84\0\0\0\0pong";
const PONGED: [u8; 6] = *b"\x81\x04pong";
