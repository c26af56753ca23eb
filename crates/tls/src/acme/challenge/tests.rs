//! Tests of the certificate of tls-alpn-01. Answers as an authority looks for them are tested with one, in `acme::tests`.
//! In: a name and a digest → out: a certificate.
//! Uses the bytes of its extension. Never: sockets.
//! What RFC 8737 demands of the certificate is a test here.

use super::*;

#[test]
fn the_digest_is_in_a_critical_extension_and_the_name_is_the_only_one() {
    // RFC 8737 §3
    let digest = [0xD1; 32];
    let key = certificate("a.example", &digest).expect("a certificate");
    let der = key.cert[0].as_ref();
    // id-pe-acmeIdentifier 1.3.6.1.5.5.7.1.31, critical, an OCTET STRING of the DER of an OCTET STRING
    let mut extension =
        vec![0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x01, 0x1F, 0x01, 0x01, 0xFF];
    extension.extend([0x04, 0x22, 0x04, 0x20]);
    extension.extend(digest);
    assert!(der.windows(extension.len()).any(|window| window == extension));
    let names = b"\x30\x0B\x82\x09a.example";
    assert!(der.windows(names.len()).any(|window| window == names));
}

#[test]
fn without_an_order_nothing_is_answered() {
    let challenge = Challenge::default();
    assert!(challenge.certificate("a.example").is_none());
    assert_eq!(challenge.document("token"), None);
}
