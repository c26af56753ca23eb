//! New HMAC tokens for development and tests (`fanwire token`).
//! In: a secret and the claims → out: a token in the compact form of RFC 7515 §7.1.
//! May use: jsonwebtoken, serde_json, base64. Never reads a clock: issue time and lifetime are parameters.
//! Changed here: claims of new tokens; `verifier.rs` verifies tokens.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::SignError;
use super::keys::CRYPTO;

/// HMAC with SHA-2 (RFC 7518 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HmacAlgorithm {
    #[default]
    Hs256,
    Hs384,
    Hs512,
}

/// End of a new token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// No `exp`.
    #[default]
    Never,
    /// `exp` this many seconds after `issued_at`.
    Seconds(u64),
    /// `exp` at this Unix second.
    Until(u64),
}

/// Content of a new connection token. Empty texts are left out, except the user.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionToken<'a> {
    /// User id; "" = anonymous.
    pub user: &'a str,
    /// Claim for the user id (`client.token.user_id_claim`); "" = `sub`.
    pub user_id_claim: &'a str,
    /// Unix seconds (`iat`).
    pub issued_at: u64,
    pub lifetime: Lifetime,
    /// Connection info, JSON text.
    pub info: &'a str,
    /// Server-side channels.
    pub channels: &'a [String],
    pub audience: &'a str,
    pub issuer: &'a str,
}

/// Content of a new subscription token. Empty texts are left out, except the user.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubscriptionToken<'a> {
    /// User id; must equal that of the connection.
    pub user: &'a str,
    /// Claim for the user id (`client.token.user_id_claim`); "" = `sub`.
    pub user_id_claim: &'a str,
    /// The one channel; not empty.
    pub channel: &'a str,
    /// Unix seconds (`iat`).
    pub issued_at: u64,
    pub lifetime: Lifetime,
    /// Channel info, JSON text.
    pub info: &'a str,
    pub audience: &'a str,
    pub issuer: &'a str,
}

/// A connection token signed with `secret`.
///
/// # Errors
/// An empty secret, or `info` that is not JSON.
pub fn sign_hmac_connection(
    secret: &str,
    algorithm: HmacAlgorithm,
    token: &ConnectionToken<'_>,
) -> Result<String, SignError> {
    let claims = Claims {
        user: token.user,
        user_id_claim: token.user_id_claim,
        issued_at: token.issued_at,
        lifetime: token.lifetime,
        info: json(token.info)?,
        channel: "",
        channels: token.channels,
        audience: token.audience,
        issuer: token.issuer,
    };
    sign(secret, algorithm, &claims)
}

/// A subscription token signed with `secret`.
///
/// # Errors
/// An empty secret, an empty channel, or `info` that is not JSON.
pub fn sign_hmac_subscription(
    secret: &str,
    algorithm: HmacAlgorithm,
    token: &SubscriptionToken<'_>,
) -> Result<String, SignError> {
    if token.channel.is_empty() {
        return Err(SignError::NoChannel);
    }
    let claims = Claims {
        user: token.user,
        user_id_claim: token.user_id_claim,
        issued_at: token.issued_at,
        lifetime: token.lifetime,
        info: json(token.info)?,
        channel: token.channel,
        channels: &[],
        audience: token.audience,
        issuer: token.issuer,
    };
    sign(secret, algorithm, &claims)
}

/// Both kinds of tokens; what is empty is left out.
struct Claims<'a> {
    user: &'a str,
    user_id_claim: &'a str,
    issued_at: u64,
    lifetime: Lifetime,
    info: Option<&'a RawValue>,
    channel: &'a str,
    channels: &'a [String],
    audience: &'a str,
    issuer: &'a str,
}

impl Claims<'_> {
    fn expiry(&self) -> Option<u64> {
        match self.lifetime {
            Lifetime::Never => None,
            Lifetime::Seconds(seconds) => Some(self.issued_at.saturating_add(seconds)),
            Lifetime::Until(unix) => Some(unix),
        }
    }
}

impl Serialize for Claims<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let user_id_claim = if self.user_id_claim.is_empty() { "sub" } else { self.user_id_claim };
        map.serialize_entry(user_id_claim, self.user)?;
        map.serialize_entry("iat", &self.issued_at)?;
        if let Some(expiry) = self.expiry() {
            map.serialize_entry("exp", &expiry)?;
        }
        for (name, text) in
            [("aud", self.audience), ("iss", self.issuer), ("channel", self.channel)]
        {
            if !text.is_empty() {
                map.serialize_entry(name, text)?;
            }
        }
        if let Some(info) = self.info {
            map.serialize_entry("info", info)?;
        }
        if !self.channels.is_empty() {
            map.serialize_entry("channels", self.channels)?;
        }
        map.end()
    }
}

fn json(text: &str) -> Result<Option<&RawValue>, SignError> {
    if text.is_empty() {
        return Ok(None);
    }
    serde_json::from_str(text).map_err(|_| SignError::Info)
}

fn sign(secret: &str, algorithm: HmacAlgorithm, claims: &Claims<'_>) -> Result<String, SignError> {
    if secret.is_empty() {
        return Err(SignError::NoSecret);
    }
    let (algorithm, header) = match algorithm {
        HmacAlgorithm::Hs256 => (Algorithm::HS256, r#"{"alg":"HS256","typ":"JWT"}"#),
        HmacAlgorithm::Hs384 => (Algorithm::HS384, r#"{"alg":"HS384","typ":"JWT"}"#),
        HmacAlgorithm::Hs512 => (Algorithm::HS512, r#"{"alg":"HS512","typ":"JWT"}"#),
    };
    let payload = serde_json::to_vec(claims).expect("texts and numbers are always JSON");
    let mut token = URL_SAFE_NO_PAD.encode(header);
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(payload, &mut token);
    let key = EncodingKey::from_secret(secret.as_bytes());
    let signer = (CRYPTO.signer_factory)(&algorithm, &key).expect("any secret is an HMAC key");
    let signature = signer.try_sign(token.as_bytes()).expect("HMAC signs any text");
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    Ok(token)
}

#[cfg(test)]
mod tests;
