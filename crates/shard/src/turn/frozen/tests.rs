//! Tests of connections that move from one shard to another, as from one program to the next.
//! In: peers that are in the middle of something → out: bytes that are those of one connection.
//! Uses two shards on the test's thread, real sockets, stock zlib. Never: another process.
//! Changed here: what a connection may be doing when it moves.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Mutex,
    time::Duration,
};

use fanwire_deflate::Coding;
use fanwire_ws::{Compression, Opcode, frame};
use flate2::{
    Compress, Decompress, FlushCompress, FlushDecompress,
    read::{MultiGzDecoder, ZlibDecoder},
};
use mio::{Events, Poll};

use super::*;
use crate::{
    Arrival, CloseCause, ConnectionWriter, Inbox, InputLimits, NewConnection, Peer, Permit,
    ReceivedMessage, ShardSettings, Stop, Transport, inbox::Inboxes, prepare,
    tls::testing::connected, turn::WAKER,
};

#[test]
fn a_websocket_goes_on_within_a_message_and_within_a_frame() {
    let mut pair = Pair::open(raw());
    let all = [
        text(b"one"),
        masked(0x01, b"t"),
        masked(0x89, b"ping"),
        masked(0x80, "wö".as_bytes()),
        text(b"three"),
    ]
    .concat();
    // The second message ends within its last character.
    let cut = all.len() - text(b"three").len() - 1;
    pair.send(&all[..cut]);
    pair.before.settle();
    assert_eq!(pair.received(), [reply(b"1 one"), frame_of(Opcode::Pong, b"ping")].concat());
    pair.move_all();
    pair.send(&all[cut..]);
    pair.after.settle();
    assert_eq!(pair.received(), [reply("2 twö".as_bytes()), reply(b"3 three")].concat());
}

#[test]
fn what_was_read_and_not_executed_moves() {
    let mut pair = Pair::open(raw());
    // A share of a turn is 256 of them.
    pair.send(&text(b"a").repeat(300));
    pair.before.turn.turn_with_events(PATIENCE);
    pair.move_all();
    pair.after.settle();
    let replies: Vec<u8> = (1..=300).flat_map(|n| reply(format!("{n} a").as_bytes())).collect();
    assert_eq!(pair.received(), replies);
}

#[test]
fn contexts_go_on_in_both_directions() {
    let window = ClientWindow::reserve(&Budget::new(1 << 20), 12).expect("room");
    let mut pair = Pair::open(NewConnection {
        compression: Compression::Dedicated { window_bits: 12 },
        may_inflate: true,
        client_window: Some(window),
        ..raw()
    });
    let mut deflate = Compress::new_with_window_bits(flate2::Compression::new(9), false, 12);
    let mut inflate = Decompress::new_with_window_bits(false, 12);
    let message = "a message that is long enough to be compressed, and a little more ".repeat(3);
    for round in 1..=6 {
        let mut payload = Vec::with_capacity(1_000);
        let flush = FlushCompress::Sync;
        deflate.compress_vec(message.as_bytes(), &mut payload, flush).expect("room");
        payload.truncate(payload.len() - 4);
        assert!(round == 1 || payload.len() < 20, "it refers to the one before");
        pair.send(&masked(0xc1, &payload));
        if round <= 3 { &mut pair.before } else { &mut pair.after }.settle();
        let frames = pair.received();
        assert!(frame::is_compressed(&frames));
        let compressed = [frame::payload(&frames), &[0, 0, 0xff, 0xff]].concat();
        let mut reply = Vec::with_capacity(1_000);
        inflate
            .decompress_vec(&compressed, &mut reply, FlushDecompress::Sync)
            .expect("no frame refers to what moved");
        assert_eq!(reply, format!("{round} {message}").into_bytes());
        if round == 3 {
            pair.move_all();
        }
    }
}

#[test]
fn event_streams_go_on_and_end_with_the_checksum_of_everything() {
    for coding in [None, Some(Coding::Gzip), Some(Coding::Deflate)] {
        let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        let mut pair = Pair::open(NewConnection {
            transport: Transport::EventStream,
            coding,
            head: head.clone(),
            message: b"first".to_vec(),
            ..raw()
        });
        let long = b"a message that is long enough to be compressed ".repeat(8);
        pair.before.notice(&long);
        pair.move_all();
        pair.after.notice(&long);
        pair.after.turn.serve(ShardMessage::Stop(Stop::default()));
        pair.after.turn();
        let mut body = pair.received().split_off(head.len());
        if let Some(coding) = coding {
            let compressed = std::mem::take(&mut body);
            let read = match coding {
                Coding::Gzip => MultiGzDecoder::new(&compressed[..]).read_to_end(&mut body),
                Coding::Deflate => ZlibDecoder::new(&compressed[..]).read_to_end(&mut body),
            };
            read.expect("the checksum is that of everything");
        }
        let long = String::from_utf8(long).expect("text");
        let events =
            ["1 first", &long, &long, "1001 going away"].map(|it| format!("data: {it}\n\n"));
        assert_eq!(String::from_utf8(body).expect("text"), format!("\n{}", events.concat()));
    }
}

#[test]
fn a_frame_that_is_half_written_to_a_blocked_socket_is_written_to_its_end() {
    let mut pair = Pair::open(raw());
    let large = vec![b'x'; 16 << 20];
    pair.before.notice(&large);
    pair.before.notice(b"small");
    pair.before.turn();
    assert!(pair.before.turn.out.is_busy_for_test(), "no socket holds so much");
    pair.move_all();
    assert!(pair.before.turn.out.connections.is_empty());
    assert_eq!(pair.before.turn.counters().queued_bytes.value(), 0);
    pair.after.notice(b"last");
    let expected = [reply(&large), reply(b"small"), reply(b"last")].concat();
    let mut received = Vec::new();
    while received.len() < expected.len() {
        received.extend(pair.received());
        pair.after.turn.turn_with_events(Duration::from_millis(1));
    }
    assert!(received == expected);
}

#[test]
fn a_shard_that_runs_on_has_its_connections_as_before() {
    let mut pair = Pair::open(raw());
    let message = text(b"one");
    pair.before.turn.freeze_step(FreezeStep::Pause(done()));
    pair.send(&message[..5]);
    pair.before.turn.turn_with_events(PATIENCE);
    let copies = pair.before.give();
    assert_eq!(copies.len(), 1);
    drop(copies);
    pair.send(&message[5..]);
    pair.before.run_on();
    pair.before.settle();
    assert_eq!(pair.received(), reply(b"1 one"), "the reader took no byte while it stood still");
}

#[test]
fn a_paused_shard_executes_nothing_and_waits_for_answers() {
    let mut pair = Pair::open(raw());
    pair.send(&text(b"hold"));
    pair.before.settle();
    let (settled, is_settled) = std::sync::mpsc::channel();
    pair.before.turn.freeze_step(FreezeStep::Pause(settled));
    pair.send(&text(b"one"));
    pair.before.turn.turn_with_events(PATIENCE);
    assert_eq!(is_settled.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty));
    let key = pair.before.turn.application.sessions[0].0;
    pair.before.turn.out.release(key);
    pair.before.turn();
    assert_eq!(is_settled.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected));
    assert_eq!(pair.received(), reply(b"1 hold"));
    pair.move_all();
    pair.after.settle();
    assert_eq!(pair.received(), reply(b"2 one"));
}

#[test]
fn connections_that_cannot_move_are_closed_first() {
    let mut pair = Pair::open(raw());
    let (session, mut client) = connected(&rustls::version::TLS13);
    let (socket, mut peer) = sockets();
    pair.before.turn.open(Arrival {
        socket,
        tls: Some(session),
        early: Vec::new(),
        connection: raw(),
    });
    let counts = MovableConnections { movable: 1, encrypted: 1, others: 0 };
    assert_eq!(pair.before.turn.count_movable(), counts);
    pair.before.turn.freeze_step(FreezeStep::Pause(done()));
    pair.before.turn.freeze_step(FreezeStep::CloseOthers(done()));
    pair.before.turn();
    let mut records = vec![0; 1_000];
    let length = peer.read(&mut records).expect("a close frame");
    assert_eq!(client.receive(&records[..length]), *b"\x88\x0c\x03\xe9going away");
    assert_eq!(pair.before.give().len(), 1);
    assert_eq!(pair.received(), b"");
}

#[test]
fn a_state_that_the_application_does_not_know_closes_its_connection() {
    let mut pair = Pair::open(raw());
    let copy = pair.before.give().remove(0);
    let mut record = SavedConnection::take_first(&mut copy.records.as_slice()).expect("a record");
    record.application.push(0);
    let mut records = Vec::new();
    record.append(&mut records);
    let permits = permits(&copy);
    pair.after.turn.take_all(MovedConnections { records, ..copy }, permits);
    assert!(pair.after.turn.out.connections.is_empty(), "two bytes are no counter");
}

#[test]
fn connections_of_a_program_that_has_not_given_all_are_closed() {
    let mut pair = Pair::open(raw());
    for moved in pair.before.give() {
        let permits = permits(&moved);
        pair.after.turn.take_all(moved, permits);
    }
    pair.before.turn.forget();
    assert_eq!(pair.after.turn.application.sessions.len(), 1);
    pair.after.turn.close_taken();
    assert!(pair.after.turn.application.sessions.is_empty());
    pair.after.turn();
    assert!(pair.after.turn.out.connections.is_empty());
}

#[test]
fn connections_of_shards_on_threads_move_at_one_point() {
    let before = start_shards();
    let after = start_shards();
    let mut peers: Vec<TcpStream> = (0..20).map(|_| open_on(&before)).collect();
    let idle = after.freeze(Duration::ZERO, || {});
    drop(idle);
    for (round, is_kept) in [(1, true), (2, false), (3, false)] {
        for peer in &mut peers {
            peer.write_all(&text(b"hello")).expect("an open socket");
        }
        for peer in &mut peers {
            assert_eq!(read_reply(peer), format!("{round} hello"));
        }
        if round == 3 {
            break;
        }
        let frozen = before.freeze(PATIENCE, || {});
        let late = open_on(&before);
        let copies = Arc::new(Copies::default());
        let sink = copies.clone().sink();
        assert_eq!(frozen.give(&sink).expect("the sink takes all"), peers.len());
        if is_kept {
            drop(frozen);
            peers.push(late);
            peers.last_mut().expect("just pushed").write_all(&text(b"hello")).expect("open");
            assert_eq!(read_reply(peers.last_mut().expect("just pushed")), "1 hello");
            continue;
        }
        let mut taking = after.freeze(Duration::ZERO, || {});
        for connection in copies.take() {
            taking.take(connection);
        }
        assert_eq!(taking.wait(), peers.len());
        frozen.forget();
        drop(taking);
    }
    before.stop(Stop::default());
    after.stop(Stop::default());
}

fn start_shards() -> Arc<crate::Shards<Counter>> {
    let settings = ShardSettings { shards: 2, ..ShardSettings::default() };
    crate::Shards::start(&settings, |_| Counter::default()).expect("threads")
}

fn open_on(shards: &crate::Shards<Counter>) -> TcpStream {
    let (socket, peer) = sockets();
    shards.open(Arrival { socket, tls: None, early: Vec::new(), connection: raw() });
    peer
}

/// The text of the next frame.
fn read_reply(peer: &mut TcpStream) -> String {
    let mut header = [0; 2];
    peer.read_exact(&mut header).expect("a frame");
    let mut payload = vec![0; header[1].into()];
    peer.read_exact(&mut payload).expect("its payload");
    String::from_utf8(payload).expect("text")
}

/// Two shards, and the peer of one connection.
struct Pair {
    before: Shard,
    after: Shard,
    peer: TcpStream,
}

impl Pair {
    fn open(connection: NewConnection<()>) -> Self {
        let (socket, peer) = sockets();
        peer.set_nonblocking(true).expect("an open socket");
        let mut before = Shard::new();
        before.turn.open(Arrival { socket, tls: None, early: Vec::new(), connection });
        before.turn.out.flush();
        Self { before, after: Shard::new(), peer }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.peer.write_all(bytes).expect("less than a socket holds");
    }

    /// What has arrived.
    fn received(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.peer.read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        bytes
    }

    fn move_all(&mut self) {
        for moved in self.before.give() {
            let permits = permits(&moved);
            let known = self.after.turn.frozen.taken.len();
            let count = moved.sockets.len();
            self.after.turn.take_all(moved, permits);
            assert_eq!(self.after.turn.frozen.taken.len(), known + count, "all go on");
        }
        self.after.run_on();
        self.before.turn.forget();
        self.before.run_on();
        self.before.turn();
        self.after.turn();
    }
}

/// A shard on the test's thread.
struct Shard {
    turn: Turn<Counter>,
}

impl Shard {
    fn new() -> Self {
        let poll = Poll::new().expect("a poller");
        let waker = mio::Waker::new(poll.registry(), WAKER).expect("a waker");
        let inboxes = Inboxes { all: vec![Inbox::new(waker)], own: 0 };
        let settings = ShardSettings { queue_bytes_max: 64 << 20, ..ShardSettings::default() };
        let limits = InputLimits::of_settings(&settings);
        let out = ConnectionWriter::for_test(settings);
        Self { turn: Turn::new(Counter::default(), out, poll, inboxes, limits) }
    }

    fn turn(&mut self) {
        self.turn.turn(&mut Events::with_capacity(1));
    }

    /// Runs turns from the next event on, as long as the next one would begin at once.
    fn settle(&mut self) {
        self.turn.turn_with_events(PATIENCE);
        while self.turn.poll_timeout() == Some(Duration::ZERO) {
            self.turn();
        }
    }

    /// A message to all connections.
    fn notice(&mut self, message: &[u8]) {
        self.turn.serve(ShardMessage::Notice(message.to_vec()));
        self.turn.out.flush();
    }

    /// All connections as another program receives them, with copies of the sockets.
    fn give(&mut self) -> Vec<MovedConnections> {
        let copies = Arc::new(Copies::default());
        let count = self.turn.give(&*copies.clone().sink()).expect("the sink takes all");
        let copies = copies.take();
        assert_eq!(count, copies.iter().map(|some| some.sockets.len()).sum());
        copies
    }

    /// As at the end of a freeze.
    fn run_on(&mut self) {
        let (_, commands) = std::sync::mpsc::channel();
        self.turn.freeze_step(FreezeStep::Freeze(done(), commands));
        self.turn.stand_still();
    }
}

#[derive(Default)]
struct Copies(Mutex<Vec<MovedConnections>>);

impl Copies {
    fn sink(self: Arc<Self>) -> Arc<ConnectionSink> {
        Arc::new(move |records, sockets| {
            let records = records.to_vec();
            let sockets = sockets.iter().map(|socket| socket.try_clone_to_owned());
            let sockets = sockets.collect::<io::Result<_>>()?;
            self.0.lock().expect("no panic").push(MovedConnections { records, sockets });
            Ok(())
        })
    }

    fn take(&self) -> Vec<MovedConnections> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

fn permits(moved: &MovedConnections) -> Vec<Permit> {
    let permit = |_| Permit::acquire(&Arc::default(), 0).expect("no limit");
    moved.sockets.iter().map(permit).collect()
}

/// Answers each message with its number; a message "hold" holds its connection.
#[derive(Default)]
struct Counter {
    sessions: Vec<(SlotKey, u32)>,
}

impl Application for Counter {
    type Notice = Vec<u8>;
    type Opening = ();

    fn open(&mut self, key: SlotKey, (): (), _now: Instant, _out: &mut ConnectionWriter) {
        self.sessions.push((key, 0));
    }

    fn receive(
        &mut self,
        key: SlotKey,
        message: ReceivedMessage<'_>,
        _now: Instant,
        out: &mut ConnectionWriter,
    ) -> usize {
        let (_, count) = self.sessions.iter_mut().find(|it| it.0 == key).expect("it is open");
        *count += 1;
        let reply = [format!("{count} ").as_bytes(), message.bytes()].concat();
        out.send(key, &reply);
        if message.bytes() == b"hold" {
            out.hold(key);
        }
        1
    }

    fn notice(&mut self, message: Vec<u8>, _now: Instant, out: &mut ConnectionWriter) {
        for (key, _) in &self.sessions {
            out.send(*key, &message);
        }
    }

    fn advance(&mut self, _now: Instant, _out: &mut ConnectionWriter) {}

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn close(&mut self, key: SlotKey, _: CloseCause, _: Instant, _: &ConnectionWriter) {
        self.sessions.retain(|it| it.0 != key);
    }

    fn can_move(&mut self, key: SlotKey) -> bool {
        self.sessions.iter().any(|(known, _)| *known == key)
    }

    fn save(&mut self, key: SlotKey, _: Instant) -> Option<Vec<u8>> {
        let session = self.sessions.iter().find(|it| it.0 == key);
        session.map(|(_, count)| count.to_le_bytes().to_vec())
    }

    fn adopt(&mut self, key: SlotKey, saved: &[u8], _: Instant) -> bool {
        let Ok(count) = saved.try_into() else { return false };
        self.sessions.push((key, u32::from_le_bytes(count)));
        true
    }
}

fn raw() -> NewConnection<()> {
    NewConnection::raw(Peer::default(), (), Permit::acquire(&Arc::default(), 0).expect("no limit"))
}

/// A socket for a shard, and its peer.
fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (socket, _) = listener.accept().expect("it has come");
    prepare(&socket).expect("an open socket");
    (socket, peer)
}

fn done() -> Sender<()> {
    std::sync::mpsc::channel().0
}

fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    assert!(payload.len() < 126);
    let key = [1, 2, 3, 4];
    let masked = payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key);
    [first, 0x80 | payload.len() as u8].into_iter().chain(key).chain(masked).collect()
}

fn text(payload: &[u8]) -> Vec<u8> {
    masked(0x81, payload)
}

fn frame_of(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::encode(opcode, false, payload, &mut bytes);
    bytes
}

fn reply(payload: &[u8]) -> Vec<u8> {
    frame_of(Opcode::Text, payload)
}

const PATIENCE: Duration = Duration::from_secs(10);
