//! HTTP/2 on a connection (RFC 9113), and in its streams WebSockets (RFC 8441) and responses of shards.
//! In: a byte stream that begins with the preface → out: served requests; WebSockets on shards, through a pair of sockets.
//! Uses hyper; never the sockets of HTTP/1.1 connections, which `listener` serves.
//! Changed here: limits of HTTP/2. The checks of a handshake live in `upgrade`; the cost of a stream is in docs/decisions/0016.

use std::{
    convert::Infallible,
    future::Future,
    io,
    mem::{self, MaybeUninit},
    net::{SocketAddr, TcpStream},
    os::{fd::OwnedFd, unix::net::UnixStream as StdUnixStream},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    BoxError,
    body::{Body, Bytes, HttpBody},
    http::{
        HeaderMap, HeaderValue, Request, Response,
        header::{self, COOKIE},
    },
};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http2,
    service::service_fn,
    upgrade::Upgraded,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf, WriteHalf},
    net::{UnixStream, unix::OwnedReadHalf, unix::OwnedWriteHalf},
    sync::{Notify, watch},
    time::{sleep, timeout},
};

use super::{
    bodies::{GuardedBody, TrackedBody},
    frame_limit::FrameLimit,
    limits::IDLE_TIMEOUT,
    slots::{ConnectionSlots, TIMEOUT_SCARCE},
};
use crate::descriptors::StreamDescriptors;

/// The bytes with which a client with prior knowledge begins (RFC 9113 §3.4), as far as no HTTP/1.1 request begins.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Serves a connection until it ends, is idle for long or gives way, or its last request after `stop` is answered.
pub(crate) async fn serve<S, A, R, B>(
    socket: S,
    settings: ConnectionSettings,
    answer: A,
    stop: impl Future<Output = ()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Fn(Request<TrackedBody<Incoming>>) -> R,
    R: Future<Output = Response<B>> + Send + 'static,
    B: HttpBody<Data: Send, Error: Into<BoxError>> + Unpin + Send + 'static,
{
    let ConnectionSettings { peer, slots, has_small_messages } = settings;
    let streams = Arc::<Streams>::default();
    let service = service_fn({
        let streams = Arc::clone(&streams);
        let slots = Arc::clone(&slots);
        move |mut request: Request<Incoming>| {
            let open = Arc::new(OpenStream::begin(&streams));
            request.extensions_mut().insert(Arc::clone(&open));
            join_cookies(request.headers_mut());
            // Its state is its own: requests come in streams.
            let request =
                with_host(request).map(|body| TrackedBody::new(body, Arc::default(), &slots));
            let answer = answer(request);
            let answer = async move { answer.await.map(|body| GuardedBody { body, _guard: open }) };
            async move { Ok::<_, Infallible>(answer.await) }
        }
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .enable_connect_protocol()
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESET_STREAMS_MAX)
        .max_header_list_size(HEADER_BYTES_MAX)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PONG_TIMEOUT);
    if has_small_messages {
        builder.initial_stream_window_size(SMALL_MESSAGES_STREAM_WINDOW);
        builder.initial_connection_window_size(SMALL_MESSAGES_CONNECTION_WINDOW);
    }
    let mut connection =
        pin!(builder.serve_connection(TokioIo::new(FrameLimit::new(socket)), service));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stop => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = idle(&streams, &slots) => {
            connection.as_mut().graceful_shutdown();
            match timeout(TIMEOUT_SCARCE, connection.as_mut()).await {
                Ok(result) => result,
                // A peer that does not answer keeps its slot no longer.
                Err(_) if streams.open.load(Relaxed) == 0 => Ok(()),
                Err(_) => connection.await,
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, %peer, "HTTP/2 connection ended early");
    }
}

/// The settings of a listener that its connections use.
pub(crate) struct ConnectionSettings {
    pub(crate) peer: SocketAddr,
    pub(crate) slots: Arc<ConnectionSlots>,
    /// The peer sends many small messages, which wait until they are read.
    pub(crate) has_small_messages: bool,
}

/// Returns when no stream was open for [`IDLE_TIMEOUT`], or less while slots are scarce, or another connection needs the slot.
async fn idle(streams: &Streams, slots: &Arc<ConnectionSlots>) {
    loop {
        let changed = streams.changed.notified();
        if streams.open.load(Relaxed) > 0 {
            changed.await;
            continue;
        }
        tokio::select! {
            () = slots.idle() => return,
            () = sleep(slots.limit(IDLE_TIMEOUT)) => return,
            () = changed => {}
        }
    }
}

/// The streams of a connection.
#[derive(Default)]
struct Streams {
    open: AtomicUsize,
    /// The first stream has begun, or the last one has ended.
    changed: Notify,
}

/// A stream that is open until this is dropped. It is an extension of its request, too: a WebSocket outlives its response.
pub(crate) struct OpenStream(Arc<Streams>);

impl OpenStream {
    fn begin(streams: &Arc<Streams>) -> Self {
        if streams.open.fetch_add(1, Relaxed) == 0 {
            streams.changed.notify_one();
        }
        Self(Arc::clone(streams))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Relaxed) == 1 {
            self.0.changed.notify_one();
        }
    }
}

/// The request with its authority as `Host`, as an intermediary does (RFC 9113 §8.3.1), for the checks of all versions. A
/// `Host` that differs from it stays as a second one, which is refused.
fn with_host<B>(mut request: Request<B>) -> Request<B> {
    let authority = request.uri().authority().map(|authority| authority.as_str());
    if let Some(authority) = authority.and_then(|text| HeaderValue::from_str(text).ok()) {
        let host = request.headers().get(header::HOST);
        if !host.is_some_and(|host| host.as_bytes().eq_ignore_ascii_case(authority.as_bytes())) {
            request.headers_mut().append(header::HOST, authority);
        }
    }
    request
}

/// Joins the fields in which a client of HTTP/2 may send its cookies (RFC 9113 §8.2.3): backends know one.
fn join_cookies(headers: &mut HeaderMap) {
    let cookies: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        headers.insert(COOKIE, joined);
    }
}

/// The end of a pair of sockets that a task has.
pub(crate) struct TaskSocket {
    socket: UnixStream,
    _descriptors: StreamDescriptors,
}

/// A pair of connected sockets: one for a shard, the other for a task that copies.
pub(crate) fn socket_pair() -> io::Result<(TcpStream, TaskSocket)> {
    let (shards, tasks) = StdUnixStream::pair()?;
    shards.set_nonblocking(true)?;
    tasks.set_nonblocking(true)?;
    // A shard reads and writes the descriptor and asks for no property of TCP: the address is in `NewConnection`.
    let socket = UnixStream::from_std(tasks)?;
    let task_socket = TaskSocket { socket, _descriptors: StreamDescriptors::take() };
    Ok((TcpStream::from(OwnedFd::from(shards)), task_socket))
}

/// Copies between a shard's socket and the stream of a WebSocket until the shard closes. Nothing is allocated while both are
/// silent.
pub(crate) async fn copy(socket: TaskSocket, upgraded: Upgraded) {
    let TaskSocket { socket, _descriptors } = socket;
    let (mut from_peer, to_peer) = tokio::io::split(TokioIo::new(upgraded));
    let (from_shard, to_shard) = socket.into_split();
    let up = async {
        copy_up(&mut from_peer, to_shard).await;
        std::future::pending::<()>().await; // the shard closes its end
    };
    tokio::select! {
        () = copy_down(from_shard, to_peer) => {}
        () = up => {}
    }
}

/// The response that a shard writes to the socket that `open` gives it: its head as the one of a stream of HTTP/2, and its body.
///
/// # Errors
/// No sockets, or the shard closed before the end of a head.
pub(crate) async fn response_of_shard(open: impl FnOnce(TcpStream)) -> io::Result<Response<Body>> {
    let (socket, other) = socket_pair()?;
    open(socket);
    let mut received = Vec::new();
    loop {
        other.socket.readable().await?;
        match read_now(&other.socket) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Ok(bytes) if bytes.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => received.extend_from_slice(&bytes?),
        }
        if let Some((head, length)) = parse_head(&received)? {
            let early = Bytes::from(received.split_off(length));
            return Ok(head.map(|()| Body::new(ShardBody { socket: other, early })));
        }
    }
}

/// The head of a response of ours, and its length; `None` when it is not complete.
fn parse_head(bytes: &[u8]) -> io::Result<Option<(Response<()>, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let status = parsed.parse(bytes).map_err(|error| wrong(error.to_string()))?;
    let httparse::Status::Complete(length) = status else { return Ok(None) };
    let mut head = Response::builder().status(parsed.code.unwrap_or_default());
    // Headers about the connection are not allowed in a stream (RFC 9113 §8.2.2).
    let names_connection = |name: &str| name.eq_ignore_ascii_case("connection");
    for header in parsed.headers.iter().filter(|header| !names_connection(header.name)) {
        head = head.header(header.name, header.value);
    }
    let head = head.body(()).map_err(|error| wrong(error.to_string()))?;
    Ok(Some((head, length)))
}

/// The rest of what a shard writes to its socket. Dropping it ends the connection on the shard.
struct ShardBody {
    socket: TaskSocket,
    early: Bytes,
}

impl HttpBody for ShardBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if !self.early.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(mem::take(&mut self.early)))));
        }
        loop {
            ready!(self.socket.socket.poll_read_ready(context))?;
            return Poll::Ready(match read_now(&self.socket.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Ok(bytes) if bytes.is_empty() => None,
                bytes => Some(bytes.map(|bytes| Frame::data(bytes.into()))),
            });
        }
    }
}

async fn copy_down(from_shard: OwnedReadHalf, mut to_peer: WriteHalf<TokioIo<Upgraded>>) {
    while from_shard.readable().await.is_ok() {
        let bytes = match read_now(from_shard.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Ok(bytes) if !bytes.is_empty() => bytes,
            Ok(_) | Err(_) => break,
        };
        if to_peer.write_all(&bytes).await.is_err() || to_peer.flush().await.is_err() {
            return;
        }
    }
    let _ = to_peer.shutdown().await;
}

/// Reads what a readable socket has; returns no bytes at its end.
fn read_now(socket: &UnixStream) -> io::Result<Vec<u8>> {
    let mut space = [0; COPIED_BYTES];
    let length = socket.try_read(&mut space)?;
    Ok(space[..length].to_vec())
}

async fn copy_up(mut from_peer: impl AsyncRead + Unpin, mut to_shard: OwnedWriteHalf) {
    loop {
        let read = std::future::poll_fn(|context| {
            let mut space = [MaybeUninit::uninit(); COPIED_BYTES];
            let mut buffer = ReadBuf::uninit(&mut space);
            let polled = Pin::new(&mut from_peer).poll_read(context, &mut buffer);
            polled.map_ok(|()| buffer.filled().to_vec())
        });
        match read.await {
            Ok(bytes) if !bytes.is_empty() => {
                if to_shard.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Ok(_) | Err(_) => return, // dropping the half closes it
        }
    }
}

/// Returns when `stop` is true or its sender was dropped.
pub(crate) async fn stop_requested(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// More than any response of ours has.
const HEADERS_MAX: usize = 32;

/// Concurrent streams of one connection: a WebSocket is one of them (RFC 9113 §5.1.2 asks for 100 at least).
const STREAMS_MAX: u32 = 256;

/// Streams that a peer may reset before we look at them; the library ends a connection with more. It is above [`STREAMS_MAX`],
/// because a page that is left resets all of its requests at once. `frame_limit` ends floods (CVE-2023-44487).
const RESET_STREAMS_MAX: usize = 300;

/// The library ends a connection when too many small frames of DATA wait for their reader: each costs 256 bytes less its own of a
/// budget of half the window of the connection. With these a stream full of messages of no bytes, 5 with their prefix, has enough.
const SMALL_MESSAGES_STREAM_WINDOW: u32 = 64 << 10;
const SMALL_MESSAGES_CONNECTION_WINDOW: u32 = 8 << 20;

/// As for HTTP/1.1.
const HEADER_BYTES_MAX: u32 = 16 * 1024;

/// Bytes of one stream that wait for the peer's window; then its task waits, and the shard's queue counts.
const SEND_BUFFER_BYTES: usize = 64 * 1024;

/// Finds peers that are gone without a word.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PONG_TIMEOUT: Duration = Duration::from_secs(20);

/// The most that is copied at a time.
const COPIED_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests;
