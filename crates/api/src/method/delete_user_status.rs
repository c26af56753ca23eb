//! delete_user_status: forget the status of users.
//! In: `DeleteUserStatusRequest`. Out: nothing; a user without a status is no error.
//! Uses the node's table of statuses; whether a user is online is not stored in it.
//! The table, its limits and its expiry live in the node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::update_user_status::{USERS_MAX, checked};
use crate::json::up_to;
use crate::{Api, ApiError, Method};

/// The users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["users"]))]
pub struct DeleteUserStatusRequest {
    /// Required. At most 1,000 user ids.
    #[serde(deserialize_with = "up_to::<USERS_MAX, _, _>")]
    #[schemars(length(min = 1, max = 1000))]
    pub users: Vec<String>,
}

/// Empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeleteUserStatusResult {}

impl Api {
    /// Deletes the status of users on all nodes.
    ///
    /// # Errors
    /// 107 without users, or for more than 1,000 of them; 100 when the other nodes could not be reached.
    pub async fn delete_user_status(
        &self,
        request: DeleteUserStatusRequest,
    ) -> Result<DeleteUserStatusResult, ApiError> {
        self.measure_async(Method::DeleteUserStatus, async |_| {
            self.node.users().delete_status(checked(request.users)?).await?;
            Ok(DeleteUserStatusResult {})
        })
        .await
    }
}
