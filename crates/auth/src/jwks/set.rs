//! Documents of keys (JWK Set, RFC 7517 §5) and the keys in them (RFC 7518 §6, RFC 8037 §2).
//! In: a document → out: keys by their `kid`; then a signed text with its signature → valid or the fault.
//! May use: serde_json, base64, jsonwebtoken and aws-lc. Pure; unknown members are left out, as §5 advises.
//! Changed here: types of keys; `cache.rs` decides where documents come from and how long they are valid.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::keys::{self, RSA_BITS};
use super::super::registered::object;
use super::super::{Fault, ecdsa};

/// Keys by `kid`.
pub(crate) type Set = HashMap<String, Arc<Key>>;

/// One public key. It is only ever used with the algorithms of its own type, and if it names one, with that alone.
#[derive(Debug)]
pub(crate) struct Key {
    alg: Option<String>,
    public: Public,
}

#[derive(Debug)]
enum Public {
    Rsa(DecodingKey),
    Ecdsa(ecdsa::Key),
    Ed25519(DecodingKey),
}

/// Reads a document. Of two keys with one `kid` the first counts; those without `use` `sig`, without `kid` or of an
/// unknown type are left out. `None` for what is no key set.
pub(crate) fn parse(json: &[u8]) -> Option<Set> {
    let document: RawSet<'_> = object(json)?;
    let mut set = Set::new();
    for raw in document.keys {
        if let Some((kid, key)) = object(raw.get().as_bytes()).and_then(RawKey::key) {
            set.entry(kid).or_insert_with(|| Arc::new(key));
        }
    }
    Some(set)
}

impl Key {
    /// Whether `signature` was made over `signed` with this key.
    ///
    /// # Errors
    /// [`Fault::Algorithm`] when the key is not for `alg`, [`Fault::Signature`] otherwise.
    pub(crate) fn verify(&self, alg: &str, signed: &[u8], signature: Vec<u8>) -> Result<(), Fault> {
        if self.alg.as_deref().is_some_and(|own| own != alg) {
            return Err(Fault::Algorithm);
        }
        let is_genuine = match &self.public {
            Public::Rsa(key) => {
                let algorithm = keys::algorithm(alg);
                let rsa = algorithm.filter(|one| one.family() == AlgorithmFamily::Rsa);
                keys::verify(rsa.ok_or(Fault::Algorithm)?, key, signed, &signature)
            }
            Public::Ecdsa(key) if key.curve.alg == alg => key.verify(signed, &signature),
            Public::Ed25519(key) if alg == "EdDSA" => {
                keys::verify(Algorithm::EdDSA, key, signed, &signature)
            }
            Public::Ecdsa(_) | Public::Ed25519(_) => return Err(Fault::Algorithm),
        };
        if is_genuine { Ok(()) } else { Err(Fault::Signature) }
    }
}

#[derive(Deserialize)]
struct RawSet<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawKey {
    kty: String,
    r#use: Option<String>,
    kid: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl RawKey {
    fn key(self) -> Option<(String, Key)> {
        if self.r#use.as_deref() != Some("sig") {
            return None;
        }
        let public = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => rsa(&self.n?, &self.e?)?,
            ("EC", Some(curve)) => ec(curve, &self.x?, &self.y?)?,
            ("OKP", Some("Ed25519")) => ed25519(&self.x?)?,
            _ => return None,
        };
        Some((self.kid?, Key { alg: self.alg, public }))
    }
}

fn rsa(modulus: &str, exponent: &str) -> Option<Public> {
    let modulus = bytes(modulus)?;
    let exponent = bytes(exponent)?;
    let modulus = &modulus[modulus.iter().take_while(|byte| **byte == 0).count()..];
    let is_usable = RSA_BITS.contains(&(modulus.len() * 8)) && !exponent.is_empty();
    is_usable.then(|| Public::Rsa(DecodingKey::from_rsa_raw_components(modulus, &exponent)))
}

fn ec(curve: &str, x: &str, y: &str) -> Option<Public> {
    let curve = ecdsa::CURVES.iter().find(|one| one.name == curve)?;
    let point = [vec![0x04], bytes(x)?, bytes(y)?].concat();
    ecdsa::Key::new(curve, &point).map(Public::Ecdsa)
}

fn ed25519(x: &str) -> Option<Public> {
    (bytes(x)?.len() == 32).then(|| DecodingKey::from_ed_components(x).ok())?.map(Public::Ed25519)
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests;
