//! A broker that answers later: what is begun before which answer, and that nothing gets lost or mixed up.
//! In: requests over HTTP, answers when the test says so. Out: what was published by then, and the replies.
//! Uses the test bench around a node with a broker of its own.
//! What clients experience meanwhile is tested in the node.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use fanwire_api::ApiOptions;
use fanwire_broker::{
    Answer, Broker, BrokerError, Change, MemoryBroker, Position, PublishOptions, Query, Retention,
    StreamSlice,
};
use fanwire_node::Node;
use fanwire_node::protocol::{ClientInfo, Publication};
use tokio::task::JoinHandle;

use crate::harness::{Answer as Reply, Harness, KEY, node_options, ok};

/// What was published, and the answers that are held back: each call brings one.
type Held = Arc<Mutex<Vec<(String, Box<dyn FnOnce(bool) + Send>)>>>;

/// Publishes at once and answers when the test says so; everything else is that of the memory broker.
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

/// A request on its way, and the broker it waits for.
struct Call {
    held: Held,
    reply: JoinHandle<Reply>,
}

impl Call {
    fn new(path: &'static str, body: impl Into<String>) -> Self {
        let (held, body) = (Held::default(), body.into());
        let slow = Arc::clone(&held);
        let node = Node::with_broker(node_options(), Instant::now(), 0, |door| {
            Arc::new(Slow { inner: MemoryBroker::new(door, 1 << 20), held: slow })
        });
        let options = ApiOptions { key: KEY.into(), ..ApiOptions::default() };
        let node = node.expect("the options are valid");
        let reply =
            tokio::spawn(async move { Harness::around(node, options).post(path, body).await });
        Self { held, reply }
    }

    /// The channels of publications that wait for their answers, once nothing else can go on.
    async fn waiting(&self) -> Vec<String> {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let held = self.held.lock().expect("no panics");
        held.iter().map(|(channel, _)| channel.clone()).collect()
    }

    /// Answers the one at `place`.
    fn answer(&self, place: usize, is_well: bool) {
        let (_, answer) = self.held.lock().expect("no panics").remove(place);
        answer(is_well);
    }
}

const BATCH: &str = concat!(
    r#"{"commands":[{"publish":{"channel":"kept:a","data":1}},{"channels":{}},"#,
    r#"{"publish":{"channel":"chat:b","data":2}},{"publish":{"channel":"c","data":3}}]"#,
);
const INTERNAL: &str = r#"{"error":{"code":100,"message":"internal server error"}}"#;

#[tokio::test]
async fn a_batch_in_order_begins_a_command_when_the_one_before_is_answered() {
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

#[tokio::test]
async fn a_parallel_batch_begins_all_and_replies_in_the_order_of_the_request() {
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

#[tokio::test]
async fn a_broadcast_begins_all_and_tells_what_became_of_each() {
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

#[tokio::test]
async fn an_answer_that_never_comes_is_an_internal_error() {
    let call = Call::new("/api/publish", r#"{"channel":"a","data":1}"#);
    assert_eq!(call.waiting().await, ["a"]);
    drop(call.held.lock().expect("no panics").pop());
    assert_eq!(call.reply.await.expect("no panics"), ok(INTERNAL));
}
