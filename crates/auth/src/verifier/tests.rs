//! Tests of token verification: forged, expired, misdirected and broken tokens, and the order of the checks.
//! In: a token → out: the user, or which error of `TokenError`.
//! May use: `fixture.rs`, proptest. Time is a number.
//! Claims, keys, curves and new tokens are tested in `claims/`, `keys/`, `ecdsa/` and `sign/tests.rs`.

use jsonwebtoken::{Algorithm, EncodingKey};
use proptest::prelude::*;

use super::*;
use crate::fixture::*;

const ADA: &str = r#"{"sub":"ada"}"#;

fn check(verifier: &Verifier, token: &str, expect: Result<&str, TokenError>) {
    let verified = verifier.verify_connection(token, NOW);
    assert_eq!(
        verified.as_ref().map(|claims| claims.user.as_str()),
        expect.as_ref().copied(),
        "{token}"
    );
}

fn check_fault(verifier: &Verifier, token: &str, fault: Fault) {
    check(verifier, token, Err(TokenError::Invalid(fault)));
    let verified = verifier.verify_subscription(token, NOW);
    assert_eq!(verified, Err(TokenError::Invalid(fault)), "{token}");
}

/// All three keys at once.
fn all_keys() -> Verifier {
    verifier(&TokenOptions {
        rsa_public_key: RSA_PUBLIC.to_owned(),
        ecdsa_public_key: P256_PUBLIC.to_owned(),
        ..hmac_options()
    })
}

#[test]
fn all_families_are_verified_side_by_side() {
    let secret = EncodingKey::from_secret(SECRET.as_bytes());
    let all = all_keys();
    for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
        check(&all, &signed(algorithm, &secret, ADA), Ok("ada"));
    }
    for algorithm in [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512] {
        check(&all, &signed(algorithm, &rsa_private(), ADA), Ok("ada"));
    }
    check(&all, &signed(Algorithm::ES256, &ec_private(P256_PRIVATE), ADA), Ok("ada"));
}

#[test]
fn text_that_is_no_token_is_a_format_fault() {
    let verifier = all_keys();
    let genuine = hs256(ADA);
    let broken = [
        String::new(),
        ".".to_owned(),
        "garbage".to_owned(),
        "a.b".to_owned(),
        "..".to_owned(),
        "...".to_owned(),
        "ä.ö.ü".to_owned(),
        format!("{genuine}."),
        format!("{genuine}.e30"),
        format!("{genuine}="),
        format!(" {genuine}"),
        format!("{genuine}\n"),
        genuine.replacen('.', "=.", 1),
        unsigned(r#"{"alg":"HS256"}"#, ADA),
        format!("{}.AAAA", unsigned("", ADA)),
        format!("{}.AAAA", unsigned("HS256", ADA)),
        format!("{}.AAAA", unsigned("{}", ADA)),
        format!("{}.AAAA", unsigned(r#"["HS256",null]"#, ADA)),
        format!("{}.AAAA", unsigned(r#"{"alg":256}"#, ADA)),
        format!("{}.AAAA", unsigned(r#"{"alg":null}"#, ADA)),
        format!("{}.AAAA", unsigned(r#"{"alg":"HS256","alg":"HS256"}"#, ADA)),
    ];
    for token in broken {
        check_fault(&verifier, &token, Fault::Format);
    }
}

#[test]
fn critical_header_extensions_are_refused() {
    let secret = EncodingKey::from_secret(SECRET.as_bytes());
    let header = r#"{"alg":"HS256","crit":["b64"],"b64":false}"#;
    let token = with_header(header, Algorithm::HS256, &secret, ADA);
    check_fault(&hmac(), &token, Fault::Extension);
    let header = r#"{"typ":"JWT","kid":"1","x":{"y":[]},"alg":"HS256"}"#;
    let token = with_header(header, Algorithm::HS256, &secret, ADA);
    check(&hmac(), &token, Ok("ada"));
}

#[test]
fn algorithms_without_a_key_are_refused() {
    let secret = EncodingKey::from_secret(SECRET.as_bytes());
    let names =
        ["none", "None", "NONE", "", "hs256", "HS1", "PS256", "EdDSA", "ES512", "RS256", "ES256"];
    for name in names {
        let header = format!(r#"{{"alg":"{name}"}}"#);
        check_fault(&hmac(), &format!("{}.", unsigned(&header, ADA)), Fault::Algorithm);
        let token = with_header(&header, Algorithm::HS256, &secret, ADA);
        check_fault(&hmac(), &token, Fault::Algorithm);
    }
    let rsa_only =
        TokenOptions { rsa_public_key: RSA_PUBLIC.to_owned(), ..TokenOptions::default() };
    check_fault(&verifier(&rsa_only), &hs256(ADA), Fault::Algorithm);
}

#[test]
fn public_key_cannot_be_used_as_hmac_secret() {
    for pem in [RSA_PUBLIC, P256_PUBLIC] {
        for secret in [pem, pem.trim_end()] {
            let key = EncodingKey::from_secret(secret.as_bytes());
            let token = signed(Algorithm::HS256, &key, ADA);
            check_fault(&all_keys(), &token, Fault::Signature);
            for alg in ["RS256", "ES256"] {
                let header = format!(r#"{{"alg":"{alg}"}}"#);
                let token = with_header(&header, Algorithm::HS256, &key, ADA);
                check_fault(&all_keys(), &token, Fault::Signature);
            }
        }
    }
}

#[test]
fn signature_of_another_text_or_key_is_refused() {
    let genuine = hs256(ADA);
    let (text, signature) = genuine.rsplit_once('.').expect("a token has dots");
    let other = EncodingKey::from_secret(b"another secret");
    let secret = EncodingKey::from_secret(SECRET.as_bytes());
    let forged = [
        signed(Algorithm::HS256, &other, ADA),
        format!("{}.{signature}", unsigned(r#"{"alg":"HS256"}"#, r#"{"sub":"eve"}"#)),
        format!("{}.{signature}", unsigned(r#"{"alg":"HS384"}"#, ADA)),
        format!("{text}."),
        format!("{text}.{}", &signature[..signature.len() - 3]),
        format!("{text}.{signature}AAAA"),
        with_header(r#"{"alg":"HS512"}"#, Algorithm::HS256, &secret, ADA),
        with_header(r#"{"alg":"RS256"}"#, Algorithm::RS512, &rsa_private(), ADA),
        with_header(r#"{"alg":"RS256"}"#, Algorithm::PS256, &rsa_private(), ADA),
        with_header(r#"{"alg":"ES256"}"#, Algorithm::ES384, &ec_private(P384_PRIVATE), ADA),
    ];
    for token in forged {
        check_fault(&all_keys(), &token, Fault::Signature);
    }
}

#[test]
fn without_a_key_every_token_is_disabled() {
    let verifier = verifier(&TokenOptions::default());
    assert!(!verifier.is_enabled());
    for token in ["", "garbage", &hs256(ADA)] {
        check(&verifier, token, Err(TokenError::Disabled));
        assert_eq!(verifier.verify_subscription(token, NOW), Err(TokenError::Disabled));
    }
}

#[test]
fn previous_secret_is_believed_until_its_last_second() {
    let rotated = |valid_until| {
        verifier(&TokenOptions {
            hmac_secret_key: "the new secret".into(),
            hmac_previous_secret_key: SECRET.into(),
            hmac_previous_secret_key_valid_until: valid_until,
            ..TokenOptions::default()
        })
    };
    let new = EncodingKey::from_secret(b"the new secret");
    for valid_until in [0, NOW - 1, NOW, NOW + 1] {
        check(&rotated(valid_until), &signed(Algorithm::HS512, &new, ADA), Ok("ada"));
    }
    for valid_until in [0, NOW, NOW + 1] {
        check(&rotated(valid_until), &hs256(ADA), Ok("ada"));
    }
    check_fault(&rotated(NOW - 1), &hs256(ADA), Fault::Signature);
    let only_previous = TokenOptions {
        hmac_previous_secret_key: SECRET.into(),
        hmac_previous_secret_key_valid_until: NOW - 1,
        ..TokenOptions::default()
    };
    check_fault(&verifier(&only_previous), &hs256(ADA), Fault::Algorithm);
}

#[test]
fn time_is_checked_without_leeway() {
    let rows = [
        (r#""exp":1700000001"#, true),
        (r#""exp":1700000000"#, false),
        (r#""exp":1700000000.9"#, false),
        (r#""exp":1.7000000011e9"#, true),
        (r#""exp":0"#, false),
        (r#""exp":-1"#, false),
        (r#""exp":null"#, true),
        (r#""exp":99999999999999999999999"#, true),
        (r#""nbf":1700000000"#, true),
        (r#""nbf":1700000001"#, false),
        (r#""nbf":-1"#, true),
        (r#""nbf":18446744073709551615"#, false),
        (r#""nbf":1600000000,"exp":1800000000"#, true),
        (r#""nbf":1800000000,"exp":1900000000"#, false),
        (r#""iat":1800000000"#, true),
    ];
    for (claims, valid) in rows {
        let expect = if valid { Ok("ada") } else { Err(TokenError::Expired) };
        check(&hmac(), &hs256(&format!(r#"{{"sub":"ada",{claims}}}"#)), expect);
        let token = hs256(&format!(r#"{{"sub":"ada","channel":"news",{claims}}}"#));
        let verified = hmac().verify_subscription(&token, NOW).map(|_| "ada");
        assert_eq!(verified, expect, "{claims}");
    }
}

#[test]
fn claims_of_a_wrong_type_are_refused() {
    let payloads = [
        "",
        "ada",
        "null",
        "[]",
        r#"["ada",null,null,null,null]"#,
        "{",
        r#"{"sub":42}"#,
        r#"{"sub":["ada"]}"#,
        r#"{"sub":{}}"#,
        r#"{"sub":true}"#,
        r#"{"sub":"ada","sub":"eve"}"#,
        r#"{"exp":"soon"}"#,
        r#"{"exp":""}"#,
        r#"{"exp":true}"#,
        r#"{"nbf":[1]}"#,
        r#"{"aud":1}"#,
        r#"{"aud":[1]}"#,
        r#"{"iss":1}"#,
    ];
    for payload in payloads {
        check_fault(&hmac(), &hs256(payload), Fault::Claims);
    }
    check(&hmac(), &hs256("{}"), Ok(""));
    check(&hmac(), &hs256(r#"{"sub":null}"#), Ok(""));
    check(&hmac(), &hs256(r#" {"sub":"ada","role":["x",{"y":1}]} "#), Ok("ada"));
}

#[test]
fn audience_and_issuer_must_be_the_configured_ones() {
    let base = hmac_options;
    let exact = TokenOptions { audience: "chat".to_owned(), issuer: "idp".to_owned(), ..base() };
    let regex = TokenOptions {
        audience_regex: "^chat-[0-9]+$".to_owned(),
        issuer_regex: "^https://".to_owned(),
        ..base()
    };
    let valid = Ok("ada");
    let audience = Err(TokenError::Invalid(Fault::Audience));
    let issuer = Err(TokenError::Invalid(Fault::Issuer));
    let rows = [
        (r#""aud":"chat","iss":"idp""#, valid, audience),
        (r#""aud":["x","chat"],"iss":"idp""#, valid, audience),
        (r#""aud":["x","chat-1"],"iss":"https://idp""#, audience, valid),
        (r#""aud":"Chat","iss":"idp""#, audience, audience),
        (r#""aud":"chatter","iss":"idp""#, audience, audience),
        (r#""aud":[],"iss":"idp""#, audience, audience),
        (r#""iss":"idp""#, audience, audience),
        (r#""aud":"chat","iss":"idp2""#, issuer, audience),
        (r#""aud":"chat-1","iss":"http://idp""#, audience, issuer),
        (r#""aud":["chat","chat-1"]"#, issuer, issuer),
    ];
    for (claims, for_exact, for_regex) in rows {
        let token = hs256(&format!(r#"{{"sub":"ada",{claims}}}"#));
        check(&verifier(&exact), &token, for_exact);
        check(&verifier(&regex), &token, for_regex);
        check(&hmac(), &token, valid);
    }
}

#[test]
fn expiry_is_reported_only_for_tokens_that_are_right_otherwise() {
    let options = TokenOptions { audience: "chat".to_owned(), ..hmac_options() };
    let verifier = verifier(&options);
    let expired = |claims: &str| format!(r#"{{"exp":1{claims}}}"#);
    let other = EncodingKey::from_secret(b"another secret");
    let forged = signed(Algorithm::HS256, &other, &expired(r#","aud":"chat""#));
    check_fault(&verifier, &forged, Fault::Signature);
    check_fault(&verifier, &hs256(&expired("")), Fault::Audience);
    let misplaced = hs256(&expired(r#","aud":"chat","channel":"news""#));
    check(&verifier, &misplaced, Err(TokenError::Invalid(Fault::Claims)));
    let plain = hs256(&expired(r#","aud":"chat""#));
    check(&verifier, &plain, Err(TokenError::Expired));
}

#[test]
fn user_can_come_from_another_claim() {
    let options = TokenOptions { user_id_claim: "user_id".to_owned(), ..hmac_options() };
    let verifier = verifier(&options);
    let fault = Err(TokenError::Invalid(Fault::Claims));
    check(&verifier, &hs256(r#"{"sub":"x","user_id":"ada"}"#), Ok("ada"));
    check(&verifier, &hs256(r#"{"user_id":"a\u0064a"}"#), Ok("ada"));
    check(&verifier, &hs256(r#"{"user_id":42}"#), Ok("42"));
    check(&verifier, &hs256(r#"{"user_id":null}"#), Ok(""));
    check(&verifier, &hs256(ADA), Ok(""));
    for value in ["4.2", "-1", "1e3", "true", "{}", "[]"] {
        check(&verifier, &hs256(&format!(r#"{{"user_id":{value}}}"#)), fault);
    }
    let token = hs256(r#"{"user_id":"ada","channel":"news"}"#);
    let claims = verifier.verify_subscription(&token, NOW).expect("the token is genuine");
    assert_eq!(claims.user, "ada");
}

#[test]
fn skipping_signatures_believes_any_algorithm_but_checks_the_claims() {
    let options = TokenOptions { audience: "chat".to_owned(), ..TokenOptions::default() };
    let verifier = Verifier::new(&options, "client.token", true).expect("the options are valid");
    assert!(verifier.is_enabled());
    let token = |alg: &str, claims: &str| {
        format!("{}.", unsigned(&format!(r#"{{"alg":"{alg}"}}"#), claims))
    };
    for alg in ["none", "HS256", "ES512"] {
        check(&verifier, &token(alg, r#"{"sub":"ada","aud":"chat"}"#), Ok("ada"));
    }
    check_fault(&verifier, &token("none", ADA), Fault::Audience);
    check_fault(&verifier, "garbage", Fault::Format);
    let expired = token("none", r#"{"aud":"chat","exp":1}"#);
    check(&verifier, &expired, Err(TokenError::Expired));
}

#[test]
fn errors_say_what_is_wrong() {
    assert_eq!(TokenError::Invalid(Fault::Issuer).to_string(), "the token is from another issuer");
    assert_eq!(TokenError::Expired.to_string(), "the token is expired or not yet valid");
}

proptest! {
    #[test]
    fn any_text_is_answered_without_a_panic(token in "\\PC{0,60}|[A-Za-z0-9_.=-]{0,90}") {
        let keys = all_keys();
        prop_assert!(keys.verify_connection(&token, NOW).is_err());
        prop_assert!(keys.verify_subscription(&token, NOW).is_err());
    }

    #[test]
    fn any_header_and_payload_are_answered_without_a_panic(
        header in "\\{\"alg\":\"(HS256|ES256|RS256|none)\"\\}|\\PC{0,20}",
        payload in "\\{(\"(sub|exp|aud|info|subs|channels|override)\":(1|\"a\"|\\[\\]|\\{\\}|null),?){0,4}\\}|\\PC{0,40}",
        now in any::<u64>(),
    ) {
        let options = TokenOptions { user_id_claim: "aud".to_owned(), ..TokenOptions::default() };
        for skip in [true, false] {
            let options = if skip { options.clone() } else { hmac_options() };
            let verifier = Verifier::new(&options, "client.token", skip).expect("the options are valid");
            let token = format!("{}.AAAA", unsigned(&header, &payload));
            let _ = verifier.verify_connection(&token, now);
            let _ = verifier.verify_subscription(&token, now);
        }
    }

    #[test]
    fn any_changed_byte_makes_a_token_invalid(
        place in any::<prop::sample::Index>(),
        byte in "[A-Za-z0-9_.-]",
    ) {
        let genuine = hs256(ADA);
        let mut changed = genuine.clone();
        let place = place.index(genuine.len());
        changed.replace_range(place..=place, &byte);
        prop_assume!(changed != genuine);
        let verified = hmac().verify_connection(&changed, NOW);
        prop_assert!(matches!(verified, Err(TokenError::Invalid(_))), "{changed}: {verified:?}");
    }
}
