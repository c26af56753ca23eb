//! refresh: change the expiry of connections, or close them as expired.
//! In: `RefreshRequest`. Out: nothing; clients get a refresh push, or are closed with 3005.
//! Uses the node's refresh; a target without connections is not an error.
//! The node closes expired connections.

use bytes::Bytes;
use fanwire_node::protocol::{Disconnect, FilterNode};
use fanwire_node::{ConnectionSelector, Renewal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::selector::{LabelFilter, checked};
use super::subscribe::unix;
use crate::json::{object_or_none, or_default, raw_or_none};
use crate::{Api, ApiError, Method};

/// The connections to refresh, and their new expiry.
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
    /// New expiry as Unix time in seconds; 0 or less means never, a time in the past closes the connections with 3005.
    #[serde(deserialize_with = "or_default")]
    pub expire_at: i64,
    /// New client information for other clients: any JSON value; unchanged when absent.
    #[serde(deserialize_with = "raw_or_none")]
    #[schemars(with = "serde_json::Value")]
    pub info: Bytes,
    /// Only this session id; "" means any.
    #[serde(deserialize_with = "or_default")]
    pub session: String,
    /// Only connections whose labels match.
    #[serde(deserialize_with = "object_or_none")]
    #[schemars(with = "LabelFilter")]
    pub label_filter: Option<FilterNode>,
    /// Without `user`: the connections of all users, on every node.
    #[serde(deserialize_with = "or_default")]
    pub all_users: bool,
}

/// Empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefreshResult {}

impl Api {
    /// Refreshes a user's connections.
    ///
    /// # Errors
    /// 100 when the other nodes could not be reached.
    pub async fn refresh(&self, request: RefreshRequest) -> Result<RefreshResult, ApiError> {
        self.measure_async(Method::Refresh, async |_| {
            let RefreshRequest { user, client, expired, expire_at, info, session, .. } = request;
            let target =
                ConnectionSelector { user, client, session, ..ConnectionSelector::default() };
            let target = checked(target, request.label_filter, request.all_users)?;
            if expired {
                self.node.connections().disconnect(target, Disconnect::EXPIRED).await?;
            } else {
                let renewal = Renewal { expire_at: unix(expire_at), info, ..Renewal::default() };
                self.node.connections().refresh(target, renewal).await?;
            }
            Ok(RefreshResult {})
        })
        .await
    }
}
