//! The HTTP client of the server and of `fanwire publish` (RFC 9112, over TLS RFC 9110 §4.2.2): one request on a connection of its own.
//! In: a request with an `http` or `https` URL → out: the whole response within limits, or the connection; or the error.
//! Uses hyper's client; follows no redirect, because another server must not choose where keys come from.
//! Changed here: limits of a request, and how it is addressed. Which servers are believed is in `client`.

use std::{error::Error, fmt, io, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Limited};
use hyper::{
    body::Body,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};

use crate::Tls;

/// Sends requests with one set of TLS options.
#[derive(Debug)]
pub struct HttpsClient {
    tls: Tls,
    limits: RequestLimits,
}

/// Limits of one request.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// The time from name resolution to the last byte.
    pub timeout: Duration,
    /// The longest body of a response.
    pub body_bytes_max: usize,
}

/// Why there is no response.
#[derive(Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// The URL is not one of `http` or `https` with a host.
    Url,
    /// The response was not complete in time.
    Timeout,
    /// The status is another one than 200.
    Status(StatusCode),
    /// The body is longer than its limit, or ended early.
    Body(Box<dyn Error + Send + Sync>),
    /// The socket did not connect.
    Io(io::Error),
    /// The TLS handshake failed.
    Tls(io::Error),
    Http(hyper::Error),
}

impl HttpsClient {
    /// Makes a client; it connects when a request is sent.
    pub fn new(tls: Tls, limits: RequestLimits) -> Self {
        Self { tls, limits }
    }

    /// Sends a request and returns its response, whatever its status.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn send<B>(&self, request: Request<B>) -> Result<Response<Bytes>, RequestError>
    where
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
    {
        let answer = timeout(self.limits.timeout, self.send_now(request)).await;
        answer.unwrap_or(Err(RequestError::Timeout))
    }

    async fn send_now<B>(&self, mut request: Request<B>) -> Result<Response<Bytes>, RequestError>
    where
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
    {
        let uri = request.uri().clone();
        let (mut sender, connection) = connect(&uri, Some(&self.tls)).await?;
        address(&mut request, &uri)?;
        let fetch = async move {
            let response = sender.send_request(request).await.map_err(RequestError::Http)?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, self.limits.body_bytes_max).collect().await;
            Ok(Response::from_parts(head, body.map_err(RequestError::Body)?.to_bytes()))
        };
        // Both end together; an error of the connection also ends `fetch` with an error.
        let (answer, _) = tokio::join!(fetch, connection);
        answer
    }
}

/// Connects to the server of a URL. Requests proceed while the second half is polled, which ends after the sender.
///
/// # Errors
/// [`RequestError::Url`], also for `https` without `tls`; `Io`, `Tls`, `Http`.
pub async fn connect<B>(
    uri: &Uri,
    tls: Option<&Tls>,
) -> Result<(SendRequest<B>, impl Future<Output = hyper::Result<()>> + use<B>), RequestError>
where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    let host = uri.host().ok_or(RequestError::Url)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let (tls, default_port) = match uri.scheme_str() {
        Some("https") => (Some(tls.ok_or(RequestError::Url)?), 443),
        Some("http") => (None, 80),
        _ => return Err(RequestError::Url),
    };
    let port = uri.port_u16().unwrap_or(default_port);
    let socket = TcpStream::connect((host, port)).await.map_err(RequestError::Io)?;
    let stream: Box<dyn PlainOrTls> = match tls {
        Some(tls) => Box::new(tls.connect(host, socket).await.map_err(RequestError::Tls)?),
        None => Box::new(socket),
    };
    http1::handshake(TokioIo::new(stream)).await.map_err(RequestError::Http)
}

/// A connected socket, with TLS or without.
trait PlainOrTls: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> PlainOrTls for S {}

/// Writes the URL as a request to its server has it (RFC 9112 §3.2.1).
fn address<B>(request: &mut Request<B>, uri: &Uri) -> Result<(), RequestError> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().map_err(|_| RequestError::Url)?;
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let headers = request.headers_mut();
    headers.insert(header::HOST, HeaderValue::from_str(host).map_err(|_| RequestError::Url)?);
    headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(())
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url => f.write_str("not a valid URL"),
            Self::Timeout => f.write_str("no answer in time"),
            Self::Status(status) => write!(f, "the answer is {status}, expected 200"),
            Self::Body(error) => write!(f, "the document was not received completely: {error}"),
            Self::Io(error) | Self::Tls(error) => error.fmt(f),
            Self::Http(error) => error.fmt(f),
        }
    }
}

impl Error for RequestError {}

const USER_AGENT: &str = concat!("fanwire/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests;
