//! Tests of hooks that decide about the reads of users.
//! In: a subscribe hook, requests of users → out: the statuses of their responses.
//! Uses the server of `tests.rs`. Never: sockets.
//! Changed here: tests of hooks. Tests of access without hooks stand in `tests.rs`.

use fanwire_broker::Answer;
use fanwire_node::hooks::{Hook, Hooks, Rejection, SubscribeEvent};
use fanwire_node::protocol::ErrorCode;

use super::{JSON, open_to_users};

#[tokio::test]
async fn a_hook_that_refuses_a_subscribe_refuses_each_way_to_read() {
    let subscribe = |event: SubscribeEvent| {
        Answer::now(match event.channel.as_str() {
            "log:secret" => Err(Rejection::Error(ErrorCode::PERMISSION_DENIED.into())),
            "log:slow" => Err(Rejection::Error(ErrorCode::INTERNAL.into())),
            _ => Ok(None),
        })
    };
    let hooks = Hooks { subscribe: Some(Hook::new(subscribe)), ..Hooks::default() };
    let server = open_to_users(hooks, |_| {});
    server.publish("log:secret", "1");
    server.publish("log:open", "1");
    let user = ("x-user", "ann");
    for query in ["secret", "secret?offset=-1&live=sse", "secret?offset=now&live=long-poll"] {
        assert_eq!(server.status("GET", query, &[user], "").await, 403, "{query}");
    }
    assert_eq!(server.status("HEAD", "secret", &[user], "").await, 403);
    assert_eq!(server.status("GET", "slow", &[user], "").await, 503, "it may be asked again");
    assert_eq!(server.status("GET", "open", &[user], "").await, 200);
    assert_eq!(server.status("GET", "secret", &[("x-api-key", "key")], "").await, 200);
    for method in ["PUT", "POST", "DELETE"] {
        assert_eq!(server.status(method, "open", &[user, JSON], "[1]").await, 401, "{method}");
    }
}
