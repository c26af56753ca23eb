//! `fanwire check-token`: what the server makes of a token. Clients are only told that one is invalid or expired.
//! In: a token, perhaps a channel, and a configuration → out: what it grants on stdout, or an error that says what is wrong.
//! Uses the verifier of `fanwire::node::token`. Never: a JWKS endpoint, a signature that is not looked at.
//! What makes a token good is decided in the node; this file chooses what is printed of it.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use fanwire::auth::{Fault, TokenError, Verifier};
use fanwire::config::load;
use fanwire::node::options::ClientOptions;

use crate::arguments::CheckToken;
use crate::{document, environment};
use suspect::Suspect;

mod suspect;

#[cfg(test)]
mod tests;

pub(crate) fn run(arguments: &CheckToken) -> Result<()> {
    let (config, _) = load(arguments.config.as_deref(), environment::variables()?, &[])?;
    let now =
        SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
    let verdict = verdict(arguments, &config.node.client, now.as_secs())?;
    document::print(&format!("{verdict}\n"))
}

fn verdict(arguments: &CheckToken, client: &ClientOptions, now_unix: u64) -> Result<String> {
    let own = client.subscription_token.as_ref().filter(|_| arguments.channel.is_some());
    let section = if own.is_some() { "client.subscription_token" } else { "client.token" };
    let verifier = Verifier::new(own.unwrap_or(&client.token), section, false)?;
    let token = arguments.token.trim();
    let suspect = Suspect {
        token,
        is_subscription: arguments.channel.is_some(),
        user_claim: &own.unwrap_or(&client.token).user_id_claim,
        now_unix,
    };
    let refused = |error| explained(error, section, &suspect);
    let (user, expire_at) = match &arguments.channel {
        None => {
            let claims = verifier.verify_connection(token, now_unix).map_err(refused)?;
            if claims.user.is_empty() && client.disallow_anonymous_connection_tokens {
                return Err(anyhow!(
                    "the token names no user, which client.disallow_anonymous_connection_tokens forbids"
                ));
            }
            (claims.user, claims.expire_at)
        }
        Some(channel) => {
            let claims = verifier.verify_subscription(token, now_unix).map_err(refused)?;
            if claims.channel != *channel {
                let found = claims.channel;
                return Err(anyhow!("the token is for the channel {found:?}, not for {channel:?}"));
            }
            (claims.user, claims.expire_at)
        }
    };
    let until = match expire_at {
        None => "for ever".to_owned(),
        Some(end) => format!("for {} s, until {end} in Unix time", end.saturating_sub(now_unix)),
    };
    Ok(format!("the token is good for user {user:?} {until}"))
}

/// The error, what of the token it is about, and where to look.
fn explained(error: TokenError, section: &str, suspect: &Suspect<'_>) -> anyhow::Error {
    let found = match error {
        TokenError::Pending | TokenError::Unavailable => {
            return anyhow!(
                "the key of the token is published at {section}.jwks_public_endpoint, which only the server asks"
            );
        }
        TokenError::Disabled => {
            return anyhow!(
                "{section} has no key to check tokens with: give --config with the file of the server"
            );
        }
        TokenError::Invalid(Fault::Claims) => suspect.claim(),
        TokenError::Invalid(Fault::Algorithm) => suspect.algorithm(),
        TokenError::Expired => suspect.moment(),
        _ => None,
    };
    let found = found.map_or(String::new(), |found| format!(": {found}"));
    anyhow!("{error}{found}; it was checked with the keys and claims of {section}")
}
