//! Event proxies: their endpoints and headers, and the proxies that namespaces choose.
//! In: a filled `Config` → out: a severity, the full key and a sentence for each mistake.
//! Uses the options as they are written. Never: connects; shows a value of a header.
//! Changed here: which endpoints and headers are right. Names of proxies are checked in `apply`.

use std::collections::BTreeMap;

use fanwire_policy::options::{Namespace, ProxyChoice, SubscriptionType};
use fanwire_proxy::{ProxyOptions, grpc_authority};

use super::{Config, Severity};
use crate::finding::shortened;
use crate::keys::proxy::PLACES;
use crate::keys::{
    NAMESPACES, PROXIES, RPC_NAMESPACES, RPC_PROXY, RPC_WITHOUT_NAMESPACE, WITHOUT_NAMESPACE,
};
use crate::nearest::nearest;

/// Severity, key and sentence.
type ProxyRemark = (Severity, String, String);

/// Proxies by place, `rpc.proxy` or `proxies[pay]`.
type Places<'a> = BTreeMap<String, &'a ProxyOptions>;

pub(super) fn are_right(config: &Config) -> Vec<ProxyRemark> {
    let places = places(config);
    let mut found = Vec::new();
    for (at, proxy) in &places {
        // A proxy that no namespace asks needs no endpoint; those of connections and of the list are there to be asked.
        let is_needed = at.starts_with("client.") || at.starts_with(PROXIES);
        if !is_endpoint(&proxy.endpoint) && (is_needed || !proxy.endpoint.is_empty()) {
            let reason = format!(
                "{at}.endpoint is {:?}, expected a URL such as http://backend:3000/events, or host:port or grpc://host:port of \
                 a gRPC service",
                shortened(proxy.endpoint.clone())
            );
            found.push((Severity::Error, format!("{at}.endpoint"), reason));
        }
        found.extend(headers(at, proxy));
    }
    let channel = &config.channel;
    found.extend(namespace(&places, WITHOUT_NAMESPACE, &channel.without_namespace));
    for one in &channel.namespaces {
        found.extend(namespace(&places, &format!("{NAMESPACES}[{}]", one.name), one));
    }
    let rpc = &config.rpc;
    found.extend(endpoint(&places, RPC_WITHOUT_NAMESPACE, "", &rpc.without_namespace).err());
    for (name, choice) in &rpc.namespaces {
        found.extend(endpoint(&places, &format!("{RPC_NAMESPACES}[{name}]"), "", choice).err());
    }
    found
}

/// Every proxy; those of connections only where they are enabled.
fn places(config: &Config) -> Places<'_> {
    let client = &config.client.proxy;
    let channel = &config.channel.proxy;
    let fixed = [
        client.connect.as_ref(),
        client.refresh.as_ref(),
        Some(&channel.subscribe),
        Some(&channel.publish),
        Some(&channel.sub_refresh),
        Some(&channel.subscribe_stream),
        Some(&channel.shared_poll_refresh),
        Some(&channel.map_publish),
        Some(&channel.map_remove),
        Some(&config.rpc.proxy),
    ];
    let fixed =
        PLACES.iter().zip(fixed).filter_map(|(place, proxy)| Some(((*place).to_owned(), proxy?)));
    let named = config.proxies.iter().map(|(name, proxy)| (format!("{PROXIES}[{name}]"), proxy));
    fixed.chain(named).collect()
}

/// The proxies of a namespace of channels, and how they go together.
fn namespace(places: &Places<'_>, at: &str, namespace: &Namespace) -> Vec<ProxyRemark> {
    let mut found = Vec::new();
    let mut error = |key: String, reason: String| found.push((Severity::Error, key, reason));
    let has_stream = namespace.subscribe_stream_proxy.enabled;
    let others = [
        ("subscribe_", &namespace.subscribe_proxy),
        ("publish_", &namespace.publish_proxy),
        ("sub_refresh_", &namespace.sub_refresh_proxy),
    ];
    for (kind, choice) in others {
        let key = format!("{at}.{kind}proxy_enabled");
        if has_stream && choice.enabled {
            let reason = format!(
                "{key} is true, but {at}.subscribe_stream_proxy_enabled is true, too, and a stream decides by itself; switch \
                 one of them off"
            );
            error(key, reason);
        } else if let Err((_, key, reason)) = endpoint(places, at, kind, choice) {
            error(key, reason);
        }
    }
    match endpoint(places, at, "subscribe_stream_", &namespace.subscribe_stream_proxy) {
        Ok(Some((place, endpoint))) if is_http(endpoint) => {
            let key = format!("{at}.subscribe_stream_proxy_enabled");
            let reason = format!(
                "{key} is true, but {place}.endpoint is {:?}, and streams need gRPC: expected host:port or grpc://host:port",
                shortened(endpoint.to_owned())
            );
            error(key, reason);
        }
        Ok(_) => {}
        Err((_, key, reason)) => error(key, reason),
    }
    for (kind, choice) in [
        ("map.publish_", &namespace.map.publish_proxy),
        ("map.remove_", &namespace.map.remove_proxy),
    ] {
        if let Err((_, key, reason)) = endpoint(places, at, kind, choice) {
            error(key, reason);
        }
    }
    if let Some((_, key, reason)) = polled(places, at, namespace) {
        error(key, reason);
    }
    if namespace.subscribe_stream_proxy_bidirectional && !has_stream {
        let key = format!("{at}.subscribe_stream_proxy_bidirectional");
        let reason = format!(
            "{key} is true, but there are no streams; set {at}.subscribe_stream_proxy_enabled to true"
        );
        error(key, reason);
    }
    found
}

/// The proxy that `KINDproxy_enabled` and `KINDproxy_name` of a namespace choose: its place and its endpoint.
fn endpoint<'a>(
    places: &Places<'a>,
    at: &str,
    kind: &str,
    choice: &ProxyChoice,
) -> Result<Option<(String, &'a str)>, ProxyRemark> {
    let Some(name) = choice.get() else { return Ok(None) };
    let default = match kind.strip_suffix('_') {
        Some(kind) => format!("channel.proxy.{}", kind.replace('.', "_")),
        None => RPC_PROXY.to_owned(),
    };
    let is_default = **name == *ProxyChoice::DEFAULT;
    let place = if is_default { default.clone() } else { format!("{PROXIES}[{name}]") };
    let key_name = format!("{at}.{kind}proxy_name");
    match places.get(&place) {
        Some(proxy) if is_default && proxy.endpoint.is_empty() => {
            let key = format!("{at}.{kind}proxy_enabled");
            let reason = format!(
                "{key} is true, but {place}.endpoint is empty; set it, or set {key_name} to the name of a member of `proxies`"
            );
            Err((Severity::Error, key, reason))
        }
        Some(proxy) => Ok(Some((place, &proxy.endpoint))),
        None => Err(unknown(places, key_name, name, &default)),
    }
}

/// The proxy that a namespace of shared polls names must have an endpoint.
fn polled(places: &Places<'_>, at: &str, namespace: &Namespace) -> Option<ProxyRemark> {
    if namespace.subscription_type != SubscriptionType::SharedPoll {
        return None;
    }
    let name = namespace.shared_poll.proxy();
    let is_default = name == ProxyChoice::DEFAULT;
    let place = if is_default { POLL_PROXY.to_owned() } else { format!("{PROXIES}[{name}]") };
    let key = format!("{at}.shared_poll.proxy_name");
    match places.get(&place) {
        Some(proxy) if proxy.endpoint.is_empty() => {
            let reason = format!(
                "{at}.subscription_type is shared_poll, but {place}.endpoint is empty; set it, or set {key} to the name of a \
                 member of `proxies`"
            );
            Some((Severity::Error, key, reason))
        }
        Some(_) => None,
        None => Some(unknown(places, key, name, POLL_PROXY)),
    }
}

/// The error of a key with the name of a proxy that does not exist.
fn unknown(places: &Places<'_>, key: String, name: &str, default: &str) -> ProxyRemark {
    let named = places
        .keys()
        .filter_map(|place| place.strip_prefix(PROXIES)?.strip_prefix('[')?.strip_suffix(']'));
    let near =
        nearest(name, named).map_or(String::new(), |near| format!(" (did you mean {near:?}?)"));
    let reason = format!(
        "{key} is {name:?}, but `proxies` has no member with that name{near}; add it there, or leave {key} out for {default}"
    );
    (Severity::Error, key, reason)
}

/// Names and values that are no headers, and names that calls do not carry.
fn headers(at: &str, proxy: &ProxyOptions) -> Vec<ProxyRemark> {
    let http = &proxy.http;
    let grpc = &proxy.grpc;
    let lists = [
        ("http_headers", &proxy.http_headers),
        ("grpc_metadata", &proxy.grpc_metadata),
        ("emulated_headers", &proxy.emulated_headers),
    ]
    .into_iter()
    .flat_map(|(key, list)| list.iter().map(move |name| (key, name)));
    let credentials = [("grpc.credentials_key", &grpc.credentials_key)]
        .into_iter()
        .filter(|(_, name)| !name.is_empty());
    let texts = [
        ("http.static_headers", &http.static_headers),
        ("grpc.static_metadata", &grpc.static_metadata),
    ]
    .into_iter()
    .flat_map(|(key, texts)| texts.iter().map(move |text| (key, text)));
    let names = lists
        .chain(credentials)
        .chain(texts.clone().map(|(key, (name, _))| (key, name)))
        .filter_map(|(key, name)| {
            let key = format!("{at}.{key}");
            let (severity, reason) = wrong_name(&key, name)?;
            Some((severity, key, reason))
        });
    let values = texts
        .map(|(key, (_, value))| (key, &**value))
        .chain([("grpc.credentials_value", &*grpc.credentials_value)])
        .filter(|(_, value)| value.contains(|c: char| c.is_control() && c != '\t'))
        .map(|(key, _)| {
            let key = format!("{at}.{key}");
            let reason = format!(
                "{key} has a value with a control character, such as a line end, expected none"
            );
            (Severity::Error, key, reason)
        });
    names.chain(values).collect()
}

fn wrong_name(key: &str, name: &str) -> Option<(Severity, String)> {
    if name.is_empty() || !name.chars().all(is_token_char) {
        let reason = format!(
            "{key} has {name:?}, expected names of headers: letters, digits and !#$%&'*+-.^_`|~"
        );
        return Some((Severity::Error, reason));
    }
    if key.ends_with("grpc_metadata") && name.contains(|c: char| c.is_ascii_uppercase()) {
        let reason = format!(
            "{key} has {name:?}, but keys of metadata are in lower case, so none matches it; write {:?}",
            name.to_ascii_lowercase()
        );
        return Some((Severity::Warning, reason));
    }
    let is_list = key.ends_with(".http_headers") || key.ends_with(".emulated_headers");
    let is_of_one_hop = NOT_PASSED_ON.iter().any(|one| one.eq_ignore_ascii_case(name));
    (is_list && is_of_one_hop).then(|| {
        let reason = format!(
            "{key} has {name:?}, which is not passed on, because it is about one connection or one body; leave it out"
        );
        (Severity::Warning, reason)
    })
}

fn is_http(endpoint: &str) -> bool {
    endpoint.starts_with("http://") || endpoint.starts_with("https://")
}

/// `http://host…`, `https://host…`, or the address of a gRPC service.
fn is_endpoint(endpoint: &str) -> bool {
    if endpoint.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return false;
    }
    let url = endpoint.strip_prefix("http://").or_else(|| endpoint.strip_prefix("https://"));
    let Some(url) = url else {
        return is_host(grpc_authority(endpoint), true);
    };
    let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
    is_host(authority.rsplit('@').next().unwrap_or_default(), false)
}

/// A host, or an IPv6 address in brackets, with a port from 1.
fn is_host(text: &str, needs_port: bool) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match is_address {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && !host.contains([':', '/', '[', ']', '@', '?', '#']),
    };
    let is_port = port.map_or(!needs_port, |port| port.parse::<u16>().is_ok_and(|port| port > 0));
    is_host && is_port
}

/// RFC 9110 §5.6.2.
fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// The proxy of shared polls that name none.
const POLL_PROXY: &str = "channel.proxy.shared_poll_refresh";

/// Headers of one connection (RFC 9110 §7.6.1), and those that a call has by itself.
const NOT_PASSED_ON: [&str; 12] = [
    "Connection",
    "Content-Encoding",
    "Content-Length",
    "Content-Type",
    "Expect",
    "Host",
    "Keep-Alive",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
];

#[cfg(test)]
mod tests;
