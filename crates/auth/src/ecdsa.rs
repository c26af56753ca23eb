//! ECDSA keys of tokens (RFC 7518 §3.4): ES256, ES384 and ES512, each on its own curve.
//! In: PEM text once, then a signed text with its signature (R ‖ S, both at full length) → out: valid or not.
//! May use: aws-lc (the ECDSA of jsonwebtoken ends at ES384), jsonwebtoken to read PEM. Never reads a token's header.
//! Curves are rows here; `keys.rs` selects among the configured keys.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED,
    EcdsaVerificationAlgorithm, ParsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jsonwebtoken::DecodingKey;

/// One algorithm and the one curve it belongs to.
#[derive(Debug)]
pub(super) struct Curve {
    /// Name in the header of a token.
    pub(super) alg: &'static str,
    /// Name in a published key (RFC 7518 §6.2.1.1).
    pub(super) name: &'static str,
    /// Object identifier of the curve, as DER (RFC 5480 §2.1.1.1).
    oid: &'static [u8],
    verification: &'static EcdsaVerificationAlgorithm,
}

/// All ECDSA algorithms there are in RFC 7518.
pub(super) static CURVES: [Curve; 3] = [
    Curve {
        alg: "ES256",
        name: "P-256",
        oid: &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        verification: &ECDSA_P256_SHA256_FIXED,
    },
    Curve {
        alg: "ES384",
        name: "P-384",
        oid: &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22],
        verification: &ECDSA_P384_SHA384_FIXED,
    },
    Curve {
        alg: "ES512",
        name: "P-521",
        oid: &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23],
        verification: &ECDSA_P521_SHA512_FIXED,
    },
];

/// A public key; its curve decides the algorithm.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) curve: &'static Curve,
    point: ParsedPublicKey,
}

const NO_KEY: &str = "is not an ECDSA key in PEM";
const UNUSABLE: &str = "is not a usable ECDSA key";

impl Key {
    /// A `PUBLIC KEY`, or the key of a `CERTIFICATE`: on a named curve of [`CURVES`], its point uncompressed.
    ///
    /// # Errors
    /// The fault of the text, as words that stand after the name of the option.
    pub(super) fn parse(pem: &str) -> Result<Self, &'static str> {
        let decoded = DecodingKey::from_ec_pem(pem.as_bytes()).map_err(|_| NO_KEY)?;
        let point = decoded.try_get_as_bytes().map_err(|_| NO_KEY)?;
        let (label, der) = contents(pem).ok_or(NO_KEY)?;
        let known_curve = CURVES.iter().find(|curve| contains(&der, &curve.identifier()));
        let curve = known_curve.ok_or("is on another curve, or on one without a name")?;
        if matches!(point.first(), Some(0x02 | 0x03)) {
            return Err("has a compressed point");
        }
        // The library takes the first thing that looks like a point; it must be the point of the one key that is there.
        let key = curve.subject_public_key_info(point);
        let exact = if label == "CERTIFICATE" { contains(&der, &key) } else { der == key };
        if !exact {
            return Err(UNUSABLE);
        }
        Self::new(curve, point).ok_or(UNUSABLE)
    }

    /// `point` is 0x04 ‖ X ‖ Y (SEC 1 §2.3.3), both at full length; `None` if it is not on the curve.
    pub(super) fn new(curve: &'static Curve, point: &[u8]) -> Option<Self> {
        if point.first() != Some(&0x04) {
            return None;
        }
        let point = ParsedPublicKey::new(curve.verification, point).ok()?;
        Some(Self { curve, point })
    }

    /// Whether `signature` was made over `signed`; a signature of another length never was.
    pub(super) fn verify(&self, signed: &[u8], signature: &[u8]) -> bool {
        self.point.verify_sig(signed, signature).is_ok()
    }
}

impl Curve {
    /// AlgorithmIdentifier (RFC 5480 §2.1.1): id-ecPublicKey with the curve by its name.
    fn identifier(&self) -> Vec<u8> {
        const EC_PUBLIC_KEY: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
        value(SEQUENCE, &[EC_PUBLIC_KEY, self.oid].concat())
    }

    /// The only DER a public key with this point can have (RFC 5480 §2).
    fn subject_public_key_info(&self, point: &[u8]) -> Vec<u8> {
        let bits = value(BIT_STRING, &[&[0], point].concat());
        value(SEQUENCE, &[self.identifier(), bits].concat())
    }
}

const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// One DER value (X.690 §8.1, §10.1); `content` is not empty.
fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let length_bytes = content.len().to_be_bytes();
    let length = &length_bytes[content.len().leading_zeros() as usize / 8..];
    let mut der = vec![tag];
    if content.len() >= 0x80 {
        der.push(0x80 | length.len() as u8);
    }
    der.extend_from_slice(length);
    der.extend_from_slice(content);
    der
}

/// Label and DER of the first block of a PEM text (RFC 7468 §2).
pub(super) fn contents(pem: &str) -> Option<(&str, Vec<u8>)> {
    let (_, block) = pem.split_once("-----BEGIN ")?;
    let (label, block) = block.split_once("-----")?;
    let (base64, _) = block.split_once("-----END ")?;
    let base64: String = base64.split_ascii_whitespace().collect();
    Some((label, STANDARD.decode(base64).ok()?))
}

fn contains(der: &[u8], part: &[u8]) -> bool {
    der.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests;
