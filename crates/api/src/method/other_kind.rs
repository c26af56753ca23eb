//! Methods of map and shared poll channels: every namespace here has streams, so there is nothing they could act on.
//! In: the channel. Out: the refusal a stream channel gets from them.
//! Uses the node's channel rules only.
//! Which methods these are is said by the table in `method`.

use std::convert::Infallible;

use serde::Deserialize;

use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// Which channel; all other fields of these methods are skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OtherKindRequest {
    /// Required.
    #[serde(deserialize_with = "or_default")]
    pub channel: String,
}

impl Api {
    /// Refuses a method of map or shared poll channels.
    ///
    /// # Errors
    /// Always: 107 without a channel, 102 for an unknown namespace, else 107 because the channel is a stream.
    pub fn other_kind(
        &self,
        method: Method,
        request: OtherKindRequest,
    ) -> Result<Infallible, ApiError> {
        self.measure(method, |_| {
            if !request.channel.is_empty() {
                self.node.check_channel(&request.channel)?;
            }
            Err(ApiError::BAD_REQUEST)
        })
    }
}
