//! Takeover: a new program goes on with the sockets, the engine and the connections of the old one.
//! In: a running server and a command that starts the new program → out: the server in that program, or here as before.
//! Uses the server's parts, and a pair of sockets between the programs. Never: two programs that serve, nor none.
//! Changed here: what both sides share. The old program's steps are `hand_over`, the new one's `take_over`, messages `link`.

mod hand_over;
mod link;
mod redis_side;
mod take_over;

use fanwire_broker::SNAPSHOT_VERSION;
use fanwire_node::SESSION_FORMAT;
use fanwire_shard::CONNECTION_VERSION;
use serde::{Deserialize, Serialize};

pub use hand_over::{HandOverError, HandedOver};
pub(crate) use hand_over::{Moving, NewProgram};
pub(crate) use redis_side::RedisSide;
pub(crate) use take_over::InheritedListeners;
pub use take_over::Takeover;

/// The first message of the old program. Fields may be added; a new meaning of one, or of what follows, takes another format.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    format: u32,
    /// The versions of the records that follow.
    records: [u8; 3],
    /// Of the old program, for the log.
    version: String,
    /// The id of the node, which goes on with it.
    node: String,
    /// The kind of the engine, which both programs need to have.
    engine: String,
    /// The names of the descriptors that come with the message: listeners, and the lock of the snapshot.
    descriptors: Vec<String>,
}

/// The format of the messages behind the first one, and of records without a version of their own: presence, statuses, revocations, other
/// nodes and the table of Durable Streams. 1 had batches of 128 descriptors, 2 no commands of other nodes.
const FORMAT: u32 = 3;

/// The versions of records that have one: connections, sessions, the engine.
const RECORDS: [u8; 3] = [CONNECTION_VERSION, SESSION_FORMAT, SNAPSHOT_VERSION];

/// The name of the lock of `engine.memory.snapshot_path`.
pub(crate) const SNAPSHOT_LOCK: &str = "snapshot_lock";

/// Tells a program that its standard input is the pair of a takeover. Not a variable of the configuration, whose names begin with
/// `FANWIRE_`.
const VARIABLE: &str = "_FANWIRE_TAKEOVER";

#[cfg(test)]
mod tests;
