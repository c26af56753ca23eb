//! Addresses of servers: `ws://HOST[:PORT][/PATH][?QUERY]` and `wss://…`.
//! A text of the application → host, port, path and whether TLS is used, or what is wrong with it.
//! Pure; resolves no name.
//! Changed here: which addresses are accepted.

use crate::ClientError;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebSocketUrl {
    pub(crate) is_tls: bool,
    /// Name or address, an IPv6 address without its brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `Host` of the request: the host and the port, if the address names one.
    pub(crate) authority: String,
    /// Path and query, at least `/`.
    pub(crate) path: String,
}

impl WebSocketUrl {
    pub(crate) fn parse(url: &str) -> Result<Self, ClientError> {
        parse(url).map_err(|problem| ClientError::Url { url: url.to_owned(), problem })
    }
}

fn parse(url: &str) -> Result<WebSocketUrl, &'static str> {
    if url.contains(|c: char| c.is_ascii_control() || c == ' ') {
        return Err("it has a space or a line end in it");
    }
    let (scheme, rest) = url.split_once("://").ok_or(EXPECTED)?;
    let is_tls = match scheme {
        "ws" => false,
        "wss" => true,
        _ => return Err(EXPECTED),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let path = path.split('#').next().unwrap_or_default();
    if authority.contains('@') {
        return Err("a user name belongs into a token or a header");
    }
    let (host, port) = split_port(authority)?;
    if host.is_empty() {
        return Err("the host is missing");
    }
    let default_port = if is_tls { 443 } else { 80 };
    Ok(WebSocketUrl {
        is_tls,
        host: host.to_owned(),
        port: port.unwrap_or(default_port),
        authority: authority.to_owned(),
        path: if path.starts_with('/') { path.to_owned() } else { format!("/{path}") },
    })
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), &'static str> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(inside) => inside.split_once(']').ok_or("a bracket is not closed")?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if rest.is_empty() {
        return Ok((host, None));
    }
    let port = rest.strip_prefix(':').and_then(|port| port.parse().ok());
    match port {
        Some(port) if port > 0 => Ok((host, Some(port))),
        _ => Err("the port is no number from 1 to 65535"),
    }
}

const EXPECTED: &str = "it begins with ws:// or wss://";

#[cfg(test)]
mod tests;
