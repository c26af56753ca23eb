//! The members of one channel, each with its expiry, and the number of distinct users.
//! In: members that are added, renewed and removed, the time → out: the members that have not expired.
//! Uses: hash tables. Never: locks, clocks.
//! Changed here: what is stored per member, and when expired members are searched for.

use std::borrow::Borrow;
use std::hash::{BuildHasher as _, Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;

use fanwire_protocol::ClientInfo;
use hashbrown::HashMap;

use crate::saved::{MemberRecord, SnapshotClock};
use crate::{PresencePage, PresenceStats};

/// The members of a channel. Counting does not iterate over them.
#[derive(Default)]
pub(super) struct ChannelMembers {
    /// Each with the moment at which it expires.
    members: HashMap<Member, Instant>,
    /// Number of members per user; never 0.
    users: HashMap<Box<str>, u32>,
    /// No member expires before this moment; `None` = there are no members.
    first_expiry: Option<Instant>,
}

/// Equality and hash are those of the client id.
struct Member(Arc<ClientInfo>);

impl ChannelMembers {
    /// Adds a member or renews it, until `until`.
    pub(super) fn add(&mut self, info: ClientInfo, until: Instant) {
        self.first_expiry = Some(self.first_expiry.map_or(until, |first| first.min(until)));
        match self.members.get_key_value_mut(info.client.as_str()) {
            Some((member, end)) if *member.0 == info => *end = until,
            _ => {
                self.remove(&info.client.clone());
                *self.users.entry_ref(info.user.as_str()).or_default() += 1;
                self.members.insert(Member(Arc::new(info)), until);
            }
        }
    }

    /// Removes a member, if it exists.
    pub(super) fn remove(&mut self, client: &str) {
        if let Some((member, _)) = self.members.remove_entry(client) {
            self.remove_user(&member.0.user);
            self.shrink();
        }
    }

    /// Removes expired members. Most calls return at once, because members are renewed long before they expire.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.first_expiry.is_none_or(|first| now < first) {
            return;
        }
        let expired: Vec<Arc<ClientInfo>> =
            (self.members).extract_if(|_, end| *end <= now).map(|(member, _)| member.0).collect();
        for info in expired {
            self.remove_user(&info.user);
        }
        self.first_expiry = self.members.values().min().copied();
        self.shrink();
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Arc<ClientInfo>> {
        self.members.keys().map(|member| &member.0)
    }

    /// The records of all members.
    pub(super) fn save(
        &self,
        channel: &str,
        clock: &SnapshotClock,
    ) -> impl Iterator<Item = MemberRecord> {
        self.members.iter().map(move |(member, until)| MemberRecord {
            channel: channel.to_owned(),
            info: member.0.as_ref().clone(),
            until: clock.unix_ms(*until),
        })
    }

    /// Members in the order of their hashes, from the one after `cursor` on.
    pub(super) fn page(&self, cursor: u64, limit: usize) -> PresencePage {
        let hash = |member: &Member| self.members.hasher().hash_one(member) | 1;
        let all = self.members.keys().map(|member| (hash(member), &member.0));
        let mut found: Vec<_> = all.filter(|(hash, _)| *hash > cursor).collect();
        let mut next = 0;
        if found.len() > limit {
            next = found.select_nth_unstable_by_key(limit - 1, |(hash, _)| *hash).1.0;
            found.retain(|(hash, _)| *hash <= next);
        }
        let members = found.into_iter().map(|(_, member)| Arc::clone(member)).collect();
        PresencePage { members, next }
    }

    pub(super) fn stats(&self) -> PresenceStats {
        PresenceStats { clients: self.members.len(), users: self.users.len() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn remove_user(&mut self, user: &str) {
        let count = self.users.get_mut(user).expect("the user of every member is counted");
        *count -= 1;
        if *count == 0 {
            self.users.remove(user);
        }
    }

    /// Frees memory after many members were removed.
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

/// Smaller tables are not shrunk.
const SHRINK_FROM: usize = 64;
