//! Access: keys of the API for writes, keys or tokens for reads.
//! In: the head of a request, its channel → out: permission, or a refusal.
//! Uses the keys of `api`, the tokens of `node`. Never: bodies.
//! Changed here: where a request has its token. Rights of keys are in `api`, permissions of tokens in `node`.

use std::time::Instant;

use axum::body::Body;
use fanwire_api::Method as ApiMethod;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, Request, StatusCode};

use crate::DurableStreams;
use crate::request::parameter;
use crate::response::HttpRefusal;

impl DurableStreams {
    /// Checks that a request may do what its method does.
    ///
    /// # Errors
    /// 401 and 403; 503 before tokens can be checked.
    pub(crate) fn authorize(
        &self,
        request: &Request<Body>,
        channel: &str,
    ) -> Result<(), HttpRefusal> {
        if self.options.insecure {
            return Ok(());
        }
        let method = match *request.method() {
            Method::GET | Method::HEAD => ApiMethod::History,
            Method::DELETE => ApiMethod::HistoryRemove,
            _ => ApiMethod::Publish,
        };
        let is_read = method == ApiMethod::History;
        if is_read && let Some(token) = token(request)? {
            let allowed = self.node.may_read(&token, channel, Instant::now());
            return allowed.map_err(HttpRefusal::of_channel);
        }
        let permitted = self.http_api.permit(request, method, channel);
        if is_read && permitted.is_err() && self.node.may_read("", channel, Instant::now()).is_ok()
        {
            return Ok(());
        }
        permitted.map_err(|(status, text)| match is_read && status == StatusCode::UNAUTHORIZED {
            true => {
                HttpRefusal::new(401, format!("{text}; or a token as Authorization: Bearer TOKEN"))
            }
            false => HttpRefusal::new(status.as_u16(), text),
        })
    }
}

/// The token of a request: `Authorization: Bearer TOKEN`, or `?token=TOKEN`, because an `EventSource` has no headers.
fn token(request: &Request<Body>) -> Result<Option<String>, HttpRefusal> {
    let header =
        request.headers().get(AUTHORIZATION).and_then(|value: &HeaderValue| value.to_str().ok());
    let bearer = header.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    let given = parameter(request.uri().query().unwrap_or_default(), "token")?;
    Ok(bearer.or(given.map(|token| token.into_owned())).filter(|token| !token.is_empty()))
}
