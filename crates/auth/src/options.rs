//! Options of tokens (Centrifugo v6 `client.token.*`, `client.subscription_token.*`): keys, and expected claims.
//! In: values from the configuration table → out: the same data.
//! May use: nothing. Never shows a secret.
//! Keys are parsed in `verifier.rs`.

use crate::{ClaimLabel, Secret};

/// `client.token.*` or `client.subscription_token.*`; "" = not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenOptions {
    /// Shared secret of HS256, HS384 and HS512.
    pub hmac_secret_key: Secret,
    /// Secret before the last rotation, still believed.
    pub hmac_previous_secret_key: Secret,
    /// The last Unix second in which the previous secret is believed. 0 = no end.
    pub hmac_previous_secret_key_valid_until: u64,
    /// PEM text of RS256, RS384 and RS512, 2048 to 8192 bits.
    pub rsa_public_key: String,
    /// PEM text of ES256 (P-256), ES384 (P-384) or ES512 (P-521).
    pub ecdsa_public_key: String,
    /// Address of a document with public keys (RFC 7517), for tokens that name theirs (`kid`). Variables `{{name}}` are
    /// filled by named groups of `issuer_regex` and `audience_regex`.
    pub jwks_public_endpoint: String,
    /// Allows groups that take any value to choose the address.
    pub insecure_skip_jwks_endpoint_safety_check: bool,
    /// `aud` must contain exactly this.
    pub audience: String,
    /// One entry of `aud` must match this.
    pub audience_regex: String,
    /// `iss` must be exactly this.
    pub issuer: String,
    /// `iss` must match this.
    pub issuer_regex: String,
    /// Claim that carries the user id instead of `sub`; letters and `_` only.
    pub user_id_claim: String,
    /// Labels from other claims of connection tokens; they replace those of the claim `labels`.
    pub labels_from_claim: Vec<ClaimLabel>,
}
