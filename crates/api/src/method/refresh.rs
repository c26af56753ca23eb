//! refresh: give connections another end, or end them.
//! In: `RefreshRequest`. Out: nothing; the clients get a refresh push, or are closed with 3005.
//! Uses the node's refresh; it is no error when nobody matched.
//! What becomes of an expired connection is decided in the node.

use bytes::Bytes;
use fanwire_node::protocol::Disconnect;
use fanwire_node::{Renewal, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::subscribe::unix;
use crate::json::{or_default, raw_or_none};
use crate::{Api, ApiError, Method};

/// Whose connections end when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RefreshRequest {
    /// Exact match; "" is the anonymous user.
    #[serde(deserialize_with = "or_default")]
    pub user: String,
    /// Only this client id; "" means any.
    #[serde(deserialize_with = "or_default")]
    pub client: String,
    /// Close the connections with 3005 at once.
    #[serde(deserialize_with = "or_default")]
    pub expired: bool,
    /// Unix time in seconds at which the connections expire from now on; 0 or less means never, in the past closes them
    /// with 3005.
    #[serde(deserialize_with = "or_default")]
    pub expire_at: i64,
    /// What others see of the clients from now on: any JSON value; as before when absent.
    #[serde(deserialize_with = "raw_or_none")]
    #[schemars(with = "serde_json::Value")]
    pub info: Bytes,
    /// Only this session id; "" means any.
    #[serde(deserialize_with = "or_default")]
    pub session: String,
}

/// Empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefreshResult {}

impl Api {
    /// Refreshes a user's connections.
    ///
    /// # Errors
    /// 100 when the other nodes could not be told.
    pub async fn refresh(&self, request: RefreshRequest) -> Result<RefreshResult, ApiError> {
        self.measure_later(Method::Refresh, async |_| {
            let RefreshRequest { user, client, expired, expire_at, info, session } = request;
            let target = Target { user, client, session, whitelist: Vec::new() };
            let told = match expired {
                true => self.node.disconnect(target, Disconnect::EXPIRED),
                false => self.node.refresh(target, Renewal { expire_at: unix(expire_at), info }),
            };
            told.await?;
            Ok(RefreshResult {})
        })
        .await
    }
}
