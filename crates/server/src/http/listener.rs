//! Accepting connections and speaking HTTP/1.1 on them (RFC 9112), with a limit on everything a slow peer could hold.
//! In: a bound listener and a router → out: served requests, until told to stop.
//! Uses hyper; never looks into a request but for what `host` asks of every one.
//! Changed here: limits before the handshake. Limits after it live in `shard`.

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{Router, body::Body, extract::ConnectInfo, response::IntoResponse};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};
use tower::util::ServiceExt;

use super::{
    host,
    patient::{Answering, Patience, Patient},
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

/// Accepts until `stop` says true, then waits for connections in the middle of a request: they finish it.
pub async fn serve(listener: TcpListener, router: Router, stop: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(HTTP_CONNECTIONS_MAX));
    let mut told = stop.clone();
    tokio::select! {
        () = accept(&listener, &router, &places, &stop) => {}
        () = told_to(&mut told) => {}
    }
    drop(listener);
    let all = u32::try_from(HTTP_CONNECTIONS_MAX).expect("a small number");
    let _everybody_left = tokio::time::timeout(FINISH_TIME, places.acquire_many(all)).await;
}

async fn accept(
    listener: &TcpListener,
    router: &Router,
    places: &Arc<Semaphore>,
    stop: &watch::Receiver<bool>,
) {
    let mut is_failing = false;
    loop {
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok((socket, peer)) => {
                is_failing = false;
                // Else the end of a long answer may wait until the peer has acknowledged what was sent before.
                let _ = socket.set_nodelay(true);
                let (router, stop) = (router.clone(), stop.clone());
                let patience = patience(places.available_permits());
                tokio::spawn(async move {
                    speak(socket, peer, router, stop, patience).await;
                    drop(place);
                });
            }
            Err(error) => {
                // Out of descriptors, most likely: wait until some are closed instead of spinning.
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!(%error, "{}", refusal(&error));
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
    router: Router,
    mut stop: watch::Receiver<bool>,
    patience: Patience,
) {
    let is_answering = Arc::default();
    let socket = Patient::new(socket, patience, Arc::clone(&is_answering));
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        let answering = Answering::begin(&is_answering);
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = host::check(request.version(), request.headers())
            .map(|()| router.clone().oneshot(request.map(Body::new)));
        async move {
            let answer = match answer {
                Ok(answer) => answer.await.unwrap_or_else(|never| match never {}),
                Err(refusal) => refusal.into_response(),
            };
            drop(answering);
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    tokio::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = told_to(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, %peer, "HTTP connection ended early");
    }
}

/// How long a new connection may take. While places are scarce peers get less time, so that many slow or silent ones
/// ("slow loris") keep others out for a short while only.
fn patience(places_free: usize) -> Patience {
    let (head, idle) = match places_free < HTTP_CONNECTIONS_MAX / 2 {
        true => (TIMEOUT_SCARCE, TIMEOUT_SCARCE),
        false => (HEAD_TIMEOUT, IDLE_TIMEOUT),
    };
    Patience { head, idle, write: WRITE_TIMEOUT }
}

/// Returns when `stop` says true, or nobody is left who could say it.
async fn told_to(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

const BACKLOG: i32 = 4096;

/// Connections that speak HTTP at the same time; established WebSockets do not count. Further ones wait in the backlog.
const HTTP_CONNECTIONS_MAX: usize = 10_000;

/// A whole request head must have come by then (Centrifugo: 10 s).
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Between requests. Backends keep connections in pools, often for 90 s, and end them themselves.
const IDLE_TIMEOUT: Duration = Duration::from_secs(180);

/// Both of these while more than half of the places are taken.
const TIMEOUT_SCARCE: Duration = Duration::from_secs(2);

/// A peer that takes nothing of an answer for so long is given up: it would keep its place for ever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Request head and read buffer of one HTTP connection.
const HEADER_BYTES_MAX: usize = 16 * 1024;

/// What requests get to finish when the server stops; a peer in the middle of a head counts as one.
const FINISH_TIME: Duration = Duration::from_secs(5);

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_get_less_time_while_places_are_scarce() {
        let ample = Patience { head: HEAD_TIMEOUT, idle: IDLE_TIMEOUT, write: WRITE_TIMEOUT };
        let scarce = Patience { head: TIMEOUT_SCARCE, idle: TIMEOUT_SCARCE, ..ample };
        assert_eq!(patience(HTTP_CONNECTIONS_MAX), ample);
        assert_eq!(patience(HTTP_CONNECTIONS_MAX / 2), ample);
        assert_eq!(patience(HTTP_CONNECTIONS_MAX / 2 - 1), scarce);
        assert_eq!(patience(0), scarce);
    }
}
