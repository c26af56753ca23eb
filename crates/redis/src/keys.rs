//! The names of all keys and PUB/SUB channels in Redis (docs/redis-data.md has the table).
//! In: a prefix and a channel → out: key names that share one slot of a Redis Cluster per channel.
//! Uses: nothing. Never: commands.
//! Changed here: a name. `script/*.lua` write the values, `stream.rs` and `members.rs` read them.

use std::iter;

use super::slot;

/// Builds names.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
    /// Sharded PUB/SUB, as in a Cluster: messages go to the master of the slot only.
    is_sharded: bool,
    /// Part of the name before the channel, for each kind.
    heads: [String; KeyKind::ALL.len()],
}

/// Content of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// PUB/SUB: publications, joins and leaves.
    PubSub,
    /// Stream: stored publications, the id being the offset.
    Stream,
    /// Hash: epoch, top offset, version and its epoch.
    Meta,
    /// Sorted set: client ids by the millisecond at which they end.
    Ends,
    /// Hash: client id to member.
    Members,
    /// Hash: user id to the number of its clients.
    Users,
    /// Sorted set: keys of growing messages by the millisecond at which they are forgotten.
    Growing,
    /// Stream: stored changes of a map, the id being the offset.
    MapChanges,
    /// Hash: epoch, top offset, number and bytes of entries of a map.
    MapMeta,
    /// Hash: key to entry of a map.
    MapEntries,
    /// Sorted set: keys of a map by the millisecond at which they end.
    MapDeadlines,
    /// String: names the last clearing of a map, as long as results of idempotency keys from before it exist.
    MapClearing,
    /// Hash: the status of a user, whose id stands in place of the channel.
    Status,
}

impl Keys {
    pub(crate) fn new(prefix: &str, is_sharded: bool) -> Self {
        let heads = KeyKind::ALL.map(|kind| format!("{prefix}.{}.{OPEN}", kind.name()));
        Self { prefix: prefix.to_owned(), is_sharded, heads }
    }

    /// The command that publishes a message.
    pub(crate) fn publish(&self) -> &'static str {
        if self.is_sharded { "SPUBLISH" } else { "PUBLISH" }
    }

    /// The slot of all names of a channel in a Cluster, whose prefix must not contain `{`; 0 outside of Clusters.
    pub(crate) fn slot(&self, channel: &str) -> u16 {
        if !self.is_sharded {
            return 0;
        }
        slot::of_tag(iter::once(b':').chain(channel.bytes().take_while(|byte| *byte != b'}')))
    }

    /// The name of this kind for a channel.
    pub(crate) fn of(&self, kind: KeyKind, channel: &str) -> String {
        let head = &self.heads[kind as usize];
        let mut name = String::with_capacity(head.len() + channel.len() + CLOSE.len());
        for part in [head, channel, CLOSE] {
            name.push_str(part);
        }
        name
    }

    /// The name of the string that holds the position of an idempotency key. It begins with the length of the channel,
    /// because channels and keys may contain the separators as well.
    pub(crate) fn of_result(&self, channel: &str, key: &str) -> String {
        format!("{}.result.{}.{OPEN}{channel}{CLOSE}.{key}", self.prefix, channel.len())
    }

    /// The same for a key of a client, which no key of a backend can have.
    pub(crate) fn of_client_result(&self, channel: &str, owner: &str, key: &str) -> String {
        let prefix = &self.prefix;
        let channel_length = channel.len();
        let owner_length = owner.len();
        format!(
            "{prefix}.client_result.{channel_length}.{owner_length}.{OPEN}{channel}{CLOSE}.{owner}.{key}"
        )
    }

    /// The name of the hash of a growing message, made in the same way.
    pub(crate) fn of_message(&self, channel: &str, key: &str) -> String {
        format!("{}.message.{}.{OPEN}{channel}{CLOSE}.{key}", self.prefix, channel.len())
    }

    /// A name of the blocks and revocations, which have one slot.
    pub(crate) fn of_revocations(&self, name: &str) -> String {
        format!("{}.{{revocations}}.{name}", self.prefix)
    }

    /// The PUB/SUB name of the mark at which the programs of a takeover of the node `uid` stop.
    pub(crate) fn takeover_mark(&self, uid: &str) -> String {
        format!("{}.takeover.{uid}", self.prefix)
    }

    /// The PUB/SUB name for messages to the node `uid`, or to all nodes.
    pub(crate) fn node_channel(&self, uid: Option<&str>) -> String {
        let prefix = &self.prefix;
        let nodes = NODES;
        match uid {
            Some(uid) => [prefix, nodes, ".", uid].concat(),
            None => [prefix, nodes].concat(),
        }
    }

    /// Whether this is a PUB/SUB name for messages between nodes.
    pub(crate) fn is_node_channel(&self, name: &[u8]) -> bool {
        let rest = name.strip_prefix(self.prefix.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(NODES.as_bytes()))
    }

    /// The channel of a PUB/SUB name; `None` if the name is not ours.
    pub(crate) fn channel_of_pubsub<'a>(&self, name: &'a [u8]) -> Option<&'a str> {
        let inner = name.strip_prefix(self.heads[KeyKind::PubSub as usize].as_bytes())?;
        let inner = inner.strip_suffix(CLOSE.as_bytes())?;
        str::from_utf8(inner).ok()
    }
}

impl KeyKind {
    /// All kinds, in the order of the variants.
    const ALL: [Self; 13] = [
        Self::PubSub,
        Self::Stream,
        Self::Meta,
        Self::Ends,
        Self::Members,
        Self::Users,
        Self::Growing,
        Self::MapChanges,
        Self::MapMeta,
        Self::MapEntries,
        Self::MapDeadlines,
        Self::MapClearing,
        Self::Status,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::PubSub => "feed",
            Self::Stream => "stream",
            Self::Meta => "meta",
            Self::Ends => "presence.ends",
            Self::Members => "presence.members",
            Self::Users => "presence.users",
            Self::Growing => "growing",
            Self::MapChanges => "map.changes",
            Self::MapMeta => "map.meta",
            Self::MapEntries => "map.entries",
            Self::MapDeadlines => "map.deadlines",
            Self::MapClearing => "map.clearing",
            Self::Status => "status",
        }
    }
}

/// Opens the hash tag, which in a Cluster ends at the first `}`. The colon keeps the tag from being empty for a
/// channel that begins with `}`; an empty tag would make Redis hash the whole name. It also keeps our names apart from
/// those of Centrifugo, which has another layout, under one prefix.
const OPEN: &str = "{:";
const CLOSE: &str = "}";
/// Follows the prefix in PUB/SUB names for messages between nodes.
const NODES: &str = ".nodes";

#[cfg(test)]
mod tests;
