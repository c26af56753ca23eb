//! Tests of subscribers with TLS against a tiny server.
//! In: a handshake, messages in pieces of any size → out: what the handler gets, what comes back.
//! Uses loopback sockets, rcgen and one thread for the server; waits for bytes, never for time.
//! What a subscriber says is tested in `generator`.

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use super::super::tests::{Messages, REPLIES, profile, receive, text, upgrade};
use super::super::{ConnectTarget, Generator, Profile};
use super::*;

fn configs() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let own = rcgen::generate_simple_self_signed(vec![SERVER_NAME.to_owned()]).expect("a name");
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
    (Arc::new(server), Arc::new(client.with_root_certificates(roots).with_no_client_auth()))
}

#[test]
fn subscribers_speak_tls() {
    let (server, client) = configs();
    for plain in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let server = server.clone();
        let thread = thread::spawn(move || {
            let (socket, _) = listener.accept().expect("a subscriber");
            let session = ServerConnection::new(server).expect("a configuration");
            let mut stream = StreamOwned::new(session, socket);
            if plain {
                stream.flush().expect("a handshake");
            } else {
                upgrade(&mut stream, "");
                receive(&mut stream);
                stream.write_all(&text(REPLIES)).expect("open");
            }
            for piece in [1, 100, 70_000] {
                let message = text(&format!("{{\"push\":\"{}\"}}", "x".repeat(100_000)));
                message.chunks(piece).for_each(|part| stream.write_all(part).expect("open"));
            }
            stream.write_all(&[0x89, 1, b'p']).expect("open");
            assert_eq!(receive(&mut stream), b"p");
        });
        let mut generator = Generator::new(true).expect("a poller");
        let tls = Some(client.clone());
        generator.set_endpoint(ConnectTarget { tls, ..ConnectTarget::default() });
        let profile = Profile { plain, ..profile(false) };
        generator.open_some(address, 1, |_| profile.clone()).expect("a listening server");
        let mut messages = Messages::default();
        while messages.0.len() < 3 {
            generator.turn(Some(Duration::from_secs(10)), &mut messages).expect("right records");
        }
        assert_eq!(generator.subscribed(), 1);
        while !thread.is_finished() {
            // Answers the ping; an error means that the server has left after that.
            let _ = generator.turn(Some(Duration::from_millis(10)), &mut messages);
        }
        assert!(messages.0.iter().all(|message| message.len() == 100_011));
        thread.join().expect("the script ran");
    }
}

#[test]
fn the_certificate_must_have_the_host_of_the_url() {
    let (_, client) = configs();
    for host in ["localhost", "localhost:1", "127.0.0.1:1", "[::1]", "[::1]:1"] {
        assert!(session(&client, host).is_ok(), "{host}");
    }
    let error = session(&client, "a b:1").expect_err("no name").to_string();
    assert_eq!(error, "TLS with a b:1");
    let address = ServerAddress::resolve("wss://127.0.0.1/a", "ws", Some(client.clone()));
    assert_eq!(address.expect("a URL").socket.port(), 443);
    assert!(ServerAddress::resolve("ws://127.0.0.1/a", "ws", Some(client)).is_err());
}
