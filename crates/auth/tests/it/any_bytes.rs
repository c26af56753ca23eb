//! Nothing that clients or key servers send breaks a promise: the fuzz targets of `src/fuzzing.rs` as property tests.
//! In: random bytes, texts made of the pieces that key sets and tokens are made of. Out: no panic.
//! Uses `fuzzing` and proptest, which prints what failed. Never: sessions.
//! A promise is written in `src/fuzzing.rs`; here is only where its input comes from.

use fanwire_auth::fuzzing;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

proptest! {
    #[test]
    fn any_bytes_are_a_key_set_or_not(bytes in vec(any::<u8>(), 0..100)) {
        fuzzing::key_set(&bytes);
    }

    #[test]
    fn almost_key_sets_are_read_or_refused(keys in vec(key(), 0..4)) {
        fuzzing::key_set(format!(r#"{{"keys":[{}]}}"#, keys.join(",")).as_bytes());
    }

    #[test]
    fn any_bytes_are_a_token_or_not(bytes in vec(any::<u8>(), 0..100)) {
        fuzzing::token(&bytes);
    }

    #[test]
    fn almost_tokens_are_of_one_kind_and_need_a_signature(pieces in vec(token_piece(), 0..12)) {
        let claims = format!("{{{}}}", pieces.join(","));
        fuzzing::token(&[b"{\"alg\":\"HS256\"}\xff", claims.as_bytes()].concat());
    }
}

fn token_piece() -> impl Strategy<Value = &'static str> {
    select(vec![
        r#""sub":"1""#,
        r#""sub":1"#,
        r#""channel":"a""#,
        r#""channel":"""#,
        r#""exp":1700000001"#,
        r#""exp":-1"#,
        r#""exp":1e30"#,
        r#""nbf":1"#,
        r#""iat":null"#,
        r#""aud":["a"]"#,
        r#""info":{"a":[1]}"#,
        r#""b64info":"AA==""#,
        r#""channels":["a"]"#,
        r#""subs":{"a":{"override":{"presence":{"value":true}}}}"#,
        r#""expire_at":0"#,
        r#""meta":{}"#,
        r#""x":[[[]]]"#,
    ])
}

/// A key whose parts are right often enough to be read.
fn key() -> impl Strategy<Value = String> {
    let part = |choices: &[&'static str]| select(choices.to_vec());
    let numbers = [P256_X, P256_Y, ED25519_X, "AQAB", "AQ", "", "AAAA", "not base64!"];
    let modulus = prop_oneof![
        vec(any::<u8>(), 256).prop_map(|bytes| base64(&bytes)),
        part(&numbers).prop_map(str::to_owned),
    ];
    (
        part(&["RSA", "EC", "OKP", "oct", ""]),
        part(&["P-256", "P-384", "P-521", "Ed25519", "X25519"]),
        part(&["sig", "sig", "sig", "enc"]),
        part(&["", r#""alg":"RS256","#, r#""alg":"ES256","#, r#""alg":"none","#, r#""alg":"HS256","#]),
        (part(&numbers), part(&numbers), modulus, part(&numbers)),
    )
        .prop_map(|(kty, crv, used, alg, (x, y, n, e))| {
            format!(
                r#"{{"kty":"{kty}","crv":"{crv}","use":"{used}",{alg}"kid":"k{kty}{crv}","x":"{x}","y":"{y}","n":"{n}","e":"{e}"}}"#
            )
        })
}

/// Base64url without padding (RFC 4648 §5).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            text.push(char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]));
        }
    }
    text
}

/// The key of RFC 7515 §A.3.
const P256_X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
const P256_Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";
/// The key of RFC 8037 §A.2.
const ED25519_X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPJHURo";
