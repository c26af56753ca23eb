//! A certificate chain with its key (RFC 8555 §9.1): from PEM to what rustls signs with.
//! In: PEM of key and chain, the name it is for → out: a certificate, or why it cannot be used.
//! Uses rustls with aws-lc. Never: files, a clock.
//! Changed here: which certificates are refused.

use std::sync::Arc;

use rustls::{
    client::verify_server_name,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    server::ParsedCertificate,
    sign::CertifiedKey,
};

use super::validity::Validity;

/// The certificate that the server shows for one name.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) validity: Validity,
}

/// Why a certificate cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum CertificateError {
    /// There is no certificate in the text, or one that is no PEM.
    #[error("it contains no certificate")]
    Chain,
    /// There is no private key in the text.
    #[error("it contains no private key")]
    Key,
    /// The first certificate has no time of validity.
    #[error("its certificate has no time of validity")]
    Validity,
    /// It is for other names, or the key belongs to another certificate.
    #[error("{0}")]
    Mismatch(rustls::Error),
}

impl Certificate {
    /// Reads a private key and the chain that begins with its certificate, in any order.
    pub(super) fn from_pem(name: &str, pem: &str) -> Result<Self, CertificateError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        let chain = chain.map_err(|_| CertificateError::Chain)?;
        let first = chain.first().ok_or(CertificateError::Chain)?;
        let validity = Validity::of(first).ok_or(CertificateError::Validity)?;
        let name = ServerName::try_from(name).map_err(|_| CertificateError::Chain)?;
        let parsed = ParsedCertificate::try_from(first).map_err(CertificateError::Mismatch)?;
        verify_server_name(&parsed, &name).map_err(CertificateError::Mismatch)?;
        let key =
            PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| CertificateError::Key)?;
        let key = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())
            .map_err(CertificateError::Mismatch)?;
        Ok(Self { key: Arc::new(key), validity })
    }
}

#[cfg(test)]
mod tests;
