//! What becomes of a connection that ends while its application waits for somebody else.
//! In: a connection that is held, and ends → out: whether it is read on, up to the peer's close.
//! Uses an outlet without a shard, and one socket.
//! Changed here: tests of `shard::outlet::closes`.

use std::net::{TcpListener, TcpStream};

use fanwire_ws::Compression;

use super::*;
use crate::shard::Settings;

#[test]
fn a_connection_that_ends_while_it_waits_is_read_on() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let _peer = TcpStream::connect(address).expect("somebody listens");
    let (socket, _) = listener.accept().expect("it has come");
    let mut out = Outlet::for_test(Settings::default());
    let key = out.open_for_test(socket, false, Compression::Raw);
    out.hold(key);
    out.close(key, 3502, "stale");
    assert_eq!(out.released, [key]);
    out.hold(key);
    assert!(!out.any(key).expect("it waits for the peer's close").is_waiting);
}
