//! Properties that must hold for any bytes: the body of a fuzz target, also run by `fuzzing/tests.rs`.
//! In: bytes from a fuzzer → out: nothing, or a panic that names the property.
//! Uses `tls` and a client of rustls, both without sockets. Never: part of a build without the feature `fuzzing` or tests.
//! Changed here: a target per decoder; the programs that call them live in the fuzz folder.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, Error,
    client::Resumption,
    version::{TLS12, TLS13},
};

use crate::tls::{
    TlsSession,
    testing::{Configs, TestClient, configs, sent, shake_hands},
};

/// The input of a TLS session, before and after its handshake: it never panics, its buffers are bounded by what it received, it returns
/// only plaintext that its client encrypted, all of it if no other bytes arrive, and it stays in its first error.
///
/// The first byte chooses the version, whether the handshake is done, whether the bytes begin with a client hello, whether
/// they come in large pieces, and whether the client resumes a session; the next four are the sizes of the pieces.
pub fn tls_session(data: &[u8]) {
    let Some((&[flags, ref sizes @ ..], rest)) = data.split_first_chunk::<5>() else { return };
    static CONFIGS: OnceLock<[Configs; 2]> = OnceLock::new();
    let [tls13, tls12] = CONFIGS.get_or_init(|| [configs(&TLS13), configs(&TLS12)]);
    let configs = if flags & 1 == 0 { tls13 } else { tls12 };
    let unit = if flags & 8 == 0 { 1 } else { 100 };
    let sizes = sizes.map(|size| (usize::from(size) + 1) * unit);
    let client = || client(configs, flags & 16 != 0);
    match flags & 6 {
        0 => before_handshake(configs, sizes, rest),
        2 => before_handshake(configs, sizes, &damaged_hello(client(), rest)),
        _ => after_handshake(configs, client(), sizes, rest),
    }
}

/// A client that has no session, or one of a handshake before. Nothing is left of earlier inputs, so that each shows the same again.
fn client(configs: &Configs, is_resuming: bool) -> TestClient {
    let mut client = ClientConfig::clone(&configs.client);
    client.resumption = Resumption::in_memory_sessions(1);
    let client = Arc::new(client);
    if is_resuming {
        let mut session = TlsSession::new(configs.server.clone()).expect("a configuration");
        shake_hands(&mut session, &mut TestClient::new(client.clone()));
    }
    TestClient::new(client)
}

/// The bytes behind a client hello with one byte of it changed, as the first three say.
fn damaged_hello(mut client: TestClient, data: &[u8]) -> Vec<u8> {
    let mut bytes = client.outgoing();
    let Some((&[high, low, change], rest)) = data.split_first_chunk::<3>() else { return bytes };
    let at = usize::from(u16::from_be_bytes([high, low])) % bytes.len();
    bytes[at] ^= change;
    bytes.extend_from_slice(rest);
    bytes
}

/// However the bytes are divided, they end in the same error, or in none.
fn before_handshake(configs: &Configs, sizes: [usize; 4], bytes: &[u8]) {
    let session = || TlsSession::new(configs.server.clone()).expect("a configuration");
    let mut whole = Received::new(session());
    let mut divided = Received::new(session());
    whole.receive(bytes, [usize::MAX; 4]);
    divided.receive(bytes, sizes);
    assert_eq!(whole.failure, divided.failure, "read in pieces of {sizes:?}");
    assert!(whole.plaintext.is_empty() && divided.plaintext.is_empty());
    // Without the client's keys no handshake ends.
    for mut received in [whole, divided] {
        received.session.push(b"too early").expect_err("there are no keys");
        received.check_end();
    }
}

/// Instructions of a kind, a length and so many bytes.
fn after_handshake(configs: &Configs, mut client: TestClient, sizes: [usize; 4], mut data: &[u8]) {
    let mut session = TlsSession::new(configs.server.clone()).expect("a configuration");
    shake_hands(&mut session, &mut client);
    let mut received = Received::new(session);
    let mut expected = Vec::new();
    // Whether the session has received only what its client sent.
    let mut is_genuine = true;
    let mut key_updates = 0;
    while let Some((&[kind, length], rest)) = data.split_first_chunk::<2>() {
        let (bytes, rest) = rest.split_at(rest.len().min(length.into()));
        data = rest;
        let sent_bytes = match kind % 8 {
            0 => {
                is_genuine &= bytes.is_empty();
                bytes.to_vec()
            }
            1 => client.encrypted(&message(&mut expected, bytes)),
            2 => client.encrypted(&message(&mut expected, &bytes.repeat(200))),
            3 => {
                let mut records = client.encrypted(&message(&mut expected, bytes));
                let [at, change] =
                    [bytes.first(), bytes.get(1)].map(|byte| byte.map_or(0, |it| *it));
                if let Some(byte) = records.get_mut(usize::from(at)) {
                    *byte ^= change;
                    is_genuine &= change == 0;
                }
                records
            }
            4 => {
                // TLS 1.2 has no update of keys.
                let _ = client.0.refresh_traffic_keys();
                key_updates += 1;
                is_genuine &= key_updates <= KEY_UPDATES_MAX;
                client.outgoing()
            }
            5 => {
                answer(&mut received, &mut client, bytes);
                Vec::new()
            }
            6 => {
                client.0.send_close_notify();
                received.receive(&client.outgoing(), sizes);
                break;
            }
            _ => continue,
        };
        received.receive(&sent_bytes, sizes);
        assert!(
            expected.starts_with(&received.plaintext),
            "plaintext that the client did not send"
        );
        if is_genuine {
            assert_eq!(received.failure, None);
            assert_eq!(received.plaintext.len(), expected.len(), "plaintext is missing");
        }
    }
    // What follows a close_notify or the last instruction is ignored, or an error.
    received.receive(data, sizes);
    assert!(expected.starts_with(&received.plaintext), "plaintext that the client did not send");
    received.check_end();
}

/// Adds a message to the expected ones.
fn message(expected: &mut Vec<u8>, bytes: &[u8]) -> Vec<u8> {
    expected.extend_from_slice(bytes);
    bytes.to_vec()
}

/// The client decrypts what a session without error sends.
fn answer(received: &mut Received, client: &mut TestClient, bytes: &[u8]) {
    let pushed = received.session.push(bytes);
    match &received.failure {
        Some(failure) => assert_eq!(pushed.as_ref(), Err(failure)),
        None => {
            assert_eq!(pushed, Ok(()));
            assert_eq!(client.receive(&sent(&mut received.session)), bytes);
        }
    }
}

/// A session and what came out of it.
struct Received {
    session: Box<TlsSession>,
    plaintext: Vec<u8>,
    bytes: usize,
    failure: Option<Error>,
}

impl Received {
    fn new(session: Box<TlsSession>) -> Self {
        Self { session, plaintext: Vec::new(), bytes: 0, failure: None }
    }

    fn receive(&mut self, mut bytes: &[u8], sizes: [usize; 4]) {
        for size in sizes.into_iter().cycle() {
            if bytes.is_empty() {
                return;
            }
            let (piece, rest) = bytes.split_at(size.min(bytes.len()));
            bytes = rest;
            self.receive_piece(&mut piece.to_vec());
        }
    }

    fn receive_piece(&mut self, piece: &mut [u8]) {
        self.bytes += piece.len();
        let before = (self.plaintext.len(), self.session.unsent().len());
        let result = self.session.receive(piece, &mut self.plaintext);
        if let Some(failure) = &self.failure {
            assert_eq!(result.as_ref(), Err(failure), "the error does not stay");
            assert_eq!(before, (self.plaintext.len(), self.session.unsent().len()));
        }
        self.failure = result.err();
        assert!(self.plaintext.len() <= self.bytes, "more plaintext than bytes");
        let held_max = 2 * self.bytes + HANDSHAKE_BYTES_MAX;
        assert!(self.session.held_bytes() <= held_max, "more is held than {held_max} bytes");
    }

    /// The end of a session: close_notify is sent at most once, and never after an error.
    fn check_end(&mut self) {
        sent(&mut self.session);
        self.session.close();
        let closed = sent(&mut self.session);
        assert!(self.failure.is_none() || closed.is_empty(), "close_notify after an error");
        self.session.close();
        assert_eq!(self.session.unsent(), b"", "a second close_notify");
        let state = self.session.receive(&mut [], &mut self.plaintext);
        assert_eq!(state.as_ref().err(), self.failure.as_ref());
    }
}

/// Bytes that a session may hold without having received as many: the messages of its handshake, with a certificate.
const HANDSHAKE_BYTES_MAX: usize = 16 << 10;

/// rustls refuses more than 32 updates without a message in between.
const KEY_UPDATES_MAX: usize = 32;

#[cfg(test)]
mod tests;
