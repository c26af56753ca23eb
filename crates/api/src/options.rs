//! What the operator sets about the server API: key, error mode, paths and limits.
//! In: values of the configuration section `http_api`. Out: plain data, read by `Api` and its faces.
//! Uses `Secret` of the node; never reads files or the environment.
//! Change a setting's default here; its key, documentation and parsing live in the server's configuration.

use fanwire_auth::Secret;

/// How much of a request body is read by default, in bytes.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Settings of the server API; names follow the keys under `http_api`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiOptions {
    /// The secret that backends send. While it is empty every request gets 401, never access.
    pub key: Secret,
    /// Answers everybody without a key. For networks where something else guards the door.
    pub insecure: bool,
    /// Where application errors go, unless a request chooses by header.
    pub error_mode: ErrorMode,
    /// The path in front of the method names, `/api`; a slash is put before it when it has none.
    pub handler_prefix: String,
    /// Longest request body in bytes; a longer one gets HTTP 413 and is not read to its end.
    pub body_bytes_max: usize,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            key: Secret::default(),
            insecure: false,
            error_mode: ErrorMode::Body,
            handler_prefix: "/api".to_owned(),
            body_bytes_max: BODY_BYTES_MAX,
        }
    }
}

/// Where an application error is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorMode {
    /// HTTP 200 with `{"error":{…}}`: what libraries expect.
    #[default]
    Body,
    /// The HTTP status of the error's row, and the bare error as the body.
    Transport,
}
