//! The header `Host`, which every request must have, and one of it (RFC 9112 §3.2).
//! In: version and headers of a request → out: nothing, or what is wrong, as an answer.
//! Uses the types of `http`; a server may have many names, so the host is compared with something in development mode only.
//! Changed here: which hosts are no hosts. Asked by `root_service`, before any route.

use std::net::IpAddr;

use axum::{
    http::{
        HeaderMap, HeaderValue, StatusCode, Version,
        header::{CONNECTION, HOST},
        uri::Authority,
    },
    response::{IntoResponse, Response},
};

/// Whom a request means is not clear: some proxy on its way may have read it in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostError {
    Missing,
    Several,
    Malformed,
    /// It is not a name of this machine, where only those will do.
    Elsewhere,
}

/// Checks a request: HTTP/1.1 must name a host, once; HTTP/1.0 may (RFC 9112 §3.2). An empty one will do (RFC 9110 §7.2).
///
/// With `only_here` it must be an address, or `localhost`: the page of some other root_service, whose name leads here for the moment
/// (DNS rebinding), would be free to read and to publish where everything is open.
pub(super) fn check(
    version: Version,
    headers: &HeaderMap,
    only_here: bool,
) -> Result<(), HostError> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version < Version::HTTP_11 => Ok(()),
        (None, _) => Err(HostError::Missing),
        (Some(_), Some(_)) => Err(HostError::Several),
        (Some(host), None) if !is_host(host) => Err(HostError::Malformed),
        (Some(host), None) if only_here && !is_here(host) => Err(HostError::Elsewhere),
        (Some(_), None) => Ok(()),
    }
}

/// Whether it is `uri-host [":" port]` (RFC 9110 §7.2), or nothing. Without percent signs, which no name in DNS has.
fn is_host(value: &HeaderValue) -> bool {
    let bytes = value.as_bytes();
    is_plain(bytes) || (!bytes.contains(&b'@') && Authority::try_from(bytes).is_ok())
}

/// Whether it is made of what names and IPv4 addresses are made of, with digits behind the first colon: that is one for
/// certain, and takes a look instead of a copy.
fn is_plain(bytes: &[u8]) -> bool {
    let (host, port) = match bytes.iter().position(|byte| *byte == b':') {
        Some(colon) => (&bytes[..colon], &bytes[colon + 1..]),
        None => (bytes, &[] as &[u8]),
    };
    host.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
        && port.iter().all(u8::is_ascii_digit)
        && (!host.is_empty() || bytes.is_empty())
}

/// Whether it is an address (RFC 3986 §3.2.2), a name that leads nowhere else (RFC 6761 §6.3), or nothing.
fn is_here(value: &HeaderValue) -> bool {
    let Ok(authority) = Authority::try_from(value.as_bytes()) else { return value.is_empty() };
    let host = authority.host().to_ascii_lowercase();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.ends_with(".localhost") || bare.parse::<IpAddr>().is_ok()
}

impl IntoResponse for HostError {
    /// 400 or 421, and the end of the connection: what follows may be meant for somebody else.
    fn into_response(self) -> Response {
        let status = match self {
            Self::Elsewhere => StatusCode::MISDIRECTED_REQUEST,
            _ => StatusCode::BAD_REQUEST,
        };
        let text = match self {
            Self::Missing => "the header Host is missing, exactly one is required\n",
            Self::Several => "the header Host came several times, exactly one is required\n",
            Self::Malformed => "the header Host must be a host, with or without a port\n",
            Self::Elsewhere => {
                "in development mode this server answers for localhost and addresses only; configure who may do what, and \
                 it answers for every name\n"
            }
        };
        (status, [(CONNECTION, "close")], text).into_response()
    }
}

#[cfg(test)]
mod tests;
