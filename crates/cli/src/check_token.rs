//! `fanwire check-token`: explains why the server accepts or refuses a token, without a server.
//! In: a token, optionally a channel, and a configuration → out: the granted user and lifetime on stdout, or the reason of the refusal.
//! Uses the verifier of `fanwire_auth`. Never: a JWKS endpoint; never skips a signature check.
//! The rules for tokens live in `auth`; this file selects the printed details.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use fanwire_auth::{Fault, TokenError, Verifier};
use fanwire_config::load;
use fanwire_node::options::ClientOptions;

use crate::arguments::CheckToken;
use crate::{document, environment};

#[cfg(test)]
mod tests;

pub(crate) fn run(arguments: &CheckToken) -> Result<()> {
    let (config, _) = load(arguments.config.as_deref(), environment::variables()?, &[])?;
    let now =
        SystemTime::now().duration_since(UNIX_EPOCH).context("the system clock is before 1970")?;
    let verdict = verdict(arguments, &config.node_options().client, now.as_secs())?;
    document::print(&format!("{verdict}\n"))
}

fn verdict(arguments: &CheckToken, client: &ClientOptions, now_unix: u64) -> Result<String> {
    let is_subscription = arguments.is_subscription || arguments.channel.is_some();
    let own = client.subscription_token.as_ref().filter(|_| is_subscription);
    let section = if own.is_some() { "client.subscription_token" } else { "client.token" };
    let verifier = Verifier::new(own.unwrap_or(&client.token), section, false)?;
    let token = arguments.token.trim();
    let refused = |error| {
        let cause = verifier.explain(error, token, is_subscription, now_unix);
        explained(error, section, &cause)
    };
    let (user, expire_at) = match is_subscription {
        false => {
            let claims = verifier.verify_connection(token, now_unix).map_err(refused)?;
            if claims.user.is_empty() && client.disallow_anonymous_connection_tokens {
                return Err(anyhow!(
                    "the token names no user, which client.disallow_anonymous_connection_tokens forbids"
                ));
            }
            (claims.user, claims.expire_at)
        }
        true => {
            let claims = verifier.verify_subscription(token, now_unix).map_err(refused)?;
            let expected = arguments.channel.as_ref();
            if let Some(channel) = expected.filter(|channel| **channel != claims.channel) {
                let granted = claims.channel;
                return Err(anyhow!(
                    "the token is for the channel {granted:?}, not for {channel:?}"
                ));
            }
            (claims.user, claims.expire_at)
        }
    };
    let until = match expire_at {
        None => "without limit".to_owned(),
        Some(end) => format!("for {} s, until {end} in Unix time", end.saturating_sub(now_unix)),
    };
    Ok(format!("the token is valid for user {user:?} {until}"))
}

/// The cause of an error, and the section with the keys.
fn explained(error: TokenError, section: &str, cause: &str) -> anyhow::Error {
    match error {
        TokenError::Pending | TokenError::Unavailable => anyhow!(
            "the key of the token is published at {section}.jwks_public_endpoint, which only the server fetches"
        ),
        TokenError::Disabled => anyhow!(
            "{section} has no key to check tokens with: give --config with the file of the server"
        ),
        TokenError::Invalid(Fault::Claims) => anyhow!(
            "{cause}; it was checked with the keys and claims of {section}: --channel is for subscription tokens only"
        ),
        _ => anyhow!("{cause}; it was checked with the keys and claims of {section}"),
    }
}
