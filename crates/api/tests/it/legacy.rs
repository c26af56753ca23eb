//! The old single path `POST /api`: one or several commands, replies separated by newlines.
//! In: concatenated commands. Out: whole replies as text.
//! Uses the test harness only.
//! The replies of the methods are tested in `replies`.

use fanwire_api::BATCH_COMMANDS_MAX;

use crate::harness::{Harness, ok};

async fn check(body: &str, expect: &str) {
    assert_eq!(Harness::new().post("/api", body.to_owned()).await, ok(expect), "{body}");
}

#[tokio::test]
async fn methods_are_named_in_any_case_or_numbered() {
    let empty = r#"{"result":{}}"#;
    let forgotten = r#"{"result":{"forgotten_at_restart":true}}"#;
    let not_available = r#"{"error":{"code":108,"message":"not available"}}"#;
    let bad_request = r#"{"error":{"code":107,"message":"bad request"}}"#;
    let not_found = r#"{"error":{"code":104,"message":"not found"}}"#;
    let rows = [
        (r#"{"method":"publish","params":{"channel":"a","data":{}}}"#, empty),
        (r#"{"method":"PUBLISH","params":{"channel":"a","data":{}}}"#, empty),
        (r#"{"method":0,"params":{"channel":"a","data":{}}}"#, empty),
        (r#"{"method":3,"params":{"user":"42"}}"#, empty),
        (r#"{"method":"subscribe","params":{"user":"42","channel":"a"}}"#, empty),
        (r#"{"method":11,"params":{"user":"42","channel":"a"}}"#, empty),
        (r#"{"method":"refresh","params":{"user":"42"}}"#, empty),
        (r#"{"method":12,"params":{"user":"42"}}"#, empty),
        (r#"{"method":"channels"}"#, r#"{"result":{"channels":{}}}"#),
        (r#"{"method":8,"params":{}}"#, r#"{"result":{"channels":{}}}"#),
        // PHP encodes an empty map as [].
        (r#"{"method":"channels","params":[]}"#, r#"{"result":{"channels":{}}}"#),
        (r#"{"method":"channels","params":["a"]}"#, bad_request),
        (r#"{"method":"presence","params":[]}"#, bad_request),
        (r#"{"method":"presence","params":{"channel":"a"}}"#, not_available),
        (r#"{"method":11,"params":{}}"#, r#"{"error":{"code":107,"message":"bad request"}}"#),
        (r#"{"method":39,"params":{"channel":"a"}}"#, bad_request),
        (r#"{"method":"batch","params":{"commands":[]}}"#, not_found),
        (r#"{"method":"block_user","params":{}}"#, bad_request),
        (r#"{"method":14,"params":{"user":"43"}}"#, r#"{"result":{"connections":{}}}"#),
        (r#"{"method":15,"params":{"users":["43"]}}"#, empty),
        (
            r#"{"method":16,"params":{"users":["43"]}}"#,
            r#"{"result":{"statuses":[{"user":"43"}]}}"#,
        ),
        (r#"{"method":17,"params":{"users":["43"]}}"#, empty),
        (r#"{"method":18,"params":{"user":"43"}}"#, forgotten),
        (r#"{"method":19,"params":{"user":"43"}}"#, empty),
        (r#"{"method":20,"params":{"uid":"7"}}"#, forgotten),
        (r#"{"method":21,"params":{"user":"43"}}"#, forgotten),
        (r#"{"method":99}"#, not_found),
        (r#"{"method":null}"#, not_found),
        (r#"{"method":{}}"#, not_found),
        (r#"{}"#, not_found),
    ];
    for (body, expect) in rows {
        check(body, expect).await;
    }
}

#[tokio::test]
async fn ids_come_back_and_bad_parameters_get_107() {
    let bad_request = r#"{"id":7,"error":{"code":107,"message":"bad request"}}"#;
    check(r#"{"id":7,"method":"publish","params":{"channel":1}}"#, bad_request).await;
    check(r#"{"id":7,"method":"publish","params":[]}"#, bad_request).await;
    check(r#"{"id":7,"method":"publish"}"#, bad_request).await;
    check(r#"{"id":7,"method":"publish","params":{"data":1}}"#, bad_request).await;
    check(r#"{"id":0,"method":"channels","params":{}}"#, r#"{"result":{"channels":{}}}"#).await;
}

#[tokio::test]
async fn several_commands_get_one_line_each() {
    check(
        "{\"id\":1,\"method\":\"publish\",\"params\":{\"channel\":\"a\",\"data\":1}}\n\
         {\"id\":2,\"method\":\"nope\"}{\"id\":3,\"method\":\"channels\"}\n",
        "{\"id\":1,\"result\":{}}\n\
         {\"id\":2,\"error\":{\"code\":104,\"message\":\"not found\"}}\n\
         {\"id\":3,\"result\":{\"channels\":{}}}",
    )
    .await;
}

#[tokio::test]
async fn a_body_of_too_many_commands_gets_400_and_runs_nothing() {
    let mut harness = Harness::new();
    harness.subscriber(0, "42", &["a"]);
    let publish = r#"{"method":"publish","params":{"channel":"a","data":1}}"#;
    let over = format!("{publish}{}", "{}".repeat(BATCH_COMMANDS_MAX));
    let answer = harness.post("/api", over).await;
    assert_eq!(answer.malformed(), "there are more than 10000 commands in the body");
    assert!(harness.messages_of(0).is_empty());
    let most = format!("{publish}{}", "{}".repeat(BATCH_COMMANDS_MAX - 1));
    let answer = harness.post("/api", most).await;
    assert_eq!((answer.status.as_u16(), answer.body.lines().count()), (200, BATCH_COMMANDS_MAX));
    assert_eq!(harness.messages_of(0).len(), 1);
}

#[tokio::test]
async fn an_empty_or_broken_body_gets_400_and_runs_nothing() {
    let mut harness = Harness::new();
    harness.subscriber(0, "42", &["a"]);
    let good = r#"{"method":"publish","params":{"channel":"a","data":1}}"#;
    for bad in ["", " \n", "[]", "null", "{", "{\"id\":-1}", "{\"id\":\"x\"}", "x"] {
        let body = if bad.trim().is_empty() { bad.to_owned() } else { format!("{good}\n{bad}") };
        let answer = harness.post("/api", body).await;
        let is_empty = answer.malformed() == "there is no command in the body";
        assert_eq!(is_empty, bad.trim().is_empty(), "{bad:?}: {answer:?}");
    }
    assert!(harness.messages_of(0).is_empty());
}

#[tokio::test]
async fn commands_that_read_have_the_limit_of_a_batch() {
    let harness = Harness::new();
    let publish = format!(r#"{{"channel":"kept:a","data":"{}"}}"#, "a".repeat(5 << 20));
    harness.post("/api/publish", publish).await;
    let read = r#"{"method":"history","params":{"channel":"kept:a","limit":-1}}"#.repeat(9);
    let write = r#"{"method":"publish","params":{"channel":"b","data":1}}"#;
    let answer = format!("{:?}", harness.post("/api", format!("{read}{write}")).await);
    assert_eq!(answer.matches("publications").count(), 7, "32 MiB, and the one that exceeds it");
    assert_eq!(answer.matches("too many requests").count(), 2);
    assert!(answer.contains("result"), "small ones are executed");
}
