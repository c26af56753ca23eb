//! Authentication: connection and subscription tokens (RFC 7519), keys of the configuration and of JWKS endpoints (RFC 7517).
//! In: options once, then token text and the time → out: checked claims, or an error; new tokens for tests and tools.
//! Uses jsonwebtoken and aws-lc, the only crate that does. Never: a clock, sockets, reply codes.
//! Changed here: the list of modules. The order of checks lives in `verifier`, keys in `keys` and `jwks`, claims in `claims`.
#![forbid(unsafe_code)]

mod claim_labels;
mod claims;
mod ecdsa;
mod error;
#[cfg(test)]
mod fixture;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod invalid_token;
mod jwks;
mod keys;
#[cfg(test)]
mod known_answers;
mod options;
mod options_error;
mod registered;
mod revocation;
mod secret;
mod sign;
mod track_signature;
mod verifier;

pub use claim_labels::ClaimLabel;
pub use claims::{ChannelGrant, ConnectionClaims, Overrides, SubscriptionClaims};
pub use error::{Fault, SignError, TokenError};
pub use jwks::{Fetch, KEY_SET_BYTES_MAX, KeyCounters, KeyFetching, KeyLookup, KeySource};
pub use options::TokenOptions;
pub use options_error::{OptionsError, compile};
pub use revocation::{ENTRIES_MAX, RevocationTable, Subject, TableFull, TokenId};
pub use secret::Secret;
pub use sign::{
    ConnectionToken, HmacAlgorithm, Lifetime, SubscriptionToken, sign_hmac_connection,
    sign_hmac_subscription,
};
pub use track_signature::{
    GRACE_S as TRACK_GRACE_S, TrackClaim, TrackError, TrackSecrets, TrackVerifier, sign_track,
};
pub use verifier::Verifier;

/// The program in Rust of the page about tokens.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tokens.md")]
struct TokensPage;
