//! Tests of accepted sockets: what is taken from them, and who gets them.
//! In: the bytes of a peer and a decision → out: what the peer reads, and what is left in its socket.
//! Uses a poller and sockets of loopback, and the test's own time; never a shard.
//! Changed here: expectations of `shard::accepted`.

use std::{
    net::{Shutdown, TcpListener},
    sync::{Arc, Mutex},
};

use mio::{Events, Poll};

use super::*;
use crate::{Peer, Permit, prepare};

/// The end of a socket.
#[derive(Default)]
struct Log {
    seen: Vec<Vec<u8>>,
    declined: Option<TcpStream>,
}

const IDLE_MAX: Duration = Duration::from_secs(60);

/// Opens, refuses or answers requests that end in `!`, `?`, `.` or `,` (which may be idle for a shorter time), and declines
/// others.
struct Endings(Arc<Mutex<Log>>);

impl RequestHandler<()> for Endings {
    fn handle(&mut self, bytes: &[u8]) -> Option<(usize, RequestOutcome<()>)> {
        self.0.lock().expect("one thread").seen.push(bytes.to_vec());
        let end = bytes.iter().position(|byte| matches!(byte, b'!' | b'?' | b'.' | b','))?;
        let response = b"answer".to_vec();
        let outcome = match bytes[end] {
            b'?' => RequestOutcome::Refuse(response),
            b'.' => RequestOutcome::Answer(response, IDLE_MAX),
            b',' => RequestOutcome::Answer(response, SILENCE_MAX / 2),
            _ => {
                let permit = Permit::acquire(&Arc::default(), 0).expect("no limit");
                let connection = NewConnection::raw(Peer::default(), (), permit);
                RequestOutcome::Open(Box::new(NewConnection { head: response, ..connection }))
            }
        };
        Some((end + 1, outcome))
    }

    fn decline(self: Box<Self>, socket: TcpStream) {
        self.0.lock().expect("one thread").declined = Some(socket);
    }

    fn serve(self: Box<Self>, _socket: ShardSocket) -> SocketTask {
        unreachable!("no outcome is Serve")
    }
}

struct World {
    poll: Poll,
    accepted: AcceptedSockets<()>,
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
        let mut accepted = AcceptedSockets::default();
        let handler = Box::new(Endings(log.clone()));
        let slot = accepted.insert(socket, handler, poll.registry(), start);
        let slot = slot.expect("it is registered");
        Self { poll, accepted, log, start, slot, peer }
    }

    fn receive(&mut self) -> Option<(mio::net::TcpStream, Box<NewConnection<()>>)> {
        let registry = self.poll.registry();
        match self.accepted.receive(self.slot, &mut [0; 64], registry, self.start)? {
            Decided::Connection(socket, connection) => Some((socket, connection)),
            Decided::Served(..) => unreachable!("no outcome is Serve"),
        }
    }

    /// Waits for the event of the peer's next step.
    fn wait(&mut self) {
        let mut events = Events::with_capacity(4);
        self.poll.poll(&mut events, None).expect("a poller");
        let slots = events.iter().map(|event| AcceptedSockets::<()>::slot(event.token()));
        assert_eq!(slots.collect::<Vec<_>>(), [Some(self.slot)]);
    }

    fn send(&mut self, bytes: &[u8]) {
        self.peer.write_all(bytes).expect("room in the socket");
        self.wait();
    }

    /// All that the peer receives.
    fn received(mut self) -> Vec<u8> {
        drop(self.accepted);
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
    assert_eq!(opened.1.head, b"answer");
    let mut rest = [0; 16];
    assert_eq!(opened.0.read(&mut rest).expect("bytes"), 5);
    assert_eq!(&rest[..5], b"frame");
    assert!(world.accepted.waiting.is_empty());
}

#[test]
fn a_refused_peer_gets_the_response_and_the_end() {
    let mut world = World::new();
    world.send(b"may I?");
    assert!(world.receive().is_none());
    assert_eq!(world.received(), b"answer");
}

/// RFC 9112 §9.6: a close with unread bytes would reset the connection, and the peer would lose the response.
#[test]
fn what_a_refused_peer_sends_behind_its_request_is_discarded_until_it_closes() {
    let mut world = World::new();
    world.send(&[&b"may I?"[..], &[b'.'; 1000]].concat());
    assert!(world.receive().is_none());
    world.send(b"more");
    assert!(world.receive().is_none());
    let mut response = [0; 16];
    assert_eq!(world.peer.read(&mut response).expect("the response"), 6);
    assert_eq!(world.peer.read(&mut response).expect("an orderly end"), 0);
    assert_eq!(world.log.lock().expect("one thread").seen.len(), 1, "nothing more is handled");
    world.peer.shutdown(Shutdown::Write).expect("a socket");
    world.wait();
    assert!(world.receive().is_none() && world.accepted.waiting.is_empty());
}

#[test]
fn a_refused_peer_that_does_not_close_is_cut_off_after_a_time_or_many_bytes() {
    let mut world = World::new();
    world.send(b"one.may I?");
    assert!(world.receive().is_none());
    let registry = world.poll.registry();
    world.accepted.advance(registry, world.start + LINGER_TIME - Duration::from_millis(1));
    assert_eq!(world.accepted.waiting.len(), 1);
    world.accepted.advance(registry, world.start + LINGER_TIME);
    assert!(world.accepted.waiting.is_empty());
    assert!(world.log.lock().expect("one thread").declined.is_none());

    let mut world = World::new();
    world.send(b"may I?");
    assert!(world.receive().is_none());
    let mut sent = 0;
    while !world.accepted.waiting.is_empty() {
        assert!(sent < LINGER_BYTES_MAX + 65_536, "all that has arrived is counted");
        world.send(&[0; 4096]);
        assert!(world.receive().is_none());
        sent += 4096;
    }
    assert!(sent >= LINGER_BYTES_MAX);
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
    world.accepted.advance(registry, world.start + SILENCE_MAX - Duration::from_millis(1));
    assert!(world.log.lock().expect("one thread").declined.is_none());
    assert_eq!(world.accepted.next_deadline(), Some(world.start + SILENCE_MAX));
    world.accepted.advance(registry, world.start + SILENCE_MAX);
    let log = world.log.lock().expect("one thread");
    assert!(log.declined.is_some() && log.seen.is_empty());
    assert_eq!(world.accepted.next_deadline(), None);
}

#[test]
fn a_peer_that_leaves_without_a_byte_is_forgotten() {
    let mut world = World::new();
    world.peer.shutdown(Shutdown::Write).expect("a socket");
    world.wait();
    assert!(world.receive().is_none());
    assert!(world.accepted.waiting.is_empty());
    let log = world.log.lock().expect("one thread");
    assert!(log.declined.is_none() && log.seen.is_empty());
}

#[test]
fn a_stop_declines_all_sockets() {
    let mut world = World::new();
    world.accepted.decline_all(world.poll.registry());
    assert!(world.log.lock().expect("one thread").declined.is_some());
}

#[test]
fn an_answered_socket_waits_for_its_next_request() {
    let mut world = World::new();
    world.send(b"one.two.");
    assert!(world.receive().is_none());
    let seen = world.log.lock().expect("one thread").seen.clone();
    assert_eq!(seen, [&b"one.two."[..], b"two."]);
    let registry = world.poll.registry();
    world.accepted.advance(registry, world.start + SILENCE_MAX);
    assert_eq!(world.accepted.next_deadline(), Some(world.start + IDLE_MAX));
    world.send(b"three.fo");
    assert!(world.receive().is_none());
    let mut log = world.log.lock().expect("one thread");
    let mut rest = [0; 16];
    let mut socket = log.declined.take().expect("declined in the middle of a request");
    assert_eq!(socket.read(&mut rest).expect("bytes"), 2);
    drop((log, socket));
    assert_eq!(world.received(), b"answeransweranswer");
}

#[test]
fn an_answered_socket_is_closed_when_it_is_silent() {
    for (requests, idle_max) in [
        ("one.", IDLE_MAX),
        ("one,", SILENCE_MAX / 2),
        ("one.two,", SILENCE_MAX / 2),
        ("one,two.", IDLE_MAX),
    ] {
        let mut world = World::new();
        world.send(requests.as_bytes());
        assert!(world.receive().is_none());
        let registry = world.poll.registry();
        let just_before = world.start + idle_max - Duration::from_millis(1);
        world.accepted.advance(registry, just_before);
        assert_eq!(world.accepted.waiting.len(), 1, "{requests}");
        world.accepted.advance(registry, world.start + idle_max);
        assert!(world.accepted.waiting.is_empty(), "{requests}");
        assert!(world.log.lock().expect("one thread").declined.is_none(), "{requests}");
        world.accepted.advance(registry, world.start + 2 * IDLE_MAX);
        assert_eq!(world.accepted.next_deadline(), None, "{requests}");
    }
}

#[test]
fn the_socket_that_is_idle_for_the_longest_time_gives_way() {
    let mut world = World::new();
    world.accepted.close_longest_idle();
    assert_eq!(world.accepted.waiting.len(), 1, "it has not been answered");
    world.send(b"one.");
    assert!(world.receive().is_none());
    world.accepted.close_longest_idle();
    assert!(world.accepted.waiting.is_empty());
    assert_eq!(world.received(), b"answer");
}

#[test]
fn many_requests_at_once_are_for_another_server() {
    let mut world = World::new();
    world.send(&b"a.".repeat(REQUESTS_PER_EVENT + 1));
    assert!(world.receive().is_none());
    let log = world.log.lock().expect("one thread");
    assert_eq!(log.seen.len(), REQUESTS_PER_EVENT);
    assert!(log.declined.is_some());
}
