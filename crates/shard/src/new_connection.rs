//! A new connection as its request describes it, and the count of connections.
//! In: the decision about a request → out: how its connection begins; a permit that counts it while it exists.
//! Uses one atomic counter; never a socket.
//! Changed here: what a connection knows from its request. The limit of connections is set where permits are asked for.

use std::{
    any::Any,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use fanwire_deflate::Coding;
use fanwire_ws::Compression;

use super::{client_window::ClientWindow, decode_failures::Peer, transport::Transport};

/// A connection that begins.
pub struct NewConnection<H> {
    pub transport: Transport,
    /// Messages to this peer are sent as binary frames, or in Protobuf in a response body.
    pub is_binary: bool,
    /// For WebSockets; `Raw` for other transports.
    pub compression: Compression,
    /// The coding of a whole response body.
    pub coding: Option<Coding>,
    /// permessage-deflate was agreed, so the peer may send compressed messages.
    pub may_inflate: bool,
    /// Compressed messages of the peer may refer to earlier ones.
    pub client_window: Option<ClientWindow>,
    pub peer: Peer,
    /// Address of the peer for log lines, if the socket has another one or none.
    pub address: Option<SocketAddr>,
    /// Status and headers, which are sent before any message; empty if they were sent already, or the application sends
    /// them ([`ConnectionWriter::begin_response`](super::ConnectionWriter::begin_response)).
    pub head: Vec<u8>,
    /// The message in the request, which is received first; of a WebSocket it is empty when there is none.
    pub message: Vec<u8>,
    /// Part of the application.
    pub opening: H,
    /// Counts the connection while it exists.
    pub permit: Permit,
    /// Counts it elsewhere, too.
    pub place: Option<CountedPlace>,
}

/// A place in what an application counts; dropping it frees the place.
pub type CountedPlace = Box<dyn Any + Send + Sync>;

impl<H> NewConnection<H> {
    /// A WebSocket in JSON without compression, on a socket that has the peer's address.
    pub fn raw(peer: Peer, opening: H, permit: Permit) -> Self {
        Self {
            transport: Transport::default(),
            is_binary: false,
            compression: Compression::Raw,
            coding: None,
            may_inflate: false,
            client_window: None,
            peer,
            address: None,
            head: Vec::new(),
            message: Vec::new(),
            opening,
            permit,
            place: None,
        }
    }
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
