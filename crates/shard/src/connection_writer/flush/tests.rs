//! Tests of a single write.
//! In: a socket → out: an error.
//! Uses the loopback. Never: a shard.
//! When bytes are written is tested with turns.

use std::net::{Shutdown, TcpListener};

use rustix::io::Errno;

use crate::connection_writer::send;

#[test]
fn a_write_to_a_closed_socket_is_an_error_and_no_signal() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let socket = std::net::TcpStream::connect(address).expect("it listens");
    socket.shutdown(Shutdown::Write).expect("an open socket");
    let socket = mio::net::TcpStream::from_std(socket);
    assert_eq!(send(&socket, b"frame"), Err(Errno::PIPE));
}
