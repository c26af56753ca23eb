//! Tests of the order in which commands are sent.
//! In: commands of a task without budget left → out: the order in which a queue gets them.
//! Uses a queue instead of a connection. Never: sockets.
//! Broken connections are tested in `tests/it/network.rs`.

use tokio::sync::mpsc;
use tokio::task::coop::{consume_budget, has_budget_remaining};

use super::*;

#[tokio::test]
async fn commands_are_sent_in_order_when_the_task_has_no_budget_left() {
    let (sender, mut sent) = mpsc::channel(3);
    let mut pending_replies = FuturesUnordered::new();
    while has_budget_remaining() {
        consume_budget().await;
    }
    for number in 0..3 {
        let sender = sender.clone();
        let pending = async move {
            let _ = sender.send(number).await;
            Ok(Replies::default())
        };
        start(&mut pending_replies, Box::pin(pending));
    }
    while pending_replies.next().await.is_some() {}
    for number in 0..3 {
        assert_eq!(sent.recv().await, Some(number));
    }
}
