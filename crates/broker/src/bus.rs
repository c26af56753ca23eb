//! The bus port: how messages travel between the nodes of one installation.
//! In: bytes for one node or for all → out: to how many nodes they are on their way.
//! Uses `Answer`. Never: what the messages say, which the node knows.
//! Change here: the promises of every bus. What nodes send each other lives in `cluster.rs` of `node`.

use bytes::Bytes;

use crate::Answer;

/// Carries messages between the nodes of an installation. What it cannot carry is lost, and whoever sent it is told.
pub trait Bus: Send + Sync {
    /// Sends to every node, this one included, or to the one with this uid. Never blocks; answers in bounded time, with an
    /// error unless the message is on its way to whoever hears the bus by then: so many nodes.
    fn send(&self, to: Option<&str>, message: Bytes) -> Answer<usize>;
}
