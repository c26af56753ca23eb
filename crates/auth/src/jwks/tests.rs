//! Tests of tokens whose keys are published: which document is asked, what has to be right before, what the answers are.
//! In: options, documents, tokens → out: users, or errors.
//! May use: `fixture.rs`. Documents come at once, or not at all.
//! Times of fetches are tested in `cache/tests.rs`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jsonwebtoken::{Algorithm, EncodingKey};
use parking_lot::Mutex;

use super::super::Verifier;
use super::*;
use crate::fixture::*;

/// Documents by address; what is asked for is written down.
#[derive(Debug, Default)]
struct Site {
    documents: BTreeMap<&'static str, Vec<u8>>,
    asked: Mutex<Vec<String>>,
}

impl KeySource for Site {
    fn fetch(&self, fetch: Fetch) {
        self.asked.lock().push(fetch.url().to_owned());
        if let Some(document) = self.documents.get(fetch.url()) {
            fetch.done(document.clone());
        }
    }
}

const URL: &str = "https://id.example.com/keys";

fn options() -> TokenOptions {
    TokenOptions { jwks_public_endpoint: URL.to_owned(), ..TokenOptions::default() }
}

fn with_site(
    options: &TokenOptions,
    documents: impl IntoIterator<Item = (&'static str, Vec<u8>)>,
) -> (Verifier, Arc<Site>) {
    let verifier = verifier(options);
    let site = Arc::new(Site { documents: documents.into_iter().collect(), ..Site::default() });
    verifier.fetch_with(Arc::<Site>::clone(&site));
    (verifier, site)
}

/// A token of `RSA_PRIVATE` that names its key.
fn rs256(kid: &str, payload: &str) -> String {
    let header = format!(r#"{{"alg":"RS256","kid":"{kid}"}}"#);
    with_header(&header, Algorithm::RS256, &rsa_private(), payload)
}

/// The answer once the document has come.
#[track_caller]
fn check(verifier: &Verifier, token: &str, expect: Result<&str, TokenError>) {
    let mut verified = verifier.verify_connection(token, NOW);
    if verified == Err(TokenError::Pending) {
        verified = verifier.verify_connection(token, NOW);
    }
    assert_eq!(verified.as_ref().map(|claims| claims.user.as_str()), expect.as_ref().copied());
}

const ADA: &str = r#"{"sub":"ada"}"#;

#[test]
fn a_token_names_its_key_and_the_first_one_waits_for_it() {
    let (verifier, site) = with_site(&options(), [(URL, set(&[rsa_jwk("k", ""), ed_jwk("e")]))]);
    assert!(verifier.is_enabled());
    assert_eq!(verifier.verify_connection(&rs256("k", ADA), NOW), Err(TokenError::Pending));
    check(&verifier, &rs256("k", ADA), Ok("ada"));
    check(&verifier, &eddsa(r#"{"alg":"EdDSA","kid":"e"}"#, ADA), Ok("ada"));
    assert_eq!(*site.asked.lock(), [URL]);
}

#[test]
fn the_key_of_a_token_is_awaited_and_nothing_else() {
    #[derive(Debug, Default)]
    struct PendingFetches(Mutex<Option<Fetch>>);
    impl KeySource for PendingFetches {
        fn fetch(&self, fetch: Fetch) {
            *self.0.lock() = Some(fetch);
        }
    }
    let (pending_fetches, verifier) = (Arc::new(PendingFetches::default()), verifier(&options()));
    verifier.fetch_with(Arc::<PendingFetches>::clone(&pending_fetches));
    let token = rs256("k", ADA);
    for other in ["garbage", &hs256(ADA), &rs256("k", "[]"), &rs256(&"x".repeat(1000), ADA)] {
        assert!(verifier.lookup_key(other, NOW).is_ok_and(|lookup| lookup.is_none()), "{other}");
    }
    let waits = verifier.lookup_key(&token, NOW).expect_err("it is being fetched");
    let called = Arc::new(AtomicBool::new(false));
    let waiter = Arc::clone(&called);
    waits.then(move || waiter.store(true, Relaxed));
    assert!(!called.load(Relaxed), "not here yet");
    let fetch = pending_fetches.0.lock().take().expect("a fetch");
    fetch.done(set(&[rsa_jwk("k", "")]));
    assert!(called.load(Relaxed), "it has come");
    assert!(verifier.lookup_key(&token, NOW).is_ok_and(|lookup| lookup.is_some()));
    check(&verifier, &token, Ok("ada"));
}

#[test]
fn the_key_that_a_look_found_is_not_looked_for_again() {
    let (verifier, site) = with_site(&options(), [(URL, set(&[rsa_jwk("k", "")]))]);
    let token = rs256("k", ADA);
    check(&verifier, &token, Ok("ada"));
    let lookup = verifier.lookup_key(&token, NOW).expect("it is here");
    let much_later = NOW + 1_000_000; // another look would fetch the document
    let claims = verifier.connection(&token, lookup.as_ref(), much_later).expect("a genuine token");
    assert_eq!((claims.user.as_str(), site.asked.lock().len()), ("ada", 1));
    let forged = rs256("k", ADA).replacen("eyJzdWIi", "eyJTdWIi", 1);
    let refused = verifier.connection(&forged, lookup.as_ref(), NOW).map(drop);
    assert_eq!(refused, Err(TokenError::Invalid(Fault::Signature)));
}

#[test]
fn what_is_wrong_is_told_apart_from_what_is_not_known() {
    let (verifier, _) = with_site(&options(), [(URL, set(&[rsa_jwk("k", "")]))]);
    let invalid = |fault| Err(TokenError::Invalid(fault));
    check(&verifier, &rs256("x", ADA), invalid(Fault::Key));
    check(&verifier, &rs256(&"x".repeat(KID_BYTES_MAX + 1), ADA), invalid(Fault::Key));
    let forged = rs256("k", ADA).replacen("eyJzdWIi", "eyJTdWIi", 1);
    check(&verifier, &forged, invalid(Fault::Signature));
    check(
        &verifier,
        &with_header(r#"{"alg":"RS512","kid":"k"}"#, Algorithm::RS256, &rsa_private(), ADA),
        invalid(Fault::Signature),
    );
    check(
        &verifier,
        &with_header(r#"{"alg":"ES256","kid":"k"}"#, Algorithm::RS256, &rsa_private(), ADA),
        invalid(Fault::Algorithm),
    );
    check(
        &verifier,
        &with_header(r#"{"alg":"none","kid":"k"}"#, Algorithm::RS256, &rsa_private(), ADA),
        invalid(Fault::Algorithm),
    );
    check(&verifier, &rs256("k", r#"{"sub":"ada","exp":1}"#), Err(TokenError::Expired));
    check(&verifier, &rs256("k", r#"{"sub":7}"#), invalid(Fault::Claims));
    let (down, _) = with_site(&options(), []);
    check(&down, &rs256("k", ADA), Err(TokenError::Unavailable));
    check(&self::verifier(&options()), &rs256("k", ADA), Err(TokenError::Unavailable));
}

#[test]
fn a_public_key_is_no_secret_of_hmac() {
    let options = TokenOptions { hmac_secret_key: SECRET.into(), ..options() };
    let (verifier, site) = with_site(&options, [(URL, set(&[rsa_jwk("k", "")]))]);
    let hs256 = |secret: &[u8]| {
        let key = EncodingKey::from_secret(secret);
        with_header(r#"{"alg":"HS256","kid":"k"}"#, Algorithm::HS256, &key, ADA)
    };
    check(&verifier, &hs256(RSA_PUBLIC.as_bytes()), Err(Fault::Signature.into()));
    check(&verifier, &hs256(SECRET.as_bytes()), Ok("ada"));
    assert!(site.asked.lock().is_empty());
}

#[test]
fn a_token_that_names_no_key_is_checked_with_the_configured_ones() {
    let plain = signed(Algorithm::RS256, &rsa_private(), ADA);
    let (verifier, site) = with_site(&options(), [(URL, set(&[rsa_jwk("", "")]))]);
    check(&verifier, &plain, Err(Fault::Algorithm.into()));
    let options = TokenOptions { rsa_public_key: RSA_PUBLIC.to_owned(), ..options() };
    let (with_key, _) = with_site(&options, []);
    check(&with_key, &plain, Ok("ada"));
    assert!(site.asked.lock().is_empty());
}

#[test]
fn a_wrong_issuer_or_audience_fetches_nothing() {
    let options = TokenOptions {
        issuer: "https://id.example.com".to_owned(),
        audience_regex: "^chat-".to_owned(),
        ..options()
    };
    let (verifier, site) = with_site(&options, [(URL, set(&[rsa_jwk("k", "")]))]);
    let token = |iss: &str, aud: &str| {
        rs256("k", &format!(r#"{{"sub":"ada","iss":"{iss}","aud":["x","{aud}"]}}"#))
    };
    check(&verifier, &token("https://evil.example.com", "chat-1"), Err(Fault::Issuer.into()));
    check(&verifier, &token("https://id.example.com", "mail-1"), Err(Fault::Audience.into()));
    assert!(site.asked.lock().is_empty());
    check(&verifier, &token("https://id.example.com", "chat-1"), Ok("ada"));
}

#[test]
fn issuer_and_audience_choose_the_document_and_names_of_keys_may_collide() {
    let options = TokenOptions {
        jwks_public_endpoint: "https://{{zone}}.example.com/{{tenant}}/keys".to_owned(),
        issuer_regex: "^https://id/(?P<tenant>one|two)$".to_owned(),
        audience_regex: "^chat-(?P<zone>eu|us)$".to_owned(),
        ..TokenOptions::default()
    };
    let (one, two) = ("https://eu.example.com/one/keys", "https://us.example.com/two/keys");
    let documents = [(one, set(&[rsa_jwk("k", "")])), (two, set(&[ed_jwk("k")]))];
    let (verifier, site) = with_site(&options, documents);
    let claims =
        |iss: &str, aud: &str| format!(r#"{{"sub":"ada","iss":"{iss}","aud":["x","{aud}"]}}"#);
    let rsa = |iss, aud| rs256("k", &claims(iss, aud));
    check(&verifier, &rsa("https://id/one", "chat-eu"), Ok("ada"));
    let ed = eddsa(r#"{"alg":"EdDSA","kid":"k"}"#, &claims("https://id/two", "chat-us"));
    check(&verifier, &ed, Ok("ada"));
    check(&verifier, &rsa("https://id/two", "chat-us"), Err(Fault::Algorithm.into()));
    check(&verifier, &rsa("https://id/three", "chat-us"), Err(Fault::Issuer.into()));
    check(&verifier, &rsa("https://id/../x", "chat-us"), Err(Fault::Issuer.into()));
    check(&verifier, &rsa("https://id/two", "chat-ap"), Err(Fault::Audience.into()));
    assert_eq!(*site.asked.lock(), [one, two]);
}

#[test]
fn an_open_group_leads_nowhere_else_even_where_it_is_allowed() {
    let mut options = TokenOptions {
        jwks_public_endpoint: "https://id.example.com/{{tenant}}/keys".to_owned(),
        issuer_regex: "^https://id/(?P<tenant>.+)$".to_owned(),
        ..TokenOptions::default()
    };
    let refused = Verifier::new(&options, "client.token", false).expect_err("an open group");
    assert_eq!(
        refused.to_string(),
        "client.token.jwks_public_endpoint is \"https://id.example.com/{{tenant}}/keys\", expected the group tenant to \
         list the values it takes, such as (?P<tenant>one|two)"
    );
    options.insecure_skip_jwks_endpoint_safety_check = true;
    let (verifier, site) = with_site(&options, []);
    for tenant in ["..", ".", "a/b", "a?b", "a#b", "%2e%2e", "a@b"] {
        let token = rs256("k", &format!(r#"{{"iss":"https://id/{tenant}"}}"#));
        check(&verifier, &token, Err(Fault::Issuer.into()));
    }
    check(&verifier, &rs256("k", r#"{"iss":"https://id/a"}"#), Err(TokenError::Unavailable));
    assert_eq!(*site.asked.lock(), ["https://id.example.com/a/keys"]);
}

#[test]
fn skipped_signatures_need_no_document() {
    let verifier = Verifier::new(&options(), "client.token", true).expect("the options are valid");
    check(&verifier, &rs256("k", ADA), Ok("ada"));
}
