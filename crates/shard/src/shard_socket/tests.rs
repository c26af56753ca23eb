//! Tests of the sockets of tasks: when they read, and what leaves when.
//! In: bytes of a peer and of a task → out: results of reads and writes, bytes at the peer.
//! Uses sockets of loopback; never a task.
//! Changed here: expectations of `shard::shard_socket`.

use std::net::{TcpListener, TcpStream as StdStream};

use mio::{Events, Interest, Poll as Poller, Token};

use super::*;

/// A socket and its peer, which has sent `bytes`.
fn pair(bytes: &[u8]) -> (ShardSocket, StdStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let mut peer = StdStream::connect(address).expect("it listens");
    let (socket, _) = listener.accept().expect("it has come");
    peer.write_all(bytes).expect("room in the socket");
    if !bytes.is_empty() {
        socket.peek(&mut [0]).expect("they have arrived");
    }
    crate::prepare(&socket).expect("an open socket");
    (ShardSocket::new(TcpStream::from_std(socket)), peer)
}

fn read(socket: &ShardSocket, most: usize) -> Option<Vec<u8>> {
    let mut buffer = vec![0; most];
    match socket.poll_read(&mut buffer) {
        Poll::Ready(count) => Some(buffer[..count.expect("open")].to_vec()),
        Poll::Pending => None,
    }
}

#[test]
fn a_turn_has_one_read() {
    let (socket, _peer) = pair(b"abc");
    socket.begin_turn();
    assert_eq!(read(&socket, 2), Some(b"ab".to_vec()));
    assert!(!socket.may_read_on(), "the task has not asked");
    assert_eq!(read(&socket, 2), None);
    assert!(socket.may_read_on());
    socket.begin_turn();
    assert_eq!(read(&socket, 2), Some(b"c".to_vec()));
    assert_eq!(read(&socket, 2), None);
    assert!(!socket.may_read_on(), "the last read has emptied the socket");
}

#[test]
fn the_end_of_the_peer_is_read_after_its_bytes() {
    let (socket, peer) = pair(b"a");
    drop(peer);
    socket.note(true, true);
    socket.begin_turn();
    assert_eq!(read(&socket, 2), Some(b"a".to_vec()));
    assert_eq!(read(&socket, 2), None);
    assert!(socket.may_read_on());
    socket.begin_turn();
    assert_eq!(read(&socket, 2), Some(Vec::new()));
    assert!(socket.poll_peer_end().is_ready());
}

#[test]
fn what_is_written_leaves_when_it_is_sent() {
    let (socket, mut peer) = pair(&[]);
    assert!(socket.poll_peer_end().is_pending());
    let pieces = [b"ab".as_slice(), b"c"].map(IoSlice::new);
    assert!(matches!(socket.poll_write_vectored(&pieces), Poll::Ready(Ok(3))));
    assert!(matches!(socket.poll_write(b"d"), Poll::Ready(Ok(1))));
    peer.set_nonblocking(true).expect("an open socket");
    let early = peer.read(&mut [0]).expect_err("nothing was sent");
    assert_eq!(early.kind(), ErrorKind::WouldBlock);
    peer.set_nonblocking(false).expect("an open socket");
    socket.send().expect("open");
    let mut received = [0; 4];
    peer.read_exact(&mut received).expect("they were sent");
    assert_eq!(&received, b"abcd");
}

#[test]
fn a_task_waits_for_a_peer_that_does_not_read_and_everything_arrives() {
    let (socket, mut peer) = pair(&[]);
    let bytes: Vec<u8> = (0..10_000).map(|number| number as u8).collect();
    let mut written = 0;
    while let Poll::Ready(count) = socket.poll_write(&bytes[written % bytes.len()..]) {
        written += count.expect("open");
        assert!(written < 1 << 28, "sockets hold less");
    }
    let mut poll = Poller::new().expect("a poller");
    let interest = Interest::WRITABLE;
    let mut state = socket.0.lock();
    poll.registry().register(&mut state.socket, Token(0), interest).expect("memory");
    drop(state);
    assert!(socket.poll_shutdown().is_pending());
    let reading = std::thread::spawn(move || {
        let mut received = Vec::new();
        peer.read_to_end(&mut received).map(|_| received)
    });
    let mut events = Events::with_capacity(1);
    let closed = loop {
        poll.poll(&mut events, None).expect("a poller");
        if let Poll::Ready(closed) = socket.poll_shutdown() {
            break closed;
        }
    };
    closed.expect("an orderly end");
    let received = reading.join().expect("no panic").expect("an orderly end");
    assert_eq!(received.len(), written);
    assert!(received.iter().enumerate().all(|(at, byte)| *byte == (at % bytes.len()) as u8));
}
