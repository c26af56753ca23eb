//! Tests of ECDSA: the algorithm of each curve, signatures that are none, and which PEM texts are accepted.
//! In: PEM texts of `tests/keys`, tokens of `fixture.rs` → out: the user, the fault, or the text of the error.
//! May use: `fixture.rs`, aws-lc and jsonwebtoken to sign.
//! Known answers are checked in `known_answers.rs`.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Algorithm;

use super::super::{Fault, TokenError, Verifier};
use super::*;
use crate::TokenOptions;
use crate::fixture::*;

const P256_COMPRESSED: &str = include_str!("../../tests/keys/p256_compressed.public.pem");
const P521_CERTIFICATE: &str = include_str!("../../tests/keys/p521.certificate.pem");
const P521_COMPRESSED: &str = include_str!("../../tests/keys/p521_compressed.public.pem");
const P521_EXPLICIT: &str = include_str!("../../tests/keys/p521_explicit.public.pem");
const P521_HYBRID: &str = include_str!("../../tests/keys/p521_hybrid.public.pem");
const SECP256K1: &str = include_str!("../../tests/keys/secp256k1.public.pem");

const ADA: &str = r#"{"sub":"ada"}"#;
const ES256: &str = r#"{"alg":"ES256"}"#;
const ES384: &str = r#"{"alg":"ES384"}"#;
const ES512: &str = r#"{"alg":"ES512"}"#;

fn options(pem: &str) -> TokenOptions {
    TokenOptions { ecdsa_public_key: pem.to_owned(), ..TokenOptions::default() }
}

fn user(pem: &str, token: &str) -> Result<String, TokenError> {
    verifier(&options(pem)).verify_connection(token, NOW).map(|claims| claims.user)
}

fn fault(fault: Fault) -> Result<String, TokenError> {
    Err(TokenError::Invalid(fault))
}

/// A token of each key, in the order of [`CURVES`], that says it is signed with the algorithm of `header`.
fn tokens(header: &str) -> [String; 3] {
    [
        with_header(header, Algorithm::ES256, &ec_private(P256_PRIVATE), ADA),
        with_header(header, Algorithm::ES384, &ec_private(P384_PRIVATE), ADA),
        es512(header, ADA),
    ]
}

const PUBLIC: [&str; 3] = [P256_PUBLIC, P384_PUBLIC, P521_PUBLIC];

#[test]
fn every_key_verifies_the_algorithm_of_its_curve_and_no_other() {
    for (which, header) in [ES256, ES384, ES512].into_iter().enumerate() {
        for (signer, token) in tokens(header).iter().enumerate() {
            for (key, pem) in PUBLIC.into_iter().enumerate() {
                let expect = match (key == which, signer == which) {
                    (true, true) => Ok("ada".to_owned()),
                    (true, false) => fault(Fault::Signature),
                    (false, _) => fault(Fault::Algorithm),
                };
                assert_eq!(user(pem, token), expect, "{header} by {signer} with key {key}");
            }
        }
    }
}

#[test]
fn signatures_of_a_wrong_length_form_or_value_are_refused() {
    for ((pem, header), bytes) in PUBLIC.into_iter().zip([ES256, ES384, ES512]).zip([64, 96, 132]) {
        let which = PUBLIC.iter().position(|other| *other == pem).expect("it is one of them");
        let token = &tokens(header)[which];
        let (text, signature) = token.rsplit_once('.').expect("a token has dots");
        let genuine = URL_SAFE_NO_PAD.decode(signature).expect("a signature is base64url");
        assert_eq!(genuine.len(), bytes, "RFC 7518 §3.4");
        let half = bytes / 2;
        let changed = |place: usize| {
            let mut changed = genuine.clone();
            changed[place] ^= 1;
            changed
        };
        let wrong = [
            vec![],
            vec![0; bytes],
            genuine[..bytes - 1].to_vec(),
            genuine[1..].to_vec(),
            [&genuine[..], &[0]].concat(),
            [&[0], &genuine[..]].concat(),
            [&genuine[half..], &genuine[..half]].concat(),
            [&[0], &genuine[..half], &[0], &genuine[half..]].concat(),
            asn1(&genuine),
            changed(0),
            changed(half - 1),
            changed(half),
            changed(bytes - 1),
        ];
        assert_eq!(user(pem, token), Ok("ada".to_owned()));
        for signature in wrong {
            let token = format!("{text}.{}", URL_SAFE_NO_PAD.encode(&signature));
            assert_eq!(user(pem, &token), fault(Fault::Signature), "{header} {signature:02x?}");
        }
    }
}

/// The same signature as an ECDSA-Sig-Value (RFC 5480 Appendix A), which tokens do not use.
fn asn1(signature: &[u8]) -> Vec<u8> {
    const INTEGER: u8 = 0x02;
    let (r, s) = signature.split_at(signature.len() / 2);
    let integer = |number: &[u8]| {
        let number = &number[number.iter().position(|byte| *byte != 0).unwrap_or(0)..];
        let sign: &[u8] = if number[0] & 0x80 == 0 { &[] } else { &[0] };
        value(INTEGER, &[sign, number].concat())
    };
    value(SEQUENCE, &[integer(r), integer(s)].concat())
}

#[test]
fn signature_of_another_text_is_refused() {
    let token = es512(ES512, ADA);
    let (_, signature) = token.rsplit_once('.').expect("a token has dots");
    let forged = format!("{}.{signature}", unsigned(ES512, r#"{"sub":"eve"}"#));
    assert_eq!(user(P521_PUBLIC, &forged), fault(Fault::Signature));
}

#[test]
fn keys_are_read_in_their_usual_wrappings() {
    let crlf = P521_PUBLIC.replace('\n', "\r\n");
    let explained = format!("Public-Key: (521 bit)\n{P521_PUBLIC}");
    for pem in [P521_PUBLIC, P521_PUBLIC.trim(), &crlf, &explained, P521_CERTIFICATE] {
        assert_eq!(user(pem, &es512(ES512, ADA)), Ok("ada".to_owned()), "{pem}");
    }
}

#[test]
fn unusable_keys_are_told_why() {
    let rows = [
        ("no key", NO_KEY),
        (RSA_PUBLIC, NO_KEY),
        (P256_PRIVATE, "is a private key, which belongs to the backend only"),
        (P521_PRIVATE, "is a private key, which belongs to the backend only"),
        (SECP256K1, "is on another curve, or on one without a name"),
        (P521_EXPLICIT, "is on another curve, or on one without a name"),
        (P256_COMPRESSED, "has a compressed point"),
        (P521_COMPRESSED, "has a compressed point"),
        (P521_HYBRID, UNUSABLE),
    ];
    for (pem, fault) in rows {
        assert_eq!(error(pem), told(fault), "{pem}");
    }
}

#[test]
fn keys_that_are_not_exactly_one_point_on_the_curve_are_refused() {
    for (curve, pem) in CURVES.iter().zip(PUBLIC) {
        let point = point(pem);
        let der = curve.subject_public_key_info(&point);
        assert!(Key::parse(&public(&der)).is_ok(), "{}", curve.alg);
        let mut off_curve = der.clone();
        off_curve[der.len() - point.len() / 4] ^= 1;
        let mut unused_bit = der.clone();
        unused_bit[der.len() - point.len() - 1] = 1;
        let wrong = [
            off_curve,
            unused_bit,
            [&der[..], &[0x05, 0x00]].concat(),
            curve.subject_public_key_info(&[&point[..], &[0]].concat()),
            curve.subject_public_key_info(&point[..point.len() - 1]),
            curve.subject_public_key_info(&[0x00]), // the point at infinity
            curve.subject_public_key_info(&[]),
        ];
        for der in wrong {
            assert_eq!(error(&public(&der)), told(UNUSABLE), "{} {der:02x?}", curve.alg);
        }
    }
}

#[test]
fn point_of_one_curve_under_the_name_of_another_is_refused() {
    for (place, curve) in CURVES.iter().enumerate() {
        let named = curve.subject_public_key_info(&point(PUBLIC[(place + 1) % PUBLIC.len()]));
        assert_eq!(error(&public(&named)), told(UNUSABLE), "{}", curve.alg);
    }
}

/// Returns the bytes that the library takes for the point of a genuine key.
fn point(pem: &str) -> Vec<u8> {
    let key = DecodingKey::from_ec_pem(pem.as_bytes()).expect("the fixture is a key");
    key.try_get_as_bytes().expect("with a point").to_vec()
}

fn public(der: &[u8]) -> String {
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
}

fn error(pem: &str) -> String {
    let verifier = Verifier::new(&options(pem), "client.token", false);
    verifier.expect_err("the key is not usable").to_string()
}

fn told(fault: &str) -> String {
    let expected =
        "an ECDSA public key on P-256, P-384 or P-521 in PEM (-----BEGIN PUBLIC KEY-----)";
    format!("client.token.ecdsa_public_key {fault}, expected {expected}")
}
