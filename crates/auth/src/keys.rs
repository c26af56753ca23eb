//! Keys of tokens: HMAC secrets and RSA/ECDSA public keys (RFC 7518 §3), prepared once, chosen by the header's `alg`.
//! In: `TokenOptions` once, then a signed text with its signature → out: valid, or the fault.
//! May use: jsonwebtoken with aws-lc, named directly so that no process-wide provider has to be chosen. Never a clock.
//! Changed here: HMAC, RSA and their limits; curves are in `ecdsa.rs`, `verifier.rs` parses tokens.

use std::ops::RangeInclusive;

use jsonwebtoken::crypto::CryptoProvider;
use jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};

use super::{Fault, ecdsa};
use crate::{OptionsError, TokenOptions};

/// The cryptography of all tokens.
pub(super) static CRYPTO: &CryptoProvider = &DEFAULT_PROVIDER;

/// One key set. A key is only ever used with the algorithms of its own family, so the header cannot pick a key for a
/// purpose it was not made for.
#[derive(Debug)]
pub(super) struct Keys {
    hmac: Option<DecodingKey>,
    hmac_previous: Option<Previous>,
    rsa: Option<DecodingKey>,
    ecdsa: Option<ecdsa::Key>,
}

#[derive(Debug)]
struct Previous {
    key: DecodingKey,
    /// Unix seconds, the last one included; 0 = no end.
    valid_until: u64,
}

impl Keys {
    /// Parses what is configured.
    pub(super) fn new(options: &TokenOptions, prefix_key: &str) -> Result<Self, OptionsError> {
        Ok(Self {
            hmac: secret(&options.hmac_secret_key),
            hmac_previous: secret(&options.hmac_previous_secret_key).map(|key| Previous {
                key,
                valid_until: options.hmac_previous_secret_key_valid_until,
            }),
            rsa: rsa(&format!("{prefix_key}.rsa_public_key"), &options.rsa_public_key)?,
            ecdsa: ecdsa(&format!("{prefix_key}.ecdsa_public_key"), &options.ecdsa_public_key)?,
        })
    }

    /// Everything that keeps [`new`](Self::new) from making keys.
    pub(super) fn mistakes(options: &TokenOptions, prefix_key: &str) -> Vec<OptionsError> {
        let rsa = rsa(&format!("{prefix_key}.rsa_public_key"), &options.rsa_public_key).err();
        let ecdsa = ecdsa(&format!("{prefix_key}.ecdsa_public_key"), &options.ecdsa_public_key);
        rsa.into_iter().chain(ecdsa.err()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hmac.is_none()
            && self.hmac_previous.is_none()
            && self.rsa.is_none()
            && self.ecdsa.is_none()
    }

    /// Whether `signature` was made over `signed` with the key for `alg`.
    ///
    /// # Errors
    /// [`Fault::Algorithm`] without a key for it, [`Fault::Signature`] otherwise.
    pub(super) fn verify(
        &self,
        alg: &str,
        signed: &[u8],
        signature: Vec<u8>,
        now_unix: u64,
    ) -> Result<(), Fault> {
        if let Some(key) = self.ecdsa.as_ref().filter(|key| key.curve.alg == alg) {
            return key.verify(signed, &signature).then_some(()).ok_or(Fault::Signature);
        }
        let algorithm = algorithm(alg).ok_or(Fault::Algorithm)?;
        let (key, other) = self.candidates(algorithm, now_unix);
        if key.is_none() && other.is_none() {
            return Err(Fault::Algorithm);
        }
        let mut keys = key.into_iter().chain(other);
        if keys.any(|key| verify(algorithm, key, signed, &signature)) {
            return Ok(());
        }
        Err(Fault::Signature)
    }

    fn candidates(
        &self,
        algorithm: Algorithm,
        now_unix: u64,
    ) -> (Option<&DecodingKey>, Option<&DecodingKey>) {
        match algorithm.family() {
            AlgorithmFamily::Hmac => {
                let configured = self.hmac_previous.as_ref();
                let previous = configured.filter(|previous| previous.is_valid(now_unix));
                (self.hmac.as_ref(), previous.map(|previous| &previous.key))
            }
            AlgorithmFamily::Rsa => (self.rsa.as_ref(), None),
            AlgorithmFamily::Ec | AlgorithmFamily::Ed => (None, None),
        }
    }
}

impl Previous {
    fn is_valid(&self, now_unix: u64) -> bool {
        self.valid_until == 0 || now_unix <= self.valid_until
    }
}

/// One signature check (RFC 7515 §5.2); any failure inside the library is "no".
pub(super) fn verify(
    algorithm: Algorithm,
    key: &DecodingKey,
    signed: &[u8],
    signature: &Vec<u8>,
) -> bool {
    let verifier = (CRYPTO.verifier_factory)(&algorithm, key);
    verifier.is_ok_and(|verifier| verifier.verify(signed, signature).is_ok())
}

/// The algorithms we believe besides those of [`ecdsa::CURVES`], by their name in the header; not `none`, and no
/// RSA-PSS or EdDSA with static keys.
pub(super) fn algorithm(alg: &str) -> Option<Algorithm> {
    Some(match alg {
        "HS256" => Algorithm::HS256,
        "HS384" => Algorithm::HS384,
        "HS512" => Algorithm::HS512,
        "RS256" => Algorithm::RS256,
        "RS384" => Algorithm::RS384,
        "RS512" => Algorithm::RS512,
        _ => return None,
    })
}

fn secret(secret: &str) -> Option<DecodingKey> {
    (!secret.is_empty()).then(|| DecodingKey::from_secret(secret.as_bytes()))
}

const RSA_EXPECTED: &str =
    "an RSA public key of 2048 to 8192 bits in PEM (-----BEGIN PUBLIC KEY-----)";
const ECDSA_EXPECTED: &str =
    "an ECDSA public key on P-256, P-384 or P-521 in PEM (-----BEGIN PUBLIC KEY-----)";

/// Lengths of RSA keys; limits are those of the cryptography: RSA_PKCS1_2048_8192.
pub(super) const RSA_BITS: RangeInclusive<usize> = 2048..=8192;

fn rsa(key: &str, pem: &str) -> Result<Option<DecodingKey>, OptionsError> {
    if pem.is_empty() {
        return Ok(None);
    }
    let wrong = |fault: &str| wrong_key(key, fault, RSA_EXPECTED);
    check_public(pem).map_err(wrong)?;
    let parsed = DecodingKey::from_rsa_pem(pem.as_bytes());
    let decoded = parsed.map_err(|_| wrong("is not an RSA key in PEM"))?;
    let der = decoded.try_get_as_bytes().map_err(|_| wrong("is not an RSA key in PEM"))?;
    let (modulus, _) = (CRYPTO.key_utils.rsa_pub_components_from_public_key)(der)
        .map_err(|_| wrong("is not a usable RSA key"))?;
    let bits = modulus.len() * 8;
    if !RSA_BITS.contains(&bits) {
        return Err(wrong(&format!("has {bits} bits")));
    }
    Ok(Some(decoded))
}

fn ecdsa(key: &str, pem: &str) -> Result<Option<ecdsa::Key>, OptionsError> {
    if pem.is_empty() {
        return Ok(None);
    }
    let parsed = check_public(pem).and_then(|()| ecdsa::Key::parse(pem));
    parsed.map(Some).map_err(|fault| wrong_key(key, fault, ECDSA_EXPECTED))
}

/// The library takes private keys for public ones in some forms; then no token would ever be genuine.
fn check_public(pem: &str) -> Result<(), &'static str> {
    if pem.contains("PRIVATE KEY-----") {
        return Err("is a private key, which belongs to the backend only");
    }
    Ok(())
}

fn wrong_key(key: &str, fault: &str, expected: &'static str) -> OptionsError {
    OptionsError::PublicKey { key: key.to_owned(), fault: fault.to_owned(), expected }
}

#[cfg(test)]
mod tests;
