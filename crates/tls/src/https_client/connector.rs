//! Connections of the HTTP client: a socket with its options, and TLS if the URL says so.
//! In: a URL → out: a connected stream that says which HTTP it carries, or the error.
//! Uses tokio's sockets and `client`. Never: a request, or the decision that a connection is needed, which is the pool's.
//! Changed here: how long connecting takes, when a lost peer is noticed, which protocols are offered.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use rustix::net::sockopt;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use super::{Http2, RequestError};
use crate::{HTTP2, Tls};

/// Connects to the servers of URLs.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    tls: Arc<Tls>,
    timeout: Duration,
    http2: Http2,
}

impl Connector {
    pub(super) fn new(tls: Tls, timeout: Duration, http2: Http2) -> Self {
        let protocols: &[&[u8]] = match http2 {
            Http2::Never => &[],
            Http2::Negotiated => &[HTTP2, b"http/1.1"],
            Http2::Only => &[HTTP2],
        };
        Self { tls: Arc::new(tls.with_protocols(protocols)), timeout, http2 }
    }

    async fn connect(&self, uri: &Uri) -> Result<Box<dyn PlainOrTls>, RequestError> {
        let (host, port, is_secure) = server(uri)?;
        let io_error = |error| RequestError::Io(Arc::new(error));
        let socket = TcpStream::connect((host, port)).await.map_err(io_error)?;
        set_options(&socket).map_err(io_error)?;
        if !is_secure {
            return Ok(Box::new(socket));
        }
        let tls_error = |error| RequestError::Tls(Arc::new(error));
        let stream = self.tls.connect(host, socket).await.map_err(tls_error)?;
        if self.http2 == Http2::Only && !stream.is_http2() {
            return Err(tls_error(io::Error::other("the server does not offer HTTP/2")));
        }
        Ok(Box::new(stream))
    }
}

/// Returns the host, the port, and whether they speak TLS.
pub(super) fn server(uri: &Uri) -> Result<(&str, u16, bool), RequestError> {
    let (default_port, is_secure) = match uri.scheme_str() {
        Some("https") => (443, true),
        Some("http") => (80, false),
        _ => return Err(RequestError::Url),
    };
    let host = uri
        .host()
        .filter(|host| !host.is_empty())
        .ok_or(RequestError::Url)?
        .trim_start_matches('[')
        .trim_end_matches(']');
    Ok((host, uri.port_u16().unwrap_or(default_port), is_secure))
}

/// Makes the connection fail when its peer has vanished: many requests wait on one of HTTP/2, and the end of one does not close it.
/// Pings of HTTP/2 would do that too, but gRPC servers close connections that send more than a few.
fn set_options(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, PROBE_AFTER)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(socket, UNACKNOWLEDGED_MS_MAX)?;
    Ok(())
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn PlainOrTls>>;
    type Error = RequestError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, RequestError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), RequestError>> {
        Poll::Ready(Ok(()))
    }

    /// The time is limited here, too: the pool finishes connections after their request has got another one.
    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let connected = timeout(connector.timeout, connector.connect(&uri)).await;
            connected.unwrap_or(Err(RequestError::Timeout)).map(TokioIo::new)
        })
    }
}

/// A connected socket, with TLS or without.
pub(super) trait PlainOrTls: AsyncRead + AsyncWrite + Send + Unpin {
    /// Tells whether the handshake has chosen HTTP/2.
    fn is_http2(&self) -> bool;
}

impl PlainOrTls for TcpStream {
    fn is_http2(&self) -> bool {
        false
    }
}

impl PlainOrTls for TlsStream<TcpStream> {
    fn is_http2(&self) -> bool {
        self.get_ref().1.alpn_protocol() == Some(HTTP2)
    }
}

impl Connection for Box<dyn PlainOrTls> {
    fn connected(&self) -> Connected {
        let connected = Connected::new();
        if self.is_http2() { connected.negotiated_h2() } else { connected }
    }
}

/// The silence after which the system asks whether the peer is there.
const PROBE_AFTER: Duration = Duration::from_secs(15);

/// The time for which the peer may leave bytes unacknowledged, in milliseconds.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MS_MAX: u32 = 20_000;
