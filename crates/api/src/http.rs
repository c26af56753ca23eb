//! The HTTP face of the server API: one POST path per method.
//! In: HTTP requests with JSON bodies. Out: JSON replies, or plain text when the door refuses (`door`).
//! Uses axum and `Api`; never the node itself.
//! What a method does is changed in `method/NAME.rs`; keys in `door`, shapes in `reply`, the old path in `legacy`.

mod door;
mod legacy;
mod reply;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::post;

use crate::{Api, Command, Method};
use door::Refusal;

/// The routes of the API, to be merged into the server's router. Methods other than POST get 405; unknown paths are
/// left to the server (404).
pub fn router(api: Arc<Api>) -> Router {
    let prefix = path_prefix(&api.options.handler_prefix);
    let mut router = Router::new();
    for method in Method::ALL {
        let api = Arc::clone(&api);
        let path = format!("{prefix}/{}", method.name());
        router = router.route(&path, post(move |request| call(api, method, request)));
    }
    let limit = DefaultBodyLimit::max(api.options.body_bytes_max);
    let root = if prefix.is_empty() { "/" } else { prefix.as_str() };
    router.route(root, post(move |request| legacy::call(api, request))).layer(limit)
}

async fn call(api: Arc<Api>, method: Method, request: Request) -> Response {
    let mode = reply::error_mode(api.options.error_mode, request.headers());
    let answer = match door::receive(&api, request).await {
        Ok(body) => match decode(method, &body) {
            Ok(command) => Ok(api.run(command).await),
            Err(refusal) => Err(refusal),
        },
        Err(refusal) => Err(refusal),
    };
    match answer {
        Ok(outcome) => reply::response(outcome, mode),
        Err(refusal) => {
            refusal.record(api.counters());
            refusal.into_response()
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
