//! The TLS handshake of an accepted connection, within the time limit of a request head (RFC 8446 §2).
//! In: a socket → out: a socket that speaks HTTP, or nothing: the handshake failed, or the peer speaks plain HTTP.
//! Uses `tls_stream`, and hyper for the answer to plain HTTP; never a request of its own.
//! Changed here: which peers are refused, what is logged and counted. What handshakes agree on lives in `tls::server`.

use std::{
    convert::Infallible,
    io::{self, ErrorKind},
    net::SocketAddr,
    sync::Arc,
    time::Instant,
};

use axum::{
    body::Body,
    http::{Request, Response, StatusCode, header},
};
use fanwire_telemetry::{Repeats, excerpt};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, sync::watch, time::timeout};
use tracing::field::display;

use super::{
    exchange::Exchange,
    http2,
    limits::{HEADER_BYTES_MAX, TIMEOUTS},
    slots::ConnectionSlots,
    socket::Socket,
    timeout_stream::TimeoutStream,
    tls_stream::TlsStream,
};
use fanwire_tls::{ACME_PROTOCOL, HandshakeCounts, HandshakeResult, ServerTls};

/// Performs the handshakes of a listener.
#[derive(Clone)]
pub struct TlsAcceptor {
    tls: Arc<ServerTls>,
    counts: Arc<HandshakeCounts>,
}

/// Returns the socket that is to speak HTTP. Without `tls` that is the accepted one.
pub(crate) async fn accept(
    tls: Option<&TlsAcceptor>,
    socket: TcpStream,
    peer: SocketAddr,
    slots: &Arc<ConnectionSlots>,
    stop: watch::Receiver<bool>,
) -> Option<Socket> {
    let Some(tls) = tls else { return Some(socket.into()) };
    // In a box, because connections without TLS have the same task.
    Box::pin(async move {
        tokio::select! {
            accepted = tls.accept(socket, peer, slots) => accepted,
            () = http2::stop_requested(stop) => None,
        }
    })
    .await
}

impl TlsAcceptor {
    pub fn new(tls: Arc<ServerTls>, counts: Arc<HandshakeCounts>) -> Self {
        Self { tls, counts }
    }

    async fn accept(
        &self,
        socket: TcpStream,
        peer: SocketAddr,
        slots: &Arc<ConnectionSlots>,
    ) -> Option<Socket> {
        match timeout(slots.limit(TIMEOUTS.head), self.handshake(socket)).await {
            Ok(Ok(Handshake::Done(stream))) => {
                self.counts.count(if stream.is_resumed() {
                    HandshakeResult::Resumed
                } else {
                    HandshakeResult::Full
                });
                return Some(Socket::Tls(Box::new(stream)));
            }
            Ok(Ok(Handshake::PlainHttp(socket))) => {
                self.refuse(HandshakeResult::PlainHttp, peer, "the client speaks HTTP without TLS");
                answer_plain_http(socket, slots.clone()).await;
            }
            Ok(Ok(Handshake::Challenge)) => self.counts.count(HandshakeResult::Full),
            // Balancers look whether a port is open in this way.
            Ok(Ok(Handshake::NotBegun)) => {}
            Ok(Err(error)) => self.refuse(HandshakeResult::Failed, peer, &cause(&error)),
            Err(_) => self.refuse(HandshakeResult::TimedOut, peer, "it took too long"),
        }
        None
    }

    async fn handshake(&self, socket: TcpStream) -> io::Result<Handshake> {
        let mut first = [0];
        match socket.peek(&mut first).await {
            Ok(1..) if first[0].is_ascii_uppercase() => Ok(Handshake::PlainHttp(socket)),
            Ok(1..) => {
                let stream = TlsStream::accept(socket, self.tls.config()).await?;
                let is_challenge = stream.protocol() == Some(ACME_PROTOCOL);
                Ok(if is_challenge { Handshake::Challenge } else { Handshake::Done(stream) })
            }
            Ok(0) | Err(_) => Ok(Handshake::NotBegun),
        }
    }

    /// Counts a handshake that did not succeed. Logged at level info: once a minute for each cause, at level debug
    /// each of them.
    fn refuse(&self, result: HandshakeResult, peer: SocketAddr, cause: &str) {
        let repeats = self.counts.fail(result, cause, peer, Instant::now());
        let address = display(peer);
        let cause = excerpt(cause);
        match repeats.map(Repeats::count) {
            Some(count) => tracing::info!(count, cause, address, "a TLS handshake failed"),
            None => tracing::debug!(cause, address, "a TLS handshake failed"),
        }
    }
}

/// The first step of a peer.
enum Handshake {
    Done(TlsStream),
    /// A certificate authority has seen what it wanted to see; nothing follows (RFC 8737 §3).
    Challenge,
    PlainHttp(TcpStream),
    /// It left without a byte.
    NotBegun,
}

/// Returns the text of an error for the log.
fn cause(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => "the client left during the handshake".to_owned(),
        _ => error.to_string(),
    }
}

/// Answers 400 to a request without TLS, as nginx does.
async fn answer_plain_http(socket: TcpStream, slots: Arc<ConnectionSlots>) {
    let exchange = Arc::<Exchange>::default();
    let socket = Socket::from(socket);
    let socket = TimeoutStream::new(socket, TIMEOUTS, slots, Arc::clone(&exchange));
    let service = service_fn(move |mut request: Request<Incoming>| {
        let mut in_flight = exchange.begin_request(&mut request);
        async move {
            let response = Response::builder()
                .status(StatusCode::BAD_REQUEST)
                .header(header::CONTENT_TYPE, "text/plain; charset=utf-8")
                .header(header::CONNECTION, "close")
                .body(Body::from(PLAIN_HTTP))
                .expect("static headers are valid");
            in_flight.respond(response.status());
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .max_buf_size(HEADER_BYTES_MAX)
        .half_close(true)
        .serve_connection(TokioIo::new(socket), service);
    // An error means that the peer has left, or took too long.
    let _ = connection.await;
}

const PLAIN_HTTP: &str = "The plain HTTP request was sent to HTTPS port\n";

#[cfg(test)]
mod tests;
