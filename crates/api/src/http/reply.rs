//! The shapes of HTTP answers: result, error in the body, error in the status.
//! In: the outcome of a command and the error mode of the request. Out: a status and the JSON below it.
//! Uses serde_json for writing; knows no method.
//! Statuses of errors are rows of `ApiError`; plain-text refusals live in `door`.

use http::{HeaderMap, HeaderName, StatusCode};
use serde::Serialize;

use crate::{ApiError, ErrorMode, Outcome};

/// The mode of one request: its header may ask for transport mode, everything else leaves the configured one.
fn error_mode(configured: ErrorMode, headers: &HeaderMap) -> ErrorMode {
    match headers.get(&X_ERROR_MODE) {
        Some(value) if value == "transport" => ErrorMode::Transport,
        _ => configured,
    }
}

/// What is answered to a request that reached its method.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) json: Vec<u8>,
}

/// The answer to a command that was run, for a request with these headers.
pub(super) fn reply(
    outcome: Result<Outcome, ApiError>,
    configured: ErrorMode,
    headers: &HeaderMap,
) -> Reply {
    match outcome {
        Ok(Outcome::Batch(reply)) => json(StatusCode::OK, &reply),
        Ok(outcome) => json(StatusCode::OK, &Envelope::Result(Bare(&outcome))),
        Err(error) => match error_mode(configured, headers) {
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

fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    let json = serde_json::to_vec(value).expect("replies have string keys and no failing values");
    Reply { status, json }
}

fn transport_status(error: ApiError) -> StatusCode {
    StatusCode::from_u16(error.http_status).expect("the table of errors holds valid statuses")
}

const X_ERROR_MODE: HeaderName = HeaderName::from_static("x-centrifugo-error-mode");
