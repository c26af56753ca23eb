//! One GET of a small document over HTTP/1.1 (RFC 9110 §9.3.1), with a time limit and a size limit.
//! In: an `http` or `https` URL → out: the body of a 200 response, or the error.
//! Uses hyper's client on a connection of its own; follows no redirect, because another server must not choose where keys come from.
//! Changed here: the request and the accepted responses. Certificates are in `crate::tls`.

use std::{error::Error, fmt, time::Duration};

use axum::body::Body;
use fanwire_auth::KEY_SET_BYTES_MAX;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};

use crate::config::TlsOptions;
use crate::tls::{Tls, TlsError};

/// Fetches documents with one set of TLS options.
#[derive(Debug)]
pub(super) struct Origin {
    tls: Tls,
    /// Limit of one attempt, from name resolution to the last byte.
    attempt_timeout: Duration,
}

/// Why a fetch failed.
#[derive(Debug)]
pub(super) enum GetError {
    /// The URL is invalid.
    Address,
    /// The response was not complete in time.
    Timeout,
    Status(StatusCode),
    /// The body is longer than `KEY_SET_BYTES_MAX`, or ended early.
    Body(Box<dyn Error + Send + Sync>),
    Io(std::io::Error),
    Http(hyper::Error),
}

impl Origin {
    pub(super) fn new(options: &TlsOptions, attempt_timeout: Duration) -> Result<Self, TlsError> {
        Ok(Self { tls: Tls::new(options)?, attempt_timeout })
    }

    /// Fetches with at most `attempts` attempts.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub(super) async fn get_within(&self, url: &str, attempts: usize) -> Result<Vec<u8>, GetError> {
        let mut last = GetError::Timeout;
        for _ in 0..attempts {
            match timeout(self.attempt_timeout, self.get(url)).await {
                Ok(Ok(body)) => return Ok(body),
                Ok(Err(error)) => last = error,
                Err(_) => last = GetError::Timeout,
            }
        }
        Err(last)
    }

    async fn get(&self, url: &str) -> Result<Vec<u8>, GetError> {
        let uri: Uri = url.parse().map_err(|_| GetError::Address)?;
        let (scheme, host) = uri.scheme_str().zip(uri.host()).ok_or(GetError::Address)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_https = scheme == "https";
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let socket = TcpStream::connect((host, port)).await.map_err(GetError::Io)?;
        if is_https {
            let secure = self.tls.connect(host, socket).await.map_err(GetError::Io)?;
            return exchange(secure, &uri).await;
        }
        exchange(socket, &uri).await
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    uri: &Uri,
) -> Result<Vec<u8>, GetError> {
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(GetError::Http)?;
    let fetch = async move {
        let response = sender.send_request(request(uri)?).await.map_err(GetError::Http)?;
        if response.status() != StatusCode::OK {
            return Err(GetError::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), KEY_SET_BYTES_MAX);
        Ok(body.collect().await.map_err(GetError::Body)?.to_bytes().to_vec())
    };
    // Both end together; an error of the connection also ends `fetch` with an error.
    let (answer, _) = tokio::join!(fetch, connection);
    answer
}

fn request(uri: &Uri) -> Result<Request<Body>, GetError> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let host = uri.authority().map_or("", |authority| authority.as_str());
    Request::get(path)
        .header(header::HOST, host)
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, concat!("fanwire/", env!("CARGO_PKG_VERSION")))
        .header(header::CONNECTION, "close")
        .body(Body::empty())
        .map_err(|_| GetError::Address)
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => f.write_str("not a valid URL"),
            Self::Timeout => f.write_str("no answer in time"),
            Self::Status(status) => write!(f, "the answer is {status}, expected 200"),
            Self::Body(error) => write!(f, "the document was not received completely: {error}"),
            Self::Io(error) => error.fmt(f),
            Self::Http(error) => error.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
