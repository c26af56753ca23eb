//! Values that `fanwire doctor` sees at a server through all proxies in between.
//! In: what `probe` measured → out: plain values for `rules`.
//! Uses std alone. Never: sockets, a clock, a judgement.
//! A new measurement is a field here, a step of `probe` and a rule.

use std::net::IpAddr;
use std::time::Duration;

/// All that was seen of one server.
#[derive(Debug)]
pub(crate) struct Observations {
    /// `None` without TLS.
    pub(crate) certificate: Option<Certificate>,
    /// Seconds by which the `Date` of responses is ahead of this machine.
    pub(crate) clock_ahead: Option<i64>,
    /// The status of a WebSocket request with the page's origin; `None`: no origin was given.
    pub(crate) origin: Option<(String, u16)>,
    pub(crate) websocket: TransportResult,
    pub(crate) http_stream: TransportResult,
    pub(crate) sse: TransportResult,
    /// Whether the answer to an offer of permessage-deflate accepts it; `None`: it did not open a WebSocket.
    pub(crate) deflate: Option<bool>,
    pub(crate) address: Option<SeenAddress>,
}

impl Observations {
    pub(crate) fn transports(&self) -> [(&'static str, &TransportResult); 3] {
        [("WebSocket", &self.websocket), ("HTTP stream", &self.http_stream), ("SSE", &self.sse)]
    }
}

/// The certificate of the first TLS peer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Certificate {
    /// Why it is refused; "" = it is not.
    pub(crate) fault: String,
    /// Negative after its end; `None`: its dates cannot be read.
    pub(crate) days_left: Option<i64>,
}

/// Result of one transport.
#[derive(Clone, Debug)]
pub(crate) enum TransportResult {
    /// The connection ended without a response, or there was none in time.
    Failed(String),
    Refused(Response),
    Opened(Opened),
}

/// A response other than the one that begins a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Headers; "" = absent.
    pub(crate) server: String,
    pub(crate) location: String,
    /// The first line of the body.
    pub(crate) text: String,
}

/// A stream that has begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opened {
    /// Time from the request to the reply of connect; `None`: it did not come in time.
    pub(crate) reply_after: Option<Duration>,
    pub(crate) reply: Reply,
    /// How long it was left idle.
    pub(crate) idle: Duration,
    pub(crate) end: Option<End>,
    /// Status of a request to `/emulation`, through which commands of a stream come.
    pub(crate) emulation: Option<u16>,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Reply {
    #[default]
    Missing,
    Connected,
    /// An error, a disconnect or a close of the server.
    Refused {
        code: u64,
        text: String,
    },
    /// No message of the protocol.
    Foreign(String),
}

/// End of a stream, with the idle time before it.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) after: Duration,
    /// A code of the server; without one something in between ended the connection.
    pub(crate) code: Option<u64>,
}

/// Addresses of this client, as the server and as this machine sees them.
#[derive(Clone, Debug)]
pub(crate) struct SeenAddress {
    pub(crate) by_server: IpAddr,
    /// Address of this machine's socket.
    pub(crate) local: IpAddr,
    /// The host of the URL.
    pub(crate) of_host: IpAddr,
}
