//! block_user: close the connections of a user, and refuse new ones.
//! In: `BlockUserRequest`. Out: nothing; the connections end with 3507.
//! Uses the node's table of revocations, on every node; a second call replaces the end of the first.
//! The table and its checks live in the node.

use fanwire_node::{RevocationChange, RevocationError, RevocationKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// Empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BlockUserResult {}

impl Api {
    /// Blocks a user on all nodes.
    ///
    /// # Errors
    /// 107 without a user, for an end in the past, and when the table is full; 100 when the other nodes could not be reached.
    pub async fn block_user(&self, request: BlockUserRequest) -> Result<BlockUserResult, ApiError> {
        self.measure_async(Method::BlockUser, async |now| {
            let subject = named(request.user, NO_USER)?;
            let expire_at = end(request.expire_at)?;
            let change = RevocationChange { subject, expire_at, ..RevocationChange::default() };
            self.node
                .revocations()
                .revoke(RevocationKind::BlockUser, change, (now, self.node.unix(now)))?
                .await?;
            Ok(BlockUserResult {})
        })
        .await
    }
}

/// The subject of a change, which must not be empty.
pub(super) fn named(subject: String, missing: &'static str) -> Result<String, ApiError> {
    if subject.is_empty() { Err(ApiError::BAD_REQUEST.because(missing)) } else { Ok(subject) }
}

/// The end of a change; a negative time has passed.
pub(super) fn end(expire_at: i64) -> Result<u64, ApiError> {
    u64::try_from(expire_at).map_err(|_| RevocationError::HasEnded.into())
}

/// The cause of an empty `user`.
pub(super) const NO_USER: &str = "user is missing or empty";
