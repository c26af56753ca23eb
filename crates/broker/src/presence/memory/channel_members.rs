//! The members of one channel: each with the end of its time, and how many users they are.
//! In: members that come, are renewed and go, the time → out: those who are there.
//! Uses: hash tables. Never: locks, clocks.
//! Change here: what is kept per member, and when the members are looked through for those whose time is over.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;

use fanwire_protocol::ClientInfo;
use hashbrown::HashMap;

use crate::PresenceStats;

/// The members of a channel. Counting them takes no walk over them.
#[derive(Default)]
pub(super) struct ChannelMembers {
    /// With the moment at which their time is over.
    members: HashMap<Member, Instant>,
    /// How many members each user has; no zeros.
    users: HashMap<Box<str>, u32>,
    /// Before this moment nobody's time is over; `None` = nobody is there.
    safe_until: Option<Instant>,
}

/// Told apart by client id.
struct Member(Arc<ClientInfo>);

impl ChannelMembers {
    /// Adds a member or renews it, until `until`.
    pub(super) fn add(&mut self, info: ClientInfo, until: Instant) {
        self.safe_until = Some(self.safe_until.map_or(until, |safe| safe.min(until)));
        match self.members.get_key_value_mut(info.client.as_str()) {
            Some((member, end)) if *member.0 == info => *end = until,
            _ => {
                self.remove(&info.client.clone());
                *self.users.entry_ref(info.user.as_str()).or_default() += 1;
                self.members.insert(Member(Arc::new(info)), until);
            }
        }
    }

    /// Removes a member, if it is there.
    pub(super) fn remove(&mut self, client: &str) {
        if let Some((member, _)) = self.members.remove_entry(client) {
            self.forget_user(&member.0.user);
            self.shrink();
        }
    }

    /// Removes those whose time is over. Looks at them only when there may be one: members are renewed long before
    /// their end, so most calls look at nobody.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.safe_until.is_none_or(|safe| now < safe) {
            return;
        }
        let over: Vec<Arc<ClientInfo>> =
            (self.members).extract_if(|_, end| *end <= now).map(|(member, _)| member.0).collect();
        for info in over {
            self.forget_user(&info.user);
        }
        self.safe_until = self.members.values().min().copied();
        self.shrink();
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Arc<ClientInfo>> {
        self.members.keys().map(|member| &member.0)
    }

    pub(super) fn stats(&self) -> PresenceStats {
        PresenceStats { clients: self.members.len(), users: self.users.len() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn forget_user(&mut self, user: &str) {
        let count = self.users.get_mut(user).expect("every member's user is counted");
        *count -= 1;
        if *count == 0 {
            self.users.remove(user);
        }
    }

    /// Gives memory back after many have left.
    fn shrink(&mut self) {
        let capacity = self.members.capacity();
        if capacity > SHRINK_FROM && self.members.len() < capacity / 4 {
            self.members.shrink_to_fit();
            self.users.shrink_to_fit();
        }
    }
}

impl Borrow<str> for Member {
    fn borrow(&self) -> &str {
        &self.0.client
    }
}

impl Hash for Member {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.client.hash(state);
    }
}

impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        self.0.client == other.0.client
    }
}

impl Eq for Member {}

/// Smaller crowds are not worth shrinking.
const SHRINK_FROM: usize = 64;
