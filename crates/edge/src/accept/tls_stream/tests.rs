//! Tests of TLS on a tokio socket: handshakes, back-pressure, ends, and what moves to a shard.
//! In: a client of tokio-rustls → out: bytes on both sides.
//! Uses tokio's duplex-like loopback sockets and rcgen; never a server.
//! Changed here: expectations of `edge::accept::tls_stream`.

use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{PrivateKeyDer, ServerName},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::{TlsConnector, client};

use super::*;

type ClientStream = client::TlsStream<TcpStream>;

fn configs() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a name");
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(aws_lc_rs::default_provider());
    let server = ServerConfig::builder_with_provider(provider.clone());
    let server = server.with_safe_default_protocol_versions().expect("versions");
    let server = server.with_no_client_auth();
    let server = server.with_single_cert(vec![own.cert.der().clone()], key).expect("a pair");
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).expect("a certificate");
    let client = ClientConfig::builder_with_provider(provider);
    let client = client.with_safe_default_protocol_versions().expect("versions");
    let client = client.with_root_certificates(roots).with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let theirs = TcpStream::connect(listener.local_addr().expect("bound")).await;
    let (ours, _) = listener.accept().await.expect("it has come");
    (ours, theirs.expect("it listens"))
}

async fn connected() -> (TlsStream, ClientStream) {
    let ((server, client), (ours, theirs)) = (configs(), sockets().await);
    let name = ServerName::try_from("localhost").expect("a name");
    let connecting = TlsConnector::from(client).connect(name, theirs);
    let (ours, theirs) = tokio::join!(TlsStream::accept(ours, server), connecting);
    (ours.expect("a handshake"), theirs.expect("a handshake"))
}

#[tokio::test]
async fn bytes_of_both_sides_arrive_in_any_amount() {
    let (mut ours, mut theirs) = connected().await;
    let large = vec![b'x'; 5 << 20];
    for size in [1, 100, PLAINTEXT_BYTES_MAX, PLAINTEXT_BYTES_MAX + 1, large.len()] {
        let sent = async {
            ours.write_all(&large[..size]).await.expect("it is open");
            ours.flush().await.expect("it is open");
        };
        let mut received = vec![0; size];
        let (_, read) = tokio::join!(sent, theirs.read_exact(&mut received));
        assert!(read.is_ok() && received == large[..size], "{size}");
        let sent = async {
            theirs.write_all(&large[..size]).await.expect("it is open");
            theirs.flush().await.expect("it is open");
        };
        let (_, read) = tokio::join!(sent, ours.read_exact(&mut received));
        assert!(read.is_ok() && received == large[..size], "{size}");
    }
    assert_eq!(ours.plaintext.capacity(), 0, "an idle connection holds no buffer");
}

#[tokio::test]
async fn slices_share_records() {
    let (mut ours, mut theirs) = connected().await;
    let slices = [b"head ".as_slice(), b"", b"body"].map(IoSlice::new);
    let written = ours.write_vectored(&slices).await.expect("it is open");
    ours.flush().await.expect("it is open");
    let mut received = vec![0; written];
    theirs.read_exact(&mut received).await.expect("it is open");
    assert_eq!(received, b"head body");
    let large = vec![b'x'; PLAINTEXT_BYTES_MAX];
    let written = ours.write_vectored(&[IoSlice::new(b"1"), IoSlice::new(&large)]).await;
    assert_eq!(written.expect("it is open"), PLAINTEXT_BYTES_MAX, "one record");
}

#[tokio::test]
async fn a_peer_that_does_not_read_stops_the_writer() {
    let (mut ours, theirs) = connected().await;
    let large = vec![b'x'; 1 << 20];
    let mut total = 0;
    let is_full = loop {
        let waker = std::task::Waker::noop();
        match Pin::new(&mut ours).poll_write(&mut Context::from_waker(waker), &large) {
            Poll::Ready(Ok(count)) => total += count,
            stopped => break stopped.is_pending(),
        }
        assert!(total < 100 << 20, "no socket holds so much");
    };
    assert!(is_full && ours.session.unsent().len() < 20_000, "it waits with one record");
    drop(theirs);
}

#[tokio::test]
async fn ends_with_and_without_close_notify_are_ends() {
    let (mut ours, mut theirs) = connected().await;
    theirs.write_all(b"last").await.expect("it is open");
    theirs.shutdown().await.expect("it is open");
    let mut received = Vec::new();
    ours.read_to_end(&mut received).await.expect("an end");
    assert_eq!(received, b"last");
    ours.write_all(b"answer").await.expect("our side is open");
    ours.shutdown().await.expect("our side is open");
    let mut received = Vec::new();
    theirs.read_to_end(&mut received).await.expect("close_notify, or this is an error");
    assert_eq!(received, b"answer");

    let (mut ours, mut theirs) = connected().await;
    theirs.get_mut().0.shutdown().await.expect("it is open");
    let mut received = Vec::new();
    ours.read_to_end(&mut received).await.expect("an end");
}

#[tokio::test]
async fn what_nothing_has_read_moves_on_with_the_session() {
    let (mut ours, mut theirs) = connected().await;
    theirs.write_all(b"request and more").await.expect("it is open");
    theirs.flush().await.expect("it is open");
    let mut request = [0; 7];
    ours.read_exact(&mut request).await.expect("it is open");
    let (mut socket, mut session, unread) = ours.into_parts();
    assert_eq!((&request, &unread[..]), (b"request", b" and more".as_slice()));
    session.push(b"answer").expect("it is open");
    socket.write_all(session.unsent()).await.expect("it is open");
    let mut answer = [0; 6];
    theirs.read_exact(&mut answer).await.expect("it is open");
    assert_eq!(&answer, b"answer");
}

#[tokio::test]
async fn a_failed_handshake_is_answered_with_an_alert() {
    let ((server, _), (ours, mut theirs)) = (configs(), sockets().await);
    theirs.write_all(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00").await.expect("it is open");
    let Err(error) = TlsStream::accept(ours, server).await else { panic!("it is no ClientHello") };
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    let mut alert = Vec::new();
    theirs.read_to_end(&mut alert).await.expect("an end");
    assert_eq!(alert[..3], [21, 3, 3]);
}

/// As `openssl s_client` does without input.
#[tokio::test]
async fn a_client_that_leaves_with_its_last_message_of_the_handshake_has_done_it() {
    let ((server, client), (ours, mut theirs)) = (configs(), sockets().await);
    let leaves = async {
        let name = ServerName::try_from("localhost").expect("a name");
        let mut session = rustls::ClientConnection::new(client, name).expect("a configuration");
        let mut bytes = Vec::new();
        session.write_tls(&mut bytes).expect("memory takes everything");
        theirs.write_all(&bytes).await.expect("it is open");
        while session.is_handshaking() {
            let mut received = [0; 4096];
            let count = theirs.read(&mut received).await.expect("it is open");
            session.read_tls(&mut &received[..count]).expect("memory is readable");
            session.process_new_packets().expect("valid records");
        }
        session.send_close_notify();
        let mut bytes = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut bytes).expect("memory takes everything");
        }
        theirs.write_all(&bytes).await.expect("it is open");
        theirs.shutdown().await.expect("it is open");
    };
    let (accepted, ()) = tokio::join!(TlsStream::accept(ours, server), leaves);
    let mut received = Vec::new();
    accepted.expect("a handshake").read_to_end(&mut received).await.expect("an end");
    assert!(received.is_empty());
}
