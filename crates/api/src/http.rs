//! The HTTP face of the server API: one POST path per method.
//! In: HTTP requests with JSON bodies. Out: JSON replies, or plain text when the door refuses (`door`).
//! Uses axum's bodies and answers, and `Api`; never the node itself, never layers of a router: each costs a call some µs.
//! What a method does is changed in `method/NAME.rs`; keys in `door`, shapes in `reply`, the old path in `legacy`.

mod door;
mod legacy;
mod reply;

use std::sync::Arc;

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use axum::response::{IntoResponse, Response};
use http::Request;

use crate::{Api, Command, ErrorMode, Method};
use door::Refusal;

/// The API over HTTP.
pub struct Face {
    api: Arc<Api>,
}

/// What a path of the API asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `PREFIX/NAME`.
    Method(Method),
    /// The prefix alone: the method is named in the body.
    Legacy,
}

impl Face {
    /// The face of `api`, below the prefix of its options.
    pub fn new(api: Arc<Api>) -> Self {
        Self { api }
    }

    /// All paths, as axum writes them, for methods POST of a router; the rest gets 405 and 404 there.
    pub fn paths(&self) -> impl Iterator<Item = (String, Place)> {
        let prefix = path_prefix(&self.api.options.handler_prefix);
        let root = if prefix.is_empty() { "/".to_owned() } else { prefix.clone() };
        let path = move |method: Method| format!("{prefix}/{}", method.name());
        let methods = Method::ALL.map(|method| (path(method), Place::Method(method)));
        methods.into_iter().chain([(root, Place::Legacy)])
    }

    /// Answers what was asked at a place.
    pub async fn answer<B>(&self, place: Place, request: Request<B>) -> Response
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let mode = reply::error_mode(self.api.options.error_mode, request.headers());
        let answer = match door::receive(&self.api, request).await {
            Ok(body) => self.run(place, &body, mode).await,
            Err(refusal) => Err(refusal),
        };
        answer.unwrap_or_else(|refusal| {
            refusal.record(self.api.counters());
            refusal.into_response()
        })
    }

    async fn run(&self, place: Place, body: &Bytes, mode: ErrorMode) -> Result<Response, Refusal> {
        // JSON is UTF-8 (RFC 8259 §8.1), also in the parts of a body that nobody reads.
        let text = str::from_utf8(body).map_err(|_| Refusal::Malformed)?;
        match place {
            Place::Method(method) => {
                let outcome = self.api.run(decode(method, text)?).await;
                Ok(reply::response(outcome, mode))
            }
            Place::Legacy => legacy::run(&self.api, text).await,
        }
    }
}

/// The command in a body; an empty one will do for methods that need nothing.
fn decode(method: Method, body: &str) -> Result<Command, Refusal> {
    use serde::de::DeserializeSeed as _;

    let body = if body.is_empty() && method.takes_empty_body() { "{}" } else { body };
    let mut json = serde_json::Deserializer::from_str(body);
    let command = method.deserialize(&mut json).and_then(|command| json.end().map(|()| command));
    command.ok().flatten().ok_or(Refusal::Malformed)
}

/// The configured prefix as axum writes paths: braces doubled.
fn path_prefix(configured: &str) -> String {
    bare_prefix(configured).replace('{', "{{").replace('}', "}}")
}

/// The configured prefix with one slash in front and none behind; "" when there is none.
pub(crate) fn bare_prefix(configured: &str) -> String {
    let bare = configured.trim_matches('/');
    if bare.is_empty() { String::new() } else { format!("/{bare}") }
}

#[cfg(test)]
mod tests;
