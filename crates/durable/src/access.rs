//! Access: keys of the API for writes; keys, tokens and hooks for reads.
//! In: the head of a request, its channel → out: permission, or a refusal.
//! Uses the keys of `api`, the readers of `node`. Never: bodies.
//! Changed here: where a request has its token. Rights of keys are in `api`, permissions of readers in `node`.

use std::time::Instant;

use fanwire_api::Method as ApiMethod;
use fanwire_node::protocol::ErrorCode;
use fanwire_node::{ReadError, ReadPermit, ReadRequest};
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, Request, StatusCode};

use crate::DurableStreams;
use crate::request::parameter;
use crate::response::{ErrorResponse, bad_request};

impl DurableStreams {
    /// Checks that a request may do what its method does. The permit of a reader, which may end; `None` for who has a key.
    ///
    /// # Errors
    /// 401 and 403; 503 before tokens can be checked, or when a hook does not answer.
    pub(crate) async fn authorize(
        &self,
        request: &Request<()>,
        channel: &str,
    ) -> Result<Option<ReadPermit>, ErrorResponse> {
        if self.options.insecure {
            return Ok(None);
        }
        let method = match *request.method() {
            Method::GET | Method::HEAD => ApiMethod::History,
            Method::DELETE => ApiMethod::HistoryRemove,
            _ => ApiMethod::Publish,
        };
        let is_read = method == ApiMethod::History;
        let token = if is_read { token(request)? } else { None };
        if let Some(token) = token {
            let permitted = self.reader(request, channel, &token).await?;
            return permitted.map(Some).map_err(ErrorResponse::of_reader);
        }
        let Err((status, text)) = self.http_api.permit(request, method, channel) else {
            return Ok(None);
        };
        if !is_read {
            return Err(ErrorResponse::new(status.as_u16(), text));
        }
        match self.reader(request, channel, "").await? {
            Ok(permit) => Ok(Some(permit)),
            Err(ReadError::Error(ErrorCode { temporary: false, .. })) => Err(match status {
                StatusCode::UNAUTHORIZED => {
                    let text = format!("{text}; or a token as Authorization: Bearer TOKEN");
                    ErrorResponse::new(401, text)
                }
                _ => ErrorResponse::new(status.as_u16(), text),
            }),
            Err(refusal) => Err(ErrorResponse::of_reader(refusal)),
        }
    }

    /// Whether a client may read: with this token, or "" for none.
    async fn reader(
        &self,
        request: &Request<()>,
        channel: &str,
        token: &str,
    ) -> Result<Result<ReadPermit, ReadError>, ErrorResponse> {
        let client =
            (self.connections.client)(request.headers()).map_err(|text| bad_request(&text))?;
        let request = ReadRequest { token, channel, client };
        Ok(self.node.may_read(request, Instant::now()).await)
    }
}

/// The token of a request: `Authorization: Bearer TOKEN`, or `?token=TOKEN`, because an `EventSource` has no headers.
fn token(request: &Request<()>) -> Result<Option<String>, ErrorResponse> {
    let header =
        request.headers().get(AUTHORIZATION).and_then(|value: &HeaderValue| value.to_str().ok());
    let bearer = header.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    let given = parameter(request.uri().query().unwrap_or_default(), "token")?;
    Ok(bearer.or(given.map(|token| token.into_owned())).filter(|token| !token.is_empty()))
}
