//! Options of tokens (Centrifugo v6 `client.token.*`, `client.subscription_token.*`): keys, and what claims must say.
//! In: what the configuration table filled in → out: the same data.
//! May use: nothing. Never shows a secret: `Debug` hides them.
//! Keys are parsed in `crate::token`.

/// `client.token.*` or `client.subscription_token.*`; "" = not set. `Debug` hides the secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TokenOptions {
    /// Shared secret of HS256, HS384 and HS512.
    pub hmac_secret_key: String,
    /// Secret before the last rotation, still believed.
    pub hmac_previous_secret_key: String,
    /// Unix seconds; from then on the previous secret is refused. 0 = no end.
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
}

impl std::fmt::Debug for TokenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hidden = |secret: &str| if secret.is_empty() { "" } else { "[hidden]" };
        f.debug_struct("TokenOptions")
            .field("hmac_secret_key", &hidden(&self.hmac_secret_key))
            .field("hmac_previous_secret_key", &hidden(&self.hmac_previous_secret_key))
            .field(
                "hmac_previous_secret_key_valid_until",
                &self.hmac_previous_secret_key_valid_until,
            )
            .field("rsa_public_key", &self.rsa_public_key)
            .field("ecdsa_public_key", &self.ecdsa_public_key)
            .field("jwks_public_endpoint", &self.jwks_public_endpoint)
            .field(
                "insecure_skip_jwks_endpoint_safety_check",
                &self.insecure_skip_jwks_endpoint_safety_check,
            )
            .field("audience", &self.audience)
            .field("audience_regex", &self.audience_regex)
            .field("issuer", &self.issuer)
            .field("issuer_regex", &self.issuer_regex)
            .field("user_id_claim", &self.user_id_claim)
            .finish()
    }
}
