//! The command line that publishes a first message; the log shows it at the start, the demo page too.
//! In: a configuration and the bound address → out: text to paste into a shell.
//! Uses the configuration alone.
//! Changed here: its text. The callers decide whether the API key may be shown.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::config::Config;

/// A line that publishes to the channel `demo` through the server API, with the configured key.
pub fn curl(config: &Config, address: SocketAddr) -> String {
    let api = &config.http_api.api;
    let key = if api.insecure { String::new() } else { format!("-H 'X-API-Key: {}' ", &*api.key) };
    format!("curl {key}-d '{PUBLISH}' http://{}{}/publish", reachable(address), api.handler_prefix)
}

/// An address that a program on this machine can connect to: loopback if the server listens on all addresses.
pub fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let is_v4 = address.is_ipv4();
        address.set_ip(if is_v4 { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    address
}

const PUBLISH: &str = r#"{"channel":"demo","data":{"text":"hello"}}"#;
