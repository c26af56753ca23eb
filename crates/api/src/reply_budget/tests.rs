//! Limits of requests with many commands: bytes of replies, turns of other tasks, the end when the peer has left.
//! In: batches that read large histories → out: how many are answered, counted calls of the broker.
//! Uses an `Api` over a node in memory, and futures polled by hand; never a clock.
//! Changed here: tests of `reply_budget.rs`. Streams have their own in `stream/tests.rs`.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use fanwire_node::{Node, Options};

use crate::{
    Api, ApiOptions, BatchRequest, Command, HistoryRequest, Method, Outcome, PublishRequest, Reply,
    ReplyForm, protobuf,
};

use super::*;

/// An API whose channel `a` holds one publication of this number of bytes.
pub(crate) async fn api_with_history(bytes: usize) -> Api {
    let mut options = Options::default();
    let namespace = &mut options.channel.without_namespace;
    (namespace.history_size, namespace.history_ttl) = (1, Duration::from_secs(300));
    let node = Node::new(options).expect("the options are valid");
    let api = Api::new(Arc::clone(&node), ApiOptions::default());
    let data = format!("\"{}\"", "a".repeat(bytes - 2)).into();
    api.run(publish("a", data)).await.expect("published");
    api
}

fn publish(channel: &str, data: bytes::Bytes) -> Command {
    Command::Publish(PublishRequest { channel: channel.to_owned(), data, ..Default::default() })
}

fn history() -> Command {
    Command::History(HistoryRequest { channel: "a".to_owned(), limit: -1, ..Default::default() })
}

#[tokio::test]
async fn a_batch_reads_no_more_when_its_replies_are_too_large() {
    let bytes = 5 << 20;
    for (parallel, at_once) in [(false, 1), (true, PARALLEL_READS)] {
        let api = api_with_history(bytes).await;
        let mut commands = vec![Ok(history()); 300];
        commands.push(Ok(publish("b", "1".into())));
        let reply = api
            .batch(BatchRequest { commands: Some(commands), parallel, ..Default::default() })
            .await
            .expect("few commands");
        let is_read = |reply: &&Reply| matches!(reply, Reply::Outcome(Outcome::History(_)));
        let read = reply.replies.iter().filter(is_read).count();
        let held = read * bytes;
        assert!(held > REPLIES_BYTES_MAX && held <= REPLIES_BYTES_MAX + at_once * bytes, "{read}");
        assert_eq!(api.counters().of(Method::History).calls, read as u64);
        let text = serde_json::to_string(&reply.replies[299]).expect("a reply");
        assert!(text.starts_with(
            r#"{"error":{"code":111,"message":"too many requests","cause":"the replies"#
        ));
        assert!(text.contains("more than 32 MiB"), "{text}");
        assert!(matches!(reply.replies[300], Reply::Outcome(Outcome::Publish(_))), "it is small");
    }
}

#[test]
fn a_batch_lets_others_run_and_ends_with_its_request() {
    let publications = || vec![Ok(publish("b", "1".into())); 1_000];
    for parallel in [false, true] {
        let api = futures_util::FutureExt::now_or_never(api_with_history(1 << 10));
        let api = api.expect("in memory");
        let commands = Some(publications());
        let request = BatchRequest { commands, parallel, ..Default::default() };
        let mut batch = Box::pin(api.batch(request));
        let mut turns = 1;
        let mut context = Context::from_waker(Waker::noop());
        while batch.as_mut().poll(&mut context).is_pending() {
            turns += 1;
        }
        assert!((4..100).contains(&turns), "{turns} turns");
    }
    let api = futures_util::FutureExt::now_or_never(api_with_history(1 << 10)).expect("in memory");
    let request = BatchRequest { commands: Some(publications()), ..Default::default() };
    let mut batch = Box::pin(api.batch(request));
    assert!(batch.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(batch);
    assert!((100..200).contains(&api.counters().of(Method::Publish).calls));
}

#[test]
fn replies_that_wait_for_others_take_the_bytes_of_their_text() {
    let mut options = Options::default();
    let namespace = &mut options.channel.without_namespace;
    (namespace.history_size, namespace.history_ttl) = (2_000, Duration::from_secs(300));
    let api = Api::new(Node::new(options).expect("valid"), ApiOptions::default());
    for _ in 0..2_000 {
        let published = futures_util::FutureExt::now_or_never(api.run(publish("a", "1".into())));
        published.expect("in memory").expect("published");
    }
    let json: fn(&Reply) -> Vec<u8> = |reply| serde_json::to_vec(reply).expect("JSON");
    for (write, parallel) in [(json, false), (json, true), (protobuf::reply, true)] {
        let commands = Some(vec![Ok(history()); 100]);
        let mut bytes = 0;
        let form = ReplyForm(Some(write));
        let mut batch = Box::pin(api.batch(BatchRequest { commands, parallel, form }));
        let measured = allocation_counter::measure(|| {
            let mut context = Context::from_waker(Waker::noop());
            let reply = loop {
                if let Poll::Ready(reply) = batch.as_mut().poll(&mut context) {
                    break reply.expect("few commands");
                }
            };
            let held = reply.replies.iter().map(|reply| match reply {
                Reply::Written(text) => text.len() as u64,
                other => panic!("{other:?}"),
            });
            bytes = held.sum();
        });
        assert!(bytes > 1_000_000, "{bytes}");
        assert!(measured.bytes_max < bytes + bytes / 2, "{} of {bytes}", measured.bytes_max);
    }
}

#[test]
fn the_bytes_of_a_value_are_those_of_its_json() {
    for value in [serde_json::json!(null), serde_json::json!({"a": ["ü", "\n", 1.5]})] {
        assert_eq!(json_bytes(&value), value.to_string().len());
    }
}

/// Number of commands that read and that a parallel batch starts at once.
const PARALLEL_READS: usize = 8;
