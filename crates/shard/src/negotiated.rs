//! What a handshake decided about a new connection, and the count of connections.
//! In: the decision of a handshake → out: how its connection begins; a permit that counts it while it exists.
//! Uses one atomic counter; never a socket.
//! Changed here: what a connection knows from its handshake. The limit of connections is set where permits are asked for.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use fanwire_deflate::Coding;
use fanwire_ws::Compression;

use super::{client_window::ClientWindow, decode_failures::Peer, transport::Transport};

/// What a handshake decided about a new connection.
pub struct Negotiated<H> {
    /// Messages to this peer are sent as binary frames.
    pub is_binary: bool,
    pub compression: Compression,
    /// permessage-deflate was agreed, so the peer may send compressed messages.
    pub may_inflate: bool,
    /// They may refer to earlier ones.
    pub client_window: Option<ClientWindow>,
    pub peer: Peer,
    /// Of the peer, for log lines, if the socket has another one or none; otherwise `None`.
    pub address: Option<SocketAddr>,
    pub hello: H,
    /// Counts the connection while it exists.
    pub permit: Permit,
}

impl<H> Negotiated<H> {
    /// JSON without compression, on a socket that has the peer's address.
    pub fn raw(peer: Peer, hello: H, permit: Permit) -> Self {
        Self {
            is_binary: false,
            compression: Compression::Raw,
            may_inflate: false,
            client_window: None,
            peer,
            address: None,
            hello,
            permit,
        }
    }
}

/// A response whose body ends with the connection, or a unidirectional WebSocket.
pub struct OpenResponse {
    /// Not [`Transport::WebSocket`].
    pub transport: Transport,
    /// The coding of the whole body; [`Negotiated::compression`] is `Raw` and does not count.
    pub coding: Option<Coding>,
    /// Status and headers, which are sent before any message; empty if they were sent already, or the application sends
    /// them ([`ConnectionWriter::begin_response`](super::ConnectionWriter::begin_response)).
    pub head: Vec<u8>,
    /// The message in the request, which is received first; none if empty.
    pub message: Vec<u8>,
}

/// One counted connection; dropping it decrements the count.
pub struct Permit(Arc<AtomicUsize>);

impl Permit {
    /// Increments the count, unless it is `max` already (0 = no limit).
    pub fn acquire(count: &Arc<AtomicUsize>, max: usize) -> Option<Self> {
        let before = count.fetch_add(1, Relaxed);
        if max > 0 && before >= max {
            count.fetch_sub(1, Relaxed);
            return None;
        }
        Some(Self(count.clone()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
