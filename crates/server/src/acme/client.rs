//! HTTPS requests to the authority (RFC 8555 §6.1), each on a connection of its own, with a time limit and a size limit.
//! In: requests of instant-acme → out: responses; the time that the last refusal asked to wait.
//! Uses hyper's client over our TLS; follows no redirect and speaks no plain HTTP.
//! Changed here: limits of a request. Which authorities are believed is in `crate::tls`.

use std::{error, fmt, future::Future, io, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Uri, header};
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, HttpClient};
use parking_lot::Mutex;
use tokio::{net::TcpStream, time::timeout};

use crate::tls::Tls;

/// Clones share their connections' settings and the time to wait.
#[derive(Clone, Debug)]
pub(super) struct HttpsClient(Arc<Requests>);

#[derive(Debug)]
struct Requests {
    tls: Tls,
    retry_after: Mutex<Option<Duration>>,
}

/// Why there is no response.
#[derive(Debug)]
pub(super) enum RequestError {
    /// Not an https URL with a host.
    Url,
    Timeout,
    Io(io::Error),
    Http(hyper::Error),
    /// Longer than [`BODY_BYTES_MAX`], or it ended early.
    Body(Box<dyn error::Error + Send + Sync>),
}

impl HttpsClient {
    pub(super) fn new(tls: Tls) -> Self {
        Self(Arc::new(Requests { tls, retry_after: Mutex::default() }))
    }

    /// The time that a refusal since the last call asked to wait.
    pub(super) fn take_retry_after(&self) -> Option<Duration> {
        self.0.retry_after.lock().take()
    }
}

impl HttpClient for HttpsClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, instant_acme::Error>> + Send>> {
        let requests = self.0.clone();
        Box::pin(async move {
            let answer = timeout(REQUEST_TIME, requests.exchange(request)).await;
            answer
                .unwrap_or(Err(RequestError::Timeout))
                .map_err(|error| instant_acme::Error::Other(Box::new(error)))
        })
    }
}

impl Requests {
    async fn exchange(
        &self,
        mut request: Request<BodyWrapper<Bytes>>,
    ) -> Result<BytesResponse, RequestError> {
        let uri = request.uri().clone();
        if uri.scheme_str() != Some("https") {
            return Err(RequestError::Url);
        }
        let host =
            uri.host().ok_or(RequestError::Url)?.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(443);
        let socket = TcpStream::connect((host, port)).await.map_err(RequestError::Io)?;
        let stream = self.tls.connect(host, socket).await.map_err(RequestError::Io)?;
        address(&mut request, &uri)?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(RequestError::Http)?;
        let fetch = async move {
            let (parts, body) =
                sender.send_request(request).await.map_err(RequestError::Http)?.into_parts();
            let body =
                Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(RequestError::Body)?;
            Ok((parts, body.to_bytes()))
        };
        // Both end together; an error of the connection also ends `fetch` with an error.
        let (answer, _) = tokio::join!(fetch, connection);
        let (parts, body) = answer?;
        if !parts.status.is_success()
            && let Some(seconds) = parts.headers.get(header::RETRY_AFTER)
        {
            let seconds = seconds.to_str().ok().and_then(|seconds| seconds.trim().parse().ok());
            *self.retry_after.lock() = seconds.map(Duration::from_secs);
        }
        Ok(BytesResponse { parts, body: Box::new(body) })
    }
}

/// Writes the URL as a request to its server has it (RFC 9112 §3.2.1).
fn address(request: &mut Request<BodyWrapper<Bytes>>, uri: &Uri) -> Result<(), RequestError> {
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
            Self::Url => f.write_str("not a valid https URL"),
            Self::Timeout => f.write_str("no answer in time"),
            Self::Io(error) => error.fmt(f),
            Self::Http(error) => error.fmt(f),
            Self::Body(error) => write!(f, "the answer was not received completely: {error}"),
        }
    }
}

impl error::Error for RequestError {}

/// From name resolution to the last byte.
const REQUEST_TIME: Duration = Duration::from_secs(30);

/// A directory, an order or a chain has a few KiB.
const BODY_BYTES_MAX: usize = 256 * 1024;

const USER_AGENT: &str = concat!("fanwire/", env!("CARGO_PKG_VERSION"));
