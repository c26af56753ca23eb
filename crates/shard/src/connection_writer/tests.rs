//! Tests of when bytes are written: at once behind the last message of a turn, otherwise with all others at its end.
//! In: messages for a connection, with and without more to come → out: the bytes its peer reads, and the number of writes.
//! Uses a `ConnectionWriter` on the test's own thread and real sockets; never a poller.
//! Changed here: expectations of `connection_writer` that need private state.

use std::{
    io::{ErrorKind, Read},
    net::{TcpListener, TcpStream},
    time::Duration,
};

use fanwire_ws::Compression;

use super::*;
use crate::Transport;
use crate::connection::is_open;

mod under_load;

#[test]
fn behind_the_last_letter_a_publication_leaves_at_once() {
    let (mut out, key, mut peer) = connected();
    out.is_last = true;
    publish(&mut out, key, b"one");
    assert!(!out.is_busy_for_test(), "nothing waits");
    assert_eq!(read(&mut peer), [0x81, 3, b'o', b'n', b'e']);
    out.flush();
    assert_eq!(out.counters.writes.value(), 1);
    assert_eq!(out.counters.of(Transport::WebSocket, false).wire_bytes_out.value(), 5);
}

#[test]
fn what_waited_leaves_first_and_with_the_last_one() {
    let (mut out, key, mut peer) = connected();
    publish(&mut out, key, b"one");
    out.is_last = true;
    publish(&mut out, key, b"two");
    assert_eq!(read(&mut peer), b"", "more than one goes out together");
    out.flush();
    assert_eq!(read(&mut peer), [0x81, 3, b'o', b'n', b'e', 0x81, 3, b't', b'w', b'o']);
    assert_eq!(out.counters.writes.value(), 1);
}

#[test]
fn what_the_socket_does_not_take_waits_and_nothing_overtakes_it() {
    let (mut out, key, mut peer) = connected();
    out.is_last = true;
    let large = vec![b'x'; 16 << 20];
    publish(&mut out, key, &large);
    assert!(out.is_busy_for_test(), "no socket holds so much");
    out.settings.queue_bytes_max = usize::MAX;
    publish(&mut out, key, b"two");
    let mut received = Vec::new();
    while out.is_busy_for_test() {
        received.extend(read(&mut peer));
        out.writable_for_test(key);
        out.flush();
    }
    // The system sends the rest in parts while the peer's window is full.
    while received.len() < 10 + large.len() + 5 {
        received.extend(read(&mut peer));
    }
    assert_eq!(received.len(), 10 + large.len() + 5);
    assert_eq!(received[received.len() - 5..], [0x81, 3, b't', b'w', b'o']);
    let counted = out.counters.of(Transport::WebSocket, false).wire_bytes_out.value();
    assert_eq!(counted, received.len() as u64, "what left in part counts, too");
}

#[test]
fn queued_bytes_and_blocked_connections_are_levels_that_fall_to_zero_when_a_connection_ends() {
    let (mut out, key, _peer) = connected();
    out.is_last = true;
    publish(&mut out, key, &vec![b'x'; 16 << 20]);
    out.flush();
    let levels =
        |out: &ConnectionWriter| (out.counters.queued_bytes.value(), out.counters.blocked.value());
    assert_eq!(
        levels(&out),
        (out.connection(key.index).map_or(0, Connection::queued_bytes) as u64, 1)
    );
    assert!(
        out.connection(key.index).map_or(0, Connection::queued_bytes) > 0,
        "no socket holds so much"
    );
    out.abort(key);
    out.flush();
    assert_eq!(levels(&out), (0, 0));
}

#[test]
fn a_plain_connection_has_no_rare_parts() {
    let (mut out, key, mut peer) = connected();
    out.is_last = true;
    publish(&mut out, key, b"one");
    out.send(key, b"two");
    out.ping(key);
    out.close(key, 3000, "end");
    out.flush();
    assert_eq!(read(&mut peer), b"\x81\x03one\x81\x03two\x89\x00\x88\x05\x0b\xb8end");
    assert!(any(&mut out.connections, key).expect("its peer has not closed").rare.is_none());
}

#[test]
fn one_write_in_64_is_timed() {
    let (mut out, key, _peer) = connected();
    for _ in 0..65 {
        publish(&mut out, key, b"one");
        out.flush();
    }
    let (buckets, _) = out.counters.write_time.snapshot();
    assert_eq!(buckets.iter().sum::<u64>(), 2, "the first and the 65th");
}

#[test]
fn a_peer_that_is_gone_is_noticed_while_it_is_written_to() {
    let (mut out, key, peer) = connected();
    out.is_last = true;
    drop(peer);
    // The first write succeeds because the reset has not arrived yet; it arrives before the second one.
    publish(&mut out, key, b"one");
    while is_open(&out.connections, key) {
        publish(&mut out, key, b"two");
    }
    assert_eq!(out.closed, [(key, CloseCause::Other)]);
}

#[test]
fn what_is_meant_for_one_connection_leaves_at_the_end_of_the_turn() {
    // RFC 6455 §6.1e
    let (mut out, key, mut peer) = connected();
    out.is_last = true;
    out.send(key, b"one");
    assert_eq!(read(&mut peer), b"");
    out.flush();
    assert_eq!(read(&mut peer), [0x81, 3, b'o', b'n', b'e']);
}

#[test]
fn a_connection_ends_with_its_close_frame() {
    // RFC 6455 §5.5.1b, §6.1a, §7.1.2a
    let (mut out, key, mut peer) = connected();
    publish(&mut out, key, b"one");
    out.close(key, 3001, "bye");
    publish(&mut out, key, b"two");
    out.flush();
    assert_eq!(read(&mut peer), b"\x81\x03one\x88\x05\x0b\xb9bye");
}

#[test]
fn a_unidirectional_websocket_ends_with_a_message_and_a_close_frame_if_both_are_wanted() {
    let (message, close) = (&b"\x81\x083001 bye"[..], &b"\x88\x05\x0b\xb9bye"[..]);
    for (sends_last_message, sends_close_frame, expected) in [
        (true, true, [message, close].concat()),
        (false, true, close.to_vec()),
        (true, false, message.to_vec()),
        (false, false, Vec::new()),
    ] {
        let (mut out, key, mut peer) = connected_as(Transport::UniWebSocket);
        out.settings.uni_websocket.sends_last_message = sends_last_message;
        out.settings.uni_websocket.sends_close_frame = sends_close_frame;
        publish(&mut out, key, b"one");
        out.close(key, 3001, "bye");
        out.flush();
        let expected = [&b"\x81\x03one"[..], &expected].concat();
        if sends_close_frame {
            assert_eq!(read(&mut peer), expected, "and waits for the peer's close frame");
        } else {
            let mut received = Vec::new();
            peer.read_to_end(&mut received).expect("the connection has ended");
            assert_eq!(received, expected);
        }
        assert_eq!(out.closed, [(key, CloseCause::Other)]);
    }
}

#[test]
fn a_unidirectional_peer_that_breaks_the_protocol_gets_a_close_frame_alone() {
    let (mut out, key, mut peer) = connected_as(Transport::UniWebSocket);
    out.settings.uni_websocket.sends_close_frame = false;
    out.send_close(key, 1009, "long", Phase::Failed, CloseCause::Other);
    out.flush();
    let mut received = Vec::new();
    peer.read_to_end(&mut received).expect("a half-closed connection");
    assert_eq!(received, b"\x88\x06\x03\xf1long");
}

#[test]
fn a_unidirectional_websocket_has_a_write_timeout_of_its_own() {
    let (mut out, key, _peer) = connected_as(Transport::UniWebSocket);
    out.settings.uni_websocket.write_timeout = Duration::from_secs(3);
    publish(&mut out, key, &vec![b'x'; 16 << 20]);
    out.flush();
    assert_eq!(out.next_deadline(), Some(out.now + Duration::from_secs(3)));
    out.now += Duration::from_secs(2);
    out.advance();
    assert!(is_open(&out.connections, key));
    out.now += Duration::from_secs(1);
    out.advance();
    assert_eq!(out.closed, [(key, CloseCause::WriteTimeout)]);
}

#[test]
fn a_response_begins_when_the_application_says_or_is_replaced() {
    let (mut out, key, mut peer) = connected_as(Transport::UniHttpStream);
    out.begin_response(key, None, b"head\n".to_vec());
    out.send(key, b"one");
    out.flush();
    assert_eq!(read(&mut peer), b"head\none\n");
    let (mut out, key, mut peer) = connected_as(Transport::UniHttpStream);
    out.refuse(key, b"401".to_vec());
    out.send(key, b"one");
    out.begin_response(key, None, b"head\n".to_vec());
    out.flush();
    let mut received = Vec::new();
    peer.read_to_end(&mut received).expect("the connection has ended");
    assert_eq!((received, &*out.closed), (b"401".to_vec(), &[(key, CloseCause::Other)][..]));
}

fn publish(out: &mut ConnectionWriter, key: SlotKey, message: &[u8]) {
    let frame = Frame::from(out.framers().shared().frame(Opcode::Text, false, message));
    out.push(key.index, &frame, message, None);
}

fn connected() -> (ConnectionWriter, SlotKey, TcpStream) {
    let mut out = ConnectionWriter::for_test(ShardSettings::default());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    peer.set_nonblocking(true).expect("a socket");
    let (socket, _) = listener.accept().expect("it has come");
    let key = out.open_for_test(socket, false, Compression::Raw);
    (out, key, peer)
}

fn connected_as(transport: Transport) -> (ConnectionWriter, SlotKey, TcpStream) {
    let (mut out, key, peer) = connected();
    out.set_transport_for_test(key, transport);
    (out, key, peer)
}

/// Reads the bytes that have arrived; over loopback these are all written bytes.
fn read(peer: &mut TcpStream) -> Vec<u8> {
    let mut received = Vec::new();
    match peer.read_to_end(&mut received) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => received,
        ended => panic!("the connection is still open: {ended:?}"),
    }
}

#[test]
fn delayed_messages_are_written_together_when_the_first_has_waited_long_enough() {
    let (mut out, key, mut peer) = connected();
    out.settings.write_delay = Duration::from_millis(10);
    out.is_last = true;
    publish(&mut out, key, b"one");
    out.send(key, b"a reply");
    out.flush();
    publish(&mut out, key, b"two");
    out.flush();
    out.now += Duration::from_millis(9);
    out.advance();
    out.flush();
    assert_eq!(read(&mut peer), b"", "not yet");
    assert_eq!(out.next_deadline(), Some(out.now + Duration::from_millis(1)));
    out.now += Duration::from_millis(1);
    out.advance();
    out.flush();
    let bytes = read(&mut peer);
    assert_eq!(bytes, b"\x81\x03one\x81\x07a reply\x81\x03two");
    assert_eq!((out.counters.writes.value(), out.next_deadline()), (1, None));
}

#[test]
fn replies_take_what_was_delayed_before_them_along() {
    let (mut out, key, mut peer) = connected();
    out.settings.write_delay = Duration::from_millis(10);
    out.settings.reply_without_queue = true;
    publish(&mut out, key, b"one");
    out.flush();
    assert_eq!(read(&mut peer), b"");
    out.send(key, b"reply");
    out.flush();
    assert_eq!(read(&mut peer), b"\x81\x03one\x81\x05reply");
    // Nothing is left to be written when the time of the first is over.
    out.now += Duration::from_millis(10);
    out.advance();
    out.flush();
    assert_eq!(out.counters.writes.value(), 1);
    publish(&mut out, key, b"two");
    assert_eq!(out.next_deadline(), Some(out.now + Duration::from_millis(10)));
}

#[test]
fn a_full_queue_and_an_end_do_not_wait() {
    let (mut out, key, mut peer) = connected();
    out.settings.write_delay = Duration::from_secs(1);
    out.settings.queue_bytes_max = 12;
    publish(&mut out, key, b"first one");
    publish(&mut out, key, b"two");
    assert_eq!(read(&mut peer), b"\x81\x09first one", "it made room");
    out.close(key, 3000, "end");
    out.flush();
    assert_eq!(read(&mut peer), b"\x81\x03two\x88\x05\x0b\xb8end");
}
