//! Changes of the tables that block users and revoke tokens, sent to every node.
//! In: calls of the server API → out: values that travel between nodes, as Protobuf.
//! Uses: prost. Never: the tables; each node has its own.
//! Change here: what a change contains. Field numbers stay for ever.

/// One change. The meaning of the fields depends on its kind.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RevocationChange {
    /// A [`RevocationKind`]; others are ignored.
    #[prost(enumeration = "RevocationKind", tag = "1")]
    pub kind: i32,
    /// The user id, or the `jti` of a token.
    #[prost(string, tag = "2")]
    pub subject: String,
    /// Limits invalidated tokens to subscription tokens of this channel.
    #[prost(string, optional, tag = "3")]
    pub channel: Option<String>,
    /// Unix second at which the entry ends; 0 = never.
    #[prost(uint64, tag = "4")]
    pub expire_at: u64,
    /// Tokens with an earlier `iat` are invalidated.
    #[prost(uint64, tag = "5")]
    pub issued_before: u64,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum RevocationKind {
    /// Never sent; the kind of a message whose kind this node does not know.
    None = 0,
    BlockUser = 1,
    UnblockUser = 2,
    RevokeToken = 3,
    InvalidateTokens = 4,
}
