//! Tests of accepted sockets: what is taken from them, and who gets them.
//! In: the bytes of a peer and a decision → out: what the peer reads, and what is left in its socket.
//! Uses a poller and sockets of loopback, and the test's own time; never a shard.
//! Changed here: expectations of `shard::handshake`.

use std::{
    net::{Shutdown, TcpListener},
    sync::{Arc, Mutex},
};

use mio::{Events, Poll};

use super::*;
use crate::{Compression, Peer, Permit, prepare};

/// What became of a socket.
#[derive(Default)]
struct Log {
    seen: Vec<Vec<u8>>,
    declined: Option<TcpStream>,
}

/// Opens or refuses requests that end in `!` or `?`, and declines others.
struct Endings(Arc<Mutex<Log>>);

impl Handshake<()> for Endings {
    fn decide(&mut self, bytes: &[u8], _now: Instant) -> HandshakeOutcome<()> {
        self.0.lock().expect("one thread").seen.push(bytes.to_vec());
        let end = bytes.iter().position(|byte| matches!(byte, b'!' | b'?'));
        let response = b"answer".to_vec();
        match end.map(|end| (end + 1, bytes[end])) {
            None => HandshakeOutcome::Decline,
            Some((request_bytes, b'?')) => HandshakeOutcome::Refuse { request_bytes, response },
            Some((request_bytes, _)) => {
                let negotiated = Negotiated {
                    is_binary: false,
                    compression: Compression::Raw,
                    may_inflate: false,
                    client_window: None,
                    peer: Peer::default(),
                    address: None,
                    hello: (),
                    permit: Permit::acquire(&Arc::default(), 0).expect("no limit"),
                };
                HandshakeOutcome::Open { request_bytes, response, negotiated }
            }
        }
    }

    fn decline(self: Box<Self>, socket: TcpStream) {
        self.0.lock().expect("one thread").declined = Some(socket);
    }
}

struct World {
    poll: Poll,
    handshakes: Handshakes<()>,
    log: Arc<Mutex<Log>>,
    start: Instant,
    slot: usize,
    peer: TcpStream,
}

impl World {
    /// One accepted socket, which has received nothing.
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (socket, _) = listener.accept().expect("it has come");
        prepare(&socket).expect("an open socket");
        let poll = Poll::new().expect("a poller");
        let (log, start) = (Arc::<Mutex<Log>>::default(), Instant::now());
        let mut handshakes = Handshakes::default();
        let handshake = Box::new(Endings(log.clone()));
        let slot = handshakes.insert(socket, handshake, poll.registry(), start);
        let slot = slot.expect("it is registered");
        Self { poll, handshakes, log, start, slot, peer }
    }

    fn receive(&mut self) -> Option<Opened<()>> {
        self.handshakes.receive(self.slot, &mut [0; 64], self.poll.registry(), self.start)
    }

    /// Waits for the event of the peer's next step.
    fn wait(&mut self) {
        let mut events = Events::with_capacity(4);
        self.poll.poll(&mut events, None).expect("a poller");
        let slots = events.iter().map(|event| Handshakes::<()>::slot(event.token()));
        assert_eq!(slots.collect::<Vec<_>>(), [Some(self.slot)]);
    }

    fn send(&mut self, bytes: &[u8]) {
        self.peer.write_all(bytes).expect("room in the socket");
        self.wait();
    }

    /// All that the peer receives.
    fn received(mut self) -> Vec<u8> {
        drop(self.handshakes);
        let mut received = Vec::new();
        self.peer.read_to_end(&mut received).expect("an orderly end");
        received
    }
}

#[test]
fn a_request_is_taken_and_what_follows_it_stays_in_the_socket() {
    let mut world = World::new();
    assert!(world.receive().is_none(), "nothing has come");
    world.send(b"hello!frame");
    let mut opened = world.receive().expect("a whole request");
    assert_eq!(opened.response, b"answer");
    let mut rest = [0; 16];
    assert_eq!(opened.socket.read(&mut rest).expect("bytes"), 5);
    assert_eq!(&rest[..5], b"frame");
    assert!(world.handshakes.pending.is_empty());
}

#[test]
fn a_refused_peer_gets_the_response_and_the_end() {
    let mut world = World::new();
    world.send(b"may I?");
    assert!(world.receive().is_none());
    assert_eq!(world.received(), b"answer");
}

#[test]
fn another_server_reads_a_declined_request_from_its_first_byte() {
    let mut world = World::new();
    world.send(b"GET ");
    assert!(world.receive().is_none());
    let mut log = world.log.lock().expect("one thread");
    assert_eq!(log.seen, [b"GET "]);
    let mut bytes = [0; 16];
    let socket = log.declined.as_mut().expect("declined");
    assert_eq!(socket.read(&mut bytes).expect("bytes"), 4);
}

#[test]
fn a_silent_socket_is_declined_after_a_second() {
    let mut world = World::new();
    let registry = world.poll.registry();
    world.handshakes.advance(registry, world.start + SILENCE_MAX - Duration::from_millis(1));
    assert!(world.log.lock().expect("one thread").declined.is_none());
    assert_eq!(world.handshakes.next_deadline(), Some(world.start + SILENCE_MAX));
    world.handshakes.advance(registry, world.start + SILENCE_MAX);
    let log = world.log.lock().expect("one thread");
    assert!(log.declined.is_some() && log.seen.is_empty());
    assert_eq!(world.handshakes.next_deadline(), None);
}

#[test]
fn a_peer_that_leaves_without_a_byte_is_forgotten() {
    let mut world = World::new();
    world.peer.shutdown(Shutdown::Write).expect("a socket");
    world.wait();
    assert!(world.receive().is_none());
    assert!(world.handshakes.pending.is_empty());
    let log = world.log.lock().expect("one thread");
    assert!(log.declined.is_none() && log.seen.is_empty());
}

#[test]
fn a_stop_declines_all_sockets() {
    let mut world = World::new();
    world.handshakes.decline_all(world.poll.registry());
    assert!(world.log.lock().expect("one thread").declined.is_some());
}
