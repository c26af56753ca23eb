//! get_user_status: the status of users.
//! In: `GetUserStatusRequest`. Out: one status for each user, in the order of the request.
//! Uses the store of statuses; all nodes are asked who is online.
//! The stores are in `fanwire_broker` and `fanwire_redis`.

use fanwire_node::UserStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::update_user_status::{USERS_MAX, checked};
use crate::json::{is_zero, up_to};
use crate::{Api, ApiError, Method};

/// The users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["users"]))]
pub struct GetUserStatusRequest {
    /// Required. At most 1,000 user ids.
    #[serde(deserialize_with = "up_to::<USERS_MAX, _, _>")]
    #[schemars(length(min = 1, max = 1000))]
    pub users: Vec<String>,
}

/// The statuses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GetUserStatusResult {
    /// One for each user, in the order of the request.
    pub statuses: Vec<UserStatusItem>,
}

/// The status of a user; an unknown user has only `user`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UserStatusItem {
    /// The user id.
    pub user: String,
    /// Unix second of the last update.
    #[serde(skip_serializing_if = "is_zero")]
    pub active: u64,
    /// Unix second at which the user was last known to be connected: that of this call for a user with a connection to some
    /// node. For others with `user_status.enabled` that of the last time; else absent.
    #[serde(skip_serializing_if = "is_zero")]
    pub online: u64,
    /// Text of the last update.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
}

impl Api {
    /// Returns the status of users.
    ///
    /// # Errors
    /// 107 without users, or for more than 1,000 of them; 100 when a node could not be reached or did not answer in time; 111
    /// when too many such requests are in flight.
    pub async fn get_user_status(
        &self,
        request: GetUserStatusRequest,
    ) -> Result<GetUserStatusResult, ApiError> {
        self.measure_async(Method::GetUserStatus, async |now| {
            let users = checked(request.users)?;
            let statuses = self.node.user_statuses(users.clone(), now).await?;
            if !statuses.missing.is_empty() {
                return Err(ApiError::of_missing(&statuses.missing));
            }
            let item = |(user, status): (String, UserStatus)| {
                let UserStatus { active, online, state } = status;
                UserStatusItem { user, active, online, state: state.into() }
            };
            Ok(GetUserStatusResult {
                statuses: users.into_iter().zip(statuses.found).map(item).collect(),
            })
        })
        .await
    }
}
