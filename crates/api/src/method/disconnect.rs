//! disconnect: close connections of a user.
//! In: `DisconnectRequest`. Out: nothing; clients are closed with the code, whose range decides whether they reconnect.
//! Uses the node's disconnect; a target without connections is not an error.
//! The node's hub selects the connections of a target; the built-in codes live in `protocol`.

use fanwire_node::ConnectionSelector;
use fanwire_node::protocol::Disconnect;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Empty;
use super::selector::selecting;
use crate::json::or_default;
use crate::{Api, ApiError, Method};

selecting! {
    /// The connections to close, and the close code.
    pub struct DisconnectRequest {
        /// Absent or with code 0: 3503 "force disconnect", without reconnect. The Go library gocent sends it as `Disconnect`.
        #[schemars(with = "DisconnectReason")]
        pub disconnect: Option<DisconnectReason>,
        /// Client ids that stay connected. The Go library gocent sends it as `ClientWhitelist`.
        #[serde(alias = "ClientWhitelist", deserialize_with = "or_default")]
        pub whitelist: Vec<String>,
    }
}

/// A close code and its text; applications use 4000–4999 (from 4500 on the client does not reconnect).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DisconnectReason {
    /// A code that is allowed in a close frame (RFC 6455 §7.4): 1000–4999 without 1004–1006 and 1015.
    #[serde(deserialize_with = "or_default")]
    #[schemars(extend("anyOf" = [
        { "const": 0 },
        { "minimum": 1000, "maximum": 1003 },
        { "minimum": 1007, "maximum": 1014 },
        { "minimum": 1016, "maximum": 4999 },
    ]))]
    pub code: u32,
    /// Sent to the client; cut to 123 bytes, the limit of a close frame. When empty, "force disconnect" is sent, because
    /// centrifuge-js ignores a code without a reason.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
}

impl Api {
    /// Disconnects a user's connections.
    ///
    /// # Errors
    /// 107 for a code that is not allowed in a close frame; 100 when the other nodes could not be reached.
    pub async fn disconnect(&self, mut request: DisconnectRequest) -> Result<Empty, ApiError> {
        self.measure_async(Method::Disconnect, async |_| {
            let disconnect = disconnect_of(request.disconnect.take())?;
            let target = request.take_target()?;
            let target = ConnectionSelector { whitelist: request.whitelist, ..target };
            self.node.connections().disconnect(target, disconnect).await?;
            Ok(Empty {})
        })
        .await
    }
}

fn disconnect_of(reason: Option<DisconnectReason>) -> Result<Disconnect, ApiError> {
    let Some(DisconnectReason { code, reason }) = reason else {
        return Ok(Disconnect::FORCE_DISCONNECT);
    };
    let Ok(code) = u16::try_from(code) else { return Err(INVALID_CODE) };
    let disconnect = match (code, reason.is_empty()) {
        (0, _) => Disconnect::FORCE_DISCONNECT,
        (code, true) => Disconnect { code, ..Disconnect::FORCE_DISCONNECT },
        (code, false) => Disconnect { code, reason: reason.into() },
    };
    if disconnect.is_close_code() { Ok(disconnect) } else { Err(INVALID_CODE) }
}

const INVALID_CODE: ApiError = ApiError::BAD_REQUEST.because(
    "disconnect.code is no close code, expected 1000 to 4999 without 1004 to 1006 and 1015",
);
