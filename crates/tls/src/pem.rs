//! PEM options (RFC 7468): certificates and private keys, as text, as base64 of text, or in a file.
//! In: the value of an option → out: certificates, a key, or what is wrong with the value.
//! Uses one read of a file. Never: shows a private key.
//! Changed here: the forms of a PEM option. Which certificates are believed or shown is decided in `tls::client` and `tls::server`.

use std::path::Path;

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{Error, PemObject},
};

use crate::TlsError;

/// All certificates of an option, in their order; at least one.
pub(super) fn certificates(
    key: &'static str,
    value: &str,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = text(key, value)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(TlsError::pem(key, &"it contains no certificate")),
        Err(error) => Err(TlsError::pem(key, &error)),
    }
}

/// The first private key of an option.
pub(super) fn private_key(
    key: &'static str,
    value: &str,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = text(key, value)?;
    if is_encrypted(&text) {
        return Err(TlsError {
            key,
            fault: "the private key is encrypted".to_owned(),
            expected: "a key without a passphrase, as `openssl pkey` writes it",
        });
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        Error::NoItemsFound => TlsError::pem(key, &"it contains no private key"),
        error => TlsError::pem(key, &error),
    })
}

/// PKCS #8 (RFC 5958), and the older form of OpenSSL, which has a header in the text (RFC 1421 §4.6.1.1).
fn is_encrypted(text: &[u8]) -> bool {
    let heads = [&b"-----BEGIN ENCRYPTED PRIVATE KEY-----"[..], b"Proc-Type: 4,ENCRYPTED"];
    heads.iter().any(|head| text.windows(head.len()).any(|window| window == *head))
}

/// Reads a PEM option: PEM text, base64 of PEM text, or the name of a PEM file.
fn text(key: &'static str, value: &str) -> Result<Vec<u8>, TlsError> {
    if value.contains("-----BEGIN ") {
        return Ok(value.as_bytes().to_vec());
    }
    // `base64` breaks lines.
    let encoded: String = value.split_whitespace().collect();
    if let Ok(text) = STANDARD.decode(encoded)
        && text.starts_with(b"-----BEGIN ")
    {
        return Ok(text);
    }
    std::fs::read(Path::new(value)).map_err(|error| match key {
        // Do not print the value: a malformed one may be the key itself.
        "key_pem" => TlsError::pem(key, &error),
        _ => TlsError::pem(key, &format_args!("{:?} cannot be read ({error})", start(value))),
    })
}

/// The first characters of a value, for error messages.
fn start(value: &str) -> String {
    value.chars().take(80).collect()
}
