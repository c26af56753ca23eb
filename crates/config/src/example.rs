//! The command line that publishes a first message; the text at the start, the demo page and `fanwire init` show it.
//! In: a configuration, an address, a body → out: text to paste into a shell.
//! Uses the configuration alone.
//! Changed here: its text. The callers decide whether the API key may be shown.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::options::Config;

/// A line that publishes through the server API, with the configured key; `body` is JSON without `'`.
pub fn curl(config: &Config, address: SocketAddr, body: &str) -> String {
    let api = &config.http_api;
    let key = if api.insecure { String::new() } else { format!("-H 'X-API-Key: {}' ", &*api.key) };
    let scheme = api_scheme(config);
    format!("curl {key}-d '{body}' {scheme}://{}{}/publish", reachable(address), api.handler_prefix)
}

/// `http`, or `https` where the server API is behind TLS.
pub fn api_scheme(config: &Config) -> &'static str {
    scheme(config, config.http_api.external)
}

/// `http`, or `https` where the listener for clients or the internal one has TLS.
pub fn scheme(config: &Config, is_external: bool) -> &'static str {
    let http = &config.http_server;
    let has_tls = if is_external {
        http.client_tls().is_some() || http.tls_autocert.enabled
    } else {
        http.internal_tls().is_some() || http.has_internal_autocert()
    };
    if has_tls { "https" } else { "http" }
}

/// `http` and `ws`, or `https` and `wss` where clients connect with TLS.
pub fn client_schemes(config: &Config) -> (&'static str, &'static str) {
    match scheme(config, true) {
        "https" => ("https", "wss"),
        http => (http, "ws"),
    }
}

/// An address that a program on this machine can connect to: loopback if the server listens on all addresses.
pub fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let is_v4 = address.is_ipv4();
        address.set_ip(if is_v4 { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    address
}

/// Publishes to the channel of the demo page.
pub const DEMO: &str = r#"{"channel":"demo","data":{"text":"hello"}}"#;

#[cfg(test)]
mod tests;
