//! Connections of this node, collected from its shards: those of a user, or a page of all.
//! In: records of each shard → out: all of them, when the last shard has answered.
//! Uses: a promise, a lock for the records. Never: sessions; `hub/connections.rs` describes them.
//! Change here: how answers of shards become one.

use fanwire_broker::Promise;
use fanwire_cluster::{ConnectionPage, ConnectionRange, ConnectionRecord};
use fanwire_protocol::ErrorCode;
use parking_lot::Mutex;

/// A list on its way to all shards. The promise is kept when the last copy is dropped: then every shard has answered.
#[derive(Debug)]
pub struct ConnectionList {
    found: Mutex<ConnectionPage>,
    range: ConnectionRange,
    promise: Option<Promise<ConnectionPage, ErrorCode>>,
}

impl ConnectionList {
    pub(crate) fn new(range: ConnectionRange, promise: Promise<ConnectionPage, ErrorCode>) -> Self {
        Self { found: Mutex::default(), range, promise: Some(promise) }
    }

    /// Adds a connection.
    pub(crate) fn add(&self, client: String, record: ConnectionRecord) {
        let mut found = self.found.lock();
        found.connections.insert(client, record);
        self.range.cut(&mut found.connections);
    }

    /// Ends a page before all connections are in it.
    pub(crate) fn end_before(&self, next: u64) {
        self.found.lock().next = next;
    }

    /// Whether a client is in the range of the list, as far as is known now.
    pub(crate) fn wants(&self, client: &str) -> bool {
        self.range.has(client, &self.found.lock().connections)
    }
}

impl Drop for ConnectionList {
    fn drop(&mut self) {
        let found = std::mem::take(self.found.get_mut());
        if let Some(promise) = self.promise.take() {
            promise.keep(Ok(found));
        }
    }
}
