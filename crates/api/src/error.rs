//! Application errors of the server API: one table of code, message and HTTP status.
//! In: what the node refused. Out: `ApiError` rows, serialised as `{"code":…,"message":…}`.
//! Uses only the node's error codes; never formats texts of its own.
//! A code is a row here; refusals of the HTTP door itself (401, 413, …) live in `http::door`.

use std::fmt;

use fanwire_node::protocol::ErrorCode;
use schemars::JsonSchema;
use serde::Serialize;

/// One row of the table of application errors; codes 104 and 113 read differently in the client protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApiError {
    /// The number libraries branch on.
    pub code: u32,
    /// The fixed text beside it.
    pub message: &'static str,
    /// The status of the answer in transport error mode.
    #[serde(skip)]
    pub http_status: u16,
}

impl ApiError {
    /// Our fault or the broker's; a repeat may succeed.
    pub const INTERNAL: Self = row(100, "internal server error", 500);
    /// The channel's namespace is not configured.
    pub const UNKNOWN_CHANNEL: Self = row(102, "unknown channel", 404);
    /// No such method.
    pub const NOT_FOUND: Self = row(104, "not found", 404);
    /// A field is missing or makes no sense.
    pub const BAD_REQUEST: Self = row(107, "bad request", 400);
    /// The feature is switched off or not built.
    pub const NOT_AVAILABLE: Self = row(108, "not available", 400);
    /// So much of this is under way that it is not begun; a repeat may succeed.
    pub const TOO_MANY_REQUESTS: Self = row(111, "too many requests", 429);
    /// The stream began anew since the given epoch.
    pub const UNRECOVERABLE_POSITION: Self = row(112, "unrecoverable position", 416);
    /// The state changed meanwhile.
    pub const CONFLICT: Self = row(113, "conflict", 409);

    /// All rows, in order of their codes.
    pub const TABLE: [Self; 8] = [
        Self::INTERNAL,
        Self::UNKNOWN_CHANNEL,
        Self::NOT_FOUND,
        Self::BAD_REQUEST,
        Self::NOT_AVAILABLE,
        Self::TOO_MANY_REQUESTS,
        Self::UNRECOVERABLE_POSITION,
        Self::CONFLICT,
    ];
}

impl From<ErrorCode> for ApiError {
    /// The row of the same code; a code that only clients know becomes 100.
    fn from(error: ErrorCode) -> Self {
        Self::TABLE.into_iter().find(|row| row.code == error.code).unwrap_or(Self::INTERNAL)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ApiError {}

const fn row(code: u32, message: &'static str, http_status: u16) -> ApiError {
    ApiError { code, message, http_status }
}
