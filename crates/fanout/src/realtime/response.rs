//! Responses of streams that begin when their connect is decided, because its refusal is to be a status.
//! In: a function that makes the bytes, the outcome of the connect → out: the head of the stream, or a whole response.
//! Uses: nothing of HTTP, which `fanwire` knows; never a socket.
//! Changed here: which connections have not begun their response. Others send the head when they open.

use fanwire_node::ConnectionInfo;
use fanwire_shard::Coding;
use hashbrown::HashMap;

/// A session that begins: its description for the hub, and its response.
pub struct NewSession {
    pub connection: ConnectionInfo,
    /// Head of a stream whose response was not begun.
    pub response: Option<PendingResponse>,
}

/// A response that waits for its connect.
pub struct PendingResponse {
    /// Coding of the body, if the connect succeeds.
    pub coding: Option<Coding>,
    pub make: MakeResponse,
}

/// Makes the head of a response, or, for a refused connect, a whole response with a status of its own.
pub type MakeResponse = Box<dyn FnOnce(Option<ConnectError<'_>>) -> Vec<u8> + Send>;

/// The reason why a connect was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectError<'a> {
    /// Code of the error or of the disconnect.
    pub code: u32,
    /// Its message or its reason.
    pub text: &'a str,
}

/// The pending responses of a shard, by index of the connection. There are few: each ends with the connect.
#[derive(Default)]
pub(super) struct PendingResponses(HashMap<u32, PendingResponse>);

impl From<ConnectionInfo> for NewSession {
    fn from(connection: ConnectionInfo) -> Self {
        Self { connection, response: None }
    }
}

impl PendingResponses {
    pub(super) fn open(&mut self, connection: u32, response: Option<PendingResponse>) {
        if let Some(response) = response {
            self.0.insert(connection, response);
        }
    }

    /// The coding and the head of the response of a connection, if it has one that was not begun.
    pub(super) fn begin(&mut self, connection: u32) -> Option<(Option<Coding>, Vec<u8>)> {
        if self.0.is_empty() {
            return None;
        }
        self.0.remove(&connection).map(|pending| (pending.coding, (pending.make)(None)))
    }

    /// The response to a connection whose connect was refused, if it has one that was not begun.
    pub(super) fn refuse(&mut self, connection: u32, code: u32, text: &str) -> Option<Vec<u8>> {
        let pending = self.0.remove(&connection);
        pending.map(|pending| (pending.make)(Some(ConnectError { code, text })))
    }

    /// Whether the response of a connection was not begun.
    pub(super) fn is_pending(&self, connection: u32) -> bool {
        self.0.contains_key(&connection)
    }

    /// The connection has ended.
    pub(super) fn close(&mut self, connection: u32) {
        self.0.remove(&connection);
    }
}
