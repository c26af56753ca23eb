//! revoke_token: make a token invalid by its `jti`.
//! In: `RevokeTokenRequest`. Out: nothing; its connections end with 3005, its subscriptions with 2501.
//! Uses the node's table of revocations, on every node; a second call replaces the end of the first.
//! The table and its checks live in the node.

use fanwire_node::{RevocationChange, RevocationKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block_user::{end, named};
use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// The token to revoke.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["uid"]))]
pub struct RevokeTokenRequest {
    /// Unix time in seconds at which the revocation ends; 0 or absent means never. The expiry of the token is enough. A time that has passed is an error.
    #[serde(deserialize_with = "or_default")]
    #[schemars(range(min = 0))]
    pub expire_at: i64,
    /// Required. The claim `jti` of a connection token or a subscription token.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub uid: String,
}

/// Empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RevokeTokenResult {}

impl Api {
    /// Revokes a token on all nodes.
    ///
    /// # Errors
    /// 107 without a uid, for an end in the past, and when the table is full; 100 when the other nodes could not be reached.
    pub async fn revoke_token(
        &self,
        request: RevokeTokenRequest,
    ) -> Result<RevokeTokenResult, ApiError> {
        self.measure_async(Method::RevokeToken, async |now| {
            let subject =
                named(request.uid, "uid is missing or empty, expected the jti of a token")?;
            let expire_at = end(request.expire_at)?;
            let change = RevocationChange { subject, expire_at, ..RevocationChange::default() };
            self.node
                .revocations()
                .revoke(RevocationKind::RevokeToken, change, (now, self.node.unix(now)))?
                .await?;
            Ok(RevokeTokenResult {})
        })
        .await
    }
}
