//! Accepts connections and speaks HTTP/1.1 on them (RFC 9112), with a limit on every resource that a slow peer could hold.
//! In: a bound listener and a service → out: served requests, until the server stops.
//! Uses hyper; never reads a request.
//! Changed here: what happens before a handshake. The limits of a peer live in `limits`, those after a handshake in `shard`.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream as StdStream},
    os::fd::AsFd,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use axum::{
    BoxError,
    http::{HeaderValue, StatusCode, header::CONNECTION},
};
use fanwire_telemetry::LogThrottle;
use hyper::{
    Request, Response,
    body::{Body, Incoming},
    server::conn::http1::{self, UpgradeableConnection},
    service::{HttpService, service_fn},
};
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use tokio::{
    io::{AsyncWriteExt, Interest},
    net::{TcpListener, TcpStream},
    runtime::Handle,
    sync::watch,
};

use super::{
    bodies::{GuardedBody, TrackedBody},
    exchange::Exchange,
    forwarded::{self, ClientAddress, TrustedProxies},
    http2,
    limits::{HEADER_BYTES_MAX, TIMEOUTS},
    plain_request::{HttpServer, PlainRequests},
    slots::{ConnectionSlot, ConnectionSlots},
    socket::Socket,
    timeout_stream::TimeoutStream,
    tls_accept::{self, TlsAcceptor},
};
use fanwire_shard::{ShardSocket, SocketTask};
use fanwire_tls::HTTP2;

/// Answers the requests of a listener.
pub trait Service: Send + Sync + 'static {
    /// The body of a response.
    type Body: Body<Data: Send, Error: Into<BoxError>> + Unpin + Send + 'static;

    /// Serves a request of `peer`.
    fn answer(
        &self,
        request: Request<TrackedBody<Incoming>>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// The response to a request whose body did not arrive in time (408).
    fn late(&self) -> Response<Self::Body>;
}

impl<S: Service> Service for Arc<S> {
    type Body = S::Body;

    fn answer(
        &self,
        request: Request<TrackedBody<Incoming>>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Self::Body>> + Send {
        S::answer(self, request, peer)
    }

    fn late(&self) -> Response<Self::Body> {
        S::late(self)
    }
}

/// Protocols that a listener serves besides HTTP/1.1.
#[derive(Default)]
pub struct ListenerSettings {
    pub tls: Option<TlsAcceptor>,
    /// The requests that shards read without hyper.
    pub plain_requests: Option<Arc<PlainRequests>>,
    /// Serve HTTP/2 without TLS to clients that begin with its preface (RFC 9113 §3.3).
    pub http2_cleartext: bool,
    /// Requests of HTTP/2 have bodies of many small messages, as those of gRPC.
    pub has_small_messages: bool,
    /// The proxies that say who a client is.
    pub trusted_proxies: TrustedProxies,
    /// The most connections at the same time; at most [`HTTP_CONNECTIONS_MAX`].
    pub slots: usize,
}

/// Binds an address with a long accept queue, so that a burst of reconnects is not refused.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// The wildcard address: IPv6 (which includes IPv4) if the kernel supports it, else IPv4.
pub fn any_address() -> IpAddr {
    let has_v6 = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, None).is_ok();
    if has_v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// Accepts connections until `stop` is true, then waits for requests in flight.
pub async fn serve(
    listener: TcpListener,
    settings: ListenerSettings,
    service: impl Service,
    stop: watch::Receiver<bool>,
) {
    let slots = ConnectionSlots::new(settings.slots.min(HTTP_CONNECTIONS_MAX));
    let mut queue = match AcceptQueue::new(listener) {
        Ok(queue) => queue,
        Err(error) => return tracing::error!(%error, "cannot accept connections"),
    };
    let served = Arc::new(Served { settings, service });
    let mut stopped = stop.clone();
    tokio::select! {
        () = accept(&mut queue, &served, &slots, &stop) => {}
        () = stop_requested(&mut stopped) => {}
    }
    drop(queue);
    let _timed_out = tokio::time::timeout(FINISH_TIME, slots.all_free()).await;
}

/// State that the connections of a listener share.
struct Served<S> {
    settings: ListenerSettings,
    service: S,
}

impl<S: Service> Served<S> {
    /// Lets a shard read the requests of an accepted socket, as far as it can; hyper serves the others.
    fn begin(
        self: Arc<Self>,
        socket: StdStream,
        client: ClientAddress,
        slot: Arc<ConnectionSlot>,
        stop: watch::Receiver<bool>,
    ) {
        let slots = Arc::clone(&slot.slots);
        let runtime = Handle::current();
        let http = Box::new(HttpConnection { served: self.clone(), client, slot, stop, runtime });
        match &self.settings.plain_requests {
            // With TLS the first bytes are those of its handshake.
            Some(plain_requests) if self.settings.tls.is_none() => {
                plain_requests.accept(socket, client, &slots, http);
            }
            _ => http.serve_on_runtime(socket),
        }
    }

    /// Serves a request, whose client a proxy may name. Drops the service that waits for a body that is late.
    async fn answer(
        &self,
        mut request: Request<TrackedBody<Incoming>>,
        connection: ClientAddress,
    ) -> Response<S::Body> {
        let client = self.settings.trusted_proxies.of_request(connection, request.headers());
        client.mark(request.extensions_mut());
        let exchange = Arc::clone(&request.body().exchange);
        let mut answer = pin!(self.service.answer(request, client.address));
        poll_fn(|context| match answer.as_mut().poll(context) {
            Poll::Pending if exchange.is_late() => Poll::Ready(self.service.late()),
            polled => polled,
        })
        .await
    }
}

/// A connection that has not begun.
struct HttpConnection<S> {
    served: Arc<Served<S>>,
    client: ClientAddress,
    slot: Arc<ConnectionSlot>,
    stop: watch::Receiver<bool>,
    runtime: Handle,
}

impl<S: Service> HttpServer for HttpConnection<S> {
    fn serve_on_runtime(self: Box<Self>, socket: StdStream) {
        let Self { served, client, slot, stop, runtime } = *self;
        runtime.spawn(async move {
            let tls = served.settings.tls.as_ref();
            if let Some(socket) = begin(socket, tls, client.address, &slot.slots, &stop).await {
                serve_connection(socket, client, served, stop, &slot).await;
            }
            slot.give_back();
        });
    }

    fn serve_on_shard(self: Box<Self>, socket: ShardSocket) -> SocketTask {
        let Self { served, client, slot, stop, runtime } = *self;
        let mut serving = Box::pin(async move {
            serve_connection(Socket::Shard(socket), client, served, stop, &slot).await;
            slot.give_back();
        });
        Box::pin(poll_fn(move |context| {
            // For its timers.
            let _entered = runtime.enter();
            serving.as_mut().poll(context)
        }))
    }
}

/// The socket behind the header that a proxy sends first, within the time of a request head.
async fn behind_proxy_header(
    socket: StdStream,
    peer: SocketAddr,
    slots: &ConnectionSlots,
) -> io::Result<(StdStream, ClientAddress)> {
    let mut socket = TcpStream::from_std(socket)?;
    let header = forwarded::read_proxy_header(&mut socket);
    let client = tokio::time::timeout(slots.limit(TIMEOUTS.head), header)
        .await??
        .map_or(ClientAddress::of_peer(peer), ClientAddress::forwarded);
    Ok((socket.into_std()?, client))
}

/// Accepts sockets without registering them anywhere: a shard or the HTTP runtime does.
struct AcceptQueue {
    /// Accepts nonblocking sockets with one system call.
    listener: mio::net::TcpListener,
    /// The same socket. tokio's own listener registers what it accepts, and of its types this one waits for readiness alone.
    readiness: TcpStream,
    /// Sockets that were accepted since the queue was empty.
    batch: u32,
}

impl AcceptQueue {
    fn new(listener: TcpListener) -> io::Result<Self> {
        let listener = mio::net::TcpListener::from_std(listener.into_std()?);
        // With Nagle's algorithm the end of a long response waits for the acknowledgement of earlier segments. Accepted
        // sockets have the options of their listener.
        socket2::SockRef::from(&listener).set_tcp_nodelay(true)?;
        let readiness = StdStream::from(listener.as_fd().try_clone_to_owned()?);
        Ok(Self { listener, readiness: TcpStream::from_std(readiness)?, batch: 0 })
    }

    /// The next socket, which is nonblocking, and its peer. A client by IPv4 at an IPv6 listener has its IPv4 address (RFC 4291
    /// §2.5.5.2), as in lists of networks.
    async fn accept(&mut self) -> io::Result<(StdStream, SocketAddr)> {
        let mut accepted = self.try_accept();
        if accepted.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            if self.batch >= BURST_MIN {
                tokio::time::sleep(BATCH_TIME).await;
            }
            self.batch = 0;
            accepted = self.readiness.async_io(Interest::READABLE, || self.try_accept()).await;
        }
        self.batch += 1;
        accepted
    }

    fn try_accept(&self) -> io::Result<(StdStream, SocketAddr)> {
        let (socket, peer) = self.listener.accept()?;
        Ok((socket.into(), SocketAddr::new(peer.ip().to_canonical(), peer.port())))
    }
}

async fn accept<S: Service>(
    queue: &mut AcceptQueue,
    served: &Arc<Served<S>>,
    slots: &Arc<ConnectionSlots>,
    stop: &watch::Receiver<bool>,
) {
    let log_throttle = LogThrottle::default();
    loop {
        let plain_requests = served.settings.plain_requests.as_ref();
        let close_on_shards = || plain_requests.into_iter().for_each(|it| it.close_longest_idle());
        let slot = slots.take(close_on_shards).await;
        match queue.accept().await {
            Ok((socket, peer)) => {
                let slot = ConnectionSlot::new(slots, slot);
                let served = served.clone();
                let stop = stop.clone();
                if !served.settings.trusted_proxies.speaks_proxy_protocol(peer) {
                    served.begin(socket, ClientAddress::of_peer(peer), slot, stop);
                    continue;
                }
                tokio::spawn(async move {
                    match behind_proxy_header(socket, peer, &slot.slots).await {
                        Ok((socket, client)) => served.begin(socket, client, slot, stop),
                        Err(error) => {
                            tracing::debug!(%error, %peer, "a proxy sent no header of the PROXY protocol");
                        }
                    }
                });
            }
            // The peer closed while it was in the backlog; a pause would not help.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                // Most likely out of descriptors: wait until some are closed instead of spinning.
                if let Some(repeats) = log_throttle.record("accept", Instant::now()) {
                    tracing::warn!(%error, "{}{repeats}", accept_error(&error));
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The log line for an error of accept.
fn accept_error(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => {
            "cannot accept connections, retrying: the process is out of file descriptors; raise its limit (ulimit -Hn, \
             LimitNOFILE= of a unit), or set client.connection_limit"
        }
        Some(Errno::NFILE) => {
            "cannot accept connections, retrying: the machine is out of file descriptors (fs.file-max)"
        }
        _ => "cannot accept connections, retrying",
    }
}

/// The socket that is to speak HTTP, after its TLS handshake if the listener has TLS.
async fn begin(
    socket: StdStream,
    tls: Option<&TlsAcceptor>,
    peer: SocketAddr,
    slots: &Arc<ConnectionSlots>,
    stop: &watch::Receiver<bool>,
) -> Option<Socket> {
    // At a stop hyper ends a connection of which it knows no byte, and learns of those that a shard has not read after its first poll.
    let is_late = *stop.borrow() && socket.peek(&mut [0]).is_ok_and(|length| length > 0);
    // An error is the lack of kernel memory for one more watch: the peer sees its connection end.
    let socket = TcpStream::from_std(socket).ok()?;
    if is_late {
        socket.readable().await.ok()?;
    }
    tls_accept::accept(tls, socket, peer, slots, stop.clone()).await
}

async fn serve_connection<S: Service>(
    socket: Socket,
    client: ClientAddress,
    served: Arc<Served<S>>,
    stop: watch::Receiver<bool>,
    slot: &Arc<ConnectionSlot>,
) {
    let slots = &slot.slots;
    let is_http2 = match &socket {
        Socket::Plain(socket) if served.settings.http2_cleartext => {
            begins_http2(socket, slots.limit(TIMEOUTS.head)).await
        }
        Socket::Plain(_) | Socket::Shard(_) => false,
        Socket::Tls(stream) => stream.protocol() == Some(HTTP2),
    };
    if is_http2 {
        let stop = http2::stop_requested(stop);
        let connection = http2::ConnectionSettings {
            peer: client.address,
            slots: Arc::clone(slots),
            has_small_messages: served.settings.has_small_messages,
        };
        let answer = move |request| {
            let served = Arc::clone(&served);
            async move { served.answer(request, client).await }
        };
        return http2::serve(socket, connection, answer, stop).await;
    }
    // A shard serves the request that was chosen for it, and no other one.
    let is_kept = !matches!(socket, Socket::Shard(_));
    let exchange = Exchange::with_slot(Arc::clone(slot));
    let socket = TimeoutStream::new(socket, TIMEOUTS, Arc::clone(slots), Arc::clone(&exchange));
    let service = service_fn({
        let exchange = exchange.clone();
        move |mut request: Request<Incoming>| {
            let mut in_flight = exchange.begin_request(&mut request);
            let served = served.clone();
            let slot = slot.clone();
            let exchange = exchange.clone();
            let request = request.map(|body| TrackedBody::new(body, exchange.clone(), &slot.slots));
            async move {
                let mut answer = served.answer(request, client).await;
                in_flight.respond(answer.status());
                let must_close = exchange.is_late() || !slot.may_keep();
                if must_close && answer.status() != StatusCode::SWITCHING_PROTOCOLS {
                    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(answer.map(|body| GuardedBody { body, _guard: in_flight }))
            }
        }
    });
    let connection = http1::Builder::new()
        .max_buf_size(HEADER_BYTES_MAX)
        // A peer that closed its sending side still gets its response, unless that is a long one. It also spares a read
        // buffer per request, which hyper otherwise uses to detect that close.
        .half_close(true)
        .keep_alive(is_kept)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    match serve_until_stop(connection, stop, &exchange).await {
        Ok(None) => {}
        Ok(Some(socket)) => return hand_over(socket, &exchange),
        Err(error) => {
            tracing::debug!(%error, peer = %client.address, "HTTP connection ended early");
        }
    }
    // After an upgrade request hyper releases the socket instead of closing it, for every status.
    if let Some(refused) = exchange.refused_upgrade()
        && let Ok(upgraded) = refused.await
    {
        // An error means that the peer closed already.
        let _ = TokioIo::new(upgraded).shutdown().await;
    }
}

/// Whether the first bytes are the preface of HTTP/2. They stay in the socket.
async fn begins_http2(socket: &TcpStream, limit: Duration) -> bool {
    let mut bytes = [0; http2::PREFACE.len()];
    let begins = async {
        // Four bytes tell: no method of HTTP/1.1 is "PRI" (RFC 9113 §3.4).
        while let Ok(length @ 1..) = socket.peek(&mut bytes).await {
            if length >= 4 || !http2::PREFACE.starts_with(&bytes[..length]) {
                return http2::PREFACE.starts_with(&bytes[..length]);
            }
            tokio::time::sleep(PEEK_PAUSE).await;
        }
        false
    };
    tokio::time::timeout(limit, begins).await.unwrap_or(false)
}

/// Gives a socket to the service that asked for it.
fn hand_over(socket: TimeoutStream<Socket>, exchange: &Exchange) {
    if let (Some(handover), Ok(socket)) = (exchange.take_handover(), socket.into_socket().release())
    {
        handover(socket);
    }
}

/// Serves a connection to its end, or to the end of its request in flight once `stop` is true. Returns the socket when a
/// service wants to send the response by itself.
async fn serve_until_stop<S, B>(
    mut connection: UpgradeableConnection<TokioIo<TimeoutStream<Socket>>, S>,
    mut stop: watch::Receiver<bool>,
    exchange: &Exchange,
) -> hyper::Result<Option<TimeoutStream<Socket>>>
where
    S: HttpService<Incoming, ResBody = B, Error = Infallible>,
    B: Body + 'static,
    B::Error: Into<BoxError>,
{
    let stop_state = stop.clone();
    let mut stopped = pin!(stop_requested(&mut stop));
    let mut is_listening = false;
    let mut has_stopped = false;
    let served = poll_fn(|context| {
        if let Poll::Ready(result) = Pin::new(&mut connection).poll(context) {
            return Poll::Ready(ConnectionEnd::Ended(result));
        }
        if exchange.has_taker() {
            return Poll::Ready(ConnectionEnd::HandOver);
        }
        if has_stopped {
            return Poll::Pending;
        }
        // `stopped` wakes this task after its first poll; until it changes, `has_changed` is cheaper than another poll.
        if is_listening && stop_state.has_changed().is_ok_and(|changed| !changed) {
            return Poll::Pending;
        }
        is_listening = true;
        if stopped.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        has_stopped = true;
        Pin::new(&mut connection).graceful_shutdown();
        context.waker().wake_by_ref(); // the connection may end now
        Poll::Pending
    });
    match served.await {
        ConnectionEnd::Ended(result) => result.map(|()| None),
        ConnectionEnd::HandOver => Ok(connection.into_parts().map(|parts| parts.io.into_inner())),
    }
}

/// Why a connection is no longer served.
enum ConnectionEnd {
    Ended(hyper::Result<()>),
    HandOver,
}

/// Returns when `stop` is true or its sender was dropped.
async fn stop_requested(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

const BACKLOG: i32 = 4096;

/// Concurrent HTTP connections; established WebSockets do not count. Further ones wait in the backlog.
pub const HTTP_CONNECTIONS_MAX: usize = 10_000;

/// Time for requests in flight to finish when the server stops; a partly received head counts too.
const FINISH_TIME: Duration = Duration::from_secs(5);

/// The least number of sockets in one batch that is a burst. Clients that connect one after the other have batches of one.
const BURST_MIN: u32 = 4;

/// In a burst, sockets gather for this time after the queue was empty: each wake-up of the thread costs as much as an accept.
/// `fanwire-bench connects` shows what it saves.
const BATCH_TIME: Duration = Duration::from_millis(1);

/// Between looks at a socket that has received one to three bytes.
const PEEK_PAUSE: Duration = Duration::from_millis(10);

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
