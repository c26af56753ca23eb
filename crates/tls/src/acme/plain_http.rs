//! The plain HTTP listener of http-01 (RFC 8555 §8.3): the document of a challenge, and redirects to https for everything else.
//! In: a bound listener → out: one response for each connection.
//! Uses hyper. Never: the routes of the server.
//! Changed here: limits of these connections. The documents are in `challenge`.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, uri::Authority};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::challenge::{Challenge, PATH};

/// Serves until it is dropped.
pub(super) async fn serve(listener: TcpListener, challenge: Arc<Challenge>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let slot = slots.clone().acquire_owned().await.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok((socket, _)) => {
                let challenge = challenge.clone();
                tokio::spawn(async move {
                    // Slow peers and those that ended early need no log line.
                    let _ = timeout(CONNECTION_TIME, serve_connection(socket, challenge)).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "cannot accept connections at http_server.tls_autocert.http_addr, retrying");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve_connection(socket: TcpStream, challenge: Arc<Challenge>) -> hyper::Result<()> {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = answer(&request, &challenge);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).max_buf_size(HEAD_BYTES_MAX);
    builder.serve_connection(TokioIo::new(socket), service).await
}

fn answer<B>(request: &Request<B>, challenge: &Challenge) -> Response<Full<Bytes>> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if let Some(token) = request.uri().path().strip_prefix(PATH) {
        return match challenge.document(token).filter(|_| is_read) {
            Some(document) => text(StatusCode::OK, document),
            None => text(StatusCode::NOT_FOUND, "no such challenge".to_owned()),
        };
    }
    match location(request).filter(|_| is_read) {
        Some(location) => {
            let mut response = text(StatusCode::FOUND, String::new());
            response.headers_mut().insert(header::LOCATION, location);
            response
        }
        None => text(StatusCode::BAD_REQUEST, "use https".to_owned()),
    }
}

/// The same resource at the standard port of https.
fn location<B>(request: &Request<B>) -> Option<HeaderValue> {
    let host = request.headers().get(header::HOST)?.to_str().ok()?.parse::<Authority>().ok()?;
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    HeaderValue::from_str(&format!("https://{}{path}", host.host())).ok()
}

fn text(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Further connections wait in the backlog.
const CONNECTIONS_MAX: usize = 256;

/// From accept to close.
const CONNECTION_TIME: Duration = Duration::from_secs(10);

const HEAD_BYTES_MAX: usize = 16 * 1024;

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
