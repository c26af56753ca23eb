//! Answers of this node to surveys, collected from its shards.
//! In: parts of an answer, of each shard → out: the answer of the node, when the last shard has answered.
//! Uses: a promise, a lock for the answer. Never: sessions; the hubs of `node` make the parts.
//! Change here: how answers of shards become one.

use fanwire_broker::Promise;
use fanwire_protocol::ErrorCode;
use parking_lot::Mutex;

use crate::{
    ConnectionPage, ConnectionRange, ConnectionRecord, DiagnosticAnswer, DiagnosticQuestion,
};

/// An answer on its way to all shards. The promise is kept when the last copy is dropped: then every shard has answered.
#[derive(Debug)]
struct NodeAnswer<T: Default> {
    answer: Mutex<T>,
    promise: Option<Promise<T, ErrorCode>>,
}

impl<T: Default> NodeAnswer<T> {
    fn new(answer: T, promise: Promise<T, ErrorCode>) -> Self {
        Self { answer: Mutex::new(answer), promise: Some(promise) }
    }
}

impl<T: Default> Drop for NodeAnswer<T> {
    fn drop(&mut self) {
        let answer = std::mem::take(self.answer.get_mut());
        if let Some(promise) = self.promise.take() {
            promise.keep(Ok(answer));
        }
    }
}

/// Connections of this node: those of a user, or a page of all.
#[derive(Debug)]
pub struct ConnectionList {
    range: ConnectionRange,
    found: NodeAnswer<ConnectionPage>,
}

impl ConnectionList {
    /// No connection yet.
    pub fn new(range: ConnectionRange, promise: Promise<ConnectionPage, ErrorCode>) -> Self {
        Self { range, found: NodeAnswer::new(ConnectionPage::default(), promise) }
    }

    /// Adds a connection.
    pub fn add(&self, client: String, record: ConnectionRecord) {
        let mut found = self.found.answer.lock();
        found.connections.insert(client, record);
        self.range.cut(&mut found.connections);
    }

    /// Ends a page before all connections are in it.
    pub fn end_before(&self, next: u64) {
        self.found.answer.lock().next = next;
    }

    /// Whether a client is in the range of the list, as far as is known now.
    pub fn wants(&self, client: &str) -> bool {
        self.range.has(client, &self.found.answer.lock().connections)
    }
}

/// The answer of this node to a question for diagnosis.
#[derive(Debug)]
pub struct DiagnosticList {
    pub question: DiagnosticQuestion,
    found: NodeAnswer<DiagnosticAnswer>,
}

impl DiagnosticList {
    /// The answer begins with `answer`.
    pub fn new(
        question: DiagnosticQuestion,
        answer: DiagnosticAnswer,
        promise: Promise<DiagnosticAnswer, ErrorCode>,
    ) -> Self {
        Self { question, found: NodeAnswer::new(answer, promise) }
    }

    /// Adds the part of a shard.
    pub fn add(&self, extend: impl FnOnce(&mut DiagnosticAnswer)) {
        extend(&mut self.found.answer.lock());
    }
}
