//! Tests of RSA keys: which PEM texts are accepted, and the error of the others.
//! In: PEM texts of `tests/keys` → out: fine, or the text of the error.
//! May use: `fixture.rs`.
//! ECDSA keys are tested in `ecdsa/tests.rs`, what keys then verify in `verifier/tests.rs`.

use super::super::Verifier;
use super::*;
use crate::fixture::*;

const RSA_1024: &str = include_str!("../../tests/keys/rsa_1024.public.pem");
const RSA_PKCS1: &str = include_str!("../../tests/keys/rsa_2048.pkcs1.public.pem");
const RSA_CERTIFICATE: &str = include_str!("../../tests/keys/rsa_2048.certificate.pem");

fn rsa_options(pem: &str) -> TokenOptions {
    TokenOptions { rsa_public_key: pem.to_owned(), ..TokenOptions::default() }
}

fn error(options: &TokenOptions) -> String {
    let verifier = Verifier::new(options, "client.token", false);
    verifier.expect_err("the key is not usable").to_string()
}

#[test]
fn rsa_keys_are_read_in_their_usual_wrappings() {
    let crlf = RSA_PUBLIC.replace('\n', "\r\n");
    for pem in [RSA_PUBLIC, RSA_PKCS1, RSA_CERTIFICATE, &crlf, RSA_PUBLIC.trim()] {
        let token = signed(Algorithm::RS256, &rsa_private(), r#"{"sub":"ada"}"#);
        let verified = verifier(&rsa_options(pem)).verify_connection(&token, NOW);
        assert_eq!(verified.map(|claims| claims.user), Ok("ada".to_owned()), "{pem}");
    }
}

#[test]
fn unusable_rsa_keys_are_told_why() {
    let rows = [
        ("no key", "is not an RSA key in PEM"),
        (P256_PUBLIC, "is not an RSA key in PEM"),
        (RSA_1024, "has 1024 bits"),
        (RSA_PRIVATE, "is a private key, which belongs to the backend only"),
        (
            "-----BEGIN RSA PUBLIC KEY-----\nMAMCAQE=\n-----END RSA PUBLIC KEY-----",
            "is not a usable RSA key",
        ),
    ];
    for (pem, fault) in rows {
        assert_eq!(
            error(&rsa_options(pem)),
            format!("client.token.rsa_public_key {fault}, expected {RSA_EXPECTED}")
        );
    }
}

#[test]
fn debug_output_hides_secrets() {
    let keys = Keys::new(&hmac_options(), "client.token").expect("any secret is a key");
    assert!(!format!("{keys:?}").contains(&format!("{:?}", SECRET.as_bytes()[..4].to_vec())));
    assert!(format!("{keys:?}").contains("redacted"));
}
