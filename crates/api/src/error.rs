//! Application errors of the server API: one table of code, message and the statuses of HTTP and gRPC.
//! In: errors of the node. Out: `ApiError` rows, serialised as `{"code":…,"message":…,"cause":…}`.
//! Uses only the node's error codes; never formats texts of its own.
//! A code is a row here; plain HTTP errors (401, 413, …) live in `http::request`, errors of gRPC calls in `grpc`.

use std::borrow::Cow;
use std::fmt;

use fanwire_node::protocol::ErrorCode;
use fanwire_node::{RevocationError, is_key};
use schemars::JsonSchema;
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

/// One row of the table of application errors; codes 104 and 113 have other messages in the client protocol.
#[derive(Clone, Copy, Debug, JsonSchema, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// The error code, which client libraries compare.
    pub code: u32,
    /// The fixed text of the code.
    pub message: &'static str,
    /// The HTTP status in transport error mode.
    #[schemars(skip)]
    pub http_status: u16,
    /// The status of a gRPC call in transport error mode.
    #[schemars(skip)]
    pub grpc_status: u8,
    /// Fanwire only: advice on what to change; absent if it is not known.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub cause: &'static str,
    /// The length of a text, which ends the cause.
    #[schemars(skip)]
    pub length: Option<u64>,
    /// Nodes without an answer, which end the cause.
    #[schemars(skip)]
    pub missing: Option<MissingNodes>,
}

/// Nodes that did not answer: the name of one, cut to 46 bytes, and how many more there are.
#[derive(Clone, Copy, Debug)]
pub struct MissingNodes {
    name: [u8; NODE_NAME_BYTES],
    more: u16,
}

impl ApiError {
    /// An error of the server or its broker; a retry may succeed.
    pub const INTERNAL: Self = row(100, "internal server error", 500, 13);
    /// The channel's namespace is not configured.
    pub const UNKNOWN_CHANNEL: Self = row(102, "unknown channel", 404, 5);
    /// The key of the caller does not permit it.
    pub const PERMISSION_DENIED: Self = row(103, "permission denied", 403, 7);
    /// No such method.
    pub const NOT_FOUND: Self = row(104, "not found", 404, 5);
    /// A field is missing or invalid.
    pub const BAD_REQUEST: Self = row(107, "bad request", 400, 3);
    /// The feature is disabled or not part of this build.
    pub const NOT_AVAILABLE: Self = row(108, "not available", 400, 3);
    /// Too many such requests are in flight; a retry may succeed.
    pub const TOO_MANY_REQUESTS: Self = row(111, "too many requests", 429, 8);
    /// The stream started again after the given epoch.
    pub const UNRECOVERABLE_POSITION: Self = row(112, "unrecoverable position", 416, 11);
    /// The state changed during the request.
    pub const CONFLICT: Self = row(113, "conflict", 409, 6);

    /// All rows, in order of their codes.
    pub const TABLE: [Self; 9] = [
        Self::INTERNAL,
        Self::UNKNOWN_CHANNEL,
        Self::PERMISSION_DENIED,
        Self::NOT_FOUND,
        Self::BAD_REQUEST,
        Self::NOT_AVAILABLE,
        Self::TOO_MANY_REQUESTS,
        Self::UNRECOVERABLE_POSITION,
        Self::CONFLICT,
    ];
}

/// Errors of the same code are equal: causes are for people.
impl PartialEq for ApiError {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for ApiError {}

impl ApiError {
    /// The same error with a cause.
    pub(crate) const fn because(self, cause: &'static str) -> Self {
        Self { cause, ..self }
    }

    /// The same error with the length of a text behind its cause.
    pub(crate) const fn with_length(self, length: u64) -> Self {
        Self { length: Some(length), ..self }
    }

    /// Error 100 with the names of nodes that did not answer.
    pub(crate) fn of_missing(nodes: &[String]) -> Self {
        let first = nodes.first().map_or("", String::as_str);
        let first = &first[..first.floor_char_boundary(NODE_NAME_BYTES)];
        let mut name = [0; NODE_NAME_BYTES];
        name[..first.len()].copy_from_slice(first.as_bytes());
        let more = u16::try_from(nodes.len().saturating_sub(1)).unwrap_or(u16::MAX);
        let missing = Some(MissingNodes { name, more });
        Self { missing, ..Self::INTERNAL.because("no answer from node") }
    }

    /// The cause with what ends it; "" if it is not known here.
    pub(crate) fn cause_text(&self) -> Cow<'static, str> {
        let cause = self.cause;
        match (self.length, &self.missing) {
            (Some(length), _) => format!("{cause} {length}").into(),
            (None, Some(missing)) => format!("{cause} {missing}").into(),
            (None, None) => cause.into(),
        }
    }
}

/// The error of an item or a line that names no method.
pub(crate) const NO_METHOD: ApiError =
    ApiError::NOT_FOUND.because("the command names no method of the API");

/// The error of a command whose field `channel` is missing or empty.
pub(crate) const NO_CHANNEL: ApiError =
    ApiError::BAD_REQUEST.because("channel is missing or empty, expected its name");

/// Checks the fields `channel` and `key` of a command.
///
/// # Errors
/// 107 for a field that is missing, or a key that is too long.
pub(crate) fn check_key(channel: &str, key: &str) -> Result<(), ApiError> {
    if channel.is_empty() {
        return Err(NO_CHANNEL);
    }
    if is_key(key) {
        return Ok(());
    }
    Err(ApiError::BAD_REQUEST.because("key has not 1 to 255 bytes"))
}

impl From<ErrorCode> for ApiError {
    /// The row with the same code; 100 for codes that exist only in the client protocol. 103 of the node is about a client.
    fn from(error: ErrorCode) -> Self {
        let row = Self::TABLE
            .into_iter()
            .find(|row| row.code == error.code)
            .filter(|row| *row != Self::PERMISSION_DENIED)
            .unwrap_or(Self::INTERNAL);
        row.because(match row.code {
            100 => "the broker or presence was not available",
            102 => "channel.namespaces has no namespace with the name before the boundary",
            107 => INVALID,
            108 => "the namespace has no history, no presence, or another subscription_type",
            112 => {
                "the stream of the channel has another epoch, or has lost what follows the position"
            }
            _ => "",
        })
    }
}

impl From<RevocationError> for ApiError {
    fn from(error: RevocationError) -> Self {
        Self::BAD_REQUEST.because(match error {
            RevocationError::HasEnded => {
                "expire_at has passed, expected a later Unix second, or 0 for no end"
            }
            RevocationError::TableFull => {
                "blocks and revocations have 1,000,000 entries: set expire_at, so that they end"
            }
        })
    }
}

impl Serialize for ApiError {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let cause = self.cause_text();
        let mut fields = to.serialize_struct("ApiError", if cause.is_empty() { 2 } else { 3 })?;
        fields.serialize_field("code", &self.code)?;
        fields.serialize_field("message", self.message)?;
        if !cause.is_empty() {
            fields.serialize_field("cause", &*cause)?;
        }
        fields.end()
    }
}

impl fmt::Display for MissingNodes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = String::from_utf8_lossy(&self.name);
        let more = self.more;
        out.write_str(name.trim_end_matches('\0'))?;
        if more > 0 { write!(out, " and {more} more") } else { Ok(()) }
    }
}

const fn row(code: u32, message: &'static str, http_status: u16, grpc_status: u8) -> ApiError {
    ApiError { code, message, http_status, grpc_status, cause: "", length: None, missing: None }
}

/// An error with a name stays as small as clippy's bar for errors.
const NODE_NAME_BYTES: usize = 46;
const INVALID: &str = "channel or data is invalid: see subscription_type, channel.max_length, channel_regex, publication_data_format and delivery";
