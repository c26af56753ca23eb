//! batch: order, per-item errors, and the reply without a `result` around it.
//! In: batches. Out: whole replies as text.
//! Uses the test harness only.
//! Malformed batches are in `malformed`.

use fanwire_api::Method;

use crate::harness::{Harness, ok};

async fn check(body: &str, expect: &str) {
    assert_eq!(Harness::new().post("/api/batch", body.to_owned()).await, ok(expect), "{body}");
}

#[tokio::test]
async fn replies_have_the_order_of_the_request_and_no_result_wrapper() {
    check(
        r#"{"commands":[{"publish":{"channel":"a","data":{}}},{"channels":{}}],"parallel":true}"#,
        r#"{"replies":[{"publish":{}},{"channels":{"channels":{}}}]}"#,
    )
    .await;
    check(
        r#"{"commands":[{"unsubscribe":{"user":"1"}},{"disconnect":{"user":"1"}},
            {"broadcast":{"channels":["a"],"data":1}}]}"#,
        r#"{"replies":[{"unsubscribe":{}},{"disconnect":{}},{"broadcast":{"responses":[{"result":{}}]}}]}"#,
    )
    .await;
    check(
        r#"{"commands":[{"subscribe":{"user":"1","channel":"a"}},{"refresh":{"user":"1"}},{"subscribe":{}}]}"#,
        r#"{"replies":[{"subscribe":{}},{"refresh":{}},{"error":{"code":107,"message":"bad request"}}]}"#,
    )
    .await;
    check(r#"{"commands":[]}"#, r#"{"replies":[]}"#).await;
    let missing = r#"{"error":{"code":107,"message":"bad request"}}"#;
    check(r#"{}"#, missing).await;
    check(r#"{"commands":null,"parallel":null}"#, missing).await;
    check(
        r#"{"Commands":[{"Publish":{"Channel":"a","DATA":{}}}]}"#,
        r#"{"replies":[{"publish":{}}]}"#,
    )
    .await;
}

#[tokio::test]
async fn a_failing_item_does_not_affect_the_others() {
    let not_found = r#"{"error":{"code":104,"message":"not found"}}"#;
    let bad_request = r#"{"error":{"code":107,"message":"bad request"}}"#;
    let rows = [
        ("null", bad_request),
        (r#"{}"#, not_found),
        (r#"{"publish":null}"#, not_found),
        (r#"{"no_such_method":{"channel":"a"}}"#, not_found),
        (r#"{"push_user":{"user":"42"}}"#, not_found),
        (r#"{"block_user":{"user":"43"}}"#, r#"{"block_user":{"forgotten_at_restart":true}}"#),
        (r#"{"batch":{"commands":[]}}"#, not_found),
        (r#"{"publish":{"channel":"","data":{}}}"#, bad_request),
        (r#"{"info":{},"channels":{}}"#, bad_request),
        (r#"{"info":{},"channels":{},"rpc":{}}"#, bad_request),
        (
            r#"{"publish":{"channel":"nowhere:a","data":{}}}"#,
            r#"{"error":{"code":102,"message":"unknown channel"}}"#,
        ),
        (r#"{"presence":{"channel":"a"}}"#, r#"{"error":{"code":108,"message":"not available"}}"#),
    ];
    let good = r#"{"publish":{"channel":"a","data":1}}"#;
    for (item, reply) in rows {
        let expect = format!(r#"{{"replies":[{{"publish":{{}}}},{reply},{{"publish":{{}}}}]}}"#);
        for rest in ["", r#","parallel":false"#, r#","parallel":true"#] {
            check(&format!(r#"{{"commands":[{good},{item},{good}]{rest}}}"#), &expect).await;
        }
    }
}

#[tokio::test]
async fn every_command_of_a_batch_with_mixed_failures_is_run_once() {
    for parallel in [false, true] {
        let mut harness = Harness::new();
        harness.subscriber(0, "42", &["a", "chat:b"]);
        let body = format!(
            concat!(
                r#"{{"parallel":{},"commands":[{{"publish":{{"channel":"a","data":1}}}},null,"#,
                r#"{{"publish":{{"channel":"nowhere:a","data":2}}}},{{"publish":{{"channel":"a","b64data":"!"}}}},"#,
                r#"{{"broadcast":{{"channels":["chat:b","","a"],"data":3}}}},{{"push_user_status":{{}}}},"#,
                r#"{{"history":{{"channel":"a"}}}},{{"publish":{{"channel":"chat:b","data":4}}}}]}}"#,
            ),
            parallel
        );
        let expect = concat!(
            r#"{"replies":[{"publish":{}},{"error":{"code":107,"message":"bad request"}},"#,
            r#"{"error":{"code":102,"message":"unknown channel"}},"#,
            r#"{"error":{"code":107,"message":"bad request"}},"#,
            r#"{"broadcast":{"responses":[{"result":{}},"#,
            r#"{"error":{"code":107,"message":"bad request"}},{"result":{}}]}},"#,
            r#"{"error":{"code":104,"message":"not found"}},"#,
            r#"{"error":{"code":108,"message":"not available"}},{"publish":{}}]}"#,
        );
        assert_eq!(harness.post("/api/batch", body).await, ok(expect), "parallel {parallel}");
        let push = |channel: &str, data: u32| {
            format!(r#"{{"push":{{"channel":"{channel}","pub":{{"data":{data}}}}}}}"#)
        };
        // With parallel only the order within a channel of one command is promised.
        let mut messages = harness.messages_of(0);
        messages.sort();
        assert_eq!(messages, [push("a", 1), push("a", 3), push("chat:b", 3), push("chat:b", 4)]);
    }
}

#[tokio::test]
async fn publications_of_a_batch_arrive_in_its_order() {
    let mut harness = Harness::new();
    harness.subscriber(0, "42", &["a"]);
    let item = |number| format!(r#"{{"publish":{{"channel":"a","data":{number}}}}}"#);
    let items: Vec<String> = (0..100).map(item).collect();
    harness.post("/api/batch", format!(r#"{{"commands":[{}]}}"#, items.join(","))).await;

    let push = |number| format!(r#"{{"push":{{"channel":"a","pub":{{"data":{number}}}}}}}"#);
    assert_eq!(harness.messages_of(0), (0..100).map(push).collect::<Vec<_>>());
    assert_eq!(harness.api.counters().of(Method::Publish).calls, 100);
    assert_eq!(harness.api.counters().of(Method::Batch).calls, 1);
}
