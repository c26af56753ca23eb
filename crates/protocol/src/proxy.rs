//! The messages between event proxies and backends, generated from `proto/proxy.proto` by `build.rs`.
//! In: requests → a JSON text; a JSON text → responses. Over gRPC prost writes and reads them.
//! Uses the rules in `json`. Never: what a response means; `fanwire_proxy` knows that.
//! A field is added in the `.proto` file alone.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::DecodeError;
use crate::json;

include!(concat!(env!("OUT_DIR"), "/centrifugal.centrifugo.proxy.rs"));

/// A request in JSON; `None` when a payload in it is not JSON.
pub fn write(request: &impl Serialize) -> Option<Vec<u8>> {
    json::write_exact(request)
}

/// Reads a response. Unknown keys are ignored.
///
/// # Errors
/// It is not a JSON object, or a field has another type.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, DecodeError> {
    json::read(text)
}

#[cfg(test)]
mod tests;
