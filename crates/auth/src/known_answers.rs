//! Tests that every algorithm accepts a published signature and refuses a changed one.
//! In: the examples of RFC 7515 Appendix A, RFC 6979 Appendix A and RFC 8037 Appendix A → out: accepted or refused.
//! May use: keys made of raw components. Never: tokens, a clock.
//! Changed here: examples; keys of the configuration are tested in `keys/tests.rs` and `ecdsa/tests.rs`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};

use super::ecdsa::{CURVES, Key};
use super::keys::verify;

/// The genuine signature is accepted, a changed one is not.
fn check(algorithm: &str, signature: &str, verify: impl Fn(&Vec<u8>) -> bool) {
    let mut signature = decode(signature);
    assert!(verify(&signature), "{algorithm}: the signature of the RFC");
    signature[0] ^= 1;
    assert!(!verify(&signature), "{algorithm}: a changed signature");
}

fn decode(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).expect("the examples are base64url")
}

/// RFC 7515 A.1.
#[test]
fn hmac_accepts_the_example_and_no_other() {
    let key = DecodingKey::from_secret(&decode(HS256_SECRET));
    let signed = format!("{HS256_HEADER}.{PAYLOAD}");
    check("HS256", HS256_SIGNATURE, |signature| {
        verify(Algorithm::HS256, &key, signed.as_bytes(), signature)
    });
}

/// RFC 7515 A.2.
#[test]
fn rsa_accepts_the_example_and_no_other() {
    let key = DecodingKey::from_rsa_components(RS256_N, "AQAB").expect("the key of the RFC");
    let signed = format!("{RS256_HEADER}.{PAYLOAD}");
    check("RS256", RS256_SIGNATURE, |signature| {
        verify(Algorithm::RS256, &key, signed.as_bytes(), signature)
    });
}

/// RFC 7515 A.3 and A.4, RFC 6979 A.2.6.
#[test]
fn ecdsa_accepts_the_example_of_each_curve_and_no_other() {
    for (curve, example) in CURVES.iter().zip(EXAMPLES) {
        assert_eq!(curve.alg, example.alg);
        let point = [vec![0x04], decode(example.x), decode(example.y)].concat();
        let key = Key::new(curve, &point).expect("the key of the RFC");
        let signed = example.signed.join(".");
        check(curve.alg, example.signature, |signature| key.verify(signed.as_bytes(), signature));
    }
}

/// RFC 8037 A.4.
#[test]
fn eddsa_accepts_the_example_and_no_other() {
    let key = DecodingKey::from_ed_components(EDDSA_X).expect("the key of the RFC");
    check("EdDSA", EDDSA_SIGNATURE, |signature| {
        verify(Algorithm::EdDSA, &key, EDDSA_SIGNED.as_bytes(), signature)
    });
}

/// A text signed with ECDSA.
struct Example {
    alg: &'static str,
    /// Its parts, without the dots between them.
    signed: &'static [&'static str],
    x: &'static str,
    y: &'static str,
    signature: &'static str,
}

const EXAMPLES: [Example; 3] = [
    // RFC 7515 A.3.1.
    Example {
        alg: "ES256",
        signed: &["eyJhbGciOiJFUzI1NiJ9", PAYLOAD],
        x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        signature: "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
    },
    // RFC 6979 A.2.6, SHA-384; RFC 7515 has no example of ES384.
    Example {
        alg: "ES384",
        signed: &["sample"],
        x: "7DpOQVtOGaRWhhgCn0J_pdqai8SukuAuBqrlKGswDGTe-PDqkFWGYGSiVFFUgLwT",
        y: "gBXZty19VyROqO-awMYhiWcIpZNn-d-59UyoSz8cnbEoiyMcOuDU_nNE_SUzJkcg",
        signature: concat!(
            "lO27kqXsuKrUc25WxpGRaz-IFAZmzp-nPWTE6pWtEzyBpkgVLkSs-W423R6A-r5Gme9K6xXxeM6h_kDbJgMTjxMOdAoZYkUmIDtj",
            "UdCjqU-jKcFFeG5nnnuCxxo4YorI",
        ),
    },
    // RFC 7515 A.4.1.
    Example {
        alg: "ES512",
        signed: &["eyJhbGciOiJFUzUxMiJ9", "UGF5bG9hZA"],
        x: "AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk",
        y: "ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2",
        signature: concat!(
            "AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZqwqT2SI-KGDKB34XO0aw_7XdtAG8GaSwFKdCA",
            "PZgoXD2YBJZCPEX3xKpRwcdOO8KpEHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn",
        ),
    },
];

/// RFC 8037 A.4.
const EDDSA_SIGNED: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
const EDDSA_X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const EDDSA_SIGNATURE: &str =
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

/// RFC 7515 A.1.1, the same in A.2.1 and A.3.1.
const PAYLOAD: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

/// RFC 7515 A.1.1.
const HS256_HEADER: &str = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9";
const HS256_SECRET: &str =
    "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
const HS256_SIGNATURE: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// RFC 7515 A.2.1.
const RS256_HEADER: &str = "eyJhbGciOiJSUzI1NiJ9";
const RS256_N: &str = concat!(
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yR",
    "T-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXB",
    "dQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9ia",
    "GNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ",
);
const RS256_SIGNATURE: &str = concat!(
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9",
    "uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB",
    "_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rq",
    "Vt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
);
