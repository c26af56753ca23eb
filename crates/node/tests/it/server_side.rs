//! Subscriptions the server makes at connect (protocol §7): requested in `connect.subs`; those of tokens in `tokens.rs`.
//! In: dialogues → out: which requested channels are granted, what refuses the connect.
//! Uses: `world`, `script`.
//! Changed here: tests of requested channels.

use fanwire_node::options::Namespace;

use crate::script::play_in_both;
use crate::world::options;

fn check(subs: &str, answer: &str) {
    let options = options(|options| {
        options.client.channel_limit = 3;
        options
            .channel
            .namespaces
            .push(Namespace { name: "closed".into(), ..Namespace::default() });
    });
    let script =
        format!("ada opens\n ada > {{\"id\":1,\"connect\":{{\"subs\":{subs}}}}}\n {answer}");
    play_in_both(&options, &script);
}

#[test]
fn requested_channels_become_subscriptions_of_the_server() {
    check(
        r#"{"a":{},"b":{"recover":true,"epoch":"x","offset":3}}"#,
        r#"
        ada < {"id":1,"connect":{"client":"ada","version":"test","subs":{"a":{},"b":{"was_recovering":true}},"ping":25,"pong":true}}
        api > b 1
        ada < {"push":{"channel":"b","pub":{"data":1}}}
        ada > {"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":2,"error":{"code":105,"message":"already subscribed"}}
        ada > {"id":3,"unsubscribe":{"channel":"b"}}
        ada < {"id":3,"unsubscribe":{}}
        api > b 2
    "#,
    );
}

#[test]
fn requested_channels_without_permission_are_ignored() {
    check(
        r#"{"a":{},"closed:a":{},"$private":{},"nä":{},"":{}}"#,
        r#"ada < {"id":1,"connect":{"client":"ada","version":"test","subs":{"a":{}},"ping":25,"pong":true}}"#,
    );
}

#[test]
fn a_requested_channel_of_an_unknown_namespace_is_3501() {
    check(r#"{"a":{},"x:a":{}}"#, "ada x 3501 bad request");
}

#[test]
fn too_many_server_side_channels_are_3505() {
    check(r#"{"a":{},"b":{},"c":{},"d":{}}"#, "ada x 3505 channel limit");
}
