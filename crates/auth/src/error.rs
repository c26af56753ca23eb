//! Errors of tokens: why one is refused, and why one could not be made.
//! In: findings of the checks of this crate → out: values that the session maps to codes, text for logs and the command line.
//! May use: nothing. Never quotes a token or a secret.
//! Causes are changed here; the session chooses the reply or close code.

use std::fmt;

/// The reason why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// Genuine, but `exp` has come or `nbf` has not: connect and subscribe 109, refresh 3005, sub_refresh an empty result.
    Expired,
    /// Not to be believed: connect, refresh and sub_refresh 3500, subscribe 103.
    Invalid(Fault),
    /// The key that it names is being fetched: ask again when it has come.
    Pending,
    /// The key that it names cannot be fetched now: 100, which clients repeat.
    Unavailable,
    /// No key is configured, so no token can be checked.
    Disabled,
}

/// Fault of an invalid token, for the log and the reason of the close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Not three base64url parts with a JSON header that has `alg`.
    Format,
    /// The header demands an extension by `crit`.
    Extension,
    /// `alg` is unknown, `none`, or has no configured key.
    Algorithm,
    /// The token names no key, or a key that its issuer does not publish.
    Key,
    /// The signature does not belong to the text.
    Signature,
    /// `aud` is not the configured one.
    Audience,
    /// `iss` is not the configured one.
    Issuer,
    /// A claim has a wrong type, is missing or is forbidden in this kind of token.
    Claims,
}

/// The reason why no token was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignError {
    /// The secret is empty.
    NoSecret,
    /// `info` is not JSON.
    Info,
    /// A subscription token without a channel.
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

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("the token is expired or not yet valid"),
            Self::Invalid(fault) => write!(f, "the token {fault}"),
            Self::Pending => f.write_str("the key of the token is being fetched"),
            Self::Unavailable => f.write_str("the key of the token cannot be fetched now"),
            Self::Disabled => f.write_str("no key to check tokens with is configured"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Format => "is not a JWT in compact form",
            Self::Extension => "demands an extension in the header `crit`, and none is supported",
            Self::Algorithm => "has an algorithm without a configured key",
            Self::Key => "names no key that its issuer publishes",
            Self::Signature => "has a wrong signature",
            Self::Audience => "is for another audience",
            Self::Issuer => "is from another issuer",
            Self::Claims => "has a claim that is missing, forbidden or of a wrong type",
        })
    }
}

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSecret => "the HMAC secret key is empty, expected the secret to sign with",
            Self::Info => "the info is not JSON, expected a value such as {\"name\":\"Ada\"}",
            Self::NoChannel => "the channel is empty, expected the name of a channel",
        })
    }
}

impl std::error::Error for TokenError {}

impl std::error::Error for SignError {}
