//! update_user_status: record that users are active.
//! In: `UpdateUserStatusRequest`. Out: nothing; each user was active now.
//! Uses the store of statuses; a status expires `user_status.expire_interval` after its last change.
//! The stores are in `fanwire_broker` and `fanwire_redis`.

use fanwire_node::protocol::ErrorCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Empty;
use crate::json::{or_default, up_to};
use crate::{Api, ApiError, Method};

/// The users, and their state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["users"]))]
pub struct UpdateUserStatusRequest {
    /// Required. At most 1,000 user ids.
    #[serde(deserialize_with = "up_to::<USERS_MAX, _, _>")]
    #[schemars(length(min = 1, max = 1000))]
    pub users: Vec<String>,
    /// A text of the application, 1,024 bytes at most; it replaces the earlier one.
    #[serde(deserialize_with = "or_default")]
    pub state: String,
}

impl Api {
    /// Updates the status of users on all nodes.
    ///
    /// # Errors
    /// 107 without users, for more than 1,000 of them, a long state, and when the memory has no room; 100 when Redis failed.
    pub async fn update_user_status(
        &self,
        request: UpdateUserStatusRequest,
    ) -> Result<Empty, ApiError> {
        self.measure_async(Method::UpdateUserStatus, async |now| {
            let users = checked(request.users)?;
            if request.state.len() > STATE_BYTES_MAX {
                return Err(ApiError::BAD_REQUEST.because("state is longer than 1,024 bytes"));
            }
            let updated = self
                .node
                .users()
                .update_status(&users, Some(request.state), self.node.unix(now))
                .await;
            updated.map_err(|error| match error {
                ErrorCode::LIMIT_EXCEEDED => ApiError::BAD_REQUEST.because(FULL),
                other => other.into(),
            })?;
            Ok(Empty {})
        })
        .await
    }
}

/// The users of a request: at least one, not too many, and none without a name.
pub(super) fn checked(users: Vec<String>) -> Result<Vec<String>, ApiError> {
    if users.is_empty() || users.len() > USERS_MAX {
        return Err(ApiError::BAD_REQUEST.because("users has no item, or more than 1,000"));
    }
    if users.iter().any(String::is_empty) {
        return Err(ApiError::BAD_REQUEST.because("users has an empty item"));
    }
    Ok(users)
}

/// Users of a request.
pub(super) const USERS_MAX: usize = 1000;
/// Bytes of a state.
const STATE_BYTES_MAX: usize = 1024;
const FULL: &str = "1,000,000 users have a status: delete those that are not needed";
