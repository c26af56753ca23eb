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

/// The state that the responses depend on.
pub(super) struct PlainHttp {
    pub(super) challenge: Arc<Challenge>,
    /// The hosts that have certificates. Others are not redirected: a link to this port would lead anywhere.
    pub(super) names: Vec<Arc<str>>,
}

/// Serves until it is dropped.
pub(super) async fn serve(listener: TcpListener, plain_http: PlainHttp) {
    let plain_http = Arc::new(plain_http);
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let slot = slots.clone().acquire_owned().await.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok((socket, _)) => {
                let plain_http = plain_http.clone();
                tokio::spawn(async move {
                    // Slow peers and those that ended early need no log line.
                    let _ = timeout(CONNECTION_TIME, serve_connection(socket, plain_http)).await;
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

async fn serve_connection(socket: TcpStream, plain_http: Arc<PlainHttp>) -> hyper::Result<()> {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = answer(&request, &plain_http);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).max_buf_size(HEAD_BYTES_MAX);
    builder.serve_connection(TokioIo::new(socket), service).await
}

fn answer<B>(request: &Request<B>, plain_http: &PlainHttp) -> Response<Full<Bytes>> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if let Some(token) = request.uri().path().strip_prefix(PATH) {
        return match plain_http.challenge.document(token).filter(|_| is_read) {
            Some(document) => text(StatusCode::OK, document),
            None => text(StatusCode::NOT_FOUND, "no such challenge".to_owned()),
        };
    }
    match location(request, &plain_http.names).filter(|_| is_read) {
        Some(location) => {
            let mut response = text(StatusCode::FOUND, String::new());
            response.headers_mut().insert(header::LOCATION, location);
            response
        }
        None => text(StatusCode::BAD_REQUEST, "use https".to_owned()),
    }
}

/// The same resource at the standard port of https.
fn location<B>(request: &Request<B>, names: &[Arc<str>]) -> Option<HeaderValue> {
    let host = request.headers().get(header::HOST)?.to_str().ok()?.parse::<Authority>().ok()?;
    if !names.iter().any(|name| name.eq_ignore_ascii_case(host.host())) {
        return None;
    }
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
