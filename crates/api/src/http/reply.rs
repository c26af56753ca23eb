//! The shapes of HTTP answers: result, error in the body, error in the status.
//! In: the outcome of a command and the error mode of the request. Out: the response.
//! Uses serde_json for writing; knows no method.
//! Statuses of errors are rows of `ApiError`; plain-text refusals live in `door`.

use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;

use crate::{ApiError, ErrorMode, Outcome};

/// The mode of one request: its header may ask for transport mode, everything else leaves the configured one.
pub(super) fn error_mode(configured: ErrorMode, headers: &HeaderMap) -> ErrorMode {
    match headers.get(&X_ERROR_MODE) {
        Some(value) if value == "transport" => ErrorMode::Transport,
        _ => configured,
    }
}

/// The answer to a command that was run.
pub(super) fn response(outcome: Result<Outcome, ApiError>, mode: ErrorMode) -> Response {
    match outcome {
        Ok(Outcome::Batch(reply)) => json(StatusCode::OK, &reply),
        Ok(outcome) => json(StatusCode::OK, &Envelope::Result(Bare(&outcome))),
        Err(error) => match mode {
            ErrorMode::Body => json(StatusCode::OK, &Envelope::Error(error)),
            ErrorMode::Transport => json(transport_status(error), &error),
        },
    }
}

/// An `Outcome` without the name of its method.
pub(super) struct Bare<'a>(pub &'a Outcome);

impl Serialize for Bare<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_bare(to)
    }
}

/// `{"result":{…}}` or `{"error":{…}}`.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Envelope<'a> {
    Result(Bare<'a>),
    Error(ApiError),
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("replies have string keys and no failing values");
    ok_json(status, body)
}

pub(super) fn ok_json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn transport_status(error: ApiError) -> StatusCode {
    StatusCode::from_u16(error.http_status).expect("the table of errors holds valid statuses")
}

const X_ERROR_MODE: HeaderName = HeaderName::from_static("x-centrifugo-error-mode");
