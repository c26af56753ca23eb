//! Errors of tokens: why one is refused, and why one could not be made.
//! In: findings of the checks of this crate → out: values that the session maps to codes, text for logs and the command line.
//! May use: nothing. Never quotes a token or a secret.
//! Changed here: causes; the session chooses the reply or close code.

/// The reason why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Genuine, but `exp` has come or `nbf` has not: connect and subscribe 109, refresh 3005, sub_refresh an empty result.
    #[error("the token is expired or not yet valid")]
    Expired,
    /// The token is not to be believed: connect, refresh and sub_refresh are answered with 3500, subscribe with 103.
    #[error("the token {0}")]
    Invalid(Fault),
    /// The key that it names is being fetched: ask again when it has come.
    #[error("the key of the token is being fetched")]
    Pending,
    /// The key that it names cannot be fetched now: 100, which clients repeat.
    #[error("the key of the token cannot be fetched now")]
    Unavailable,
    /// No key is configured, so no token can be checked.
    #[error("no key to check tokens with is configured")]
    Disabled,
}

/// Fault of an invalid token, for the log and the reason of the close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The text is not three base64url parts with a JSON header that has `alg`.
    #[error("is not a JWT in compact form")]
    Format,
    /// The header demands an extension by `crit`.
    #[error("demands an extension in the header `crit`, and none is supported")]
    Extension,
    /// `alg` is unknown, `none`, or has no configured key.
    #[error("has an algorithm without a configured key")]
    Algorithm,
    /// The token names no key, or a key that its issuer does not publish.
    #[error("names no key that its issuer publishes")]
    Key,
    /// The signature does not belong to the text.
    #[error("has a wrong signature")]
    Signature,
    /// `aud` is not the configured one.
    #[error("is for another audience")]
    Audience,
    /// `iss` is not the configured one.
    #[error("is from another issuer")]
    Issuer,
    /// A claim has a wrong type, is missing or is forbidden in this kind of token.
    #[error("has a claim that is missing, forbidden or of a wrong type")]
    Claims,
}

/// The reason why no token was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The secret is empty.
    #[error("the HMAC secret key is empty, expected the secret to sign with")]
    NoSecret,
    /// `info` is not JSON.
    #[error("the info is not JSON, expected a value such as {{\"name\":\"Ada\"}}")]
    Info,
    /// A subscription token without a channel.
    #[error("the channel is empty, expected the name of a channel")]
    NoChannel,
}

impl Fault {
    /// Its name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Extension => "extension",
            Self::Algorithm => "algorithm",
            Self::Key => "key",
            Self::Signature => "signature",
            Self::Audience => "audience",
            Self::Issuer => "issuer",
            Self::Claims => "claims",
        }
    }
}

impl From<Fault> for TokenError {
    fn from(fault: Fault) -> Self {
        Self::Invalid(fault)
    }
}
