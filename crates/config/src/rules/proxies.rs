//! `http_server.trusted_proxies`: texts that are no network, and a protocol that nothing may speak.
//! In: a filled `Config` → out: a remark for each.
//! Uses the parser of networks. Never: connects.
//! The form of a network is in `networks`; what a proxy may say is decided in `edge::accept::forwarded`.

use fanwire_edge::Networks;

use super::{Config, Remark, Severity};

pub(super) fn are_networks(config: &Config) -> Vec<Remark> {
    let options = &config.http_server;
    match Networks::parse(&options.trusted_proxies) {
        Err(wrong) => {
            let key = "http_server.trusted_proxies";
            let reason = format!(
                "{key} has {wrong:?}, expected addresses and networks such as 10.0.0.1, 10.0.0.0/8 or fd00::/8"
            );
            vec![(Severity::Error, key, reason)]
        }
        Ok(networks) if options.proxy_protocol && networks.is_empty() => {
            let key = "http_server.proxy_protocol";
            let reason = format!(
                "{key} is true, but http_server.trusted_proxies names no proxy that may speak it"
            );
            vec![(Severity::Error, key, reason)]
        }
        Ok(_) => Vec::new(),
    }
}
