//! Which certificate a TLS handshake gets: that of its server name, or that of a challenge (RFC 8737 §3).
//! In: the ClientHello → out: a certificate, or none, which ends the handshake with an alert.
//! Uses the certificates of the names. Never: sockets, files; never orders a certificate.
//! Changed here: what is shown to a client without a server name. Orders are made by `worker`.

use std::sync::Arc;

use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::{certificates::Certificates, challenge::Challenge};
use crate::ACME_PROTOCOL;

/// The certificates of `host_whitelist`, as rustls asks for them.
#[derive(Debug)]
pub(super) struct Resolver {
    certificates: Arc<Certificates>,
    challenge: Arc<Challenge>,
    /// In lower case; "" = none.
    server_name: String,
}

impl Resolver {
    pub(super) fn new(
        certificates: Arc<Certificates>,
        challenge: Arc<Challenge>,
        server_name: &str,
    ) -> Self {
        Self { certificates, challenge, server_name: server_name.to_ascii_lowercase() }
    }

    /// `protocols` are those that the client offers.
    fn find<'a>(
        &self,
        name: Option<&str>,
        mut protocols: impl Iterator<Item = &'a [u8]>,
    ) -> Option<Arc<CertifiedKey>> {
        // An authority offers that protocol alone, and must not get another certificate (RFC 8737 §3).
        if protocols.next() == Some(ACME_PROTOCOL) && protocols.next().is_none() {
            return self.challenge.certificate(name?);
        }
        self.certificates.key(&name.unwrap_or(&self.server_name).to_ascii_lowercase())
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.find(hello.server_name(), hello.alpn().into_iter().flatten())
    }
}

#[cfg(test)]
mod tests;
