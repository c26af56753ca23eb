//! Tests of the schemes in printed addresses.
//! In: sections of TLS → out: `http` or `https`, `ws` or `wss`.
//! Uses the configuration alone.
//! Changed here: which listeners have TLS.

use super::*;
use crate::HttpServerOptions;

/// The schemes of clients and of the server API at the internal port.
fn schemes(
    change: impl FnOnce(&mut HttpServerOptions),
) -> (&'static str, &'static str, &'static str) {
    let mut config = Config::default();
    config.http_server.internal_port = "9000".to_owned();
    change(&mut config.http_server);
    let (http, ws) = client_schemes(&config);
    (http, ws, api_scheme(&config))
}

#[test]
fn addresses_have_the_scheme_of_their_listener() {
    assert_eq!(schemes(|_| ()), ("http", "ws", "http"));
    assert_eq!(schemes(|http| http.tls.enabled = true), ("https", "wss", "https"));
    assert_eq!(schemes(|http| http.tls_autocert.enabled = true), ("https", "wss", "https"));
    assert_eq!(schemes(|http| http.internal_tls.enabled = true), ("http", "ws", "https"));
    let external = schemes(|http| (http.tls_autocert.enabled, http.tls_external) = (true, true));
    assert_eq!(external, ("https", "wss", "http"));
}
