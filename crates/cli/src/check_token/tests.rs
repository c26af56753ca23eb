//! Tests of the explanations of tokens.
//! In: tokens, options and a time → out: one line, or the reason of a refusal.
//! Uses the tokens that `fanwire_auth` signs. Never: the clock, files.
//! A reason is a row here.

use clap::Parser;
use fanwire_auth::TokenOptions;
use fanwire_auth::{
    ConnectionToken, HmacAlgorithm, Lifetime, SubscriptionToken, sign_hmac_connection,
    sign_hmac_subscription,
};
use fanwire_node::options::ClientOptions;

use super::verdict;
use crate::arguments::{Arguments, CheckToken, CliCommand};

const NOW: u64 = 1_700_000_000;

fn arguments(rest: &[&str]) -> CheckToken {
    let all = ["fanwire", "check-token"].iter().chain(rest);
    match Arguments::try_parse_from(all).expect("the test's arguments are right").command {
        Some(CliCommand::CheckToken(check)) => check,
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
fn a_valid_token_is_printed_with_its_user_and_its_expiry() {
    let token = connection_token(Lifetime::Seconds(60));
    let verdict_text =
        verdict(&arguments(&[&token]), &client("secret"), NOW + 10).expect("a good one");
    assert_eq!(
        verdict_text,
        "the token is valid for user \"42\" for 50 s, until 1700000060 in Unix time"
    );
    let token = subscription_token();
    let check = arguments(&[&token, "--channel", "$news"]);
    let verdict_text = verdict(&check, &client("secret"), NOW).expect("a good one");
    assert_eq!(verdict_text, "the token is valid for user \"42\" without limit");
}

#[test]
fn the_reason_of_a_refusal_is_printed() {
    let good = connection_token(Lifetime::Seconds(60));
    let private = subscription_token();
    for (words, secret, now, reason) in [
        (vec![good.as_str()], "secret", NOW + 61, "it expired 1 s ago (exp is 1700000060)"),
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

#[test]
fn a_token_without_a_user_is_refused_if_configured() {
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
