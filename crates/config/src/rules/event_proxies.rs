//! Event proxies: their endpoints and headers, and the proxies that namespaces choose.
//! In: a filled `Config` → out: a severity, the full key and a sentence for each mistake.
//! Uses the options as they are written. Never: connects; shows a value of a header.
//! Changed here: which endpoints and headers are right. Names of proxies are checked in `apply`.

use fanwire_node::options::{Namespace, ProxyChoice};

use super::{Config, Severity};
use crate::ProxyOptions;
use crate::finding::shortened;
use crate::keys::{NAMESPACES, PROXIES, RPC_NAMESPACES, RPC_PROXY, RPC_WITHOUT_NAMESPACE};
use crate::keys::{WITHOUT_NAMESPACE, proxy::PLACES};
use crate::nearest::nearest;

type Found = (Severity, String, String);

pub(super) fn are_right(config: &Config) -> Vec<Found> {
    let mut found = Vec::new();
    for (at, proxy) in places(config) {
        // A proxy that no namespace asks needs no endpoint; those of connections and of the list are there to be asked.
        let is_needed = at.starts_with("client.") || at.starts_with(PROXIES);
        if !is_endpoint(&proxy.endpoint) && (is_needed || !proxy.endpoint.is_empty()) {
            let reason = format!(
                "{at}.endpoint is {:?}, expected an URL such as http://backend:3000/events, or host:port or grpc://host:port of \
                 a gRPC service",
                shortened(proxy.endpoint.clone())
            );
            found.push((Severity::Error, format!("{at}.endpoint"), reason));
        }
        found.extend(headers(&at, proxy));
    }
    let channel = &config.node.channel;
    found.extend(namespace(config, WITHOUT_NAMESPACE, &channel.without_namespace));
    for one in &channel.namespaces {
        found.extend(namespace(config, &format!("{NAMESPACES}[{}]", one.name), one));
    }
    let rpc = &config.node.rpc;
    let within = rpc.namespaces.iter();
    let within = within.map(|(name, choice)| (format!("{RPC_NAMESPACES}[{name}]"), choice));
    let all = within.chain([(RPC_WITHOUT_NAMESPACE.to_owned(), &rpc.without_namespace)]);
    let proxies = &config.proxies;
    found.extend(all.filter_map(|(at, choice)| {
        chosen(config, (&at, ""), choice, (RPC_PROXY, &proxies.rpc)).err()
    }));
    found
}

/// Every proxy with its place; those of connections only where they are enabled.
fn places(config: &Config) -> Vec<(String, &ProxyOptions)> {
    let proxies = &config.proxies;
    let fixed = [
        proxies.connect.as_ref(),
        proxies.refresh.as_ref(),
        Some(&proxies.subscribe),
        Some(&proxies.publish),
        Some(&proxies.sub_refresh),
        Some(&proxies.subscribe_stream),
        Some(&proxies.rpc),
    ];
    let fixed = PLACES.iter().zip(fixed);
    let fixed = fixed.filter_map(|(place, proxy)| Some(((*place).to_owned(), proxy?)));
    let named = proxies.named.iter().map(|(name, proxy)| (format!("{PROXIES}[{name}]"), proxy));
    fixed.chain(named).collect()
}

/// The proxies of a namespace of channels, and how they go together.
fn namespace(config: &Config, at: &str, namespace: &Namespace) -> Vec<Found> {
    let proxies = &config.proxies;
    let choices = [
        ("subscribe_", &namespace.subscribe_proxy, (PLACES[2], &proxies.subscribe)),
        ("publish_", &namespace.publish_proxy, (PLACES[3], &proxies.publish)),
        ("sub_refresh_", &namespace.sub_refresh_proxy, (PLACES[4], &proxies.sub_refresh)),
        (
            "subscribe_stream_",
            &namespace.subscribe_stream_proxy,
            (PLACES[5], &proxies.subscribe_stream),
        ),
    ];
    let chosen = choices.map(|(kind, choice, default)| {
        (kind, choice.enabled, chosen(config, (at, kind), choice, default))
    });
    let has_stream = namespace.subscribe_stream_proxy.enabled;
    let mut found = Vec::new();
    for (kind, is_enabled, proxy) in chosen {
        let key = format!("{at}.{kind}proxy_enabled");
        let is_stream = kind == "subscribe_stream_";
        if has_stream && is_enabled && !is_stream {
            let reason = format!(
                "{key} is true, but {at}.subscribe_stream_proxy_enabled is true, too, and a stream decides by itself; switch \
                 one of them off"
            );
            found.push((Severity::Error, key, reason));
        } else if let Ok(Some((place, proxy))) = &proxy
            && is_stream
            && is_http(&proxy.endpoint)
        {
            let reason = format!(
                "{key} is true, but {place}.endpoint is {:?}, and streams need gRPC: expected host:port or grpc://host:port",
                shortened(proxy.endpoint.clone())
            );
            found.push((Severity::Error, key, reason));
        }
        found.extend(proxy.err());
    }
    if namespace.subscribe_stream_proxy_bidirectional && !has_stream {
        let key = format!("{at}.subscribe_stream_proxy_bidirectional");
        let reason = format!(
            "{key} is true, but there are no streams; set {at}.subscribe_stream_proxy_enabled to true"
        );
        found.push((Severity::Error, key, reason));
    }
    found
}

/// The proxy of a choice, with its place; `default` is the one for those that name none.
fn chosen<'a>(
    config: &'a Config,
    (at, kind): (&str, &str),
    choice: &ProxyChoice,
    default: (&str, &'a ProxyOptions),
) -> Result<Option<(String, &'a ProxyOptions)>, Found> {
    let Some(name) = choice.get() else { return Ok(None) };
    let key = format!("{at}.{kind}proxy_name");
    if **name == *ProxyChoice::DEFAULT {
        let (place, proxy) = default;
        if !proxy.endpoint.is_empty() {
            return Ok(Some((place.to_owned(), proxy)));
        }
        let key_enabled = format!("{at}.{kind}proxy_enabled");
        let reason = format!(
            "{key_enabled} is true, but {place}.endpoint is empty; set it, or set {key} to the name of a member of `proxies`"
        );
        return Err((Severity::Error, key_enabled, reason));
    }
    let named = &config.proxies.named;
    if let Some(proxy) = named.get(&**name) {
        return Ok(Some((format!("{PROXIES}[{name}]"), proxy)));
    }
    let near = nearest(name, named.keys().map(String::as_str));
    let near = near.map_or(String::new(), |near| format!(" (did you mean {near:?}?)"));
    let reason = format!(
        "{key} is {name:?}, but `proxies` has no member with that name{near}; add it there, or leave {key} out for {}",
        default.0
    );
    Err((Severity::Error, key, reason))
}

/// Names and values that are no headers, and names that calls do not carry.
fn headers(at: &str, proxy: &ProxyOptions) -> Vec<Found> {
    let (headers, metadata) = (&proxy.http.static_headers, &proxy.grpc.static_metadata);
    let lists = [
        ("http_headers", proxy.http_headers.iter().collect::<Vec<_>>()),
        ("grpc_metadata", proxy.grpc_metadata.iter().collect()),
        ("emulated_headers", proxy.emulated_headers.iter().collect()),
        ("http.static_headers", headers.keys().collect()),
        ("grpc.static_metadata", metadata.keys().collect()),
        (
            "grpc.credentials_key",
            Some(&proxy.grpc.credentials_key).filter(|key| !key.is_empty()).into_iter().collect(),
        ),
    ];
    let names = lists.into_iter().flat_map(|(key, names)| {
        let key = format!("{at}.{key}");
        names.into_iter().map(move |name| (key.clone(), name))
    });
    let names = names.filter_map(|(key, name)| {
        let (severity, reason) = wrong_name(&key, name)?;
        Some((severity, key, reason))
    });
    let values = [("http.static_headers", headers), ("grpc.static_metadata", metadata)];
    let values = values.into_iter().flat_map(|(key, texts)| {
        texts.iter().map(move |(name, value)| (key, format!("the value of {name:?}"), &**value))
    });
    let credentials: &str = &proxy.grpc.credentials_value;
    let values = values.chain([("grpc.credentials_value", "a value".to_owned(), credentials)]);
    let values = values.filter(|(.., value)| value.contains(|c: char| c.is_control() && c != '\t'));
    let values = values.map(|(key, what, _)| {
        let key = format!("{at}.{key}");
        let reason =
            format!("{key} has a control character in {what}, such as a line end, expected none");
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

/// `http://host…`, `https://host…`, `host:port` or `grpc://host:port`.
fn is_endpoint(endpoint: &str) -> bool {
    if endpoint.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return false;
    }
    let url = endpoint.strip_prefix("http://").or_else(|| endpoint.strip_prefix("https://"));
    let Some(url) = url else {
        return is_host(endpoint.strip_prefix("grpc://").unwrap_or(endpoint), true);
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
