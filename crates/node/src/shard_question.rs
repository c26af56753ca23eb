//! A question on its way to the shards of a node: what a shard shows it, and how it goes on.
//! In: the tables of a shard → out: whatever the question takes from them.
//! Uses: the session table. Never: knows a question; `node/questions/` has them.
//! Changed here: what a question may read of a shard.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::session::ConnectionKey;
use crate::session_table::SessionTable;

/// One shard, for a question.
pub struct ShardView<'a> {
    pub(crate) session_table: &'a SessionTable,
    pub(crate) node_name: &'a str,
    /// Unix time in milliseconds.
    pub(crate) now_ms: u64,
    /// The address of a connection's peer.
    pub(crate) address: &'a dyn Fn(ConnectionKey) -> Option<SocketAddr>,
    /// Bytes that wait for the socket of a connection, by its index.
    pub(crate) queued_bytes: &'a dyn Fn(u32) -> usize,
}

/// A question on its way to a shard, for the connections from an index on.
#[derive(Clone)]
pub struct ShardQuestion {
    pub(crate) asked: Arc<dyn AskShard>,
    pub(crate) from: u32,
}

/// A question of any type.
pub(crate) trait AskShard: Send + Sync {
    /// Asks a shard for the connections from an index on. Returns the index to go on with in another turn.
    fn ask(&self, shard: &ShardView<'_>, from: u32) -> Option<u32>;
}

impl ShardQuestion {
    /// Asks a shard. Returns the question for its next connections.
    pub(crate) fn ask(&self, shard: &ShardView<'_>) -> Option<Self> {
        let from = self.asked.ask(shard, self.from)?;
        Some(Self { asked: Arc::clone(&self.asked), from })
    }
}

impl fmt::Debug for ShardQuestion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ShardQuestion(from {})", self.from)
    }
}
