//! The HTTP client of the server and of `fanwire publish` (RFC 9112, RFC 9113, over TLS RFC 9110 §4.2.2).
//! In: a request with an `http` or `https` URL → out: the whole response within limits, or its head and a stream; or the error.
//! Uses hyper-util's client and its pool; follows no redirect, because another server must not choose where keys come from.
//! Changed here: limits of a request, which connections are kept, errors. Sockets are in `connector`; which servers are believed
//! is in `client`.

use std::{error::Error, fmt, io, iter, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited, combinators::UnsyncBoxBody};
use hyper::body::{Body, Incoming};
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::timeout;

use crate::Tls;
use connector::{Connector, server};

mod connector;

/// Sends requests with one set of TLS options. Clones share their connections.
#[derive(Clone, Debug)]
pub struct HttpsClient {
    client: Client<Connector, UnsyncBoxBody<Bytes, BoxError>>,
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

/// Settings of the connections between requests.
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions {
    /// Further connections are closed after their response. 0 = a connection for each request.
    pub idle_per_host_max: usize,
    /// Should be shorter than the time after which servers close an idle connection: a request that meets the close fails.
    pub idle_timeout: Duration,
    pub http2: Http2,
}

/// Use of HTTP/2, with one connection for all requests to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2 {
    Never,
    /// With TLS, if the server offers it.
    Negotiated,
    /// Without HTTP/1.1, also on sockets without TLS, as gRPC does.
    Only,
}

/// Why there is no response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// The URL is not one of `http` or `https` with a host.
    Url,
    /// The response was not complete in time.
    Timeout,
    /// The status is another one than 200.
    Status(StatusCode),
    /// The body is longer than its limit, or ended early.
    Body(Arc<dyn Error + Send + Sync>),
    /// The socket did not connect.
    Io(Arc<io::Error>),
    /// The TLS handshake failed.
    Tls(Arc<io::Error>),
    Http(Arc<legacy::Error>),
}

type BoxError = Box<dyn Error + Send + Sync>;

impl HttpsClient {
    /// Makes a client with a connection for each request.
    pub fn new(tls: Tls, limits: RequestLimits) -> Self {
        let idle_per_host_max = 0;
        let idle_timeout = Duration::ZERO;
        let http2 = Http2::Never;
        Self::pooled(tls, limits, PoolOptions { idle_per_host_max, idle_timeout, http2 })
    }

    /// Makes a client that keeps connections for further requests; it connects when a request is sent.
    pub fn pooled(tls: Tls, limits: RequestLimits, pool: PoolOptions) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(pool.idle_per_host_max)
            .pool_idle_timeout(pool.idle_timeout)
            .http2_only(pool.http2 == Http2::Only)
            .build(Connector::new(tls, limits.timeout, pool.http2));
        Self { client, limits }
    }

    /// Sends a request and returns its response, whatever its status.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn send<B>(&self, request: Request<B>) -> Result<Response<Bytes>, RequestError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let answer = async {
            let (head, body) = self.request(request).await?.into_parts();
            let body = Limited::new(body, self.limits.body_bytes_max)
                .collect()
                .await
                .map_err(|error| RequestError::Body(error.into()))?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        timeout(self.limits.timeout, answer).await.unwrap_or(Err(RequestError::Timeout))
    }

    /// Sends a request and returns the head of its response. Connecting alone has a time limit, and the body has no limit.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn request<B>(&self, request: Request<B>) -> Result<Response<Incoming>, RequestError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        server(request.uri())?;
        let mut request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        let agent = request.headers_mut().entry(header::USER_AGENT);
        agent.or_insert(HeaderValue::from_static(USER_AGENT));
        self.client.request(request).await.map_err(RequestError::from)
    }
}

impl From<legacy::Error> for RequestError {
    /// Finds the error of the connector again, if it is one.
    fn from(error: legacy::Error) -> Self {
        match error.source().and_then(|source| source.downcast_ref::<Self>()) {
            Some(of_connector) => of_connector.clone(),
            None => Self::Http(Arc::new(error)),
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url => f.write_str("not a valid URL"),
            Self::Timeout => f.write_str("no answer in time"),
            Self::Status(status) => write!(f, "the answer is {status}, expected 200"),
            Self::Body(error) => {
                f.write_str("the document was not received completely: ")?;
                with_causes(&**error, f)
            }
            Self::Io(error) | Self::Tls(error) => error.fmt(f),
            // The text of the outer error is the name of a step in the library.
            Self::Http(error) => with_causes(error.source().unwrap_or(&**error), f),
        }
    }
}

impl Error for RequestError {}

impl RequestError {
    /// Whether the server has said that it did not process the request, so that it may be sent again (RFC 9113 §8.7).
    pub fn is_unprocessed(&self) -> bool {
        let Self::Http(error) = self else { return false };
        let mut cause: Option<&(dyn Error + 'static)> = Some(&**error);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<h2::Error>() {
                let is_refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
                let is_graceful = error.reason() == Some(h2::Reason::NO_ERROR);
                return is_refused || error.is_go_away() && error.is_remote() && is_graceful;
            }
            cause = error.source();
        }
        false
    }
}

fn with_causes(error: &(dyn Error + 'static), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{error}")?;
    let mut causes = iter::successors(error.source(), |cause| (*cause).source());
    causes.try_for_each(|cause| write!(f, ": {cause}"))
}

const USER_AGENT: &str = concat!("fanwire/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests;
