//! rpc: call a function registered in the server.
//! In: `RpcRequest`. Out: its data; nothing is registered in this build, so every name is unknown.
//! Uses nothing.
//! Calls of clients are not this: they live in the node's session.

use std::borrow::Cow;

use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::json::{or_default, raw};
use crate::{Api, ApiError, Method};

/// What to call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["method"]))]
pub struct RpcRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub method: String,
    /// Raw JSON for the function.
    #[serde(deserialize_with = "raw")]
    #[schemars(with = "serde_json::Value")]
    pub params: Bytes,
}

/// What the function returned; nobody can make one yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum RpcResult {}

impl JsonSchema for RpcResult {
    fn schema_name() -> Cow<'static, str> {
        "RpcResult".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What the function returned.",
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
        self.measure(Method::Rpc, |_| match request.method.is_empty() {
            true => Err(ApiError::BAD_REQUEST),
            false => Err(ApiError::NOT_FOUND),
        })
    }
}
