//! rpc: call a function registered in the server.
//! In: `RpcRequest`. Out: its data; no function is registered in this build, so every name is unknown.
//! Uses nothing.
//! RPC calls of clients are separate: they live in the node's session.

use std::borrow::Cow;

use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::json::{or_default, raw};
use crate::{Api, ApiError, Method};

/// A call of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["method"]))]
pub struct RpcRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub method: String,
    /// Any JSON value for the function.
    #[serde(deserialize_with = "raw")]
    #[schemars(with = "serde_json::Value")]
    pub params: Bytes,
}

/// The result of the function; no function exists yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum RpcResult {}

impl JsonSchema for RpcResult {
    fn schema_name() -> Cow<'static, str> {
        "RpcResult".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The result of the function.",
            "type": "object",
            "properties": { "data": { "description": "Any JSON." } },
        })
    }
}

impl Api {
    /// Calls a function registered in the server.
    ///
    /// # Errors
    /// 107 without a method, 104 for any other: no functions are registered.
    pub async fn rpc(&self, request: RpcRequest) -> Result<RpcResult, ApiError> {
        self.measure(Method::Rpc, |_| {
            let is_valid = !request.method.is_empty();
            Err(if is_valid {
                ApiError::NOT_FOUND.because("method: the server has no RPC functions")
            } else {
                ApiError::BAD_REQUEST.because("method is missing or empty, expected its name")
            })
        })
    }
}
