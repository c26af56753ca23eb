//! Keys that an identity provider publishes (JWKS, RFC 7517), selected by `kid`.
//! In: a token's header and the claims that name its issuer → out: valid or not, or that the key is being fetched.
//! May use: the modules below, which are pure, and the port `KeySource`, which fetches documents. Never a clock.
//! The cache is changed in `cache.rs`, documents in `set.rs`, addresses in `endpoint.rs`; the shell fetches.

mod cache;
mod endpoint;
mod set;

use std::fmt;
use std::sync::Arc;

use crate::registered::Header;
use crate::{Fault, OptionsError, TokenError, TokenOptions};
use cache::{Cache, Found};
use endpoint::Endpoint;

pub use cache::{Fetch, KeyCounters, KeyFetching};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use set::parse as key_set_of;

/// Fetches documents for a node, which has no sockets.
pub trait KeySource: fmt::Debug + Send + Sync {
    /// Begins to fetch and returns at once. Dropping `fetch` means that nothing came. At most one fetch of an address is
    /// under way at a time.
    fn fetch(&self, fetch: Fetch);
}

/// The result of the lookup of the key of one token.
#[derive(Debug)]
pub struct KeyLookup(Found);

/// Longest document in bytes. Those of large providers have some 30 KB, most of it certificates.
pub const KEY_SET_BYTES_MAX: usize = 512 * 1024;

/// Longest `kid` that is looked for, in bytes; providers use up to some 60.
const KID_BYTES_MAX: usize = 512;

/// The keys of one endpoint.
#[derive(Debug)]
pub(crate) struct Jwks {
    endpoint: Endpoint,
    cache: Arc<Cache>,
}

impl Jwks {
    /// `None` when no endpoint is configured.
    ///
    /// # Errors
    /// An endpoint that is no address, or whose variables could lead elsewhere.
    pub(crate) fn new(
        options: &TokenOptions,
        prefix_key: &str,
    ) -> Result<Option<Self>, OptionsError> {
        let text = &options.jwks_public_endpoint;
        if text.is_empty() {
            return Ok(None);
        }
        let patterns = [options.issuer_regex.as_str(), options.audience_regex.as_str()];
        let is_checked = !options.insecure_skip_jwks_endpoint_safety_check;
        let checked = Endpoint::parse(text).and_then(|endpoint| {
            endpoint.check(patterns, is_checked)?;
            Ok(endpoint)
        });
        let endpoint = checked.map_err(|expected| {
            OptionsError::value(format!("{prefix_key}.jwks_public_endpoint"), text, expected)
        })?;
        Ok(Some(Self { endpoint, cache: Arc::default() }))
    }

    pub(crate) fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// Whether `signature` was made over `signed` with the key that the header names, which `lookup` looked for.
    ///
    /// # Errors
    /// `Pending` while the key is being fetched, `Unavailable` when that failed or has to wait, else the fault.
    pub(crate) fn verify(
        lookup: &KeyLookup,
        header: &Header<'_>,
        signed: &[u8],
        signature: Vec<u8>,
    ) -> Result<(), TokenError> {
        match &lookup.0 {
            Found::Key(key) => Ok(key.verify(&header.alg, signed, signature)?),
            Found::No => Err(Fault::Key.into()),
            Found::Later => Err(TokenError::Pending),
            Found::Unavailable => Err(TokenError::Unavailable),
        }
    }

    /// Looks for the key of a token, and begins to fetch its document where that is due.
    ///
    /// # Errors
    /// The fault of a token that cannot have a key.
    pub(crate) fn lookup(
        &self,
        header: &Header<'_>,
        variable: impl Fn(&str) -> Option<String>,
        now_unix: u64,
    ) -> Result<KeyLookup, Fault> {
        let (url, kid) = self.place(header, variable)?;
        Ok(KeyLookup(self.cache.find(&url, kid, now_unix)))
    }

    /// Looks for a key as [`lookup`](Self::lookup) does, with an error instead of `Pending`.
    ///
    /// # Errors
    /// The document is being fetched; call again once that has ended. `Ok(None)` for a token that cannot have a key.
    pub(crate) fn lookup_when_ready(
        &self,
        header: &Header<'_>,
        variable: impl Fn(&str) -> Option<String>,
        now_unix: u64,
    ) -> Result<Option<KeyLookup>, KeyFetching> {
        let Ok((url, kid)) = self.place(header, variable) else { return Ok(None) };
        match self.cache.find(&url, kid, now_unix) {
            Found::Later => Err(self.cache.fetching(&url)),
            found => Ok(Some(KeyLookup(found))),
        }
    }

    /// The address of the document that should have the key, and the key's name in it.
    fn place<'a>(
        &self,
        header: &'a Header<'_>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(String, &'a str), Fault> {
        let short_kid = header.kid.as_deref().filter(|kid| kid.len() <= KID_BYTES_MAX);
        let kid = short_kid.ok_or(Fault::Key)?;
        let url = self.endpoint.url(variable).ok_or(Fault::Issuer)?;
        Ok((url, kid))
    }
}

#[cfg(test)]
mod tests;
