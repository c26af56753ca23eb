//! The records of what the memory engine has besides streams and maps, for another program on this machine.
//! In: members, statuses, blocks and revocations → out: messages that prost reads and writes.
//! Uses: prost. Never: rules.
//! Changed here: what a record has. A tag is never used for another meaning.

use fanwire_protocol::ClientInfo;

use crate::{RevocationChange, RevocationKind};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MemoryRecord {
    #[prost(message, repeated, tag = "1")]
    pub(crate) members: Vec<MemberRecord>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) statuses: Vec<StatusRecord>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) revocations: Vec<RevocationRecord>,
}

/// A member of a channel's presence.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MemberRecord {
    #[prost(string, tag = "1")]
    pub(crate) channel: String,
    #[prost(message, required, tag = "2")]
    pub(crate) info: ClientInfo,
    /// Unix milliseconds.
    #[prost(uint64, tag = "3")]
    pub(crate) until: u64,
}

/// The status of a user. Times are Unix seconds.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StatusRecord {
    #[prost(string, tag = "1")]
    pub(crate) user: String,
    #[prost(uint64, tag = "2")]
    pub(crate) active: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) online: u64,
    #[prost(string, tag = "4")]
    pub(crate) state: String,
    #[prost(uint64, tag = "5")]
    pub(crate) until: u64,
}

/// A block or a revocation. Times are Unix seconds.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RevocationRecord {
    /// The number of its kind.
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(string, tag = "2")]
    subject: String,
    #[prost(string, optional, tag = "3")]
    channel: Option<String>,
    #[prost(uint64, tag = "4")]
    expire_at: u64,
    #[prost(uint64, tag = "5")]
    issued_before: u64,
}

/// The kinds by their numbers in the file.
const KINDS: [RevocationKind; 4] = [
    RevocationKind::BlockUser,
    RevocationKind::UnblockUser,
    RevocationKind::RevokeToken,
    RevocationKind::InvalidateTokens,
];

impl From<&RevocationChange> for RevocationRecord {
    fn from(change: &RevocationChange) -> Self {
        let is_kind = |kind: &RevocationKind| *kind == change.kind;
        let RevocationChange { subject, channel, expire_at, issued_before, .. } = change.clone();
        let kind = KINDS.iter().position(is_kind).expect("the list has all") as u32;
        Self { kind, subject, channel, expire_at, issued_before }
    }
}

impl RevocationRecord {
    /// `None` for a kind that does not exist.
    pub(crate) fn change(self) -> Option<RevocationChange> {
        let Self { kind, subject, channel, expire_at, issued_before } = self;
        let kind = KINDS.get(kind as usize).copied()?;
        Some(RevocationChange { kind, subject, channel, expire_at, issued_before })
    }
}
