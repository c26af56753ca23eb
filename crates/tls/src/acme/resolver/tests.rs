//! Tests of the choice of a certificate for a handshake.
//! In: server names and protocols of a client → out: a certificate or none.
//! Uses certificates made on the spot. Never: sockets.
//! What a client gets is a test here.

use super::*;
use crate::acme::{certificate::Certificate, testing::self_signed};

fn resolver(names: &[&str], server_name: &str) -> Resolver {
    let certificates = Certificates::new(names.iter().map(|name| Arc::from(*name)));
    for name in names {
        let (key, chain) = self_signed(name);
        certificates.set(
            name,
            Certificate::from_pem(name, &format!("{key}{chain}")).expect("a certificate"),
        );
    }
    Resolver::new(Arc::new(certificates), Arc::default(), server_name)
}

fn shown(resolver: &Resolver, name: Option<&str>, protocols: &[&[u8]]) -> Option<Vec<u8>> {
    resolver.find(name, protocols.iter().copied()).map(|key| key.cert[0].to_vec())
}

fn of(resolver: &Resolver, name: &str) -> Option<Vec<u8>> {
    resolver.certificates.key(name).map(|key| key.cert[0].to_vec())
}

#[test]
fn each_name_gets_its_own_certificate_and_others_none() {
    let resolver = resolver(&["a.example", "b.example"], "");
    let offers: [&[&[u8]]; 3] = [&[], &[b"http/1.1"], &[b"h2", b"http/1.1"]];
    for protocols in offers {
        assert_eq!(shown(&resolver, Some("a.example"), protocols), of(&resolver, "a.example"));
        assert_eq!(shown(&resolver, Some("B.Example"), protocols), of(&resolver, "b.example"));
        assert_eq!(shown(&resolver, Some("c.example"), protocols), None);
        assert_eq!(shown(&resolver, Some("sub.a.example"), protocols), None);
    }
    assert_ne!(of(&resolver, "a.example"), of(&resolver, "b.example"));
}

#[test]
fn a_client_without_a_server_name_gets_that_of_the_configured_one() {
    assert_eq!(shown(&resolver(&["a.example"], ""), None, &[]), None);
    let resolver = resolver(&["a.example", "b.example"], "B.example");
    assert_eq!(shown(&resolver, None, &[]), of(&resolver, "b.example"));
}

#[test]
fn an_authority_never_gets_a_certificate_of_a_client() {
    // RFC 8737 §3: the protocol of the challenge, and no other.
    let resolver = resolver(&["a.example"], "a.example");
    assert_eq!(shown(&resolver, Some("a.example"), &[ACME_PROTOCOL]), None);
    assert_eq!(shown(&resolver, None, &[ACME_PROTOCOL]), None);
    assert_eq!(
        shown(&resolver, Some("a.example"), &[ACME_PROTOCOL, b"http/1.1"]),
        of(&resolver, "a.example")
    );
    assert_eq!(
        shown(&resolver, Some("a.example"), &[b"http/1.1", ACME_PROTOCOL]),
        of(&resolver, "a.example")
    );
}
