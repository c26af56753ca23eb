//! The HTTP face of the server API: one POST path per method.
//! In: HTTP requests with JSON bodies. Out: JSON replies, or plain text when the door refuses (`door`).
//! Uses `Api` and the types of `http`; never the node itself, never a router: one costs a call as much as publishing.
//! What a method does is changed in `method/NAME.rs`; keys in `door`, shapes in `reply`, words in `fault`, the old path in `legacy`.

mod door;
mod fault;
mod legacy;
mod reply;

use std::sync::Arc;

use axum::body::HttpBody;
use bytes::Bytes;
use fanwire_node::protocol::without_halves;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response};

use crate::{Api, Command, Method};
use door::Refusal;
use reply::Reply;

/// The API over HTTP.
pub struct HttpApi {
    api: Arc<Api>,
    prefix: String,
}

/// What a path of the API asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiRoute {
    /// `PREFIX/NAME`.
    Method(Method),
    /// The prefix alone: the method is named in the body.
    Legacy,
}

/// A request that was read and let in.
pub struct ApiRequest {
    route: ApiRoute,
    headers: HeaderMap,
    body: Bytes,
}

impl HttpApi {
    /// The face of `api`, below the prefix of its options.
    pub fn new(api: Arc<Api>) -> Self {
        let prefix = bare_prefix(&api.options.handler_prefix);
        Self { api, prefix }
    }

    /// All paths.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        let root = if self.prefix.is_empty() { "/" } else { &self.prefix };
        let methods = Method::ALL.map(|method| format!("{}/{}", self.prefix, method.name()));
        methods.into_iter().chain([root.to_owned()])
    }

    /// What a path asks for, if it is one of them. Only POST does.
    pub fn route(&self, path: &str) -> Option<ApiRoute> {
        let rest = path.strip_prefix(self.prefix.as_str())?;
        match rest.strip_prefix('/') {
            None => rest.is_empty().then_some(ApiRoute::Legacy),
            Some("") if self.prefix.is_empty() => Some(ApiRoute::Legacy),
            Some(name) => Method::of_name(name).map(ApiRoute::Method),
        }
    }

    /// Reads what a request asks at a route.
    ///
    /// # Errors
    /// The answer to one that is not let in, or whose body cannot be had.
    pub async fn read<B>(
        &self,
        route: ApiRoute,
        request: Request<B>,
    ) -> Result<ApiRequest, Response<Bytes>>
    where
        B: HttpBody<Data = Bytes>,
    {
        let (Parts { headers, uri, .. }, body) = request.into_parts();
        match door::receive(&self.api, (&headers, &uri), body).await {
            Ok(body) => Ok(ApiRequest { route, headers, body }),
            Err(refusal) => Err(self.refused(refusal)),
        }
    }

    /// Does what was asked, and answers.
    pub async fn answer(
        &self,
        ApiRequest { route, mut headers, body }: ApiRequest,
    ) -> Response<Bytes> {
        let answer = self.run(route, &body, &headers).await;
        match answer {
            Ok(Reply { status, json }) => {
                // The map has room already, and after this answer hyper reads the next request's headers into it.
                headers.clear();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                let mut response = Response::new(Bytes::from(json));
                (*response.status_mut(), *response.headers_mut()) = (status, headers);
                response
            }
            Err(refusal) => self.refused(refusal),
        }
    }

    fn refused(&self, refusal: Refusal) -> Response<Bytes> {
        refusal.record(self.api.counters());
        refusal.response()
    }

    async fn run(
        &self,
        route: ApiRoute,
        body: &Bytes,
        headers: &HeaderMap,
    ) -> Result<Reply, Refusal> {
        // JSON is UTF-8 (RFC 8259 §8.1), also in the parts of a body that nobody reads.
        let text = str::from_utf8(body)
            .map_err(|error| Refusal::Malformed(format!("the body is not UTF-8: {error}")))?;
        match route {
            ApiRoute::Method(method) => {
                let wrong = |error| Refusal::Malformed(fault::told(text, &error));
                let outcome = self.api.run(decode(method, text).map_err(wrong)?).await;
                Ok(reply::reply(outcome, self.api.options.error_mode, headers))
            }
            ApiRoute::Legacy => legacy::run(&self.api, text).await,
        }
    }
}

/// The command in a body; an empty one will do for methods that need nothing.
fn decode(method: Method, body: &str) -> Result<Command, serde_json::Error> {
    use serde::de::{DeserializeSeed as _, Error as _};

    let body = if body.is_empty() && method.takes_empty_body() { "{}" } else { body };
    let read = |body: &str| {
        let mut json = serde_json::Deserializer::from_str(body);
        let command = method.deserialize(&mut json)?;
        json.end()?;
        command.ok_or_else(|| serde_json::Error::custom("null is no JSON object"))
    };
    // A text that a backend cut in the middle of a character is half a surrogate pair, which serde_json refuses in strings.
    read(body).or_else(|error| without_halves(body).map_or(Err(error), |body| read(&body)))
}

/// The configured prefix with one slash in front and none behind; "" when there is none.
pub(crate) fn bare_prefix(configured: &str) -> String {
    let bare = configured.trim_matches('/');
    if bare.is_empty() { String::new() } else { format!("/{bare}") }
}

#[cfg(test)]
mod tests;
