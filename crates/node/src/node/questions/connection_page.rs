//! All connections of one node, page by page (server API §3 snapshot).
//! In: where a page starts, how long it is → out: connections, and the start of the next page.
//! Uses: `session_table`; records of `connections.rs`. Never: sends to clients.
//! Changed here: how pages follow each other.

use std::time::{Duration, Instant};

use fanwire_cluster::{Question, SurveyKind};
use fanwire_protocol::ErrorCode;
use parking_lot::Mutex;

use super::connections::{ConnectionPage, record};
use super::{Ask, ShardView};
use crate::node::Node;

/// Asks for a page of the connections of all users to one node.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct PageQuestion {
    /// Connections of the page, at least 1.
    #[prost(uint32, tag = "3")]
    pub limit: u32,
    /// 0, or [`ConnectionPage::next`]: the index of the shard in the upper half, that of a connection in the lower one.
    #[prost(uint64, tag = "4")]
    pub start: u64,
}

impl Question for PageQuestion {
    type Answer = ConnectionPage;
    /// A question for users has the same tag and no limit.
    const TAG: u32 = 14;
    const KIND: SurveyKind = SurveyKind::Connections;

    fn is_asked(&self) -> bool {
        self.limit > 0
    }

    fn merge(&self, all: &mut ConnectionPage, one: ConnectionPage, _: Duration) {
        *all = one;
    }
}

impl Ask for PageQuestion {
    const IS_FOR_SHARDS: bool = true;

    /// The page has the rest of a shard, unless that is more than its limit. Then the next shard follows.
    fn begin(&self, node: &Node, _: Instant) -> Result<ConnectionPage, ErrorCode> {
        let next_shard = (self.start >> 32) + 1;
        let has_next = next_shard < node.channels.router.shard_count() as u64;
        let next = if has_next { next_shard << 32 } else { 0 };
        Ok(ConnectionPage { next, ..ConnectionPage::default() })
    }

    fn add(&self, shard: &ShardView<'_>, _: u32, answer: &Mutex<ConnectionPage>) -> Option<u32> {
        let session_table = shard.session_table;
        if self.start >> 32 != u64::from(session_table.shard.0) {
            return None;
        }
        let mut page = answer.lock();
        for index in self.start as u32..session_table.index_end() {
            if page.connections.len() >= self.limit as usize {
                page.next = u64::from(session_table.shard.0) << 32 | u64::from(index);
                break;
            }
            let session = session_table.at(index).filter(|session| session.is_connected());
            if let Some(session) = session {
                page.connections.insert(session.client(), record(session_table, session));
            }
        }
        None
    }
}
