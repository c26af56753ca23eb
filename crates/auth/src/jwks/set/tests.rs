//! Tests of documents of keys: every type of key verifies what it signed, and what is left out.
//! In: documents, tokens → out: names of keys, genuine or the fault.
//! May use: `fixture.rs`, proptest.
//! What is remembered of documents is tested in `cache/tests.rs`.

use proptest::prelude::*;

use super::*;
use crate::fixture::*;

const ADA: &str = r#"{"sub":"ada"}"#;

/// Whether the one key in `document` signed `token`, whose header says `alg`.
fn verify(document: &[u8], alg: &str, token: &str) -> Result<(), Fault> {
    let set = parse(document).expect("a set");
    let (signed, signature) = token.rsplit_once('.').expect("a token");
    let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
    set["k"].verify(alg, signed.as_bytes(), signature)
}

#[test]
fn each_type_of_key_verifies_its_own_algorithms_and_no_other() {
    let rsa = |algorithm| signed(algorithm, &rsa_private(), ADA);
    let ec = |algorithm, pem| signed(algorithm, &ec_private(pem), ADA);
    let rows = [
        (rsa_jwk("k", ""), "RS256", rsa(Algorithm::RS256)),
        (rsa_jwk("k", ""), "RS384", rsa(Algorithm::RS384)),
        (rsa_jwk("k", ""), "RS512", rsa(Algorithm::RS512)),
        (rsa_jwk("k", r#","alg":"RS384""#), "RS384", rsa(Algorithm::RS384)),
        (ec_jwk("k", P256_PUBLIC, "P-256"), "ES256", ec(Algorithm::ES256, P256_PRIVATE)),
        (ec_jwk("k", P384_PUBLIC, "P-384"), "ES384", ec(Algorithm::ES384, P384_PRIVATE)),
        (ec_jwk("k", P521_PUBLIC, "P-521"), "ES512", es512(r#"{"alg":"ES512"}"#, ADA)),
        (ed_jwk("k"), "EdDSA", eddsa(r#"{"alg":"EdDSA"}"#, ADA)),
    ];
    for (key, alg, token) in &rows {
        let document = set(std::slice::from_ref(key));
        assert_eq!(verify(&document, alg, token), Ok(()), "{alg}");
        let forged = token.replacen('.', "x.", 1);
        assert_eq!(verify(&document, alg, &forged), Err(Fault::Signature), "{alg}");
        for other in ["HS256", "none", "PS256", "ES256K", ""] {
            assert_eq!(verify(&document, other, token), Err(Fault::Algorithm), "{alg} {other}");
        }
        for (_, other, _) in rows.iter().filter(|(of, ..)| of[..14] != key[..14]) {
            assert_eq!(verify(&document, other, token), Err(Fault::Algorithm), "{alg} {other}");
        }
    }
    let pinned = set(&[rsa_jwk("k", r#","alg":"RS384""#)]);
    assert_eq!(verify(&pinned, "RS256", &rsa(Algorithm::RS256)), Err(Fault::Algorithm));
}

#[test]
fn what_cannot_sign_tokens_is_left_out_and_harms_no_other_key() {
    let rsa = rsa_jwk("k", "");
    let left_out = [
        rsa.replace(r#""use":"sig","#, ""),
        rsa.replace(r#""use":"sig""#, r#""use":"enc""#),
        rsa.replace(r#""kid":"k","#, ""),
        rsa.replace("RSA", "oct"),
        rsa.replace(r#""n":""#, r#""n":"!"#),
        rsa.replace(r#""n":""#, r#""m":""#),
        r#"{"kty":"RSA","use":"sig","kid":"k","n":"AQAB","e":"AQAB"}"#.to_owned(),
        ec_jwk("k", P256_PUBLIC, "P-384"),
        ec_jwk("k", P256_PUBLIC, "secp256k1"),
        ed_jwk("k").replace("Ed25519", "X25519"),
        r#"{"kty":"OKP","use":"sig","kid":"k","crv":"Ed25519","x":"AQAB"}"#.to_owned(),
        r#"{"kty":1}"#.to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "7".to_owned(),
    ];
    for key in left_out {
        let set = parse(&set(&[key.clone(), rsa_jwk("other", "")])).expect("a set");
        assert_eq!(set.keys().collect::<Vec<_>>(), ["other"], "{key}");
    }
}

#[test]
fn of_two_keys_with_one_name_the_first_counts() {
    let document = set(&[ed_jwk("k"), rsa_jwk("k", "")]);
    assert_eq!(verify(&document, "EdDSA", &eddsa(r#"{"alg":"EdDSA"}"#, ADA)), Ok(()));
}

#[test]
fn an_empty_set_is_a_set_and_garbage_is_none() {
    assert_eq!(parse(br#"{"keys":[],"more":1}"#).map(|set| set.len()), Some(0));
    let nested = "[".repeat(100_000);
    let garbage =
        ["", "{", "null", "[]", "{}", r#"{"keys":null}"#, r#"{"keys":{}}"#, "<html>", &nested];
    for garbage in garbage {
        assert!(parse(garbage.as_bytes()).is_none(), "{garbage:.20}");
    }
}

proptest! {
    #[test]
    fn no_document_panics(text in r#"(\{|\}|\[|\]|"keys"|"kty"|"RSA"|:|,|"n"|"AQAB"|[ -~]){0,40}"#) {
        let _ = parse(text.as_bytes());
    }
}
