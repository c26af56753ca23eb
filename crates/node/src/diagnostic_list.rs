//! Answers of the shards of this node for diagnosis, collected.
//! In: parts of the answer, of each shard → out: the answer of the node, when the last shard has answered.
//! Uses: a promise, a lock for the answer. Never: sessions.
//! Change here: how answers of shards become one.

use fanwire_broker::Promise;
use fanwire_cluster::{DiagnosticAnswer, DiagnosticQuestion};
use fanwire_protocol::ErrorCode;
use parking_lot::Mutex;

/// A question on its way to all shards. The promise is kept when the last copy is dropped: then every shard has answered.
#[derive(Debug)]
pub struct DiagnosticList {
    pub(crate) question: DiagnosticQuestion,
    answer: Mutex<DiagnosticAnswer>,
    promise: Option<Promise<DiagnosticAnswer, ErrorCode>>,
}

impl DiagnosticList {
    /// The answer begins with `answer`.
    pub(crate) fn new(
        question: DiagnosticQuestion,
        answer: DiagnosticAnswer,
        promise: Promise<DiagnosticAnswer, ErrorCode>,
    ) -> Self {
        Self { question, answer: Mutex::new(answer), promise: Some(promise) }
    }

    /// Adds the part of a shard.
    pub(crate) fn add(&self, extend: impl FnOnce(&mut DiagnosticAnswer)) {
        extend(&mut self.answer.lock());
    }
}

impl Drop for DiagnosticList {
    fn drop(&mut self) {
        let answer = std::mem::take(self.answer.get_mut());
        if let Some(promise) = self.promise.take() {
            promise.keep(Ok(answer));
        }
    }
}
