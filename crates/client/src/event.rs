//! Events of the client and of its subscriptions, named as in the Go SDK.
//! In: nothing. Out: [`ClientEvent`], [`SubscriptionEvent`] and their parts.
//! Uses messages of the protocol; holds no logic.
//! Changed here: an event. The core emits it, the driver delivers it.

use bytes::Bytes;
use fanwire_protocol::{ClientInfo, Publication, StreamPosition};

use crate::ClientError;

/// Event of a connection and of the subscriptions that the server made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "most events are publications, and a box for each would cost more"
)]
pub enum ClientEvent {
    /// The client connects, at the first time or again.
    Connecting { code: u32, reason: String },
    /// The client is connected. `client` is its id, `data` is from the token's issuer or a backend.
    Connected { client: String, version: String, data: Bytes },
    /// The client is disconnected, and does not connect by itself.
    Disconnected { code: u32, reason: String },
    /// The client tries again by itself after this.
    Error(ClientError),
    /// A message of the server outside of any channel.
    Message { data: Bytes },
    /// The server subscribed this client to a channel.
    ServerSubscribed { channel: String, subscribed: SubscribedContext },
    /// The server ended a subscription that it had made.
    ServerUnsubscribed { channel: String },
    /// A publication of a subscription that the server made; `wire_bytes` as in [`SubscriptionEvent::Publication`].
    ServerPublication { channel: String, publication: Publication, wire_bytes: usize },
    /// A client joined a channel that the server subscribed this client to.
    ServerJoin { channel: String, info: ClientInfo },
    /// A client left a channel that the server subscribed this client to.
    ServerLeave { channel: String, info: ClientInfo },
}

/// Event of one subscription.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "most events are publications, and a box for each would cost more"
)]
pub enum SubscriptionEvent {
    /// The subscription begins, or begins again.
    Subscribing { code: u32, reason: String },
    /// The server accepted it. Missed publications follow if `recovered` is true.
    Subscribed(SubscribedContext),
    /// The subscription ended, and does not begin by itself.
    Unsubscribed { code: u32, reason: String },
    /// The subscription begins again by itself after this.
    Error(ClientError),
    /// A publication. `wire_bytes` is its share of the bytes of the frames that it came in, compressed as they were.
    Publication { publication: Publication, wire_bytes: usize },
    /// A client joined the channel.
    Join { info: ClientInfo },
    /// A client left the channel.
    Leave { info: ClientInfo },
}

/// The result of a subscribe.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SubscribedContext {
    /// The client recovers missed publications after a lost connection.
    pub recoverable: bool,
    /// The server notices a gap, and the client then subscribes again.
    pub positioned: bool,
    /// The client asked for missed publications.
    pub was_recovering: bool,
    /// They follow. If `was_recovering` is true and this is false, load the state from the backend.
    pub recovered: bool,
    /// The position in the channel's stream, if there is one.
    pub position: Option<StreamPosition>,
    /// Data of a backend.
    pub data: Bytes,
}

/// State of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientState {
    Disconnected,
    Connecting,
    Connected,
}

/// State of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscriptionState {
    Unsubscribed,
    Subscribing,
    Subscribed,
}

/// A part of a growing message (`append` of Fanwire's server API): each publication has the whole text so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowingPart<'a> {
    /// The message that this publication replaces.
    pub key: &'a str,
    /// Whether the message is complete.
    pub is_final: bool,
}

/// The part of a growing message that a publication is; `None` for other publications.
pub fn growing_part(publication: &Publication) -> Option<GrowingPart<'_>> {
    let key = publication.tags.get("key")?;
    let is_final = publication.tags.get("final").is_some_and(|value| value == "true");
    Some(GrowingPart { key, is_final })
}

/// Codes of this client, as in the other SDKs. Codes from 3000 on are those of the server.
pub mod code {
    /// `connect`, `disconnect`, `subscribe` or `unsubscribe` was called.
    pub const CALLED: u32 = 0;
    /// Disconnected and unsubscribed: the callback for tokens says that the user has no access.
    pub const UNAUTHORIZED: u32 = 1;
    /// Disconnected: the server sent what this client cannot read.
    pub const BAD_PROTOCOL: u32 = 2;
    /// Disconnected: a message is larger than this client or the server accepts.
    pub const MESSAGE_SIZE_LIMIT: u32 = 3;
    /// Connecting and subscribing: the connection was lost.
    pub const TRANSPORT_CLOSED: u32 = 1;
    /// Connecting: no ping of the server came in time.
    pub const NO_PING: u32 = 2;
    /// Connecting: no reply to a subscribe came in time.
    pub const SUBSCRIBE_TIMEOUT: u32 = 3;
    /// Connecting: no right reply to an unsubscribe came.
    pub const UNSUBSCRIBE_ERROR: u32 = 4;
    /// Unsubscribed: the client was closed.
    pub const CLIENT_CLOSED: u32 = 2;
}

#[cfg(test)]
mod tests;
