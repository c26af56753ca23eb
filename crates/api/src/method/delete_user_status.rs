//! delete_user_status: forget the status of users.
//! In: `DeleteUserStatusRequest`. Out: nothing; a user without a status is no error.
//! Uses the store of statuses. A user that is connected is online again at the next call.
//! The stores are in `fanwire_broker` and `fanwire_redis`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Empty;
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

impl Api {
    /// Deletes the status of users.
    ///
    /// # Errors
    /// 107 without users, or for more than 1,000 of them; 100 when Redis failed.
    pub async fn delete_user_status(
        &self,
        request: DeleteUserStatusRequest,
    ) -> Result<Empty, ApiError> {
        self.measure_async(Method::DeleteUserStatus, async |_| {
            self.node.users().delete_status(&checked(request.users)?).await?;
            Ok(Empty {})
        })
        .await
    }
}
