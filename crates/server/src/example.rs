//! The command line that publishes a first message: shown at the start and on the demo page.
//! In: a configuration and the address bound → out: text to paste into a shell.
//! Uses the configuration alone.
//! Changed here: its words. Who may read the API key with it is decided by those who show it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::config::Config;

/// A line that publishes to the channel `demo` through the server API, with the key that is configured.
pub fn curl(config: &Config, address: SocketAddr) -> String {
    let api = &config.http_api.api;
    let key = if api.insecure { String::new() } else { format!("-H 'X-API-Key: {}' ", &*api.key) };
    format!("curl {key}-d '{PUBLISH}' http://{}{}/publish", reachable(address), api.handler_prefix)
}

/// An address that a program on this machine can open: loopback where all addresses are listened on.
pub fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let is_v4 = address.is_ipv4();
        address.set_ip(if is_v4 { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    address
}

const PUBLISH: &str = r#"{"channel":"demo","data":{"text":"hello"}}"#;
