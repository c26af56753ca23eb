//! Questions to all nodes: each is a file in `questions/`, with its answer and how this node answers it.
//! In: questions of the server API and of other nodes → out: the merged answers of all nodes, the answer of this node.
//! Uses: the cluster, the router. Never: waits for a shard; the last one to answer completes the answer.
//! Changed here: how a question reaches the shards. A new question is a file and a row in `QUESTIONS`.

mod channels;
mod cluster_clock;
mod connection_log;
mod connection_page;
mod connections;
mod hot_lists;
mod online_users;
mod publication_report;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::{Answer, Promise};
use fanwire_cluster::{Question, ReceivedQuestion, Surveyed};
use fanwire_protocol::ErrorCode;
use parking_lot::Mutex;

use super::Node;
use crate::deliver::BroadcastRouter;
use crate::notice::Notice;
use crate::shard_question::{AskShard, ShardQuestion, ShardView};
pub use channels::{ChannelCounts, ChannelQuestion};
pub use cluster_clock::{ClockQuestion, NodeClock};
pub use connection_log::{
    ConnectionLogQuery, ConnectionLogQuestion, ConnectionLogRecord, LoggedEvent, NodeLogs,
};
pub use connection_page::PageQuestion;
pub use connections::{
    CONNECTIONS_MAX, ConnectionPage, ConnectionQuestion, ConnectionRecord, TokenRecord,
};
pub use hot_lists::{HotEntry, HotListsQuestion, HotRecord};
pub use publication_report::{NodeDeliveries, ReportQuestion};

/// A question that this node can answer.
pub trait Ask: Question {
    /// Whether shards have a part of the answer.
    const IS_FOR_SHARDS: bool;

    /// The part of the answer that the node has without its shards.
    ///
    /// # Errors
    /// The question is invalid.
    fn begin(&self, _node: &Node, _now: Instant) -> Result<Self::Answer, ErrorCode> {
        Ok(Self::Answer::default())
    }

    /// Adds what a shard knows, from a connection index on. Returns the index to go on with in another turn.
    fn add(
        &self,
        _shard: &ShardView<'_>,
        _from: u32,
        _answer: &Mutex<Self::Answer>,
    ) -> Option<u32> {
        None
    }
}

/// A question that this node answers. The promise is kept when the last copy is dropped: then every shard has answered.
struct RunningQuestion<Q: Ask> {
    question: Q,
    answer: Mutex<Q::Answer>,
    promise: Option<Promise<Q::Answer, ErrorCode>>,
}

impl Node {
    /// Asks all nodes. A node has 10 s to answer, and 1 s if it gave no sign of life lately.
    ///
    /// # Errors
    /// The question is invalid; 111 when too many surveys run; 100 when a shard of this node did not answer.
    pub fn ask<Q: Ask>(&self, question: Q, now: Instant) -> Answer<Surveyed<Q::Answer>, ErrorCode> {
        match question.begin(self, now) {
            Ok(begun) => {
                let own = ask_shards(&self.channels.router, question.clone(), begun);
                self.cluster.ask(question, None, own, now)
            }
            Err(error) => Answer::now(Err(error)),
        }
    }

    /// Asks one node, by its uid.
    ///
    /// # Errors
    /// 104 for a node that is not there; those of [`ask`](Self::ask).
    pub fn ask_node<Q: Ask>(
        &self,
        node: &str,
        question: Q,
        now: Instant,
    ) -> Answer<Surveyed<Q::Answer>, ErrorCode> {
        if node == self.uid() {
            self.ask_this_node(question, now).map(|own| own.map(Surveyed::of_all))
        } else {
            let none = Answer::now(Ok(Q::Answer::default()));
            self.cluster.ask(question, Some(node), none, now)
        }
    }

    /// Asks the shards of this node.
    ///
    /// # Errors
    /// The question is invalid; 100 when a shard did not answer.
    pub fn ask_this_node<Q: Ask>(&self, question: Q, now: Instant) -> Answer<Q::Answer, ErrorCode> {
        match question.begin(self, now) {
            Ok(begun) => ask_shards(&self.channels.router, question, begun),
            Err(error) => Answer::now(Err(error)),
        }
    }
}

/// Completes an answer that was begun with what the shards know.
fn ask_shards<Q: Ask>(
    router: &BroadcastRouter,
    question: Q,
    begun: Q::Answer,
) -> Answer<Q::Answer, ErrorCode> {
    if !Q::IS_FOR_SHARDS {
        return Answer::now(Ok(begun));
    }
    let (promise, answer) = Answer::later();
    let promise = Some(promise);
    let asked = Arc::new(RunningQuestion { question, answer: Mutex::new(begun), promise });
    router.send_to_all_shards(&Notice::Question(ShardQuestion { asked, from: 0 }));
    answer
}

/// Answers a question of another node. Returns whether this version knows it.
pub(super) fn answer_any(node: &Node, received: &ReceivedQuestion, now: Instant) -> bool {
    QUESTIONS.iter().any(|answer| answer(node, received, now))
}

/// Answers a question of another node if it is of this type.
fn answer<Q: Ask>(node: &Node, received: &ReceivedQuestion, now: Instant) -> bool {
    let Some(question) = received.decoded::<Q>() else { return false };
    let cluster = Arc::clone(&node.cluster);
    let received = received.clone();
    node.ask_this_node(question, now).then(move |own| {
        if let Ok(own) = own {
            cluster.answer(&received, &own);
        }
    });
    true
}

type AnswerQuestion = fn(&Node, &ReceivedQuestion, Instant) -> bool;

/// The questions of other nodes that this version knows.
const QUESTIONS: &[AnswerQuestion] = &[
    answer::<ChannelQuestion>,
    answer::<PageQuestion>,
    answer::<online_users::UserQuestion>,
    answer::<ConnectionQuestion>,
    answer::<ConnectionLogQuestion>,
    answer::<ReportQuestion>,
    answer::<HotListsQuestion>,
    answer::<ClockQuestion>,
];

impl<Q: Ask> AskShard for RunningQuestion<Q> {
    fn ask(&self, shard: &ShardView<'_>, from: u32) -> Option<u32> {
        self.question.add(shard, from, &self.answer)
    }
}

impl<Q: Ask> Drop for RunningQuestion<Q> {
    fn drop(&mut self) {
        let answer = std::mem::take(self.answer.get_mut());
        if let Some(promise) = self.promise.take() {
            promise.keep(Ok(answer));
        }
    }
}

/// A part of the entries of all nodes, in the order of their names. It has one more entry than its limit when there are more.
struct NameRange<'a> {
    /// Only names that come after this one; "" = all.
    after: &'a str,
    limit: usize,
}

impl NameRange<'_> {
    /// Whether a name may be in the range, after those that were found.
    fn has<T>(&self, name: &str, entries: &BTreeMap<String, T>) -> bool {
        let is_before_last =
            || entries.last_key_value().is_some_and(|(last, _)| name < last.as_str());
        name > self.after && (entries.len() <= self.limit || is_before_last())
    }

    /// Removes what is behind the first entry after the range.
    fn cut<T>(&self, entries: &mut BTreeMap<String, T>) {
        while entries.len().saturating_sub(1) > self.limit {
            entries.pop_last();
        }
    }
}

#[cfg(test)]
mod tests;
