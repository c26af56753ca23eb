//! The messages between event proxies and backends, generated from `proto/proxy.proto` by `build.rs`.
//! In: requests → a JSON text; a JSON text → responses. Over gRPC prost writes and reads them.
//! Uses the rules in `json`. Never: what a response means; `fanwire_proxy` knows that.
//! A field is added in the `.proto` file alone.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::any_case::AnyCase;
use crate::error::DecodeError;
use crate::json;

include!(concat!(env!("OUT_DIR"), "/centrifugal.centrifugo.proxy.rs"));

/// Reads a tag filter that a backend wrote as JSON.
///
/// # Errors
/// The text is no JSON object, or a field has a value of the wrong type.
pub fn read_filter(text: &[u8]) -> Result<crate::FilterNode, DecodeError> {
    json::read(text)
}

/// A request in JSON; `None` when a payload in it is not JSON.
pub fn write(request: &impl Serialize) -> Option<Vec<u8>> {
    json::write_exact(request)
}

/// Reads a message with names in any ASCII case. Unknown keys are ignored.
///
/// # Errors
/// It is not a JSON object, a field has another type, or a name comes twice.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, DecodeError> {
    json::read(text).map(|AnyCase(message)| message)
}

/// Reads a response. One that is not empty has a known part, which may be `null`: others were written for another reader.
///
/// # Errors
/// Those of [`read`], and [`DecodeError::NoPart`].
pub fn read_response<T>(text: &[u8]) -> Result<T, DecodeError>
where
    T: DeserializeOwned + Default + PartialEq,
{
    let response = read(text)?;
    if response != T::default() {
        return Ok(response);
    }
    let entries: BTreeMap<String, IgnoredAny> = json::read(text)?;
    let is_part = |key: &String| PARTS.iter().any(|part| part.eq_ignore_ascii_case(key));
    if entries.is_empty() || entries.keys().any(is_part) {
        Ok(response)
    } else {
        Err(DecodeError::NoPart)
    }
}

/// The parts of every response.
const PARTS: [&str; 3] = ["result", "error", "disconnect"];

#[cfg(test)]
mod tests;
