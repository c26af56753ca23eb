//! The names of everything Fanwire keeps in Redis (docs/redis.md has the table).
//! In: a prefix and a channel → out: key names that share one slot of a Redis Cluster per channel.
//! Uses: nothing. Never: commands.
//! Change here: a name. What is behind it is written by `script/*.lua` and read by `stream.rs` and `members.rs`.

use std::iter;

use super::slot;

/// Makes names.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
    /// Messages go to the master of a slot only, as in a Cluster.
    is_sharded: bool,
    /// What comes before the channel in names of each kind.
    heads: [String; KeyKind::ALL.len()],
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// PUB/SUB: publications, joins and leaves.
    Feed,
    /// Stream: stored publications, the id being the offset.
    Stream,
    /// Hash: epoch, top offset, version and its epoch.
    Meta,
    /// Sorted set: client ids by the millisecond at which they are gone.
    Ends,
    /// Hash: client id to member.
    Members,
    /// Hash: user id to how many of its clients are here.
    Users,
}

impl Keys {
    pub(crate) fn new(prefix: &str, is_sharded: bool) -> Self {
        let heads = KeyKind::ALL.map(|kind| format!("{prefix}.{}.{OPEN}", kind.word()));
        Self { prefix: prefix.to_owned(), is_sharded, heads }
    }

    /// The command that sends a message to whoever hears a name.
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

    /// The name of something of a channel.
    pub(crate) fn of(&self, kind: KeyKind, channel: &str) -> String {
        let head = &self.heads[kind as usize];
        let mut name = String::with_capacity(head.len() + channel.len() + CLOSE.len());
        for part in [head, channel, CLOSE] {
            name.push_str(part);
        }
        name
    }

    /// The name of a string, the position that an idempotency key got. It begins with the length of the channel, because a
    /// channel and a key may hold the marks between them, too.
    pub(crate) fn of_result(&self, channel: &str, key: &str) -> String {
        format!("{}.result.{}.{OPEN}{channel}{CLOSE}.{key}", self.prefix, channel.len())
    }

    /// The name under which nodes speak to one of them, or to all.
    pub(crate) fn node_channel(&self, uid: Option<&str>) -> String {
        let (prefix, nodes) = (&self.prefix, NODES);
        match uid {
            Some(uid) => [prefix, nodes, ".", uid].concat(),
            None => [prefix, nodes].concat(),
        }
    }

    /// Whether nodes speak under this name.
    pub(crate) fn is_node_channel(&self, name: &[u8]) -> bool {
        let rest = name.strip_prefix(self.prefix.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(NODES.as_bytes()))
    }

    /// The channel whose PUB/SUB has this name, if it is one of ours.
    pub(crate) fn channel_of_feed<'a>(&self, name: &'a [u8]) -> Option<&'a str> {
        let inner = name.strip_prefix(self.heads[KeyKind::Feed as usize].as_bytes())?;
        let inner = inner.strip_suffix(CLOSE.as_bytes())?;
        str::from_utf8(inner).ok()
    }
}

impl KeyKind {
    /// In their order.
    const ALL: [Self; 6] =
        [Self::Feed, Self::Stream, Self::Meta, Self::Ends, Self::Members, Self::Users];

    const fn word(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::Stream => "stream",
            Self::Meta => "meta",
            Self::Ends => "presence.ends",
            Self::Members => "presence.members",
            Self::Users => "presence.users",
        }
    }
}

/// Opens the hash tag, which in a Cluster is all up to the first `}`. The colon keeps it from being empty, which would
/// make the whole name count, for a channel that begins with `}`; and it keeps our names apart from Centrifugo's, whose
/// layout is another, should both have one prefix.
const OPEN: &str = "{:";
const CLOSE: &str = "}";
/// What follows the prefix in names under which nodes speak.
const NODES: &str = ".nodes";

#[cfg(test)]
mod tests;
