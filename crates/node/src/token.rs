//! JSON Web Tokens (RFC 7519 in the compact form of RFC 7515): connection and subscription tokens (the claims of Centrifugo v6).
//! In: `TokenOptions` once, then token text and the time → out: checked claims, or why not.
//! May use: jsonwebtoken and aws-lc (signatures), base64, serde_json, regex. Never reads a clock, never chooses reply codes.
//! Order of the checks is changed here; keys are in `token/keys.rs`, claims in `token/claims.rs`, new tokens in `token/sign.rs`.

mod claims;
mod ecdsa;
mod error;
#[cfg(test)]
mod fixture;
mod keys;
mod registered;
mod self_test;
mod sign;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use regex::Regex;

use crate::channel::compile;
use crate::options::{OptionsError, TokenOptions};
use keys::Keys;
use registered::{Header, Registered};

pub use claims::{ChannelGrant, ConnectionClaims, Overrides, SubscriptionClaims};
pub use error::{Fault, SignError, TokenError};
pub use sign::{
    ConnectionToken, HmacAlgorithm, Lifetime, SubscriptionToken, sign_hmac_connection,
    sign_hmac_subscription,
};

/// Checks tokens against one key set; made once, shared by all connections.
///
/// Algorithms: HS256, HS384, HS512, RS256, RS384, RS512, ES256, ES384 and ES512, each only if its key is configured.
/// `alg` `none` is never believed.
#[derive(Debug)]
pub struct Verifier {
    /// `None`: signatures are not looked at.
    keys: Option<Keys>,
    audience: String,
    audience_regex: Option<Regex>,
    issuer: String,
    issuer_regex: Option<Regex>,
    user_id_claim: String,
}

impl Verifier {
    /// Parses keys and patterns and proves that the cryptography behind each configured key works.
    ///
    /// `prefix_key` is where the options stand (`client.token`), for errors. `skip_signature` believes every claim of
    /// every token, whatever its algorithm; `exp`, `nbf`, `aud` and `iss` are still checked.
    ///
    /// # Errors
    /// Keys or patterns that do not parse, a bad claim name, or cryptography that fails its self-test.
    pub fn new(
        options: &TokenOptions,
        prefix_key: &str,
        skip_signature: bool,
    ) -> Result<Self, OptionsError> {
        check_claim_name(prefix_key, &options.user_id_claim)?;
        let keys = Keys::new(options, prefix_key)?;
        Ok(Self {
            keys: (!skip_signature).then_some(keys),
            audience: options.audience.clone(),
            audience_regex: compile(prefix_key, "audience_regex", &options.audience_regex)?,
            issuer: options.issuer.clone(),
            issuer_regex: compile(prefix_key, "issuer_regex", &options.issuer_regex)?,
            user_id_claim: options.user_id_claim.clone(),
        })
    }

    /// Whether any key is configured (or signatures are skipped); otherwise every token is [`TokenError::Disabled`].
    pub fn is_enabled(&self) -> bool {
        self.keys.as_ref().is_none_or(|keys| !keys.is_empty())
    }

    /// Checks a connection token at `now_unix` (seconds).
    ///
    /// # Errors
    /// [`TokenError`]; `Expired` only if everything else about the token is right.
    pub fn verify_connection(
        &self,
        token: &str,
        now_unix: u64,
    ) -> Result<ConnectionClaims, TokenError> {
        let json = self.open(token, now_unix)?;
        let (registered, user) = self.believe(&json)?;
        let claims = claims::connection(&json, user, registered.expiry())?;
        registered.check_time(now_unix)?;
        Ok(claims)
    }

    /// Checks a subscription token at `now_unix` (seconds); the caller compares user, channel and client
    /// ([`SubscriptionClaims::is_for`]).
    ///
    /// # Errors
    /// [`TokenError`]; `Expired` only if everything else about the token is right.
    pub fn verify_subscription(
        &self,
        token: &str,
        now_unix: u64,
    ) -> Result<SubscriptionClaims, TokenError> {
        let json = self.open(token, now_unix)?;
        let (registered, user) = self.believe(&json)?;
        let claims = claims::subscription(&json, user, registered.expiry())?;
        registered.check_time(now_unix)?;
        Ok(claims)
    }

    /// The payload as JSON bytes, once the signature belongs to it.
    fn open(&self, token: &str, now_unix: u64) -> Result<Vec<u8>, TokenError> {
        if !self.is_enabled() {
            return Err(TokenError::Disabled);
        }
        let (header, rest) = token.split_once('.').ok_or(Fault::Format)?;
        let (payload, signature) = rest.split_once('.').ok_or(Fault::Format)?;
        let signed = &token[..header.len() + 1 + payload.len()];
        let (header, signature) = (decode(header)?, decode(signature)?);
        let header = Header::parse(&header)?;
        if let Some(keys) = &self.keys {
            keys.verify(&header.alg, signed.as_bytes(), signature, now_unix)?;
        }
        decode(payload).map_err(TokenError::Invalid)
    }

    /// The registered claims and the user, once the token is from and for the right party.
    fn believe(&self, json: &[u8]) -> Result<(Registered, String), Fault> {
        let mut registered = Registered::parse(json)?;
        if !registered.has_audience(&self.audience, self.audience_regex.as_ref()) {
            return Err(Fault::Audience);
        }
        if !registered.has_issuer(&self.issuer, self.issuer_regex.as_ref()) {
            return Err(Fault::Issuer);
        }
        let user = match self.user_id_claim.as_str() {
            "" => registered.take_subject(),
            claim => registered::user_claim(json, claim)?,
        };
        Ok((registered, user))
    }
}

/// Base64url without padding (RFC 7515 §2). A dot is not in the alphabet, so a token has no fourth part.
fn decode(part: &str) -> Result<Vec<u8>, Fault> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| Fault::Format)
}

fn check_claim_name(prefix_key: &str, name: &str) -> Result<(), OptionsError> {
    if name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_') {
        return Ok(());
    }
    let key = format!("{prefix_key}.user_id_claim");
    Err(OptionsError::value(key, name, "letters a-z A-Z and _ only"))
}

#[cfg(test)]
mod tests;
