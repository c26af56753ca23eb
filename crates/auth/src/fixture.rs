//! Tokens and keys for the tests of `token`: valid, forged and broken ones from their parts.
//! In: header, payload and key → out: a token in compact form. Private keys are those in `tests/keys`.
//! May use: the same cryptography as `keys.rs`. Compiled into tests only.
//! The expected results stand in the tests, not here.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};

use super::keys::CRYPTO;
use super::{Verifier, ecdsa};
use crate::TokenOptions;

pub(super) const SECRET: &str = "the shared secret of these tests";
pub(super) const NOW: u64 = 1_700_000_000;

pub(super) const RSA_PUBLIC: &str = include_str!("../tests/keys/rsa_2048.public.pem");
pub(super) const RSA_PRIVATE: &str = include_str!("../tests/keys/rsa_2048.private.pem");
pub(super) const P256_PUBLIC: &str = include_str!("../tests/keys/p256.public.pem");
pub(super) const P256_PRIVATE: &str = include_str!("../tests/keys/p256.private.pem");
pub(super) const P384_PUBLIC: &str = include_str!("../tests/keys/p384.public.pem");
pub(super) const P384_PRIVATE: &str = include_str!("../tests/keys/p384.private.pem");
pub(super) const P521_PUBLIC: &str = include_str!("../tests/keys/p521.public.pem");
pub(super) const P521_PRIVATE: &str = include_str!("../tests/keys/p521.private.pem");

/// Only `hmac_secret_key` is set.
pub(super) fn hmac_options() -> TokenOptions {
    TokenOptions { hmac_secret_key: SECRET.into(), ..TokenOptions::default() }
}

pub(super) fn verifier(options: &TokenOptions) -> Verifier {
    Verifier::new(options, "client.token", false).expect("the options are valid")
}

/// A verifier that knows `SECRET`.
pub(super) fn hmac() -> Verifier {
    verifier(&hmac_options())
}

/// A genuine HS256 token of `SECRET`.
pub(super) fn hs256(payload: &str) -> String {
    signed(Algorithm::HS256, &EncodingKey::from_secret(SECRET.as_bytes()), payload)
}

/// A token with the plain header of its algorithm.
pub(super) fn signed(algorithm: Algorithm, key: &EncodingKey, payload: &str) -> String {
    with_header(&format!(r#"{{"alg":"{algorithm:?}"}}"#), algorithm, key, payload)
}

/// A token whose header may say anything.
pub(super) fn with_header(
    header: &str,
    algorithm: Algorithm,
    key: &EncodingKey,
    payload: &str,
) -> String {
    let text = unsigned(header, payload);
    let signer = (CRYPTO.signer_factory)(&algorithm, key).expect("the key is of the family");
    let signature = signer.try_sign(text.as_bytes()).expect("the key signs");
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// A token signed with ES512 by `P521_PRIVATE`, whose header may say anything.
pub(super) fn es512(header: &str, payload: &str) -> String {
    let text = unsigned(header, payload);
    let (_, pkcs8) = ecdsa::contents(P521_PRIVATE).expect("the fixture is PEM");
    let parsed = EcdsaKeyPair::from_pkcs8(&ECDSA_P521_SHA512_FIXED_SIGNING, &pkcs8);
    let key = parsed.expect("the fixture is an ECDSA key");
    let signature = key.sign(&SystemRandom::new(), text.as_bytes()).expect("the key signs");
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// Header and payload without a signature.
pub(super) fn unsigned(header: &str, payload: &str) -> String {
    format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload))
}

pub(super) fn rsa_private() -> EncodingKey {
    EncodingKey::from_rsa_pem(RSA_PRIVATE.as_bytes()).expect("the fixture is an RSA key")
}

pub(super) fn ec_private(pem: &str) -> EncodingKey {
    EncodingKey::from_ec_pem(pem.as_bytes()).expect("the fixture is an ECDSA key")
}

/// A token signed with EdDSA by [`ed25519`], whose header may say anything.
pub(super) fn eddsa(header: &str, payload: &str) -> String {
    let text = unsigned(header, payload);
    let signature = ed25519().sign(text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn ed25519() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("any seed makes a key")
}

/// A set of published keys.
pub(super) fn set(keys: &[String]) -> Vec<u8> {
    format!(r#"{{"keys":[{}]}}"#, keys.join(",")).into_bytes()
}

/// `RSA_PUBLIC` as a published key; `rest` are further members.
pub(super) fn rsa_jwk(kid: &str, rest: &str) -> String {
    let key = DecodingKey::from_rsa_pem(RSA_PUBLIC.as_bytes()).expect("the fixture is a key");
    let der = key.try_get_as_bytes().expect("the fixture is a key");
    let components = (CRYPTO.key_utils.rsa_pub_components_from_public_key)(der);
    let (n, e) = components.expect("the fixture is a key");
    let n = URL_SAFE_NO_PAD.encode(n);
    let e = URL_SAFE_NO_PAD.encode(e);
    format!(r#"{{"kty":"RSA","use":"sig","kid":"{kid}","n":"{n}","e":"{e}"{rest}}}"#)
}

/// An ECDSA key as a published one.
pub(super) fn ec_jwk(kid: &str, pem: &str, curve: &str) -> String {
    let key = DecodingKey::from_ec_pem(pem.as_bytes()).expect("the fixture is a key");
    let point = key.try_get_as_bytes().expect("the fixture is a key");
    let (x, y) = point[1..].split_at(point.len() / 2);
    let x = URL_SAFE_NO_PAD.encode(x);
    let y = URL_SAFE_NO_PAD.encode(y);
    format!(r#"{{"kty":"EC","use":"sig","kid":"{kid}","crv":"{curve}","x":"{x}","y":"{y}"}}"#)
}

/// The public key of [`eddsa`].
pub(super) fn ed_jwk(kid: &str) -> String {
    let x = URL_SAFE_NO_PAD.encode(ed25519().public_key());
    format!(r#"{{"kty":"OKP","use":"sig","kid":"{kid}","crv":"Ed25519","x":"{x}"}}"#)
}
