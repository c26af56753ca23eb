//! Tests of the rules for listeners of gRPC.
//! In: flags → out: what is wrong with them.
//! Uses `load` with flags. Never: files.
//! A relation between keys of these listeners is a test here.

use crate::rules::tests::found;

#[test]
fn a_grpc_api_that_everybody_may_call_is_warned_about() {
    let warnings = |flags: &[(&str, &str)]| {
        let flags = [&[("grpc_api.enabled", "true")], flags].concat();
        found(&flags).into_iter().filter(|line| line.contains("grpc_api.key is empty")).count()
    };
    assert_eq!(warnings(&[]), 1);
    assert_eq!(warnings(&[("grpc_api.address", "0.0.0.0")]), 1);
    assert_eq!(warnings(&[("grpc_api.key", "secret")]), 0);
    assert_eq!(warnings(&[("grpc_api.address", "127.0.0.2")]), 0);
    assert_eq!(
        warnings(&[("grpc_api.tls.enabled", "true"), ("grpc_api.tls.client_ca_pem", "c")]),
        0
    );
    assert_eq!(warnings(&[("grpc_api.enabled", "false")]), 0);
    let no_certificate = found(&[("grpc_api.enabled", "true"), ("grpc_api.tls.enabled", "true")]);
    for key in ["grpc_api.tls.cert_pem is empty", "grpc_api.tls.key_pem is empty"] {
        assert!(no_certificate.iter().any(|line| line.contains(key)), "{no_certificate:?}");
    }
    let short = found(&[("grpc_api.enabled", "true"), ("grpc_api.key", "secret")]);
    assert!(short.iter().any(|line| line.contains("grpc_api.key has 6 bytes")), "{short:?}");
}
