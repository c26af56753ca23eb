//! rpc: call a function registered in the server.
//! In: `RpcRequest`. Out: its data; nothing is registered in this build, so every name is unknown.
//! Uses nothing.
//! Calls of clients are not this: they live in the node's session.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::json::{or_default, raw};
use crate::{Api, ApiError, Method};

/// What to call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RpcRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    pub method: String,
    /// Raw JSON for the function.
    #[serde(deserialize_with = "raw")]
    pub params: Bytes,
}

/// What the function returned; nobody can make one yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum RpcResult {}

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
