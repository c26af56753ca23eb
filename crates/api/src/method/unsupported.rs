//! Methods of shared poll channels: no channel here is one, so they always fail.
//! In: the channel. Out: the error that another channel gets from them.
//! Uses only the node's channel rules.
//! The table in `method` lists these methods.

use std::convert::Infallible;

use serde::Deserialize;

use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// A channel; all other fields of these methods are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UnsupportedRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    pub channel: String,
}

impl Api {
    /// Fails for every method of shared poll channels.
    ///
    /// # Errors
    /// Always: 107 without a channel, 102 for an unknown namespace, else 107 because the channel is none.
    pub fn unsupported(
        &self,
        method: Method,
        request: UnsupportedRequest,
    ) -> Result<Infallible, ApiError> {
        self.measure(method, |_| {
            if !request.channel.is_empty() {
                self.node.channels().check(&request.channel)?;
            }
            Err(ApiError::BAD_REQUEST.because("the server has no shared poll channels"))
        })
    }
}
