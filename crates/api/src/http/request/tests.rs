//! Tests of the key comparison and of the Authorization header.
//! In: pairs of text. Out: asserted answers.
//! Uses private parts of the module; never a request.
//! Whole requests with keys are in `tests/it/authentication.rs`.

use super::*;

#[test]
fn keys_are_equal_only_byte_for_byte() {
    let check = |key, given, expect| assert_eq!(is_equal(key, given), expect, "{key:?} {given:?}");
    check("secret", "secret", true);
    check("secret", "Secret", false);
    check("secret", "secretsecret", false);
    check("secret", "secre", false);
    check("secret", "", false);
    check("aa", "a", false);
    check("a", "aa", false);
    check("ключ", "ключ", true);
}

#[test]
fn authorization_has_a_key_after_the_scheme_apikey() {
    let check = |value, key: Option<&str>| assert_eq!(authorization_key(value), key, "{value:?}");
    check("apikey k", Some("k"));
    check("APIKey   k", Some("k"));
    check("apikey", None);
    check("apikey k k", None);
    check("Bearer k", None);
    check("", None);
}

#[test]
fn a_401_names_the_scheme() {
    let scheme = |error: RequestError| error.response().headers().get(WWW_AUTHENTICATE).cloned();
    assert_eq!(scheme(RequestError::Unauthorized), Some(HeaderValue::from_static("apikey")));
    for error in
        [RequestError::Closing, RequestError::TooLarge(1), RequestError::Malformed(String::new())]
    {
        assert_eq!(scheme(error), None);
    }
}
