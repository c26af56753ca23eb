//! Presence in the model engine: members of channels with their ends.
//! In: members that are added, renewed and removed → out: the members of a channel at a time.
//! Pure. Never: connections; a member of a dead host stays until its end.
//! Changed here: what an engine may do with a member.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_broker::{PresencePage, PresenceStats};
use fanwire_protocol::ClientInfo;

use super::{Engine, Undo};

#[derive(Clone)]
pub(super) struct Member {
    info: Arc<ClientInfo>,
    end: Instant,
}

impl Engine {
    pub(super) fn add_member(
        &mut self,
        channel: &str,
        info: ClientInfo,
        ttl: Duration,
        now: Instant,
    ) {
        let client = info.client.clone();
        let member = Member { info: Arc::new(info), end: now + ttl };
        let members = self.members.entry(channel.to_owned()).or_default();
        let before = members.insert(client.clone(), member);
        self.remember(now, Undo::Member(channel.to_owned(), client, before));
    }

    pub(super) fn remove_member(&mut self, channel: &str, client: &str) {
        if let Some(members) = self.members.get_mut(channel) {
            members.remove(client);
        }
    }

    pub(super) fn members(&self, channel: &str, now: Instant) -> Vec<Arc<ClientInfo>> {
        let members = self.members.get(channel).into_iter().flatten();
        let live = members.filter(|(_, member)| member.end > now);
        live.map(|(_, member)| Arc::clone(&member.info)).collect()
    }

    /// The ids of the members of a channel.
    pub fn present(&self, channel: &str, now: Instant) -> BTreeSet<String> {
        self.members(channel, now).iter().map(|info| info.client.clone()).collect()
    }

    pub(super) fn member_stats(&self, channel: &str, now: Instant) -> PresenceStats {
        let members = self.members(channel, now);
        let users: BTreeSet<_> = members.iter().map(|info| info.user.as_str()).collect();
        PresenceStats { clients: members.len(), users: users.len() }
    }

    /// Members by a hash of their id, which is the cursor.
    pub(super) fn member_page(
        &self,
        channel: &str,
        cursor: u64,
        limit: usize,
        now: Instant,
    ) -> PresencePage {
        let mut members: Vec<_> = self.members(channel, now);
        members.retain(|info| place(&info.client) > cursor);
        members.sort_unstable_by_key(|info| place(&info.client));
        let has_more = members.len() > limit;
        members.truncate(limit);
        let last = members.last().map_or(0, |info| place(&info.client));
        PresencePage { members, next: if has_more { last } else { 0 } }
    }
}

fn place(client: &str) -> u64 {
    let hash = client.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash | 1
}
