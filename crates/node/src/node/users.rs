//! The statuses of users, as this node stores them.
//! In: user ids, a text → out: statuses.
//! Uses: the registry, the store of statuses. Never: sessions, other nodes; `questions/online_users.rs` asks who is online.
//! Changed here: when a status is stored, and how long.

use std::sync::Arc;

use fanwire_broker::{Answer, BrokerError, UserStatus, UserStatusChange, UserStatusStore};
use fanwire_policy::CurrentSettings;
use fanwire_protocol::ErrorCode;

use super::channels::temporary;
use crate::registry::Registry;

/// The statuses of users.
pub struct Users {
    pub(super) settings: Arc<CurrentSettings>,
    pub(super) registry: Arc<Registry>,
    pub(super) user_statuses: Arc<dyn UserStatusStore>,
}

impl Users {
    /// Records that users are active at the Unix second `unix`, with a text of the application; `None` keeps the earlier text.
    ///
    /// # Errors
    /// 106 when the store has no room; 100 when it failed.
    pub fn update_status(
        &self,
        users: &[String],
        state: Option<String>,
        unix: u64,
    ) -> Answer<(), ErrorCode> {
        let active = Some(unix);
        let state = state.map(String::into_boxed_str);
        self.change_status(users, UserStatusChange { active, state, ..Default::default() }, unix)
            .map_err(|error| match error {
                BrokerError::Full => ErrorCode::LIMIT_EXCEEDED,
                other => temporary(other),
            })
    }

    fn change_status(&self, users: &[String], change: UserStatusChange, unix: u64) -> Answer<()> {
        let ttl = self.settings.read().options.user_status.expire_interval;
        let change = UserStatusChange { ttl, ..change };
        self.user_statuses.update(users, &change, unix)
    }

    /// Removes the status of users.
    ///
    /// # Errors
    /// 100 when the store failed.
    pub fn delete_status(&self, users: &[String]) -> Answer<(), ErrorCode> {
        self.user_statuses.remove(users).map_err(temporary)
    }

    /// The stored status of each user at the Unix second `unix`, in the order of `users`.
    pub(super) fn known_statuses(&self, users: &[String], unix: u64) -> Answer<Vec<UserStatus>> {
        self.user_statuses.read(users, unix)
    }

    /// Once a second: removes expired statuses, and records that some users of this node are online, so that each has its turn
    /// in `client.presence_update_interval`.
    pub(super) fn tick(&self, unix: u64) {
        self.user_statuses.sweep(unix);
        let settings = self.settings.read();
        if !settings.options.user_status.enabled {
            return;
        }
        let users = self.registry.next_users(settings.options.client.presence_update_interval);
        if users.is_empty() {
            return;
        }
        let online = Some(unix);
        // After a failure the next turn comes soon; the store logs what fails.
        drop(self.change_status(&users, UserStatusChange { online, ..Default::default() }, unix));
    }
}
