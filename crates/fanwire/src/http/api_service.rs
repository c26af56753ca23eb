//! The server API on a listener: requests bypass the router, with back-pressure.
//! In: POST requests below the API's prefix → out: responses in one piece.
//! Uses `HttpApi` of the API; never reads a request beyond its method and path.
//! Changed here: back-pressure and its log line. The methods live in `api`, the time limit of a body in `edge::accept`.

use std::{future::poll_fn, net::SocketAddr, pin::pin, sync::Arc, time::Instant};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{
        HeaderValue, Method, Request, Response, StatusCode,
        header::{ALLOW, CONTENT_TYPE},
    },
    response::IntoResponse,
};
use fanwire_api::http::{ApiRoute, HttpApi};
use fanwire_telemetry::LogThrottle;
use tokio::time::timeout;

use fanwire_edge::{REQUEST_TIMEOUT, wait_for_shards};
use fanwire_fanout::Shards;
use fanwire_shard::{INBOX_BYTES_MAX, wake_shards_after};

/// The API, with back-pressure from the shards.
pub(crate) struct ApiService {
    pub http_api: HttpApi,
    /// [`HttpApi::stream_path`].
    pub(super) stream_path: String,
    pub shards: Arc<Shards>,
    /// Limits log lines about refused requests.
    pub(super) log_throttle: LogThrottle,
}

impl ApiService {
    /// The route of a request, if it belongs to the API.
    pub(super) fn route<B>(&self, request: &Request<B>) -> Option<ApiRoute> {
        if request.method() == Method::POST {
            self.http_api.route(request.uri().path())
        } else {
            None
        }
    }

    /// Executes a request and returns its response.
    ///
    /// Waits until the shards have caught up before it reads the body, so that publishers do not fill their inboxes. The
    /// method itself has no time limit: a client may repeat a request that got 408 (RFC 9110 §15.5.9), which would publish
    /// twice.
    pub(super) async fn answer<B>(
        &self,
        route: ApiRoute,
        request: Request<B>,
        peer: SocketAddr,
    ) -> Response<Bytes>
    where
        B: HttpBody<Data = Bytes>,
    {
        if !self.caught_up().await {
            return busy(&self.log_throttle, Instant::now());
        }
        match self.http_api.read(route, request, peer).await {
            Ok(request) => with_one_wake_up(self.http_api.answer(request)).await,
            Err(refused) => refused,
        }
    }

    /// The response to a request that no route serves: another HTTP method than POST, or a path that does not exist. Logs it
    /// if its path is one of the API.
    pub(super) fn refuse_route(
        &self,
        method: &Method,
        path: &str,
        peer: SocketAddr,
    ) -> Response<Body> {
        let (status, name, cause) = if self.http_api.paths().any(|known| known == path) {
            let cause = format!("the API is called with POST, not {method}");
            (StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed", cause)
        } else if let Some(cause) = self.http_api.unknown_path(path) {
            (StatusCode::NOT_FOUND, "Not Found", cause)
        } else {
            return no_page(method, path);
        };
        self.http_api.log_refused(status, path, &cause, peer);
        let mut response = (status, format!("{name}: {cause}\n")).into_response();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }

    /// Whether a request is a long one, whose body is a stream of commands.
    pub(super) fn is_stream<B>(&self, request: &Request<B>) -> bool {
        request.method() == Method::POST && request.uri().path() == self.stream_path
    }

    /// Whether the shards have caught up in time. Shards that have nothing to catch up with cost no timer.
    async fn caught_up(&self) -> bool {
        if self.shards.backlog_bytes() <= INBOX_BYTES_MAX {
            return true;
        }
        timeout(REQUEST_TIMEOUT, wait_for_shards(&self.shards)).await.is_ok()
    }
}

/// Runs a call. A sleeping shard is woken once for all publications that the call makes without waiting.
pub(crate) async fn with_one_wake_up<T>(call: impl Future<Output = T>) -> T {
    let mut call = pin!(call);
    poll_fn(|context| wake_shards_after(|| call.as_mut().poll(context))).await
}

/// The answer where nothing is served: people look at the root first, and get a line there.
pub(super) fn no_page(method: &Method, path: &str) -> Response<Body> {
    match (method, path) {
        (&Method::GET, "/") => ROOT.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The response to a request whose body did not arrive in time.
pub(super) fn late() -> Response<Bytes> {
    text_response(StatusCode::REQUEST_TIMEOUT, LATE)
}

/// The response when the shards did not catch up in time. Also logs it.
fn busy(log_throttle: &LogThrottle, now: Instant) -> Response<Bytes> {
    if let Some(repeats) = log_throttle.record("busy", now) {
        tracing::warn!(
            "refusing API requests with 503: the inbox of a shard held more than {} MiB for {} s{repeats}",
            INBOX_BYTES_MAX >> 20,
            REQUEST_TIMEOUT.as_secs()
        );
    }
    text_response(StatusCode::SERVICE_UNAVAILABLE, BUSY)
}

fn text_response(status: StatusCode, text: &'static str) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::from_static(text.as_bytes()));
    *answer.status_mut() = status;
    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}

const BUSY: &str = "the server is overloaded, the request was not executed\n";
const LATE: &str = "timed out reading the request\n";
const ROOT: &str =
    "Fanwire runs here. Clients connect by WebSocket, and there is no page at this address.\n";

#[cfg(test)]
mod tests;
