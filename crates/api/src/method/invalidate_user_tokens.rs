//! invalidate_user_tokens: make the older tokens of a user invalid.
//! In: `InvalidateUserTokensRequest`. Out: nothing; connections of such tokens end with 3005, subscriptions with 2501.
//! Uses the node's table of revocations, on every node; a second call with the same user and channel replaces the first.
//! The table and its checks live in the node.

use fanwire_node::{RevocationChange, RevocationKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block_user::{NO_USER, end, named};
use super::subscribe::unix;
use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// The tokens to invalidate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["user"]))]
pub struct InvalidateUserTokensRequest {
    /// Unix time in seconds at which the rule ends; 0 or absent means never. A time that has passed is an error.
    #[serde(deserialize_with = "or_default")]
    #[schemars(range(min = 0))]
    pub expire_at: i64,
    /// Required. The user of the tokens.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub user: String,
    /// Tokens whose claim `iat` is earlier than this Unix second are invalid, and those without `iat`; 0 or absent means now.
    #[serde(deserialize_with = "or_default")]
    pub issued_before: i64,
    /// Only subscription tokens for this channel; "" means all tokens of the user.
    #[serde(deserialize_with = "or_default")]
    pub channel: String,
}

/// Empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InvalidateUserTokensResult {}

impl Api {
    /// Invalidates tokens of a user on all nodes.
    ///
    /// # Errors
    /// 107 without a user, for an end in the past, and when the table is full; 100 when the other nodes could not be reached.
    pub async fn invalidate_user_tokens(
        &self,
        request: InvalidateUserTokensRequest,
    ) -> Result<InvalidateUserTokensResult, ApiError> {
        self.measure_async(Method::InvalidateUserTokens, async |now| {
            let InvalidateUserTokensRequest { expire_at, user, issued_before, channel } = request;
            let change = RevocationChange {
                subject: named(user, NO_USER)?,
                channel: (!channel.is_empty()).then_some(channel),
                expire_at: end(expire_at)?,
                issued_before: unix(issued_before).unwrap_or_else(|| self.node.unix(now)),
                ..RevocationChange::default()
            };
            self.node
                .revocations()
                .revoke(RevocationKind::InvalidateTokens, change, (now, self.node.unix(now)))?
                .await?;
            Ok(InvalidateUserTokensResult {})
        })
        .await
    }
}
