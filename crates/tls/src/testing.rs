//! What tests of listeners need: TLS with a certificate that is made on the spot.
//! In: nothing → out: TLS of a listener.
//! Uses rcgen. Never: files, sockets.
//! Changed here: the certificate of tests.

use std::sync::Arc;

use crate::ServerTlsOptions;

use crate::{ServerTls, server::Credentials};

/// TLS with a certificate for `localhost`, signed by itself.
///
/// # Panics
/// When the system has no random numbers.
pub fn localhost() -> Arc<ServerTls> {
    let pair =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("random numbers");
    let options = ServerTlsOptions {
        enabled: true,
        cert_pem: pair.cert.pem(),
        key_pem: pair.signing_key.serialize_pem().into(),
        client_ca_pem: String::new(),
    };
    let credentials = Credentials::load(&options).expect("a pair");
    Arc::new(ServerTls::new("http_server.tls", credentials))
}
