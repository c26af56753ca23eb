//! The HTTP form of the server API: one POST path per method.
//! In: HTTP requests with JSON bodies. Out: JSON replies, or plain text for requests that are refused (`request`).
//! Uses `Api` and the types of `http`; never the node itself, never a router: routing costs as much as a publish.
//! Changed here: calls over HTTP. Methods are in `method/NAME.rs`; authentication and body limit in `request`, forms in `reply`, error texts in `body_error`, the old path in `legacy`.

mod body_error;
mod legacy;
pub(crate) mod reply;
pub(crate) mod request;
mod unknown_path;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use axum::body::HttpBody;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};

use crate::counters::RequestErrorKind;
use crate::refusals::Named;
use crate::stream::Lines;
use crate::{Api, Command, KeyHolder, Method, traced};
use reply::Reply;
use request::RequestError;

/// The API over HTTP.
pub struct HttpApi {
    api: Arc<Api>,
    prefix: String,
}

/// The route of a path of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiRoute {
    /// `PREFIX/NAME`.
    Method(Method),
    /// The prefix alone: the body names the method.
    Legacy,
}

/// An authenticated request with its body.
pub struct ApiRequest {
    route: ApiRoute,
    headers: HeaderMap,
    body: Bytes,
    peer: SocketAddr,
    caller: Arc<KeyHolder>,
}

/// One call of a method: its request, and whose key it has.
struct MethodCall<'a> {
    method: Method,
    text: &'a str,
    headers: &'a HeaderMap,
    peer: SocketAddr,
    caller: &'a KeyHolder,
}

impl ApiRoute {
    fn name(self) -> &'static str {
        match self {
            Self::Method(method) => method.name(),
            Self::Legacy => "legacy",
        }
    }
}

impl HttpApi {
    /// Serves `api` below the prefix of its options.
    pub fn new(api: Arc<Api>) -> Self {
        let prefix = bare_prefix(&api.options.handler_prefix);
        Self { api, prefix }
    }

    /// All paths.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        let root = if self.prefix.is_empty() { "/" } else { &self.prefix };
        let methods = Method::ALL.map(|method| self.path(method));
        methods.into_iter().chain([root.to_owned(), self.stream_path()])
    }

    /// The path of publish.
    pub fn publish_path(&self) -> String {
        self.path(Method::Publish)
    }

    fn path(&self, method: Method) -> String {
        format!("{}/{}", self.prefix, method.name())
    }

    /// The path of long requests whose body is a stream of commands.
    pub fn stream_path(&self) -> String {
        format!("{}/stream", self.prefix)
    }

    /// Authenticates a request to [`stream_path`](Self::stream_path).
    ///
    /// # Errors
    /// The response to one without a valid key.
    pub fn authorize_stream<B>(
        &self,
        request: &Request<B>,
        peer: SocketAddr,
    ) -> Result<Arc<KeyHolder>, Box<Response<Bytes>>> {
        let authorized = request::authorize(&self.api, request.headers(), request.uri());
        authorized.map_err(|error| Box::new(self.refused(error, "stream", peer)))
    }

    /// Checks that the key of a request to an endpoint outside the API permits `method` in a channel. Counts it as a call.
    ///
    /// # Errors
    /// The status and the text of the refusal: 401, 403, 429, or 503 while the server stops.
    pub fn permit<B>(
        &self,
        request: &Request<B>,
        method: Method,
        channel: &str,
    ) -> Result<(), (StatusCode, String)> {
        let holder = request::authorize(&self.api, request.headers(), request.uri())
            .map_err(|error| (error.status(), error.cause().into_owned()))?;
        let namespace = self.api.node.namespace_of(channel);
        let checked = holder.check(method, std::iter::once(Some(namespace)), Instant::now());
        checked.map_err(|error| {
            let status = StatusCode::from_u16(error.http_status);
            (status.unwrap_or(StatusCode::FORBIDDEN), error.to_string())
        })
    }

    /// Counts and logs a request that an endpoint outside the API refused.
    pub fn record_refused(&self, status: StatusCode, method: &str, cause: &str, peer: SocketAddr) {
        let reason = match status {
            StatusCode::UNAUTHORIZED => Some(RequestErrorKind::Unauthorized),
            StatusCode::BAD_REQUEST => Some(RequestErrorKind::Malformed),
            StatusCode::PAYLOAD_TOO_LARGE => Some(RequestErrorKind::TooLarge),
            _ => None,
        };
        reason.into_iter().for_each(|reason| self.api.counters().record_refusal(reason));
        self.log_refused(status, method, cause, peer);
    }

    /// A splitter for the body of such a request.
    pub fn lines(&self) -> Lines {
        Lines::new(self.api.options.body_bytes_max)
    }

    /// The methods behind the paths.
    pub fn api(&self) -> &Arc<Api> {
        &self.api
    }

    /// The route of a path, if it belongs to the API. The caller checks that the HTTP method is POST.
    pub fn route(&self, path: &str) -> Option<ApiRoute> {
        let rest = path.strip_prefix(self.prefix.as_str())?;
        match rest.strip_prefix('/') {
            None if rest.is_empty() => Some(ApiRoute::Legacy),
            None => None,
            Some("") if self.prefix.is_empty() => Some(ApiRoute::Legacy),
            Some(name) => Method::of_name(name).map(ApiRoute::Method),
        }
    }

    /// Authenticates a request and reads its body.
    ///
    /// # Errors
    /// The response to a request without a valid key, or whose body cannot be read.
    pub async fn read<B>(
        &self,
        route: ApiRoute,
        request: Request<B>,
        peer: SocketAddr,
    ) -> Result<ApiRequest, Response<Bytes>>
    where
        B: HttpBody<Data = Bytes>,
    {
        let (Parts { headers, uri, .. }, body) = request.into_parts();
        match request::receive(&self.api, &headers, &uri, body).await {
            Ok((caller, body)) => Ok(ApiRequest { route, headers, body, peer, caller }),
            Err(error) => Err(self.refused(error, route.name(), peer)),
        }
    }

    /// Executes a request and returns its response.
    pub async fn answer(
        &self,
        ApiRequest { route, mut headers, body, peer, caller }: ApiRequest,
    ) -> Response<Bytes> {
        let answer = self.run(route, &body, &headers, peer, &caller).await;
        match answer {
            Ok(reply) => {
                // Reuses the request's map: hyper also parses the next request of the connection into it.
                headers.clear();
                response(reply, headers)
            }
            Err(error) => self.refused(error, route.name(), peer),
        }
    }

    /// Publishes to an engine in memory, which waits for nothing, on a thread that must not be busy for long. `None` if something
    /// is wrong with the request; then nothing was executed, and [`read`](Self::read) and [`answer`](Self::answer) have the response.
    pub fn publish_in_memory(
        &self,
        head: &Parts,
        body: &[u8],
        peer: SocketAddr,
    ) -> Option<Response<Bytes>> {
        let method = Method::Publish;
        let caller = request::authorize(&self.api, &head.headers, &head.uri).ok()?;
        let is_allowed = body.len() <= self.api.options.body_bytes_max;
        let text = str::from_utf8(body).ok().filter(|_| is_allowed)?;
        let command = method.decode(text).ok()?;
        let call = MethodCall { method, text, headers: &head.headers, peer, caller: &caller };
        let executed = pin!(self.execute(call, command));
        let Poll::Ready(reply) = executed.poll(&mut Context::from_waker(Waker::noop())) else {
            unreachable!("an engine in memory answers a publish at once");
        };
        Some(response(reply, HeaderMap::new()))
    }

    /// Executes the commands of a body in the form of the old path, for a caller that was authenticated in another way;
    /// `reads_only` permits methods alone that change nothing.
    pub async fn answer_admin(
        &self,
        body: &[u8],
        peer: SocketAddr,
        reads_only: bool,
    ) -> Response<Bytes> {
        let admin = KeyHolder::default();
        let permits = if reads_only { Method::is_read_only } else { |_: Method| true };
        let reply = match str::from_utf8(body) {
            Ok(text) => legacy::run(&self.api, text, permits, &admin).await,
            Err(error) => Err(RequestError::Malformed(format!("the body is not UTF-8: {error}"))),
        };
        match reply {
            Ok(reply) => response(reply, HeaderMap::new()),
            Err(error) => self.refused(error, "admin", peer),
        }
    }

    /// Logs a request that was refused before a method was called. `method` may be any text.
    pub fn log_refused(&self, status: StatusCode, method: &str, cause: &str, peer: SocketAddr) {
        self.api.log_refused(status, method, cause, peer);
    }

    fn refused(&self, error: RequestError, method: &str, peer: SocketAddr) -> Response<Bytes> {
        error.record(self.api.counters());
        self.log_refused(error.status(), method, &error.cause(), peer);
        error.response()
    }

    async fn run(
        &self,
        route: ApiRoute,
        body: &Bytes,
        headers: &HeaderMap,
        peer: SocketAddr,
        caller: &KeyHolder,
    ) -> Result<Reply, RequestError> {
        // JSON is UTF-8 (RFC 8259 §8.1), also in the fields that are ignored.
        let text = str::from_utf8(body)
            .map_err(|error| RequestError::Malformed(format!("the body is not UTF-8: {error}")))?;
        match route {
            ApiRoute::Method(method) => {
                let wrong = |error| RequestError::Malformed(body_error::describe(text, &error));
                let command = method.decode(text).map_err(wrong)?;
                let call = MethodCall { method, text, headers, peer, caller };
                Ok(self.execute(call, command).await)
            }
            ApiRoute::Legacy => legacy::run(&self.api, text, |_| true, caller).await,
        }
    }

    async fn execute(&self, call: MethodCall<'_>, mut command: Command) -> Reply {
        let MethodCall { method, text, headers, peer, caller } = call;
        command.write_replies_by(reply::text);
        let path = |name: &str| format!("{}/{name}", self.prefix);
        let outcome = traced::run(&self.api, caller, command, headers, path).await;
        if let Err(error) = &outcome {
            let named = || Named::in_json(text);
            self.api.log_error(method.name(), error, named, Some(peer), &caller.name);
        }
        reply::reply(outcome, self.api.options.error_mode, headers)
    }
}

/// A response with JSON, in an empty map of headers.
fn response(Reply { status, json }: Reply, mut headers: HeaderMap) -> Response<Bytes> {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut response = Response::new(Bytes::from(json));
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    response
}

/// The configured prefix with a leading slash and no trailing one; "" for an empty prefix.
pub(crate) fn bare_prefix(configured: &str) -> String {
    let bare = configured.trim_matches('/');
    if bare.is_empty() { String::new() } else { format!("/{bare}") }
}

#[cfg(test)]
mod tests;
