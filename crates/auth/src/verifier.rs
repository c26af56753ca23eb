//! JSON Web Tokens (RFC 7519 in the compact form of RFC 7515): connection and subscription tokens (the claims of Centrifugo v6).
//! In: `TokenOptions` once, then token text and the time → out: checked claims, or an error.
//! May use: jsonwebtoken and aws-lc (signatures), base64, serde_json, regex. Never reads a clock, never chooses reply codes.
//! Changed here: order of the checks; keys are in `keys.rs` and `jwks.rs`, claims in `claims.rs`, new tokens in `sign.rs`.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use regex::Regex;

use crate::claim_labels::{self, ClaimLabel};
use crate::claims::{self, ConnectionClaims, SubscriptionClaims};
use crate::invalid_token::InvalidToken;
use crate::jwks::{Jwks, KeyCounters, KeyFetching, KeyLookup, KeySource};
use crate::keys::Keys;
use crate::options_error::compile;
use crate::registered::{self, Header, Registered};
use crate::{Fault, OptionsError, TokenError, TokenOptions};

/// Checks tokens against one key set; made once, shared by all connections.
///
/// Algorithms: HS256, HS384, HS512, RS256, RS384, RS512, ES256, ES384 and ES512, each only if its key is configured; with a
/// JWKS endpoint also EdDSA, and the key of every algorithm but HMAC may be one that is published there and named by the
/// token's `kid`. `alg` `none` is never believed.
#[derive(Debug)]
pub struct Verifier {
    /// `None`: signatures are not looked at.
    keys: Option<Keys>,
    jwks: Option<Arc<Jwks>>,
    audience: String,
    audience_regex: Option<Regex>,
    issuer: String,
    issuer_regex: Option<Regex>,
    user_id_claim: String,
    labels_from_claim: Vec<ClaimLabel>,
}

impl Verifier {
    /// Parses keys and patterns.
    ///
    /// `prefix_key` is where the options stand (`client.token`), for errors. `skip_signature` believes every claim of
    /// every token, whatever its algorithm; `exp`, `nbf`, `aud` and `iss` are still checked.
    ///
    /// # Errors
    /// Keys or patterns that do not parse, or a bad claim name.
    pub fn new(
        options: &TokenOptions,
        prefix_key: &str,
        skip_signature: bool,
    ) -> Result<Self, OptionsError> {
        check_claim_name(prefix_key, &options.user_id_claim)?;
        let labels_from_claim = options.labels_from_claim.clone();
        if let Some(error) = claim_labels::mistakes(&labels_from_claim, prefix_key).pop() {
            return Err(error);
        }
        let keys = Keys::new(options, prefix_key)?;
        Ok(Self {
            keys: (!skip_signature).then_some(keys),
            jwks: Jwks::new(options, prefix_key)?.map(Arc::new),
            audience: options.audience.clone(),
            audience_regex: compile(prefix_key, "audience_regex", &options.audience_regex)?,
            issuer: options.issuer.clone(),
            issuer_regex: compile(prefix_key, "issuer_regex", &options.issuer_regex)?,
            user_id_claim: options.user_id_claim.clone(),
            labels_from_claim,
        })
    }

    /// This verifier with the published keys that `other`, whose endpoint is the same, has fetched or is fetching.
    #[must_use]
    pub fn keeping_keys_of(self, other: &Self) -> Self {
        Self { jwks: other.jwks.clone(), ..self }
    }

    /// Everything that keeps [`new`](Self::new) from making a verifier; `prefix_key` as there.
    pub fn mistakes(options: &TokenOptions, prefix_key: &str) -> Vec<OptionsError> {
        let mut mistakes = Keys::mistakes(options, prefix_key);
        mistakes.extend(check_claim_name(prefix_key, &options.user_id_claim).err());
        mistakes.extend(claim_labels::mistakes(&options.labels_from_claim, prefix_key));
        let patterns =
            [("audience_regex", &options.audience_regex), ("issuer_regex", &options.issuer_regex)];
        let faults = patterns.map(|(key, pattern)| compile(prefix_key, key, pattern).err());
        // The variables of the endpoint are groups of these patterns.
        if faults.iter().all(Option::is_none) {
            mistakes.extend(Jwks::new(options, prefix_key).err());
        }
        mistakes.extend(faults.into_iter().flatten());
        mistakes
    }

    /// Whether any key is configured (or signatures are skipped); otherwise every token is [`TokenError::Disabled`].
    pub fn is_enabled(&self) -> bool {
        self.jwks.is_some() || self.keys.as_ref().is_none_or(|keys| !keys.is_empty())
    }

    /// Explains why a token of some kind is refused, with the part of the token that caused it. Never quotes the signature.
    pub fn explain(
        &self,
        error: TokenError,
        token: &str,
        is_subscription: bool,
        now_unix: u64,
    ) -> String {
        let refused =
            InvalidToken { token, is_subscription, user_claim: &self.user_id_claim, now_unix };
        match refused.part_of(error) {
            Some(part) => format!("{error}: {part}"),
            None => error.to_string(),
        }
    }

    /// Sets the source that fetches documents of keys. Without a source no published key is known.
    pub fn fetch_with(&self, source: Arc<dyn KeySource>) {
        if let Some(jwks) = &self.jwks {
            jwks.cache().fetch_with(source);
        }
    }

    /// How often documents of keys were fetched.
    pub fn key_counters(&self) -> KeyCounters {
        self.jwks.as_ref().map(|jwks| jwks.cache().counters()).unwrap_or_default()
    }

    /// Looks for the key of a token, if that is one that is published.
    ///
    /// # Errors
    /// The document of the key is being fetched. Once that has ended, the token is not [`TokenError::Pending`].
    pub fn lookup_key(&self, token: &str, now_unix: u64) -> Result<Option<KeyLookup>, KeyFetching> {
        let Some(jwks) = &self.jwks else { return Ok(None) };
        let lookup = || {
            let parts = Parts::of(token)?;
            let header = Header::parse(&parts.header).ok().filter(is_published);
            let claims = self.registered(&decode(parts.payload)?)?;
            let variable = |name: &str| self.group(&claims, name);
            Ok::<_, Fault>(header.map(|header| jwks.lookup_when_ready(&header, variable, now_unix)))
        };
        lookup().ok().flatten().unwrap_or(Ok(None))
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
        self.connection(token, None, now_unix)
    }

    /// Checks a connection token as [`verify_connection`](Self::verify_connection) does, after the lookup of the key of this token.
    ///
    /// # Errors
    /// The errors of `verify_connection`.
    pub fn connection(
        &self,
        token: &str,
        lookup: Option<&KeyLookup>,
        now_unix: u64,
    ) -> Result<ConnectionClaims, TokenError> {
        let json = self.open(token, lookup, now_unix)?;
        let (mut registered, user) = self.believe(&json)?;
        let mut claims = claims::connection(&json, user, &mut registered)?;
        claim_labels::add(&self.labels_from_claim, &json, &mut claims.labels);
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
        self.subscription(token, None, now_unix)
    }

    /// Checks a subscription token as [`verify_subscription`](Self::verify_subscription) does, after the lookup of the key of this token.
    ///
    /// # Errors
    /// The errors of `verify_subscription`.
    pub fn subscription(
        &self,
        token: &str,
        lookup: Option<&KeyLookup>,
        now_unix: u64,
    ) -> Result<SubscriptionClaims, TokenError> {
        let json = self.open(token, lookup, now_unix)?;
        let (mut registered, user) = self.believe(&json)?;
        let claims = claims::subscription(&json, user, &mut registered)?;
        registered.check_time(now_unix)?;
        Ok(claims)
    }

    /// The user that a token names, without any check: only for logs of refused tokens.
    pub fn claimed_user(&self, token: &str) -> Option<String> {
        let json = decode(token.split('.').nth(1)?).ok()?;
        match self.user_id_claim.as_str() {
            "" => Registered::parse(&json).ok().map(|mut claims| claims.take_subject()),
            claim => registered::user_claim(&json, claim).ok(),
        }
    }

    /// The payload as JSON bytes, once the signature belongs to it.
    fn open(
        &self,
        token: &str,
        lookup: Option<&KeyLookup>,
        now_unix: u64,
    ) -> Result<Vec<u8>, TokenError> {
        if !self.is_enabled() {
            return Err(TokenError::Disabled);
        }
        let Parts { header, payload, signed, signature } = Parts::of(token)?;
        let header = Header::parse(&header)?;
        match (&self.keys, &self.jwks) {
            (Some(_), Some(jwks)) if is_published(&header) => {
                let payload = decode(payload)?;
                let own;
                let lookup = match lookup {
                    Some(lookup) => lookup,
                    None => {
                        let claims = self.registered(&payload)?; // it says where the key is, so it has to be right before that
                        let variable = |name: &str| self.group(&claims, name);
                        own = jwks.lookup(&header, variable, now_unix)?;
                        &own
                    }
                };
                Jwks::verify(lookup, &header, signed, signature)?;
                return Ok(payload);
            }
            (Some(keys), _) => keys.verify(&header.alg, signed, signature, now_unix)?,
            (None, _) => {}
        }
        decode(payload).map_err(TokenError::Invalid)
    }

    /// Returns the text that a named group of the patterns of issuer and audience matches.
    fn group(&self, claims: &Registered, name: &str) -> Option<String> {
        claims.group(name, self.issuer_regex.as_ref(), self.audience_regex.as_ref())
    }

    /// The registered claims, once the token is from and for the right party.
    fn registered(&self, json: &[u8]) -> Result<Registered, Fault> {
        let registered = Registered::parse(json)?;
        if !registered.has_audience(&self.audience, self.audience_regex.as_ref()) {
            return Err(Fault::Audience);
        }
        if !registered.has_issuer(&self.issuer, self.issuer_regex.as_ref()) {
            return Err(Fault::Issuer);
        }
        Ok(registered)
    }

    /// The registered claims and the user.
    fn believe(&self, json: &[u8]) -> Result<(Registered, String), Fault> {
        let mut registered = self.registered(json)?;
        let user = match self.user_id_claim.as_str() {
            "" => registered.take_subject(),
            claim => registered::user_claim(json, claim)?,
        };
        Ok((registered, user))
    }
}

/// Whether the key of a token may be one of those that its issuer publishes: it names it, and shares no secret.
fn is_published(header: &Header<'_>) -> bool {
    header.kid.is_some() && !header.alg.starts_with("HS")
}

/// A token taken apart; `signed` is what the signature is over.
struct Parts<'a> {
    header: Vec<u8>,
    payload: &'a str,
    signed: &'a [u8],
    signature: Vec<u8>,
}

impl<'a> Parts<'a> {
    fn of(token: &'a str) -> Result<Self, Fault> {
        let (header, rest) = token.split_once('.').ok_or(Fault::Format)?;
        let (payload, signature) = rest.split_once('.').ok_or(Fault::Format)?;
        let signed = &token.as_bytes()[..header.len() + 1 + payload.len()];
        Ok(Self { header: decode(header)?, payload, signed, signature: decode(signature)? })
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
