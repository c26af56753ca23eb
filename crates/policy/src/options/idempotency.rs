//! Idempotency keys of clients in one namespace (`client_idempotency_field`, `client_idempotency_ttl`).
//! In: values from the configuration table → out: the same data.
//! May use: nothing. Never checks anything: that is `channel/build.rs`.
//! Changed here: defaults; who owns a key is in the node's `command/publish.rs`.

use std::time::Duration;

/// The field of payloads that makes publications of clients idempotent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdempotency {
    /// Name of the field; "" = such publications have no key.
    pub field: String,
    /// How long a key is remembered.
    pub ttl: Duration,
}

impl Default for ClientIdempotency {
    fn default() -> Self {
        Self { field: String::new(), ttl: Duration::from_secs(24 * 3600) }
    }
}
