//! Properties that hold for any bytes at all: the bodies of fuzz targets, also run as property tests by `tests/it/any_bytes.rs`.
//! In: bytes from a fuzzer. Out: nothing, or a panic that names the broken promise.
//! Uses what reads the bytes of clients and key servers; never part of the server.
//! A new reader gets a function here; the targets that call them live in the fuzz folder.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::jwks::key_set_of;
use crate::{Fault, TokenOptions, Verifier};

/// A document of keys: no key of it takes an algorithm that is none of public keys, and the rest is decided without a panic.
pub fn key_set(bytes: &[u8]) {
    let Some(set) = key_set_of(bytes) else { return };
    for key in set.values() {
        for alg in ["none", "", "HS256", "HS512"] {
            let outcome = key.verify(alg, b"signed", Vec::new());
            assert_eq!(outcome, Err(Fault::Algorithm), "{alg:?} is taken");
        }
        let taken = ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "EdDSA"].map(|alg| {
            [0, 64, 96, 132, 256].map(|length| key.verify(alg, b"signed", vec![7; length]).err())
        });
        let types =
            taken.iter().filter(|outcome| !outcome.contains(&Some(Fault::Algorithm))).count();
        assert!(types <= 3, "one type of key takes {types} algorithms");
    }
}

/// A token of a client, taken apart: header and claims, with a byte between them that no text has. Its claims make it a
/// token of one kind or of none, and without the key's signature it is refused.
pub fn token(bytes: &[u8]) {
    static BELIEVING: LazyLock<Verifier> = LazyLock::new(|| verifier(true));
    static STRICT: LazyLock<Verifier> = LazyLock::new(|| verifier(false));
    let mut parts = bytes.splitn(2, |byte| *byte == SEPARATOR);
    let header = parts.next().filter(|header| !header.is_empty()).unwrap_or(b"{\"alg\":\"HS256\"}");
    let [header, claims] =
        [header, parts.next().unwrap_or(b"{}")].map(|it| URL_SAFE_NO_PAD.encode(it));
    let signed = format!("{header}.{claims}.AAAA");
    let mut tokens = vec![signed.as_str()];
    tokens.extend(str::from_utf8(bytes).ok());
    for token in tokens {
        for now in [0, 1_700_000_000, u64::MAX] {
            let of_connection = BELIEVING.verify_connection(token, now);
            let of_subscription = BELIEVING.verify_subscription(token, now);
            assert!(of_connection.is_err() || of_subscription.is_err(), "a token of two kinds");
            if let Ok(claims) = of_subscription {
                assert!(!claims.channel.is_empty(), "a token for no channel");
            }
            assert!(STRICT.verify_connection(token, now).is_err(), "believed without a signature");
            assert!(
                STRICT.verify_subscription(token, now).is_err(),
                "believed without a signature"
            );
        }
    }
}

fn verifier(skip_signature: bool) -> Verifier {
    let options = TokenOptions { hmac_secret_key: "secret".into(), ..TokenOptions::default() };
    Verifier::new(&options, "client.token", skip_signature).expect("good options")
}

/// Between the parts of an input. UTF-8 does not have it.
const SEPARATOR: u8 = 0xff;
