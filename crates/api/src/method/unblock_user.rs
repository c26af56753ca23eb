//! unblock_user: let a blocked user connect again.
//! In: `UnblockUserRequest`. Out: nothing; a user that is not blocked is no error.
//! Uses the node's table of revocations, on every node; connections that have ended stay closed.
//! The table and its checks live in the node.

use fanwire_node::{RevocationChange, RevocationKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block_user::{NO_USER, named};
use crate::json::or_default;
use crate::{Api, ApiError, Method};

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

/// Empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnblockUserResult {}

impl Api {
    /// Unblocks a user on all nodes.
    ///
    /// # Errors
    /// 107 without a user; 100 when the other nodes could not be reached.
    pub async fn unblock_user(
        &self,
        request: UnblockUserRequest,
    ) -> Result<UnblockUserResult, ApiError> {
        self.measure_async(Method::UnblockUser, async |now| {
            let subject = named(request.user, NO_USER)?;
            let change = RevocationChange { subject, ..RevocationChange::default() };
            self.node
                .revocations()
                .revoke(RevocationKind::UnblockUser, change, (now, self.node.unix(now)))?
                .await?;
            Ok(UnblockUserResult {})
        })
        .await
    }
}
