//! Tests of connections that end while their application waits, or that are closed twice.
//! In: a connection that is held, and ends → out: whether it is read on, up to the peer's close; the queued frames.
//! Uses a `ConnectionWriter` without a shard, and one socket.
//! Changed here: tests of `shard::connection_writer::closes`.

use std::net::{TcpListener, TcpStream};

use fanwire_ws::Compression;

use super::*;
use crate::ShardSettings;

#[test]
fn a_connection_that_ends_while_it_waits_is_read_on() {
    let (mut out, key, _peer) = opened();
    out.hold(key);
    out.close(key, 3502, "stale");
    assert_eq!(out.released, [key]);
    out.hold(key);
    assert!(!any(&mut out.connections, key).expect("it waits for the peer's close").is_waiting);
}

#[test]
fn a_close_frame_that_waits_is_not_dropped_by_a_second_end() {
    let (mut out, key, _peer) = opened();
    out.close(key, 3000, "over");
    out.close_and_drop_queue(key, 3008, "slow", CloseCause::Other);
    assert!(
        !any(&mut out.connections, key).expect("it waits for the peer's close").queue.is_empty()
    );
}

/// A `ConnectionWriter` with one connection, and its peer.
fn opened() -> (ConnectionWriter, SlotKey, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let peer = TcpStream::connect(address).expect("a listener");
    let (socket, _) = listener.accept().expect("it has come");
    let mut out = ConnectionWriter::for_test(ShardSettings::default());
    let key = out.open_for_test(socket, false, Compression::Raw);
    (out, key, peer)
}
