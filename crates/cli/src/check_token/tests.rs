//! Tests of what is said of tokens.
//! In: tokens, options and a moment → out: one line, or the reason of a refusal.
//! Uses the tokens that `fanwire::node::token` signs. Never: the clock, files.
//! A reason that is told is a row here.

use clap::Parser;
use fanwire::auth::TokenOptions;
use fanwire::auth::{
    ConnectionToken, HmacAlgorithm, Lifetime, SubscriptionToken, sign_hmac_connection,
    sign_hmac_subscription,
};
use fanwire::node::options::ClientOptions;

use super::{Suspect, verdict};
use crate::arguments::{Arguments, CheckToken, Command};

const NOW: u64 = 1_700_000_000;

fn arguments(rest: &[&str]) -> CheckToken {
    let all = ["fanwire", "check-token"].iter().chain(rest);
    match Arguments::try_parse_from(all).expect("the test's arguments are right").command {
        Some(Command::CheckToken(check)) => check,
        other => panic!("not check-token: {other:?}"),
    }
}

fn client(secret: &str) -> ClientOptions {
    let token = TokenOptions { hmac_secret_key: secret.into(), ..TokenOptions::default() };
    ClientOptions { token, ..ClientOptions::default() }
}

fn connection_token(lifetime: Lifetime) -> String {
    let token = ConnectionToken {
        user: "42",
        user_id_claim: "",
        issued_at: NOW,
        lifetime,
        info: "",
        channels: &[],
        audience: "",
        issuer: "",
    };
    sign_hmac_connection("secret", HmacAlgorithm::Hs256, &token).expect("a token")
}

fn subscription_token() -> String {
    let token = SubscriptionToken {
        user: "42",
        user_id_claim: "",
        channel: "$news",
        issued_at: NOW,
        lifetime: Lifetime::Never,
        info: "",
        audience: "",
        issuer: "",
    };
    sign_hmac_subscription("secret", HmacAlgorithm::Hs256, &token).expect("a token")
}

#[test]
fn a_good_token_is_told_with_its_user_and_its_end() {
    let token = connection_token(Lifetime::Seconds(60));
    let told = verdict(&arguments(&[&token]), &client("secret"), NOW + 10).expect("a good one");
    assert_eq!(told, "the token is good for user \"42\" for 50 s, until 1700000060 in Unix time");
    let token = subscription_token();
    let check = arguments(&[&token, "--channel", "$news"]);
    let told = verdict(&check, &client("secret"), NOW).expect("a good one");
    assert_eq!(told, "the token is good for user \"42\" for ever");
}

#[test]
fn what_is_wrong_with_a_token_is_told() {
    let good = connection_token(Lifetime::Seconds(60));
    let private = subscription_token();
    for (words, secret, now, reason) in [
        (vec![good.as_str()], "secret", NOW + 61, "it ended 1 s ago (exp is 1700000060)"),
        (vec![good.as_str()], "another", NOW, "has a wrong signature"),
        (vec![good.as_str()], "", NOW, "client.token has no key to check tokens with"),
        (vec!["junk"], "secret", NOW, "is not a JWT"),
        (vec![private.as_str()], "secret", NOW, "channel is \"$news\", as in a subscription token"),
        (vec![good.as_str(), "--channel", "$news"], "secret", NOW, "channel is missing, as in"),
        (vec![private.as_str(), "--channel", "$sport"], "secret", NOW, "for the channel \"$news\""),
    ] {
        let error = verdict(&arguments(&words), &client(secret), now).expect_err(reason);
        assert!(error.to_string().contains(reason), "{error}");
    }
}

/// A token with this payload and an empty signature.
fn unsigned(payload: &str) -> String {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
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
        let suspect = Suspect {
            token: &unsigned(payload),
            is_subscription: false,
            user_claim: "",
            now_unix: NOW,
        };
        assert!(suspect.claim().expect(payload).starts_with(reason), "{payload}");
    }
    let early = unsigned(r#"{"sub":"1","nbf":1700000009.5,"exp":1800000000}"#);
    let suspect = Suspect { token: &early, is_subscription: false, user_claim: "", now_unix: NOW };
    assert_eq!(suspect.moment().as_deref(), Some("it begins in 9 s (nbf is 1700000009)"));
    assert_eq!(suspect.algorithm().as_deref(), Some("alg is \"HS256\""));
    assert_eq!(suspect.claim(), None);
}

#[test]
fn a_token_without_a_user_is_refused_where_that_is_configured() {
    let token = ConnectionToken {
        user: "",
        user_id_claim: "",
        issued_at: NOW,
        lifetime: Lifetime::Never,
        info: "",
        channels: &[],
        audience: "",
        issuer: "",
    };
    let token = sign_hmac_connection("secret", HmacAlgorithm::Hs256, &token).expect("a token");
    let mut client = client("secret");
    assert!(verdict(&arguments(&[&token]), &client, NOW).is_ok());
    client.disallow_anonymous_connection_tokens = true;
    let error = verdict(&arguments(&[&token]), &client, NOW).expect_err("no user");
    assert!(error.to_string().contains("disallow_anonymous_connection_tokens"), "{error}");
}
