//! Tests of tokens for development.
//! In: options → out: tokens that the server's verifier accepts.
//! Uses `fanwire_auth`. Never: the clock.
//! A promise of `fanwire token` is a test here.

use clap::Parser;
use fanwire_auth::TokenOptions;
use fanwire_auth::Verifier;

use super::make;
use crate::arguments::{Arguments, CliCommand, Token};

const NOW: u64 = 1_700_000_000;

fn arguments(rest: &[&str]) -> Token {
    let all = ["fanwire", "token"].iter().chain(rest);
    match Arguments::try_parse_from(all).expect("the test's arguments are right").command {
        Some(CliCommand::Token(token)) => token,
        other => panic!("not token: {other:?}"),
    }
}

fn options() -> TokenOptions {
    TokenOptions {
        hmac_secret_key: "secret".into(),
        audience: "fanwire".to_owned(),
        ..TokenOptions::default()
    }
}

fn verifier() -> Verifier {
    Verifier::new(&options(), "client.token", false).expect("right options")
}

#[test]
fn a_connection_token_is_accepted_until_it_expires() {
    for algorithm in ["HS256", "HS384", "HS512"] {
        let info = r#"{"name":"Ada"}"#;
        let arguments =
            arguments(&["--user", "42", "--ttl", "10s", "--info", info, "--alg", algorithm]);
        let token = make(&arguments, &options(), NOW).expect("a token");
        let claims = verifier().verify_connection(&token, NOW).expect("a good token");
        assert_eq!((claims.user.as_str(), claims.info.as_ref()), ("42", info.as_bytes()));
        assert!(verifier().verify_connection(&token, NOW + 11).is_err());
    }
}

#[test]
fn a_subscription_token_is_for_its_user_and_channel() {
    let arguments = arguments(&["--user", "42", "--channel", "$news"]);
    let token = make(&arguments, &options(), NOW).expect("a token");
    let claims = verifier().verify_subscription(&token, NOW).expect("a good token");
    assert!(claims.is_for("42", "$news", ""));
    assert!(!claims.is_for("43", "$news", ""));
}

#[test]
fn a_token_without_expiry_is_always_accepted() {
    for ttl in ["0", "-1"] {
        let token = make(&arguments(&["-t", ttl]), &options(), NOW).expect("a token");
        assert!(verifier().verify_connection(&token, u64::MAX / 2).is_ok(), "{ttl}");
    }
}

#[test]
fn an_error_of_an_option_names_the_expected_value() {
    let error = |rest: &[&str]| {
        make(&arguments(rest), &options(), NOW).expect_err("wrong options").to_string()
    };
    assert!(error(&["--ttl", "ten"]).starts_with("--ttl is \"ten\", expected a duration such as"));
    assert!(error(&["--ttl", "-5s"]).starts_with("--ttl is \"-5s\", expected a duration such as"));
    assert!(error(&["--info", "{"]).contains("info is not JSON"));
    assert!(error(&["--channel", ""]).contains("channel is empty"));
}

#[test]
fn a_lifetime_without_a_unit_is_seconds_as_with_centrifugo() {
    let token = make(&arguments(&["--user", "42", "-t", "10"]), &options(), NOW).expect("a token");
    assert!(verifier().verify_connection(&token, NOW + 9).is_ok());
    assert!(verifier().verify_connection(&token, NOW + 10).is_err());
}
