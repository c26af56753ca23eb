//! Accepting connections and speaking HTTP/1.1 on them (RFC 9112), with a limit on everything a slow peer could hold.
//! In: a bound listener and a root_service → out: served requests, until told to stop.
//! Uses hyper; never looks into a request.
//! Changed here: limits before the handshake. Limits after it live in `shard`.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use axum::BoxError;
use fanwire_telemetry::LogThrottle;
use hyper::{
    Request,
    body::{Body, Incoming},
    server::conn::http1::{self, UpgradeableConnection},
    service::{HttpService, service_fn},
};
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};

use super::{
    exchange::Exchange,
    root_service::RootService,
    timeout_stream::{Linger, Patience, TimeoutStream},
};

/// Binds an address with a long accept queue, so that a wave of reconnects is not refused.
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

/// All addresses of this machine: IPv6 with IPv4 inside where the kernel has it, else IPv4.
pub fn any_address() -> IpAddr {
    let has_v6 = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, None).is_ok();
    if has_v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// Accepts until `stop` says true, then waits for connections in the middle of a request: they finish it. There are 10,000
/// at once, or `places` if that is less.
pub async fn serve(
    listener: TcpListener,
    root_service: RootService,
    places: usize,
    stop: watch::Receiver<bool>,
) {
    let places = Places::new(places.min(HTTP_CONNECTIONS_MAX));
    let root_service = Arc::new(root_service);
    let mut told = stop.clone();
    tokio::select! {
        () = accept(&listener, &root_service, &places, &stop) => {}
        () = told_to(&mut told) => {}
    }
    drop(listener);
    let all = u32::try_from(places.all).expect("a small number");
    let _everybody_left = tokio::time::timeout(FINISH_TIME, places.free.acquire_many(all)).await;
}

/// For connections that speak HTTP.
struct Places {
    all: usize,
    free: Arc<Semaphore>,
}

impl Places {
    fn new(all: usize) -> Self {
        Self { all, free: Arc::new(Semaphore::new(all)) }
    }

    /// How long a new connection may take. While places are scarce peers get less time, so that many slow or silent ones
    /// ("slow loris") keep others out for a short while only.
    fn patience(&self) -> Patience {
        let is_scarce = self.free.available_permits() < self.all / 2;
        let limit = |time: Duration| if is_scarce { time.min(TIMEOUT_SCARCE) } else { time };
        let (time, silence) = (limit(LINGER_TIME), limit(LINGER_SILENCE));
        Patience {
            head: limit(HEAD_TIMEOUT),
            idle: limit(IDLE_TIMEOUT),
            write: WRITE_TIMEOUT,
            linger: Linger {
                time,
                silence,
                bytes: LINGER_BYTES_MAX,
                head_bytes: LINGER_HEAD_BYTES_MAX,
            },
        }
    }
}

async fn accept(
    listener: &TcpListener,
    root_service: &Arc<RootService>,
    places: &Places,
    stop: &watch::Receiver<bool>,
) {
    let told = LogThrottle::default();
    loop {
        let place =
            places.free.clone().acquire_owned().await.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok((socket, peer)) => {
                // Else the end of a long answer may wait until the peer has acknowledged what was sent before.
                let _ = socket.set_nodelay(true);
                let (root_service, stop) = (root_service.clone(), stop.clone());
                let patience = places.patience();
                tokio::spawn(async move {
                    speak(socket, peer, root_service, stop, patience).await;
                    drop(place);
                });
            }
            // Its peer gave up in the backlog: nothing that a pause would mend.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                // Out of descriptors, most likely: wait until some are closed instead of spinning.
                if let Some(cases) = told.happens("accept", Instant::now()) {
                    tracing::warn!(%error, "{}{cases}", refusal(&error));
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// What the log says of an accept that failed.
fn refusal(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => {
            "cannot accept connections, trying again: each takes a descriptor; let this process have more (ulimit -Hn, \
             LimitNOFILE= of a unit), or set client.connection_limit"
        }
        Some(Errno::NFILE) => {
            "cannot accept connections, trying again: the machine is out of descriptors (fs.file-max)"
        }
        _ => "cannot accept connections, trying again",
    }
}

async fn speak(
    socket: TcpStream,
    peer: SocketAddr,
    root_service: Arc<RootService>,
    stop: watch::Receiver<bool>,
    patience: Patience,
) {
    let exchange = Arc::<Exchange>::default();
    let socket = TimeoutStream::new(socket, patience, Arc::clone(&exchange));
    let service = service_fn({
        let exchange = exchange.clone();
        move |request: Request<Incoming>| {
            let (request, answering) = exchange.begin_answer(request);
            let root_service = root_service.clone();
            async move {
                let answer = root_service.answer(request, peer).await;
                answering.end(answer.status());
                Ok::<_, Infallible>(answer)
            }
        }
    });
    let connection = http1::Builder::new()
        .max_buf_size(HEADER_BYTES_MAX)
        // Who has said all it wants to say, and says so, gets its answer. And hyper, which would look for that while a request
        // is answered, does not take another buffer to read into each time.
        .half_close(true)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    if let Err(error) = finished(connection, stop).await {
        tracing::debug!(%error, %peer, "HTTP connection ended early");
    }
    // Where a request asked for an upgrade, hyper gives the socket away instead of closing it, whatever the answer was.
    if let Some(refused) = exchange.refused_upgrade()
        && let Ok(upgraded) = refused.await
    {
        // Its peer may be gone.
        let _ = TokioIo::new(upgraded).shutdown().await;
    }
}

/// Serves a connection to its end; when `stop` says true, to the end of its request.
async fn finished<S, B>(
    connection: UpgradeableConnection<TokioIo<TimeoutStream<TcpStream>>, S>,
    mut stop: watch::Receiver<bool>,
) -> hyper::Result<()>
where
    S: HttpService<Incoming, ResBody = B, Error = Infallible>,
    B: Body + 'static,
    B::Error: Into<BoxError>,
{
    tokio::pin!(connection);
    let look = stop.clone();
    let mut told = pin!(told_to(&mut stop));
    let mut is_listening = false;
    let spoken = poll_fn(|context| {
        if let Poll::Ready(result) = connection.as_mut().poll(context) {
            return Poll::Ready(Some(result));
        }
        // It wakes this task, always the same, by itself once it was asked: until then a look costs less.
        if is_listening && look.has_changed().is_ok_and(|changed| !changed) {
            return Poll::Pending;
        }
        is_listening = true;
        told.as_mut().poll(context).map(|()| None)
    });
    if let Some(result) = spoken.await {
        return result;
    }
    connection.as_mut().graceful_shutdown();
    connection.await
}

/// Returns when `stop` says true, or nobody is left who could say it.
async fn told_to(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

const BACKLOG: i32 = 4096;

/// Connections that speak HTTP at the same time; established WebSockets do not count. Further ones wait in the backlog.
pub const HTTP_CONNECTIONS_MAX: usize = 10_000;

/// A whole request head must have come by then (Centrifugo: 10 s).
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Between requests. Backends keep connections in pools, often for 90 s, and end them themselves.
const IDLE_TIMEOUT: Duration = Duration::from_secs(180);

/// Behind an answer that was given before its request was read (413, 401 and others), what comes is discarded for so long at
/// most, as long as a body may take that is read.
const LINGER_TIME: Duration = Duration::from_secs(30);

/// The same when nothing comes (nginx: `lingering_timeout`).
const LINGER_SILENCE: Duration = Duration::from_secs(5);

/// The same in bytes: four times the longest body that the API reads by default.
const LINGER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The same for a head that was refused before its end (431).
const LINGER_HEAD_BYTES_MAX: u64 = 1024 * 1024;

/// The most of each time above while more than half of the places are taken.
const TIMEOUT_SCARCE: Duration = Duration::from_secs(2);

/// A peer that takes nothing of an answer for so long is given up: it would keep its place for ever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Request head and read buffer of one HTTP connection.
const HEADER_BYTES_MAX: usize = 16 * 1024;

/// What requests get to finish when the server stops; a peer in the middle of a head counts as one.
const FINISH_TIME: Duration = Duration::from_secs(5);

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
