//! Fairness between the connections of one shard: each has a share of a turn, and its other bytes are read later.
//! In: connections with thousands of small messages in their sockets → out: the messages of each turn.
//! Uses a shard with a small application of its own, whose `now` distinguishes turns; sockets without a handshake.
//! Changed here: expectations of `shard::turn`. Many commands in one message are tested in `node`.

use std::{
    io::Write,
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

use fanwire_shard::{
    Application, Arrival, CloseCause, ConnectionWriter, NewConnection, Peer, ReceivedMessage,
    ShardMessage, ShardSettings, Shards, SlotKey, prepare,
};
use parking_lot::Mutex;

#[test]
fn connections_with_many_small_messages_take_turns_and_lose_none() {
    let mut shard = Shard::start();
    let _sockets = shard.while_it_is_busy(|shard| {
        [0, 1].map(|_| shard.open(&(0..MESSAGES).map(number).collect::<Vec<_>>().concat()))
    });
    let mut turns: Vec<(u32, Instant, usize)> = Vec::new();
    let mut came = [0; 2];
    while came != [MESSAGES; 2] {
        let Call::Message(connection, now, text) = shard.next() else { panic!("nobody closed") };
        assert_eq!(text, came[connection as usize].to_string(), "in order");
        came[connection as usize] += 1;
        match turns.last_mut() {
            Some((of, at, count)) if (*of, *at) == (connection, now) => *count += 1,
            _ => turns.push((connection, now, 1)),
        }
    }
    assert!(turns.iter().all(|(_, _, count)| *count <= SHARE), "{turns:?}");
    // The second connection may start one turn later, and then has the last turn alone.
    let begin = turns.iter().position(|(connection, ..)| *connection == 1).expect("it came");
    let end = turns.iter().rposition(|(connection, ..)| *connection == 0).expect("it came");
    assert!(begin <= 2, "{turns:?}");
    let alternate = |pair: &[(u32, Instant, usize)]| pair[0].0 != pair[1].0;
    assert!(turns[begin..=end].windows(2).all(alternate), "{turns:?}");
}

#[test]
fn all_messages_of_a_closed_peer_are_read_before_its_close() {
    let mut shard = Shard::start();
    shard.while_it_is_busy(|shard| {
        drop(shard.open(&(0..MESSAGES).map(number).collect::<Vec<_>>().concat()))
    });
    for expected in 0..MESSAGES {
        let Call::Message(_, _, text) = shard.next() else { panic!("closed before {expected}") };
        assert_eq!(text, expected.to_string());
    }
    assert!(matches!(shard.next(), Call::Close));
}

#[test]
fn a_held_connection_gets_its_other_messages_after_the_release() {
    let mut shard = Shard::start();
    let _socket = shard.while_it_is_busy(|shard| {
        shard.open(&[frame("1"), frame("hold"), frame("2"), frame("hold"), frame("3")].concat())
    });
    for expected in [&["1", "hold"][..], &["2", "hold"], &["3"]] {
        for expected in expected {
            let Call::Message(_, _, text) = shard.next() else { panic!("nobody closed") };
            assert_eq!(text, *expected);
        }
        shard.tell(TestNotice::Report);
        assert!(matches!(shard.next(), Call::Nothing), "the rest waits");
        shard.tell(TestNotice::Release);
    }
}

/// The calls of the application, in their order.
enum Call {
    Message(u32, Instant, String),
    Nothing,
    Close,
}

enum TestNotice {
    /// Report `Nothing`, then block until the test continues.
    Stick,
    /// Report `Nothing`.
    Report,
    /// Release the connection that sent "hold".
    Release,
}

struct Recorder {
    seen: Sender<Call>,
    go_on: Arc<Mutex<Receiver<()>>>,
    held: Option<SlotKey>,
}

impl Application for Recorder {
    type Notice = TestNotice;
    type Opening = ();

    fn open(&mut self, _key: SlotKey, (): (), _now: Instant, _out: &mut ConnectionWriter) {}

    fn receive(
        &mut self,
        key: SlotKey,
        message: ReceivedMessage<'_>,
        now: Instant,
        out: &mut ConnectionWriter,
    ) -> usize {
        let text = String::from_utf8(message.bytes().to_vec()).expect("text");
        if text == "hold" {
            self.held = Some(key);
            out.hold(key);
        }
        let _ = self.seen.send(Call::Message(key.index, now, text)); // a failed test has dropped its receiver
        1
    }

    fn notice(&mut self, notice: TestNotice, _now: Instant, out: &mut ConnectionWriter) {
        match notice {
            TestNotice::Stick => {
                let _ = self.seen.send(Call::Nothing);
                self.go_on.lock().recv().expect("the test lets it go on");
            }
            TestNotice::Report => drop(self.seen.send(Call::Nothing)),
            TestNotice::Release => self.held.take().into_iter().for_each(|key| out.release(key)),
        }
    }

    fn advance(&mut self, _now: Instant, _out: &mut ConnectionWriter) {}

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn close(&mut self, _: SlotKey, _: CloseCause, _: Instant, _: &ConnectionWriter) {
        let _ = self.seen.send(Call::Close);
    }
}

/// One shard with its application.
struct Shard {
    shards: Arc<Shards<Recorder>>,
    seen: Receiver<Call>,
    go_on: Sender<()>,
}

impl Shard {
    fn start() -> Self {
        let ((seen, is_seen), (go_on, may_go_on)) = (channel(), channel());
        let may_go_on = Arc::new(Mutex::new(may_go_on));
        let make = move |_| Recorder { seen: seen.clone(), go_on: may_go_on.clone(), held: None };
        let shards = Shards::start(&ShardSettings::default(), make).expect("a thread");
        Self { shards, seen: is_seen, go_on }
    }

    /// Blocks the shard during `happens`, so that it finds all events in one turn.
    fn while_it_is_busy<T>(&mut self, happens: impl FnOnce(&mut Self) -> T) -> T {
        self.tell(TestNotice::Stick);
        assert!(matches!(self.next(), Call::Nothing), "it is stuck");
        let result = happens(self);
        self.go_on.send(()).expect("it waits for this");
        result
    }

    fn tell(&self, tell: TestNotice) {
        self.shards.inboxes()[0].push(ShardMessage::Notice(tell), 1);
    }

    fn next(&self) -> Call {
        self.seen.recv_timeout(PATIENCE).expect("something happens")
    }

    /// A connection after its handshake, with `bytes` in its socket.
    fn open(&self, bytes: &[u8]) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut ours = TcpStream::connect(address).expect("it listens");
        let (socket, _) = listener.accept().expect("connected");
        ours.write_all(bytes).expect("less than a socket holds");
        prepare(&socket).expect("an open socket");
        self.shards.open(Arrival {
            socket,
            tls: None,
            early: Vec::new(),
            connection: NewConnection::raw(
                Peer::default(),
                (),
                self.shards.permit(0).expect("no limit"),
            ),
        });
        ours
    }
}

fn number(number: usize) -> Vec<u8> {
    frame(&number.to_string())
}

/// A text frame with a mask of zeros.
fn frame(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81, 0x80 | text.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// Some 30 KB: one read.
const MESSAGES: usize = 3000;
/// Maximum of small messages of one connection per turn.
const SHARE: usize = 256;
/// Timeout of a test.
const PATIENCE: Duration = Duration::from_secs(20);
