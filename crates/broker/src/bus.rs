//! The bus port: how messages travel between the nodes of one installation.
//! In: bytes for one node or for all → out: the number of nodes that the message was sent to.
//! Uses `Answer`. Never: the content of messages, which only the node reads.
//! Changed here: the promises of every bus. The messages themselves live in `fanwire_cluster`.

use bytes::Bytes;

use crate::Answer;

/// Carries messages between the nodes of an installation.
///
/// A bus does not store messages: a message that it cannot send is lost, and its sender gets an error.
pub trait Bus: Send + Sync {
    /// Sends to the node with the uid `to`, or to every node, this one included, when `to` is `None`.
    ///
    /// Returns the number of nodes that were subscribed to the bus when the message was sent. Never blocks, and answers
    /// in bounded time.
    ///
    /// # Errors
    /// [`BrokerError::Unavailable`](crate::BrokerError::Unavailable) when the message could not be sent.
    fn send(&self, to: Option<&str>, message: Bytes) -> Answer<usize>;
}
