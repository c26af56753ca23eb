//! The answer to the challenge of the order in progress: tls-alpn-01 (RFC 8737) or http-01 (RFC 8555 §8.3).
//! In: the name and the key authorization → out: a certificate for one handshake, a document for one path.
//! Uses rcgen, and one lock. Never: sockets.
//! Changed here: what proves the control of a name. The handshake is in `resolver`, the document's listener in `plain_http`.

use std::sync::Arc;

use instant_acme::KeyAuthorization;
use parking_lot::Mutex;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::{
    crypto::aws_lc_rs,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    sign::CertifiedKey,
};

use super::schedule::ChallengeKind;

/// The answer that the authority looks for; at most one, because orders are made one at a time.
#[derive(Debug, Default)]
pub(super) struct Challenge(Mutex<Option<Answer>>);

#[derive(Debug)]
enum Answer {
    TlsAlpn { name: String, key: Arc<CertifiedKey> },
    Http { token: String, document: String },
}

/// Removes the answer when the order has ended, whichever way.
#[must_use]
#[derive(Debug)]
pub(super) struct Published<'a>(&'a Challenge);

impl Challenge {
    /// Answers until the returned value is dropped.
    ///
    /// # Errors
    /// The certificate of the challenge cannot be made.
    pub(super) fn publish(
        &self,
        kind: ChallengeKind,
        name: &str,
        token: &str,
        authorization: &KeyAuthorization,
    ) -> Result<Published<'_>, rcgen::Error> {
        let answer = match kind {
            ChallengeKind::TlsAlpn => {
                let key = Arc::new(certificate(name, authorization.digest().as_ref())?);
                Answer::TlsAlpn { name: name.to_owned(), key }
            }
            ChallengeKind::Http => {
                let document = authorization.as_str().to_owned();
                Answer::Http { token: token.to_owned(), document }
            }
        };
        *self.0.lock() = Some(answer);
        Ok(Published(self))
    }

    /// The certificate for a handshake of an authority with this server name.
    pub(super) fn certificate(&self, server_name: &str) -> Option<Arc<CertifiedKey>> {
        match &*self.0.lock() {
            Some(Answer::TlsAlpn { name, key }) if name.eq_ignore_ascii_case(server_name) => {
                Some(key.clone())
            }
            _ => None,
        }
    }

    /// The document at [`PATH`] and this token.
    pub(super) fn document(&self, asked: &str) -> Option<String> {
        match &*self.0.lock() {
            Some(Answer::Http { token, document }) if token == asked => Some(document.clone()),
            _ => None,
        }
    }
}

impl Drop for Published<'_> {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}

/// A certificate with the digest in the extension acmeIdentifier (RFC 8737 §3).
fn certificate(name: &str, digest: &[u8]) -> Result<CertifiedKey, rcgen::Error> {
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let pair = KeyPair::generate()?;
    let chain = vec![params.self_signed(&pair)?.der().clone()];
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(pair.serialize_der()));
    let key = aws_lc_rs::default_provider().key_provider.load_private_key(key);
    // Without the check that both belong together: it parses the certificate, and does not know the critical extension.
    Ok(CertifiedKey::new(chain, key.expect("aws-lc reads its own keys")))
}

/// Where http-01 looks; the token follows (RFC 8555 §8.3).
pub(super) const PATH: &str = "/.well-known/acme-challenge/";

#[cfg(test)]
mod tests;
