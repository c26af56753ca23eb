//! block_user, unblock_user, revoke_token, invalidate_user_tokens: users and tokens that are refused from now on.
//! In: a request of each. Out: whether a restart forgets it; connections end with 3507 or 3005, subscriptions with 2501.
//! Uses the node's table of revocations, on every node; a second call for the same subject replaces the first.
//! The table and its checks live in the node.

use fanwire_node::{RevocationChange, RevocationError, RevocationKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Empty;
use super::subscribe::unix;
use crate::json::or_default;
use crate::{Api, ApiError, Method};

/// The user to block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["user"]))]
pub struct BlockUserRequest {
    /// Unix time in seconds at which the block ends; 0 or absent means never. A time that has passed is an error.
    #[serde(deserialize_with = "or_default")]
    #[schemars(range(min = 0))]
    pub expire_at: i64,
    /// Required. The user id, from a token, a proxy or a header.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub user: String,
}

/// The user to unblock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["user"]))]
pub struct UnblockUserRequest {
    /// Required. The user id.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub user: String,
}

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

/// A change that was made. Empty with Redis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RevocationResult {
    /// Fanwire only: the change is in the memory of one node, because there is no Redis, and a restart of the node forgets it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forgotten_at_restart: bool,
}

impl Api {
    /// Blocks a user on all nodes.
    ///
    /// # Errors
    /// 107 without a user, for an end in the past, and when the table is full; 100 when the other nodes could not be reached.
    pub async fn block_user(
        &self,
        request: BlockUserRequest,
    ) -> Result<RevocationResult, ApiError> {
        let change = change(request.user, request.expire_at, NO_USER);
        self.revoke(Method::BlockUser, RevocationKind::BlockUser, change).await
    }

    /// Unblocks a user on all nodes.
    ///
    /// # Errors
    /// 107 without a user; 100 when the other nodes could not be reached.
    pub async fn unblock_user(&self, request: UnblockUserRequest) -> Result<Empty, ApiError> {
        let change = change(request.user, 0, NO_USER);
        self.revoke(Method::UnblockUser, RevocationKind::UnblockUser, change).await?;
        Ok(Empty {})
    }

    /// Revokes a token on all nodes.
    ///
    /// # Errors
    /// 107 without a uid, for an end in the past, and when the table is full; 100 when the other nodes could not be reached.
    pub async fn revoke_token(
        &self,
        request: RevokeTokenRequest,
    ) -> Result<RevocationResult, ApiError> {
        let change = change(request.uid, request.expire_at, NO_UID);
        self.revoke(Method::RevokeToken, RevocationKind::RevokeToken, change).await
    }

    /// Invalidates tokens of a user on all nodes.
    ///
    /// # Errors
    /// Those of [`block_user`](Self::block_user).
    pub async fn invalidate_user_tokens(
        &self,
        request: InvalidateUserTokensRequest,
    ) -> Result<RevocationResult, ApiError> {
        let InvalidateUserTokensRequest { expire_at, user, issued_before, channel } = request;
        let change = change(user, expire_at, NO_USER).map(|change| RevocationChange {
            channel: (!channel.is_empty()).then_some(channel),
            issued_before: unix(issued_before).unwrap_or_default(),
            ..change
        });
        self.revoke(Method::InvalidateUserTokens, RevocationKind::InvalidateTokens, change).await
    }

    /// Makes a change. An `issued_before` of 0 is now.
    async fn revoke(
        &self,
        method: Method,
        kind: RevocationKind,
        change: Result<RevocationChange, ApiError>,
    ) -> Result<RevocationResult, ApiError> {
        self.measure_async(method, async |now| {
            let mut change = change?;
            if kind == RevocationKind::InvalidateTokens && change.issued_before == 0 {
                change.issued_before = self.node.unix(now);
            }
            let revocations = self.node.revocations();
            revocations.revoke(kind, change, now, self.node.unix(now))?.await?;
            Ok(RevocationResult { forgotten_at_restart: revocations.are_forgotten() })
        })
        .await
    }
}

/// A change of a subject, which must not be empty, until `expire_at`. A negative time has passed.
fn change(
    subject: String,
    expire_at: i64,
    missing: &'static str,
) -> Result<RevocationChange, ApiError> {
    if subject.is_empty() {
        return Err(ApiError::BAD_REQUEST.because(missing));
    }
    let expire_at = u64::try_from(expire_at).map_err(|_| RevocationError::HasEnded)?;
    Ok(RevocationChange { subject, expire_at, ..RevocationChange::default() })
}

const NO_USER: &str = "user is missing or empty";
const NO_UID: &str = "uid is missing or empty, expected the jti of a token";
