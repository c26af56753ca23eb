//! Addresses of a server: a WebSocket endpoint, a server API.
//! In: a URL, TLS for one that needs it → out: socket address, value of the Host header, path.
//! Uses the system's resolver. Never: a connection.
//! Changed here: which URLs are accepted.

use anyhow::{Context, Result, bail, ensure};
use rustls::ClientConfig;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// Address that a request goes to.
#[derive(Clone, Debug)]
pub struct ServerAddress {
    pub socket: SocketAddr,
    /// Host and port as in the URL; the certificate must have the host.
    pub host: String,
    /// Path with the query; begins with a slash.
    pub path: String,
    /// TLS of `wss` and `https`.
    pub tls: Option<Arc<ClientConfig>>,
}

impl ServerAddress {
    /// Resolves a URL of the scheme `ws` or `http`, whichever `scheme` says; with `tls`, of `wss` or `https`.
    ///
    /// # Errors
    /// Another scheme, no host, a port that is no number, or a host without an address.
    pub fn resolve(url: &str, scheme: &str, tls: Option<Arc<ClientConfig>>) -> Result<Self> {
        let (found, rest) = url.split_once("://").unwrap_or(("", url));
        let (suffix, port) = if tls.is_some() { ("s", 443) } else { ("", 80) };
        ensure!(
            found.strip_prefix(scheme) == Some(suffix),
            "{url}: expected {scheme}://HOST:PORT/PATH or {scheme}s://HOST:PORT/PATH"
        );
        let (host, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        ensure!(!host.is_empty() && !host.starts_with(':'), "{url}: no host");
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let authority = if has_port { host.to_owned() } else { format!("{host}:{port}") };
        let resolved = authority.to_socket_addrs().with_context(|| format!("{url}: {host}"))?;
        let mut addresses: Vec<SocketAddr> = resolved.collect();
        // Servers that listen on one family listen on IPv4.
        addresses.sort_by_key(SocketAddr::is_ipv6);
        let Some(socket) = addresses.first() else { bail!("{url}: {host} has no address") };
        Ok(Self { socket: *socket, host: host.to_owned(), path, tls })
    }
}

impl From<SocketAddr> for ServerAddress {
    /// A server without TLS, called `localhost`.
    fn from(socket: SocketAddr) -> Self {
        Self { socket, host: "localhost".to_owned(), path: "/".to_owned(), tls: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_host_port_and_path() {
        let resolve = |url| ServerAddress::resolve(url, "ws", None).expect(url);
        let full = resolve("ws://127.0.0.1:8000/connection/websocket?x=1");
        assert_eq!(full.socket, "127.0.0.1:8000".parse().expect("an address"));
        assert_eq!((&*full.host, &*full.path), ("127.0.0.1:8000", "/connection/websocket?x=1"));
        let short = resolve("ws://127.0.0.1");
        assert_eq!((short.socket.port(), &*short.path), (80, "/"));
        assert_eq!(resolve("ws://[::1]:9?a").path, "/?a");
        assert!(resolve("ws://[::1]").socket.is_ipv6());
    }

    #[test]
    fn what_is_no_such_url_is_refused_with_the_form_that_is_expected() {
        for (url, part) in [
            ("wss://localhost/x", "expected ws://HOST:PORT/PATH or wss://HOST:PORT/PATH"),
            ("localhost:8000", "expected ws://HOST:PORT/PATH"),
            ("http://localhost", "expected ws://"),
            ("ws://", "no host"),
            ("ws://:8000/x", "no host"),
            ("ws://localhost:port/", "localhost:port"),
            ("ws://localhost:99999/", "localhost:99999"),
        ] {
            let error = format!("{:#}", ServerAddress::resolve(url, "ws", None).expect_err(url));
            assert!(error.contains(part), "{url}: {error}");
        }
    }
}
