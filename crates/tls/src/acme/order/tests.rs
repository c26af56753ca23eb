//! Tests of what a failed order means: who failed, what an operator can do.
//! In: errors of instant-acme → out: kinds and remedies.
//! Uses problem documents (RFC 8555 §6.7). Never: an authority; orders are tested with one in `acme::tests`.
//! An error that needs another remedy is a test here.

use super::*;

fn refused(name: &str, status: u16) -> OrderError {
    let r#type = Some(format!("urn:ietf:params:acme:error:{name}"));
    OrderError::Acme(Error::Api(Problem {
        r#type,
        detail: None,
        status: Some(status),
        subproblems: Vec::new(),
    }))
}

#[test]
fn each_error_is_that_of_somebody() {
    let io = Error::Other(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into());
    let page = serde_json::from_str::<()>("<html>").expect_err("not JSON");
    let check = |error: OrderError, expect| assert_eq!(error.kind(), expect, "{error}");
    check(io.into(), FailureKind::Authority);
    check(Error::Json(page).into(), FailureKind::Authority);
    check(refused("serverInternal", 500), FailureKind::Authority);
    check(refused("badNonce", 400), FailureKind::Authority);
    check(refused("rateLimited", 429), FailureKind::Refused);
    check(refused("rejectedIdentifier", 400), FailureKind::Refused);
    check(OrderError::Timeout, FailureKind::Refused);
    check(OrderError::Challenge(ChallengeKind::Http, "404".to_owned()), FailureKind::Challenge);
    check(OrderError::NotOffered(ChallengeKind::TlsAlpn), FailureKind::Challenge);
}

#[test]
fn an_account_is_unknown_only_if_the_authority_says_so() {
    assert!(refused("accountDoesNotExist", 400).is_unknown_account());
    assert!(!refused("unauthorized", 403).is_unknown_account());
    assert!(!OrderError::Timeout.is_unknown_account());
}

#[test]
fn remedies_name_the_key_or_the_port() {
    let check = |error: OrderError, part: &str| {
        assert!(error.remedy().contains(part), "{error}: {}", error.remedy());
    };
    check(OrderError::Challenge(ChallengeKind::TlsAlpn, String::new()), "port 443");
    check(OrderError::Challenge(ChallengeKind::Http, String::new()), "port 80");
    check(OrderError::NotOffered(ChallengeKind::TlsAlpn), "tls_autocert.http");
    check(refused("rateLimited", 429), "cache_dir");
    check(refused("invalidContact", 400), "email");
    check(refused("caa", 403), "CAA");
    check(OrderError::Timeout, "directory_url");
}
