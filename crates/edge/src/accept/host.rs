//! The header `Host`: every HTTP/1.1 request must have exactly one (RFC 9112 §3.2).
//! In: version and headers of a request → out: nothing, or an error response.
//! Uses the types of `http`; compares host names in development mode only, because a server may have many names.
//! Changed here: the accepted hosts. `root_service` in `fanwire` calls it before any route.

use std::net::IpAddr;

use axum::{
    http::{
        HeaderMap, HeaderValue, StatusCode, Version,
        header::{CONNECTION, HOST},
        uri::Authority,
    },
    response::{IntoResponse, Response},
};

/// The target of the request is ambiguous: a proxy may have understood it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostError {
    Missing,
    Several,
    Malformed,
    /// It is not a local name, and only local names are allowed.
    NotLocal,
}

/// Checks a request: exactly one host with HTTP/1.1, at most one with HTTP/1.0 (RFC 9112 §3.2). It may be empty
/// (RFC 9110 §7.2).
///
/// With `local_hosts_only` it must be an IP address or `localhost`. Otherwise a page of another site whose name points to
/// this machine (DNS rebinding) could read and publish, because development mode needs no token.
pub fn check(
    version: Version,
    headers: &HeaderMap,
    local_hosts_only: bool,
) -> Result<(), HostError> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version < Version::HTTP_11 => Ok(()),
        (None, _) => Err(HostError::Missing),
        (Some(_), Some(_)) => Err(HostError::Several),
        (Some(host), None) if !is_host(host) => Err(HostError::Malformed),
        (Some(host), None) if local_hosts_only && !is_local(host) => Err(HostError::NotLocal),
        (Some(_), None) => Ok(()),
    }
}

/// Whether the value is `uri-host [":" port]` (RFC 9110 §7.2) or empty. Percent signs are
/// refused, as no DNS name has them.
fn is_host(value: &HeaderValue) -> bool {
    let bytes = value.as_bytes();
    is_plain(bytes) || (!bytes.contains(&b'@') && Authority::try_from(bytes).is_ok())
}

/// Whether the value has only characters of names and IPv4 addresses, and digits after the first colon. Such a value is
/// valid, and `Authority`, which copies it, is not needed.
fn is_plain(bytes: &[u8]) -> bool {
    let (host, port) = match bytes.iter().position(|byte| *byte == b':') {
        Some(colon) => (&bytes[..colon], &bytes[colon + 1..]),
        None => (bytes, &[] as &[u8]),
    };
    host.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
        && port.iter().all(u8::is_ascii_digit)
        && (!host.is_empty() || bytes.is_empty())
}

/// Whether the value is an IP address (RFC 3986 §3.2.2), `localhost` (RFC 6761 §6.3), or empty.
fn is_local(value: &HeaderValue) -> bool {
    let Ok(authority) = Authority::try_from(value.as_bytes()) else { return value.is_empty() };
    let host = authority.host().to_ascii_lowercase();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.ends_with(".localhost") || bare.parse::<IpAddr>().is_ok()
}

impl IntoResponse for HostError {
    /// 400 or 421. Closes the connection, because further bytes may belong to another request.
    fn into_response(self) -> Response {
        let status = match self {
            Self::NotLocal => StatusCode::MISDIRECTED_REQUEST,
            _ => StatusCode::BAD_REQUEST,
        };
        let text = match self {
            Self::Missing => "the header Host is missing, exactly one is required\n",
            Self::Several => "there are several Host headers, exactly one is required\n",
            Self::Malformed => "the header Host must be a host, with or without a port\n",
            Self::NotLocal => {
                "in development mode this server accepts only localhost and IP addresses as Host; with permissions configured, \
                 it accepts every name\n"
            }
        };
        (status, [(CONNECTION, "close")], text).into_response()
    }
}

#[cfg(test)]
mod tests;
