//! Both sides of TLS for tests: configurations with a fresh certificate, and a client without a socket.
//! In: a version → out: configurations, sessions whose handshake is done.
//! Uses rustls and rcgen. Never: part of a build that is no test and does not fuzz.
//! Changed here: what tests and the fuzz target of this crate need of TLS.

use std::{io::Read, io::Write, sync::Arc};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, SupportedProtocolVersion,
    crypto::aws_lc_rs,
    pki_types::{PrivateKeyDer, ServerName},
};

use super::TlsSession;

/// The configurations of both sides.
pub(crate) struct Configs {
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) client: Arc<ClientConfig>,
}

/// Configurations of both sides that speak this version.
pub(crate) fn configs(version: &'static SupportedProtocolVersion) -> Configs {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a name");
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[version])
        .expect("a version")
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .expect("a pair");
    server.ticketer = aws_lc_rs::Ticketer::new().expect("random numbers");
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).expect("a certificate");
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("a version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Configs { server: Arc::new(server), client: Arc::new(client) }
}

/// The client's side.
pub(crate) struct TestClient(pub(crate) ClientConnection);

impl TestClient {
    pub(crate) fn new(config: Arc<ClientConfig>) -> Self {
        let name = ServerName::try_from("localhost").expect("a name");
        Self(ClientConnection::new(config, name).expect("a configuration"))
    }

    /// The bytes that it sends now.
    pub(crate) fn outgoing(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.0.wants_write() {
            self.0.write_tls(&mut bytes).expect("memory takes everything");
        }
        bytes
    }

    /// The records of a message, after whatever it has to send before.
    pub(crate) fn encrypted(&mut self, plaintext: &[u8]) -> Vec<u8> {
        let mut bytes = self.outgoing();
        for part in plaintext.chunks(32 << 10) {
            self.0.writer().write_all(part).expect("it fits into the buffer");
            bytes.extend(self.outgoing());
        }
        bytes
    }

    /// Receives bytes and returns their plaintext.
    pub(crate) fn receive(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        let mut plaintext = Vec::new();
        while !bytes.is_empty() {
            self.0.read_tls(&mut bytes).expect("memory is readable");
            self.0.process_new_packets().expect("valid records");
            // An error says that no more has arrived.
            let _ = self.0.reader().read_to_end(&mut plaintext);
        }
        plaintext
    }
}

/// A session and its client after their handshake; the client has received everything.
#[cfg(test)]
pub(crate) fn connected(
    version: &'static SupportedProtocolVersion,
) -> (Box<TlsSession>, TestClient) {
    let Configs { server, client } = configs(version);
    let mut session = TlsSession::new(server).expect("a configuration");
    let mut client = TestClient::new(client);
    shake_hands(&mut session, &mut client);
    (session, client)
}

pub(crate) fn shake_hands(session: &mut TlsSession, client: &mut TestClient) {
    while session.is_handshaking() || client.0.is_handshaking() {
        let mut bytes = client.outgoing();
        session.receive(&mut bytes, &mut Vec::new()).expect("a handshake");
        assert_eq!(client.receive(&sent(session)), b"");
    }
}

/// Takes the bytes that a session sends.
pub(crate) fn sent(session: &mut TlsSession) -> Vec<u8> {
    let bytes = session.unsent().to_vec();
    session.advance(bytes.len());
    bytes
}

impl TlsSession {
    /// The memory of its buffers.
    pub(crate) fn held_bytes(&self) -> usize {
        self.partial.capacity() + self.outgoing.capacity()
    }
}
