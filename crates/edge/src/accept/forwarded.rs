//! Address of a client behind a proxy: `X-Forwarded-For`, `Forwarded` (RFC 7239), and the PROXY protocol of HAProxy.
//! In: the peer of a socket, headers of a request, the first bytes of a connection → out: address of the client, its identity.
//! Uses the networks of `http_server.trusted_proxies`; believes no other peer.
//! Changed here: what a proxy may say, and what identifies a peer. Where the address is shown is decided by those who log.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use axum::{
    extract::ConnectInfo,
    http::{
        Extensions, HeaderMap, HeaderName,
        header::{FORWARDED, USER_AGENT},
        request,
    },
};
use fanwire_shard::Peer;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::networks::Networks;

/// The proxies that are believed.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    pub networks: Networks,
    /// Their connections begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
}

/// The address of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientAddress {
    pub(crate) address: SocketAddr,
    /// It is another one than that of the socket.
    is_forwarded: bool,
}

/// Marks a request, by an extension, whose client has another address than its socket.
#[derive(Clone, Copy)]
struct IsForwarded;

impl ClientAddress {
    pub(crate) fn of_peer(address: SocketAddr) -> Self {
        Self { address, is_forwarded: false }
    }

    pub(crate) fn forwarded(address: SocketAddr) -> Self {
        Self { address, is_forwarded: true }
    }

    pub(crate) fn mark(self, extensions: &mut Extensions) {
        if self.is_forwarded {
            extensions.insert(IsForwarded);
        }
    }
}

impl TrustedProxies {
    /// The client of a request that came from `peer`, if a trusted proxy names another one: the last address of the chain
    /// that is no trusted proxy. What stands before it may be the client's own text.
    fn client_of(&self, peer: SocketAddr, headers: &HeaderMap) -> Option<SocketAddr> {
        if self.networks.is_empty() || !self.networks.contains(peer.ip()) {
            return None;
        }
        let chain = match (headers.contains_key(&X_FORWARDED_FOR), headers.contains_key(FORWARDED))
        {
            (true, false) => x_forwarded_for(headers),
            (false, true) => forwarded(headers),
            // A proxy writes one of them, and the other one is the client's own.
            (true, true) | (false, false) => return None,
        };
        let mut client = None;
        for address in chain.into_iter().rev() {
            // `unknown`, an obfuscated name, or no address at all: what is known ends here.
            let Some(address) = address else { break };
            client = Some(address);
            if !self.networks.contains(address.ip()) {
                break;
            }
        }
        client
    }

    /// The client of a request on a connection.
    pub(crate) fn of_request(
        &self,
        connection: ClientAddress,
        headers: &HeaderMap,
    ) -> ClientAddress {
        let client = self.client_of(connection.address, headers);
        client.map_or(connection, ClientAddress::forwarded)
    }

    /// Whether a connection of `peer` begins with a header of the PROXY protocol.
    pub(crate) fn speaks_proxy_protocol(&self, peer: SocketAddr) -> bool {
        self.proxy_protocol && self.networks.contains(peer.ip())
    }
}

/// Identifies a peer across connections: by address, user agent and forwarded address.
pub(crate) fn peer_of(headers: &HeaderMap, address: Option<SocketAddr>) -> Peer {
    let identifying = [USER_AGENT, X_FORWARDED_FOR].map(|name| headers.get(name));
    Peer::of(&(address.map(|address| address.ip()), identifying))
}

/// The address of the peer of a request, or of its client if a proxy names it.
pub(crate) fn address_of(extensions: &Extensions) -> Option<SocketAddr> {
    extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0)
}

/// Whether a proxy names the client.
pub(crate) fn is_forwarded(head: &request::Parts) -> bool {
    head.extensions.get::<IsForwarded>().is_some()
}

/// The addresses of `X-Forwarded-For`, from the client to the last proxy.
fn x_forwarded_for(headers: &HeaderMap) -> Vec<Option<SocketAddr>> {
    let lines = headers.get_all(&X_FORWARDED_FOR).iter();
    lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(node).collect()
}

/// The addresses of `for=` in `Forwarded` (RFC 7239 §4).
fn forwarded(headers: &HeaderMap) -> Vec<Option<SocketAddr>> {
    let lines = headers.get_all(FORWARDED).iter();
    let elements = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let of_element = |element: &[u8]| {
        let mut parts = element.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let value = parts.find_map(|part| {
            let (name, value) = part.split_at_checked(4)?;
            name.eq_ignore_ascii_case(b"for=").then_some(value)
        })?;
        node(value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value))
    };
    elements.map(of_element).collect()
}

/// An address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80` (RFC 7239 §6).
fn node(text: &[u8]) -> Option<SocketAddr> {
    let text = str::from_utf8(text.trim_ascii()).ok()?;
    let without_port = |ip: IpAddr| SocketAddr::new(ip, 0);
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().map(without_port).or_else(|_| text.parse()).ok()
}

/// Reads the header of the PROXY protocol. Returns the client; `None` if the proxy speaks for itself.
///
/// # Errors
/// `InvalidData` for other bytes.
pub(crate) async fn read_proxy_header(
    socket: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<SocketAddr>> {
    let mut start = [0; SIGNATURE.len()];
    socket.read_exact(&mut start).await?;
    if start == *SIGNATURE {
        return read_version_2(socket).await;
    }
    if !start.starts_with(b"PROXY ") {
        return Err(wrong());
    }
    let mut line = start.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() == LINE_BYTES_MAX {
            return Err(wrong());
        }
        line.push(socket.read_u8().await?);
    }
    version_1(str::from_utf8(&line).map_err(|_| wrong())?.trim_end())
}

/// `PROXY TCP4 client server port port`, or `PROXY UNKNOWN`.
fn version_1(line: &str) -> io::Result<Option<SocketAddr>> {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["PROXY", "UNKNOWN", ..] => Ok(None),
        ["PROXY", family @ ("TCP4" | "TCP6"), client, _, port, _] => {
            let client: IpAddr = client.parse().map_err(|_| wrong())?;
            let port = port.parse().map_err(|_| wrong())?;
            let is_of_family = client.is_ipv4() == (family == "TCP4");
            if is_of_family { Ok(Some(SocketAddr::new(client, port))) } else { Err(wrong()) }
        }
        _ => Err(wrong()),
    }
}

async fn read_version_2(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    let mut head = [0; 4];
    socket.read_exact(&mut head).await?;
    let [version_and_command, family, length @ ..] = head;
    let length = usize::from(u16::from_be_bytes(length));
    if length > ADDRESSES_BYTES_MAX {
        return Err(wrong());
    }
    let mut addresses = vec![0; length];
    socket.read_exact(&mut addresses).await?;
    let port_at = |at: usize| Some(u16::from_be_bytes(*addresses.get(at..)?.first_chunk()?));
    match (version_and_command, family) {
        (0x20, _) => Ok(None), // LOCAL: a health check of the proxy
        (0x21, 0x11) => {
            let client = addresses.first_chunk::<4>().zip(port_at(8)).ok_or_else(wrong)?;
            Ok(Some(SocketAddr::new(Ipv4Addr::from(*client.0).into(), client.1)))
        }
        (0x21, 0x21) => {
            let client = addresses.first_chunk::<16>().zip(port_at(32)).ok_or_else(wrong)?;
            Ok(Some(SocketAddr::new(Ipv6Addr::from(*client.0).into(), client.1)))
        }
        (0x21, _) => Ok(None), // sockets of its machine, datagrams, or unspecified
        _ => Err(wrong()),
    }
}

fn wrong() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "no header of the PROXY protocol")
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The beginning of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The longest line of version 1, its end included.
const LINE_BYTES_MAX: usize = 107;

/// Addresses and extensions of version 2.
const ADDRESSES_BYTES_MAX: usize = 4 << 10;

#[cfg(test)]
mod tests;
