//! Every endpoint has its own path: two with one path could not both answer.
//! In: a filled `Config` → out: a remark for each two keys with the same path.
//! Uses the method names of the API. Never: serves anything.
//! The paths below a prefix are listed here; `http::routes` serves them.

use super::{Config, Remark, Severity};
use crate::options::EndpointOptions;

pub(super) fn differ(config: &Config) -> Vec<Remark> {
    let claims = claims(config);
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    let mut remarks = Vec::new();
    for (index, (key, path)) in claims.iter().enumerate() {
        let earlier = claims[..index].iter().find(|(other, taken)| other != key && taken == path);
        let Some((other, _)) = earlier.filter(|(other, _)| !pairs.contains(&(key, other))) else {
            continue;
        };
        pairs.push((key, other));
        let reason =
            format!("{key} claims the path {path:?} as {other} does, expected a path of its own");
        remarks.push((Severity::Error, *key, reason));
    }
    remarks
}

/// All paths that are served, with the key that put each there.
fn claims(config: &Config) -> Vec<(&'static str, String)> {
    let mut claims = Vec::new();
    if !config.websocket.disabled {
        claims.push(("websocket.handler_prefix", below(&config.websocket.handler_prefix, "")));
    }
    let emulation = config.http_stream.enabled || config.sse.enabled;
    for (key, is_served, prefix) in [
        (
            "http_stream.handler_prefix",
            config.http_stream.enabled,
            &config.http_stream.handler_prefix,
        ),
        ("sse.handler_prefix", config.sse.enabled, &config.sse.handler_prefix),
        ("emulation.handler_prefix", emulation, &config.emulation.handler_prefix),
        (
            "uni_websocket.handler_prefix",
            config.uni_websocket.enabled,
            &config.uni_websocket.handler_prefix,
        ),
        ("uni_sse.handler_prefix", config.uni_sse.enabled, &config.uni_sse.handler_prefix),
        (
            "uni_http_stream.handler_prefix",
            config.uni_http_stream.enabled,
            &config.uni_http_stream.handler_prefix,
        ),
        (
            "durable_streams.handler_prefix",
            config.durable_streams.enabled,
            &config.durable_streams.handler_prefix,
        ),
    ] {
        if is_served {
            claims.push((key, below(prefix, "")));
        }
    }
    if !config.http_api.disabled {
        let prefix = &config.http_api.handler_prefix;
        let names = fanwire_api::Method::ALL.iter().map(|method| method.name()).chain([""]);
        claims.extend(names.map(|name| ("http_api.handler_prefix", below(prefix, name))));
    }
    let prometheus = EndpointOptions {
        enabled: config.prometheus.enabled,
        handler_prefix: config.prometheus.handler_prefix.clone(),
    };
    for (key, endpoint, names) in [
        ("health.handler_prefix", &config.health, [""].as_slice()),
        ("prometheus.handler_prefix", &prometheus, &[""]),
        ("swagger.handler_prefix", &config.swagger, &[""]),
        ("debug.handler_prefix", &config.debug, &["", "profile", "heap"]),
        ("demo.handler_prefix", &config.demo, &["", "stats.json"]),
    ] {
        let is_served = key != "demo.handler_prefix" || config.serves_demo();
        if endpoint.enabled && is_served {
            claims.extend(names.iter().map(|name| (key, below(&endpoint.handler_prefix, name))));
        }
    }
    if config.admin.enabled {
        let paths = ["", "admin/init", "admin/auth", "admin/api", "app.js", "style.css"];
        let prefix = &config.admin.handler_prefix;
        claims.extend(paths.map(|name| ("admin.handler_prefix", below(prefix, name))));
    }
    claims
}

/// A path below a prefix; both may lack their slashes.
fn below(prefix: &str, name: &str) -> String {
    let path = format!("{}/{name}", prefix.trim_end_matches('/'));
    if path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path }
}
