//! `fanwire token`: connection and subscription tokens for development.
//! In: a user, optionally a channel, and a secret or a configuration → out: a signed token on stdout.
//! Uses `fanwire_auth`. Never: signs with anything but HMAC.
//! Options are changed in `arguments`; claims and signatures live in `auth`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use fanwire_auth::TokenOptions;
use fanwire_auth::{
    ConnectionToken, HmacAlgorithm, Lifetime, SubscriptionToken, sign_hmac_connection,
    sign_hmac_subscription,
};
use fanwire_config::{Kind, Misfit, Value, load};

use crate::arguments::{Algorithm, Token};
use crate::{document, environment};

#[cfg(test)]
mod tests;

pub(crate) fn run(arguments: &Token) -> Result<()> {
    let end = if arguments.quiet { "" } else { "\n" };
    document::print(&(signed_now(arguments, &options(arguments)?)? + end))
}

/// The token, issued at the time of the system clock.
pub(crate) fn signed_now(arguments: &Token, options: &TokenOptions) -> Result<String> {
    let now =
        SystemTime::now().duration_since(UNIX_EPOCH).context("the system clock is before 1970")?;
    make(arguments, options, now.as_secs())
}

fn make(arguments: &Token, options: &TokenOptions, issued_at: u64) -> Result<String> {
    let algorithm = match arguments.alg {
        Algorithm::Hs256 => HmacAlgorithm::Hs256,
        Algorithm::Hs384 => HmacAlgorithm::Hs384,
        Algorithm::Hs512 => HmacAlgorithm::Hs512,
    };
    let lifetime = lifetime(&arguments.ttl)?;
    let token = match &arguments.channel {
        None => {
            let token = ConnectionToken {
                user: &arguments.user,
                user_id_claim: &options.user_id_claim,
                issued_at,
                lifetime,
                info: &arguments.info,
                channels: &[],
                audience: &options.audience,
                issuer: &options.issuer,
            };
            sign_hmac_connection(&options.hmac_secret_key, algorithm, &token)
        }
        Some(channel) => {
            let token = SubscriptionToken {
                user: &arguments.user,
                user_id_claim: &options.user_id_claim,
                channel,
                issued_at,
                lifetime,
                info: &arguments.info,
                audience: &options.audience,
                issuer: &options.issuer,
            };
            sign_hmac_subscription(&options.hmac_secret_key, algorithm, &token)
        }
    };
    Ok(token?)
}

/// The secret and claims with which the server checks this kind of token.
fn options(arguments: &Token) -> Result<TokenOptions> {
    let (config, _) = load(arguments.config.as_deref(), environment::variables()?, &[])?;
    let client = config.node_options().client;
    let own = client.subscription_token.filter(|_| arguments.channel.is_some());
    let mut options = own.unwrap_or(client.token);
    if let Some(secret) = &arguments.secret {
        options.hmac_secret_key = secret.clone().into();
    }
    if options.hmac_secret_key.is_empty() {
        bail!(
            "no secret for the signature: give --secret, or --config with a file that sets \
             client.token.hmac_secret_key, or FANWIRE_CLIENT_TOKEN_HMAC_SECRET_KEY"
        );
    }
    Ok(options)
}

fn lifetime(ttl: &str) -> Result<Lifetime> {
    let kind = Kind::Duration { min: Duration::ZERO, max: TTL_MAX };
    // As in Centrifugo's commands: -1 for a token without a limit, and seconds.
    let ttl = if ttl == "-1" { "0" } else { ttl };
    let is_seconds = !ttl.is_empty() && ttl.bytes().all(|byte| byte.is_ascii_digit());
    let text = if is_seconds { format!("{ttl}s") } else { ttl.to_owned() };
    match kind.read_text(&text) {
        Ok(Value::Duration(Duration::ZERO)) => Ok(Lifetime::Never),
        Ok(Value::Duration(ttl)) => Ok(Lifetime::Seconds(ttl.as_secs().max(1))),
        Ok(_) => unreachable!("a key of kind Duration has a duration"),
        Err(Misfit::Type(expected) | Misfit::Range(expected)) => {
            Err(anyhow!("--ttl is {ttl:?}, expected {expected}"))
        }
    }
}

/// Ten years.
const TTL_MAX: Duration = Duration::from_secs(87_600 * 3600);
