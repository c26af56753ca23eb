//! Tests of new tokens: what is made is believed by the verifier with the same options.
//! In: a token's claims → out: the claims after verification, or why none was made.
//! May use: `fixture.rs`. Time is a number.
//! Verification itself is tested in `verifier/tests.rs`.

use super::super::{TokenError, Verifier};
use super::*;
use crate::TokenOptions;
use crate::fixture::{NOW, SECRET, hmac, hmac_options, verifier};

const ALGORITHMS: [HmacAlgorithm; 3] =
    [HmacAlgorithm::Hs256, HmacAlgorithm::Hs384, HmacAlgorithm::Hs512];

#[test]
fn connection_token_is_believed_with_all_its_claims() {
    let token = ConnectionToken {
        user: "ada",
        issued_at: NOW,
        lifetime: Lifetime::Seconds(60),
        info: r#"{"name":"Ada"}"#,
        channels: &["news".to_owned(), "chat:1".to_owned()],
        ..ConnectionToken::default()
    };
    for algorithm in ALGORITHMS {
        let text = sign_hmac_connection(SECRET, algorithm, &token).expect("the token is complete");
        let claims = hmac().verify_connection(&text, NOW).expect("the token is genuine");
        assert_eq!((claims.user.as_str(), claims.expire_at), ("ada", Some(NOW + 60)));
        assert_eq!(claims.info, token.info);
        assert_eq!(claims.channels.keys().collect::<Vec<_>>(), ["chat:1", "news"]);
        assert_eq!(hmac().verify_connection(&text, NOW + 60), Err(TokenError::Expired));
    }
}

#[test]
fn subscription_token_is_believed_with_all_its_claims() {
    let token = SubscriptionToken {
        user: "ada",
        channel: "$news",
        issued_at: NOW,
        lifetime: Lifetime::Until(NOW + 5),
        info: "[1]",
        ..SubscriptionToken::default()
    };
    for algorithm in ALGORITHMS {
        let text = sign_hmac_subscription(SECRET, algorithm, &token);
        let text = text.expect("the token is complete");
        let claims = hmac().verify_subscription(&text, NOW).expect("the token is genuine");
        assert!(claims.is_for("ada", "$news", "any"));
        assert_eq!((claims.info.as_ref(), claims.expire_at), (&b"[1]"[..], Some(NOW + 5)));
    }
}

#[test]
fn token_suits_a_verifier_with_audience_issuer_and_another_claim() {
    let options = TokenOptions {
        audience: "chat".to_owned(),
        issuer: "idp".to_owned(),
        user_id_claim: "user".to_owned(),
        ..hmac_options()
    };
    let token = ConnectionToken {
        user: "ada",
        user_id_claim: "user",
        audience: "chat",
        issuer: "idp",
        ..ConnectionToken::default()
    };
    let text = sign_hmac_connection(SECRET, HmacAlgorithm::Hs256, &token);
    let text = text.expect("the token is complete");
    let user =
        |verifier: &Verifier| verifier.verify_connection(&text, NOW).map(|claims| claims.user);
    assert_eq!(user(&verifier(&options)), Ok("ada".to_owned()));
    assert_eq!(user(&hmac()), Ok(String::new()));
}

#[test]
fn token_of_nobody_for_ever_says_only_that() {
    let token = ConnectionToken { issued_at: 5, ..ConnectionToken::default() };
    let text = sign_hmac_connection(SECRET, HmacAlgorithm::Hs256, &token);
    let text = text.expect("the token is complete");
    let payload = text.split('.').nth(1).map(|part| URL_SAFE_NO_PAD.decode(part));
    assert_eq!(payload, Some(Ok(br#"{"sub":"","iat":5}"#.to_vec())));
}

#[test]
fn incomplete_tokens_are_not_made() {
    let algorithm = HmacAlgorithm::Hs256;
    let info = ConnectionToken { info: "{", ..ConnectionToken::default() };
    let nothing = ConnectionToken::default();
    assert_eq!(sign_hmac_connection("", algorithm, &nothing), Err(SignError::NoSecret));
    assert_eq!(sign_hmac_connection(SECRET, algorithm, &info), Err(SignError::Info));
    let nowhere = SubscriptionToken { user: "ada", ..SubscriptionToken::default() };
    assert_eq!(sign_hmac_subscription(SECRET, algorithm, &nowhere), Err(SignError::NoChannel));
}
