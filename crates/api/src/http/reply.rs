//! The forms of HTTP responses: a result, an error in the body, an error as the status.
//! In: the outcome of a command and the error mode of the request. Out: a status and the JSON body.
//! Uses serde_json for writing; never a method.
//! Statuses of errors are rows of `ApiError`; plain text errors live in `request`.

use http::{HeaderMap, HeaderName, StatusCode};
use serde::Serialize;

use crate::envelope::Envelope;
use crate::{ApiError, ErrorMode, Outcome};

/// The mode of one request: transport mode if its header selects it, else the configured mode.
pub(crate) fn error_mode(configured: ErrorMode, headers: &HeaderMap) -> ErrorMode {
    match headers.get(&X_ERROR_MODE) {
        Some(value) if value == "transport" => ErrorMode::Transport,
        _ => configured,
    }
}

/// The response to a request whose method was called.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) json: Vec<u8>,
}

/// The response with the outcome of a command, for a request with these headers.
pub(super) fn reply(
    outcome: Result<Outcome, ApiError>,
    configured: ErrorMode,
    headers: &HeaderMap,
) -> Reply {
    match outcome {
        Ok(Outcome::Batch(reply)) => json(StatusCode::OK, &reply),
        Err(error) if error_mode(configured, headers) == ErrorMode::Transport => {
            json(transport_status(error), &error)
        }
        outcome => json(StatusCode::OK, &Envelope::of(&outcome)),
    }
}

fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    Reply { status, json: text(value) }
}

/// A value as JSON.
pub(super) fn text(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("replies have string keys and no failing values")
}

fn transport_status(error: ApiError) -> StatusCode {
    StatusCode::from_u16(error.http_status).expect("the table of errors holds valid statuses")
}

const X_ERROR_MODE: HeaderName = HeaderName::from_static("x-centrifugo-error-mode");
