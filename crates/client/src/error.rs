//! Errors of the client, by who can act on them.
//! In: nothing. Out: [`ClientError`], which calls return and error events carry, and [`GetTokenError`] of the application's callback.
//! Uses the error of the protocol; never a text that has to be parsed.
//! Changed here: an error and its text.

use fanwire_protocol::ProtocolError;

/// The reason why a call failed, or why the client tries again.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address is not `ws://HOST[:PORT][/PATH]` or `wss://…`.
    #[error("{url:?} is no WebSocket address: {problem}")]
    Url { url: String, problem: &'static str },
    /// The connection is JSON, and the payload is not.
    #[error("a payload of a JSON client is not valid JSON")]
    NotJson,
    /// The client has a subscription of this channel already.
    #[error("the client has a subscription of {channel:?} already")]
    DuplicateSubscription { channel: String },
    /// The server answered with an error.
    #[error("{} ({})", .0.message, .0.code)]
    Server(ProtocolError),
    /// No reply came within [`ClientConfig::timeout`](crate::ClientConfig::timeout), or the client was not connected that long.
    #[error("no reply came in time")]
    Timeout,
    /// The client is disconnected, and a call does not connect it.
    #[error("the client is disconnected")]
    Disconnected,
    /// The connection was lost before the reply. The server may have executed the call.
    #[error("the connection was lost before the reply")]
    ConnectionLost,
    /// The connection could not be opened.
    #[error("{0}")]
    Transport(String),
    /// The server's response to the handshake has this HTTP status.
    #[error("the server answered the WebSocket handshake with HTTP status {status}")]
    Status { status: u16 },
    /// The application's callback returned no token. The client asks again.
    #[error("no token: {0}")]
    Token(String),
    /// A delta of the server does not fit. The client subscribes again.
    #[error("a delta does not fit: {0}")]
    Delta(String),
    /// The server sent bytes that are no reply. The client connects again.
    #[error("the server sent what is no reply: {0}")]
    Protocol(String),
}

/// The reason why the application's callback has no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GetTokenError {
    /// The user has no access: the client disconnects, or the subscription ends.
    #[error("unauthorized")]
    Unauthorized,
    /// Something else; the client asks again later.
    #[error("{0}")]
    Failed(String),
}
