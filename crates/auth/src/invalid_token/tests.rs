//! Tests of `invalid_token`: the part of a token that is named.
//! In: payloads and a time. Out: texts.
//! Uses tokens with an empty signature.
//! Which tokens are refused is tested in `verifier`.

use super::*;

const NOW: u64 = 1_700_000_000;

/// A token with this payload and an empty signature.
fn unsigned(payload: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#);
    format!("{header}.{}.", URL_SAFE_NO_PAD.encode(payload))
}

#[test]
fn the_claim_that_a_token_is_refused_for_is_named() {
    for (payload, reason) in [
        (r#"{"sub":42}"#, "sub is 42, expected a text"),
        (r#"{"sub":"1","exp":"tomorrow"}"#, "exp is \"tomorrow\", expected seconds since 1970"),
        (r#"{"sub":"1","channels":"news"}"#, "channels is \"news\", expected a list of texts"),
    ] {
        let parts = InvalidToken {
            token: &unsigned(payload),
            is_subscription: false,
            user_claim: "",
            now_unix: NOW,
        };
        assert!(parts.claim().expect(payload).starts_with(reason), "{payload}");
    }
    let early = unsigned(r#"{"sub":"1","nbf":1700000009.5,"exp":1800000000}"#);
    let parts =
        InvalidToken { token: &early, is_subscription: false, user_claim: "", now_unix: NOW };
    assert_eq!(parts.time().as_deref(), Some("it becomes valid in 9 s (nbf is 1700000009)"));
    assert_eq!(parts.algorithm().as_deref(), Some("alg is \"HS256\""));
    assert_eq!(parts.claim(), None);
}
