//! Tests of certificates in PEM: which are accepted, and why others are not.
//! In: texts → out: a certificate or an error.
//! Uses certificates made on the spot. Never: files.
//! A reason to refuse a certificate is a test here.

use rustls::{CertificateError as Invalid, Error, InconsistentKeys};

use super::*;
use crate::acme::testing::self_signed;

fn error(pem: &str) -> CertificateError {
    Certificate::from_pem("a.example", pem).expect_err("it cannot be used")
}

#[test]
fn key_and_chain_are_found_in_any_order() {
    let (key, chain) = self_signed("a.example");
    for pem in [format!("{key}{chain}"), format!("{chain}\n{key}")] {
        let certificate = Certificate::from_pem("a.example", &pem).expect("a certificate");
        assert_eq!(certificate.key.cert.len(), 1);
        assert!(certificate.validity.not_before < certificate.validity.not_after);
    }
}

#[test]
fn a_broken_text_is_refused_with_the_reason() {
    let (key, chain) = self_signed("a.example");
    assert_eq!(error(""), CertificateError::Chain);
    assert_eq!(error("-----BEGIN CERTIFICATE-----\nAAAA"), CertificateError::Chain);
    assert_eq!(
        error("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        CertificateError::Validity
    );
    assert_eq!(error(&key), CertificateError::Chain);
    assert_eq!(error(&chain), CertificateError::Key);
    let half = format!("{key}{}", &chain[..chain.len() / 2]);
    assert_eq!(error(&half), CertificateError::Chain);
}

#[test]
fn a_certificate_for_another_name_or_key_is_refused() {
    let ((key, chain), (other_key, other_chain)) =
        (self_signed("a.example"), self_signed("b.example"));
    let of_other_name = error(&format!("{other_key}{other_chain}"));
    let names = CertificateError::Mismatch(Error::InvalidCertificate(Invalid::NotValidForName));
    assert!(
        matches!(&of_other_name, CertificateError::Mismatch(Error::InvalidCertificate(_))),
        "not {names:?}"
    );
    let mismatch = Error::InconsistentKeys(InconsistentKeys::KeyMismatch);
    assert_eq!(error(&format!("{other_key}{chain}")), CertificateError::Mismatch(mismatch));
    drop(key);
}
