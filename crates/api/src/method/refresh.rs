//! refresh: change the expiry of connections, or close them as expired.
//! In: `RefreshRequest`. Out: nothing; clients get a refresh push, or are closed with 3005.
//! Uses the node's refresh; a target without connections is not an error.
//! The node closes expired connections.

use bytes::Bytes;
use fanwire_node::protocol::Disconnect;
use fanwire_node::{ConnectionSelector, Renewal};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Empty;
use super::selector::selecting;
use super::subscribe::unix;
use crate::json::{or_default, raw_or_none};
use crate::{Api, ApiError, Method};

selecting! {
    /// The connections to refresh, and their new expiry.
    pub struct RefreshRequest {
        /// Close the connections with 3005 at once.
        #[serde(deserialize_with = "or_default")]
        pub expired: bool,
        /// New expiry as Unix time in seconds; 0 or less means never, a time in the past closes the connections with 3005.
        #[serde(deserialize_with = "or_default")]
        pub expire_at: i64,
        /// New client information for other clients: any JSON value; unchanged when absent.
        #[serde(deserialize_with = "raw_or_none")]
        #[schemars(with = "serde_json::Value")]
        pub info: Bytes,
    }
}

impl Api {
    /// Refreshes a user's connections.
    ///
    /// # Errors
    /// 100 when the other nodes could not be reached.
    pub async fn refresh(&self, mut request: RefreshRequest) -> Result<Empty, ApiError> {
        self.measure_async(Method::Refresh, async |_| {
            let target = request.take_target()?;
            let RefreshRequest { expired, expire_at, info, .. } = request;
            if expired {
                self.node.connections().disconnect(target, Disconnect::EXPIRED).await?;
            } else {
                let renewal = Renewal { expire_at: unix(expire_at), info };
                self.node.connections().refresh(target, renewal).await?;
            }
            Ok(Empty {})
        })
        .await
    }
}
