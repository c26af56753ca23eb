//! The header `Host`, which every request must have, and one of it (RFC 9112 §3.2).
//! In: version and headers of a request → out: nothing, or what is wrong, as an answer.
//! Uses the types of `http`; never compares the host with anything: a server may have many names.
//! Changed here: which hosts are no hosts. Asked by `listener`, before any route.

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
}

/// Checks a request: HTTP/1.1 must name a host, once; HTTP/1.0 may (RFC 9112 §3.2). An empty one will do (RFC 9110 §7.2).
pub(super) fn check(version: Version, headers: &HeaderMap) -> Result<(), HostError> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version < Version::HTTP_11 => Ok(()),
        (None, _) => Err(HostError::Missing),
        (Some(_), Some(_)) => Err(HostError::Several),
        (Some(host), None) if is_host(host) => Ok(()),
        (Some(_), None) => Err(HostError::Malformed),
    }
}

/// Whether it is `uri-host [":" port]` (RFC 9110 §7.2), or nothing. Without percent signs, which no name in DNS has.
fn is_host(value: &HeaderValue) -> bool {
    let bytes = value.as_bytes();
    bytes.is_empty() || (!bytes.contains(&b'@') && Authority::try_from(bytes).is_ok())
}

impl IntoResponse for HostError {
    /// 400, and the end of the connection: what follows may be meant for somebody else.
    fn into_response(self) -> Response {
        let text = match self {
            Self::Missing => "the header Host is missing, it must come once\n",
            Self::Several => "the header Host came several times, it must come once\n",
            Self::Malformed => "the header Host must be a host, with or without a port\n",
        };
        (StatusCode::BAD_REQUEST, [(CONNECTION, "close")], text).into_response()
    }
}

#[cfg(test)]
mod tests;
