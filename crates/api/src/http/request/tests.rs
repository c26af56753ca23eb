//! Tests of the headers with a key.
//! In: pairs of text. Out: asserted answers.
//! Uses private parts of the module; never a request.
//! Whole requests with keys are in `tests/it/authentication.rs`.

use super::*;
use crate::ApiOptions;

#[test]
fn authorization_has_a_key_after_the_scheme_apikey() {
    let check = |value: &str, key: Option<&str>| {
        assert_eq!(authorization_key(value.as_bytes()), key.map(str::as_bytes), "{value:?}");
    };
    check("apikey k", Some("k"));
    check("APIKey   k", Some("k"));
    check("apikey ключ", Some("ключ"));
    check("apikey", None);
    check("apikey k k", None);
    check("Bearer k", None);
    check("", None);
}

#[test]
fn a_key_beyond_ascii_counts_in_every_header_and_the_previous_one_until_its_end() {
    let options = ApiOptions {
        key: "schlüssel".to_owned().into(),
        previous_key: "before".to_owned().into(),
        ..ApiOptions::default()
    };
    let check = |options: &ApiOptions, header: HeaderName, value: &str, expect| {
        let value = HeaderValue::from_bytes(value.as_bytes()).expect("a value");
        let headers = HeaderMap::from_iter([(header, value)]);
        let keys = ApiKeys::of(options, None);
        let found = caller(&keys, &headers, &Uri::from_static("/"));
        assert_eq!(found.is_some(), expect, "{headers:?}");
    };
    check(&options, X_API_KEY, "schlüssel", true);
    check(&options, AUTHORIZATION, "apikey schlüssel", true);
    check(&options, X_API_KEY, "schlussel", false);
    check(&options, X_API_KEY, "before", true);
    let ended = ApiOptions { previous_key_valid_until: 1, ..options.clone() };
    check(&ended, X_API_KEY, "before", false);
    check(&ended, X_API_KEY, "schlüssel", true);
    check(&ApiOptions::default(), X_API_KEY, "x", false);
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
