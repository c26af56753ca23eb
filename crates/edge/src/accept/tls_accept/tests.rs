//! Tests of the TLS handshake of a listener: how long a peer may take, and which peers are counted.
//! In: bytes through a socket, and tokio's clock, which jumps to the next timer → out: the time of the end, counts.
//! Uses loopback sockets that are written to before the server reads; handshakes that succeed are in `fanwire/tests/it/tls.rs`.
//! Changed here: expectations of `edge::accept::tls_accept`.

use std::{io::Write, net};

use tokio::time::Instant;

use super::*;
use fanwire_tls::testing::localhost;

/// The seconds until a peer that sends only these bytes loses its slot, and what was counted.
async fn refused(bytes: &[u8], leaves: bool) -> (u64, Vec<&'static str>) {
    let listener = net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut theirs =
        net::TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    theirs.write_all(bytes).expect("room in the socket");
    let (ours, peer) = listener.accept().expect("it has come");
    ours.set_nonblocking(true).expect("a socket");
    let ours = TcpStream::from_std(ours).expect("a socket");
    if leaves {
        theirs.shutdown(net::Shutdown::Write).expect("a socket");
    }
    let counts = Arc::<HandshakeCounts>::default();
    let acceptor = TlsAcceptor::new(localhost(), Arc::clone(&counts));
    let (_stop, stopped) = watch::channel(false);
    let start = Instant::now();
    let accepted = accept(Some(&acceptor), ours, peer, &ConnectionSlots::new(1), stopped).await;
    assert!(accepted.is_none());
    let counted = counts.counts().filter(|(_, count)| *count > 0);
    (start.elapsed().as_secs(), counted.map(|(result, _)| result.name()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_handshake_has_the_time_of_a_head() {
    for bytes in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"] {
        assert_eq!(refused(bytes, false).await, (10, vec!["timed_out"]), "{bytes:?}");
    }
    assert_eq!(refused(b"GET / HTTP/1.1\r\n", false).await, (10, vec!["plain_http"]));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_leaves_is_counted_if_it_began_a_handshake() {
    assert_eq!(refused(b"", true).await, (0, vec![]));
    assert_eq!(refused(b"\x16\x03", true).await, (0, vec!["failed"]));
    assert_eq!(refused(b"\x15\x03\x01", true).await, (0, vec!["failed"]));
    assert_eq!(refused(b"\x80\x2e\x01", true).await, (0, vec!["failed"]));
}
