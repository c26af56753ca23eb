//! Signatures with which a backend allows a client to track keys of a shared poll channel (protocol §28).
//! In: secrets once, then a signature, the claim and the time → out: its expiry, or why it is refused.
//! Uses HMAC and SHA-256 of aws-lc. Never: a clock, reply codes, which keys exist.
//! Changed here: the form of a signature, and how a secret is replaced.

use aws_lc_rs::{digest, hmac};

use crate::secret::Secret;

/// Secrets of signatures (`shared_poll.*`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackSecrets {
    pub hmac_secret_key: Secret,
    /// The secret before this one; "" = none.
    pub hmac_previous_secret_key: Secret,
    /// Unix seconds. The previous secret is refused in signatures that were issued later; 0 = no limit.
    pub hmac_previous_secret_key_valid_until: u64,
}

/// The content of a signature: a user, a channel, and keys in their order.
#[derive(Clone, Copy, Debug)]
pub struct TrackClaim<'a> {
    /// "" for anonymous.
    pub user: &'a str,
    pub channel: &'a str,
    pub keys: &'a [&'a str],
}

/// Why a signature is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackError {
    /// No secret is configured.
    NoSecret,
    /// It is malformed, or of another secret, user, channel or list of keys.
    Invalid,
    Expired,
}

/// Checks signatures.
#[derive(Debug)]
pub struct TrackVerifier {
    current: Option<hmac::Key>,
    previous: Option<hmac::Key>,
    previous_valid_until: u64,
}

impl TrackVerifier {
    pub fn new(secrets: &TrackSecrets) -> Self {
        Self {
            current: key_of(&secrets.hmac_secret_key),
            previous: key_of(&secrets.hmac_previous_secret_key),
            previous_valid_until: secrets.hmac_previous_secret_key_valid_until,
        }
    }

    /// Checks a signature at `unix` seconds. Returns the time at which it expires, in Unix seconds; `None` = never.
    ///
    /// # Errors
    /// See [`TrackError`]. A signature is taken for [`GRACE_S`] more seconds after its time.
    pub fn verify(
        &self,
        signature: &str,
        claim: TrackClaim<'_>,
        unix: u64,
    ) -> Result<Option<u64>, TrackError> {
        let current = self.current.as_ref().ok_or(TrackError::NoSecret)?;
        let parts = Parts::read(signature).ok_or(TrackError::Invalid)?;
        let message = message(parts.issued_at_text, parts.expires_at_text, claim)?;
        let is_old = self.previous_valid_until != 0 && parts.issued_at > self.previous_valid_until;
        let previous = self.previous.as_ref().filter(|_| !is_old);
        let mut secrets = [Some(current), previous].into_iter().flatten();
        if !secrets.any(|secret| hmac::verify(secret, &message, &parts.tag).is_ok()) {
            return Err(TrackError::Invalid);
        }
        match parts.expires_at {
            0 => Ok(None),
            expires_at if expires_at.saturating_add(GRACE_S) < unix => Err(TrackError::Expired),
            expires_at => Ok(Some(expires_at)),
        }
    }
}

/// Signs a claim as a backend does, for tests and tools. `expires_at` 0 = never.
///
/// # Errors
/// [`TrackError::NoSecret`] for an empty secret, [`TrackError::Invalid`] for a NUL in the claim.
pub fn sign_track(
    secret: &Secret,
    claim: TrackClaim<'_>,
    issued_at: u64,
    expires_at: u64,
) -> Result<String, TrackError> {
    let key = key_of(secret).ok_or(TrackError::NoSecret)?;
    let message = message(&issued_at.to_string(), &expires_at.to_string(), claim)?;
    let tag = hmac::sign(&key, &message);
    Ok(format!("{issued_at}:{expires_at}:{}", hexadecimal(tag.as_ref())))
}

/// `ISSUED_AT:EXPIRES_AT:TAG`, the tag in lower-case hexadecimal.
struct Parts<'a> {
    issued_at_text: &'a str,
    issued_at: u64,
    expires_at_text: &'a str,
    expires_at: u64,
    tag: Vec<u8>,
}

impl<'a> Parts<'a> {
    fn read(signature: &'a str) -> Option<Self> {
        let mut parts = signature.splitn(3, ':');
        let issued_at_text = parts.next()?;
        let expires_at_text = parts.next()?;
        let tag = read_hexadecimal(parts.next()?)?;
        let issued_at = read_number(issued_at_text)?;
        let expires_at = read_number(expires_at_text)?;
        Some(Self { issued_at_text, issued_at, expires_at_text, expires_at, tag })
    }
}

/// The signed text. The numbers are signed as they were written.
///
/// # Errors
/// [`TrackError::Invalid`] for a NUL inside of a part: with it, keys could be divided in another way than the backend did.
fn message(
    issued_at: &str,
    expires_at: &str,
    claim: TrackClaim<'_>,
) -> Result<Vec<u8>, TrackError> {
    let mut texts = claim.keys.iter().chain([&claim.user, &claim.channel]);
    if texts.any(|text| text.contains('\0')) {
        return Err(TrackError::Invalid);
    }
    let digest = digest::digest(&digest::SHA256, claim.keys.join("\0").as_bytes());
    let keys = hexadecimal(digest.as_ref());
    Ok([issued_at, expires_at, claim.user, claim.channel, &keys].join("\0").into_bytes())
}

fn key_of(secret: &Secret) -> Option<hmac::Key> {
    let is_set = !secret.is_empty();
    is_set.then(|| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
}

/// `parse` accepts a sign; `+5` must not pass.
fn read_number(text: &str) -> Option<u64> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_decimal { text.parse().ok() } else { None }
}

fn read_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Seconds for a client whose clock, or whose request, is late.
pub const GRACE_S: u64 = 5;

#[cfg(test)]
mod tests;
