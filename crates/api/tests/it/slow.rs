//! A broker with pending answers: which calls start before which answer, and that no result is lost or mixed up.
//! In: requests over HTTP, answers at times chosen by the test. Out: publications so far, and the replies.
//! Uses the test harness with a broker of its own.
//! Effects on clients are tested in the node.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fanwire_api::ApiOptions;
use fanwire_broker::{
    Answer, Broker, BrokerError, Change, MemoryBroker, Position, PublishOptions, Query, Retention,
    StreamSlice,
};
use fanwire_node::protocol::{ClientInfo, Publication};
use fanwire_node::{Node, NodeParts};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::harness::{Answer as Reply, Harness, KEY, node_options, ok};

/// The publications, and their pending answers: one per call.
type Held = Arc<Mutex<Vec<(String, Box<dyn FnOnce(bool) + Send>)>>>;

/// Publishes at once and answers when the test sends the answer; otherwise a memory broker.
struct Slow {
    inner: MemoryBroker,
    held: Held,
}

impl Broker for Slow {
    fn publish(
        &self,
        channel: &str,
        publication: Publication,
        options: &PublishOptions,
        retention: Retention,
        now: Instant,
    ) -> Answer<Position> {
        let result = self.inner.publish(channel, publication, options, retention, now).wait();
        let (promise, later) = Answer::later();
        let answer = move |is_well: bool| {
            promise.keep(if is_well { result } else { Err(BrokerError::Unavailable) });
        };
        self.held.lock().expect("no panics").push((channel.to_owned(), Box::new(answer)));
        later
    }

    fn history(
        &self,
        channel: &str,
        query: Query,
        keep: Retention,
        now: Instant,
    ) -> Answer<StreamSlice> {
        self.inner.history(channel, query, keep, now)
    }

    fn follow(
        &self,
        channel: &str,
        query: Option<Query>,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice> {
        self.inner.follow(channel, query, retention, now)
    }

    fn publish_join_leave(&self, channel: &str, change: Change, info: ClientInfo) -> Answer<()> {
        self.inner.publish_join_leave(channel, change, info)
    }

    fn remove_history(&self, channel: &str, now: Instant) -> Answer<()> {
        self.inner.remove_history(channel, now)
    }

    fn subscribe(&self, channel: &str) {
        self.inner.subscribe(channel);
    }

    fn unsubscribe(&self, channel: &str) {
        self.inner.unsubscribe(channel);
    }

    fn sweep(&self, now: Instant) {
        self.inner.sweep(now);
    }

    fn history_bytes(&self) -> usize {
        self.inner.history_bytes()
    }
}

/// A request in flight, and the broker for which it waits.
struct Call {
    held: Held,
    reply: JoinHandle<Reply>,
}

impl Call {
    fn new(path: &'static str, body: impl Into<String>) -> Self {
        let body = body.into();
        let held = Held::default();
        let of_broker = Arc::clone(&held);
        let parts = NodeParts::with_broker(|router| {
            Arc::new(Slow { inner: MemoryBroker::new(router, 1 << 20), held: of_broker })
        });
        let node = Node::with_parts(node_options(), Instant::now(), 0, parts);
        let options = ApiOptions { key: KEY.into(), ..ApiOptions::default() };
        let node = node.expect("the options are valid");
        let reply =
            tokio::spawn(async move { Harness::around(node, options).post(path, body).await });
        Self { held, reply }
    }

    /// The channels with a pending answer, after all other work is done.
    async fn waiting(&self) -> Vec<String> {
        // The clock is paused: it goes on when every task waits.
        let _ = timeout(Duration::from_millis(1), pending::<()>()).await;
        let held = self.held.lock().expect("no panics");
        held.iter().map(|(channel, _)| channel.clone()).collect()
    }

    /// Answers the pending publish at `index`.
    fn answer(&self, index: usize, succeeds: bool) {
        let (_, answer) = self.held.lock().expect("no panics").remove(index);
        answer(succeeds);
    }
}

const BATCH: &str = concat!(
    r#"{"commands":[{"publish":{"channel":"kept:a","data":1}},{"channels":{}},"#,
    r#"{"publish":{"channel":"chat:b","data":2}},{"publish":{"channel":"c","data":3}}]"#,
);
const INTERNAL: &str = r#"{"error":{"code":100,"message":"internal server error"}}"#;

#[tokio::test(start_paused = true)]
async fn a_sequential_batch_starts_a_command_after_the_previous_answer() {
    let call = Call::new("/api/batch", format!("{BATCH}}}"));
    for (channel, is_well) in [("kept:a", false), ("chat:b", true), ("c", true)] {
        assert_eq!(call.waiting().await, [channel]);
        call.answer(0, is_well);
    }
    let replies = format!(
        r#"{{"replies":[{INTERNAL},{{"channels":{{"channels":{{}}}}}},{{"publish":{{}}}},{{"publish":{{}}}}]}}"#
    );
    assert_eq!(call.reply.await.expect("no panics"), ok(&replies));
}

#[tokio::test(start_paused = true)]
async fn a_parallel_batch_starts_all_and_replies_in_the_order_of_the_request() {
    let call = Call::new("/api/batch", format!(r#"{BATCH},"parallel":true}}"#));
    assert_eq!(call.waiting().await, ["kept:a", "chat:b", "c"]);
    call.answer(2, true);
    call.answer(1, false);
    assert_eq!(call.waiting().await, ["kept:a"]);
    call.answer(0, false);
    let replies = format!(
        r#"{{"replies":[{INTERNAL},{{"channels":{{"channels":{{}}}}}},{INTERNAL},{{"publish":{{}}}}]}}"#
    );
    assert_eq!(call.reply.await.expect("no panics"), ok(&replies));
}

#[tokio::test(start_paused = true)]
async fn a_broadcast_starts_all_and_returns_the_result_of_each() {
    let call = Call::new("/api/broadcast", r#"{"channels":["a","","b","c"],"data":1}"#);
    assert_eq!(call.waiting().await, ["a", "b", "c"]);
    call.answer(1, false);
    call.answer(1, true);
    call.answer(0, true);
    let bad_request = r#"{"error":{"code":107,"message":"bad request"}}"#;
    let responses = format!(
        r#"{{"result":{{"responses":[{{"result":{{}}}},{bad_request},{INTERNAL},{{"result":{{}}}}]}}}}"#
    );
    assert_eq!(call.reply.await.expect("no panics"), ok(&responses));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_answer_is_an_internal_error() {
    let call = Call::new("/api/publish", r#"{"channel":"a","data":1}"#);
    assert_eq!(call.waiting().await, ["a"]);
    drop(call.held.lock().expect("no panics").pop());
    assert_eq!(call.reply.await.expect("no panics"), ok(INTERNAL));
}
