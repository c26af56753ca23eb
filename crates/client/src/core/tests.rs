//! Tests of `core`: dialogues with a server, step by step, without sockets and clocks.
//! Calls, replies of a server and times → commands and events.
//! Uses the protocol's encoder for what the server says; random dialogues are `model`.
//! Changed here: a dialogue. Helpers of both are in `peer`.

mod model;
mod peer;

use fanwire_protocol::{
    ClientInfo, ErrorCode, Join, PublishRequest, RefreshResult, Request, SendRequest,
    SubRefreshResult, SubscribeResult, Unsubscribe,
};

use self::peer::{Peer, connect_result};
use super::*;
use crate::{SubscribedContext, SubscriptionConfig};

#[test]
fn a_client_connects_answers_pings_and_misses_them() {
    let mut peer = Peer::new(ClientConfig::default().token("t"));
    peer.core.connect(peer.now);
    assert_eq!(peer.events(), ["Connecting 0 connect called"]);
    peer.open();
    let Request::Connect(connect) = peer.command() else { panic!("no connect") };
    assert_eq!(connect.token, "t");
    peer.reply(Reply { connect: Some(connect_result()), ..Reply::default() });
    assert_eq!(peer.events(), ["Connected client"]);
    peer.receive(Reply::default());
    assert_eq!(peer.command(), Request::Pong);
    peer.pass(Duration::from_secs(34));
    assert!(peer.events().is_empty());
    peer.pass(Duration::from_secs(1));
    assert_eq!(peer.events(), ["Connecting 2 no ping"]);
}

#[test]
fn an_expired_token_is_replaced_and_a_refusal_ends_the_attempts() {
    let config = ClientConfig::default().token("old").get_token(|| async { Ok(String::new()) });
    let mut peer = Peer::new(config);
    peer.core.connect(peer.now);
    peer.open();
    peer.fail(ErrorCode::TOKEN_EXPIRED);
    let errors = ["Connecting 0 connect called", "Error token expired (109)"];
    assert_eq!(peer.events(), errors);
    peer.pass(Duration::from_secs(1));
    let request = peer.token_request();
    peer.core.token(request, Ok("new".to_owned()), peer.now);
    peer.open();
    let Request::Connect(connect) = peer.command() else { panic!("no connect") };
    assert_eq!(connect.token, "new");
    peer.fail_last(ErrorCode::PERMISSION_DENIED);
    assert_eq!(peer.events(), ["Disconnected 103 permission denied"]);
    assert_eq!(peer.core.poll_deadline(), None);

    peer.core.connect(peer.now);
    peer.open();
    peer.fail(ErrorCode::INTERNAL);
    let again = ["Connecting 0 connect called", "Error internal server error (100)"];
    assert_eq!(peer.events(), again, "a temporary error");
    assert!(peer.core.poll_deadline().is_some());
}

#[test]
fn without_a_callback_an_expired_token_is_final() {
    let mut peer = Peer::new(ClientConfig::default().token("old"));
    peer.core.connect(peer.now);
    peer.open();
    peer.fail(ErrorCode::TOKEN_EXPIRED);
    let events = ["Connecting 0 connect called", "Disconnected 109 token expired"];
    assert_eq!(peer.events(), events);
}

#[test]
fn a_callback_without_a_token_disconnects_or_is_asked_again() {
    let config = ClientConfig::default().get_token(|| async { Ok(String::new()) });
    let mut peer = Peer::new(config);
    peer.core.connect(peer.now);
    let request = peer.token_request();
    let failed = GetTokenError::Failed("no network".to_owned());
    peer.core.token(request, Err(failed), peer.now);
    let events = ["Connecting 0 connect called", "Error no token: no network"];
    assert_eq!(peer.events(), events);
    peer.pass(Duration::from_secs(1));
    let request = peer.token_request();
    peer.core.token(request - 1, Ok("late".to_owned()), peer.now);
    assert_eq!(peer.core.poll_output(), None, "the answer to an earlier request");
    peer.core.token(request, Err(GetTokenError::Unauthorized), peer.now);
    assert_eq!(peer.events(), ["Disconnected 1 unauthorized"]);
}

#[test]
fn a_token_is_renewed_before_it_expires() {
    let config = ClientConfig::default().token("1").get_token(|| async { Ok(String::new()) });
    let mut peer = Peer::new(config);
    let expiring = ConnectResult { expires: true, ttl: 20, ..connect_result() };
    peer.connect_with(expiring);
    peer.pass(Duration::from_secs(20));
    let request = peer.token_request();
    peer.core.token(request, Ok("2".to_owned()), peer.now);
    assert_eq!(peer.command(), Request::Refresh(RefreshRequest { token: "2".into() }));
    let refresh = Some(RefreshResult { expires: true, ttl: 20, ..Default::default() });
    peer.reply(Reply { refresh, ..Reply::default() });
    peer.receive(Reply::default());
    assert_eq!(peer.command(), Request::Pong);
    peer.pass(Duration::from_secs(20));
    let request = peer.token_request();
    let failed = GetTokenError::Failed("no network".to_owned());
    peer.core.token(request, Err(failed), peer.now);
    assert_eq!(peer.events(), ["Error no token: no network"]);
    peer.pass(orders::REFRESH_RETRY);
    let request = peer.token_request();
    peer.core.token(request, Ok("3".to_owned()), peer.now);
    peer.command();
    peer.fail_last(ErrorCode::UNAUTHORIZED);
    assert_eq!(peer.events(), ["Disconnected 101 unauthorized"]);
}

#[test]
fn the_code_of_a_close_decides_whether_the_client_comes_back() {
    for (close_code, event) in [
        (None, "Connecting 1 transport closed"),
        (Some(1006), "Connecting 1 transport closed"),
        (Some(1009), "Disconnected 3 message size limit"),
        (Some(3001), "Connecting 3001 why"),
        (Some(3012), "Connecting 3012 why"),
        (Some(3500), "Disconnected 3500 why"),
        (Some(3999), "Disconnected 3999 why"),
        (Some(4000), "Connecting 4000 why"),
        (Some(4499), "Connecting 4499 why"),
        (Some(4500), "Disconnected 4500 why"),
        (Some(5000), "Connecting 5000 why"),
    ] {
        let mut peer = Peer::new(ClientConfig::default());
        peer.connect_with(connect_result());
        peer.core.closed(close_code, "why", peer.now);
        assert_eq!(peer.events(), [event], "{close_code:?}");
    }
}

#[test]
fn an_invalidated_state_drops_tokens_and_positions() {
    let config = ClientConfig::default().token("1").get_token(|| async { Ok(String::new()) });
    let mut peer = Peer::new(config);
    peer.connect_with(connect_result());
    peer.subscribe_with(SubscribeResult { recoverable: true, ..at(7) });
    peer.core.closed(Some(3014), "state invalidated", peer.now);
    peer.pass(Duration::from_secs(1));
    let request = peer.token_request();
    peer.core.token(request, Ok("2".to_owned()), peer.now);
    peer.open();
    peer.reply(Reply { connect: Some(connect_result()), ..Reply::default() });
    let Request::Subscribe(subscribe) = peer.command() else { panic!("no subscribe") };
    assert!(subscribe.recover);
    assert_eq!(subscribe.offset, 0);
    assert_eq!(subscribe.epoch, "_");
}

#[test]
fn calls_wait_for_the_connection_share_a_message_and_get_their_replies() {
    let mut peer = Peer::new(ClientConfig::default());
    peer.core.call(1, publish("[1]"), peer.now);
    assert_eq!(peer.finished(), [(1, Err(ClientError::Disconnected))]);
    peer.core.connect(peer.now);
    peer.core.call(2, publish("[2]"), peer.now);
    peer.core.call(3, publish("no json"), peer.now);
    peer.core.call(4, send("[4]"), peer.now);
    peer.open();
    peer.reply(Reply { connect: Some(connect_result()), ..Reply::default() });
    let finished = peer.finished();
    assert_eq!(finished[0], (3, Err(ClientError::NotJson)));
    assert_eq!(finished[1].0, 4, "a send has no reply");
    let message = peer.message().expect("one message");
    assert_eq!(message.iter().filter(|byte| **byte == b'\n').count(), 1, "two commands");
    assert!(peer.message().is_none());
    peer.core.call(5, publish("[5]"), peer.now);
    peer.command();
    peer.pass(Duration::from_secs(5));
    let late = [(2, Err(ClientError::Timeout)), (5, Err(ClientError::Timeout))];
    assert_eq!(peer.finished(), late);
    peer.core.call(6, publish("[6]"), peer.now);
    peer.core.closed(None, "", peer.now);
    assert_eq!(peer.finished(), [(6, Err(ClientError::ConnectionLost))]);
}

#[test]
fn batching_keeps_commands_back() {
    let mut peer = Peer::new(ClientConfig::default());
    peer.connect_with(connect_result());
    peer.core.set_batching(true);
    for call in 0..3 {
        peer.core.call(call, publish("[1]"), peer.now);
        assert!(peer.message().is_none());
    }
    peer.core.set_batching(false);
    let message = peer.message().expect("one message");
    assert_eq!(message.iter().filter(|byte| **byte == b'\n').count(), 2, "three commands");
}

#[test]
fn errors_of_a_subscribe_are_final_or_not() {
    let mut peer = Peer::new(ClientConfig::default());
    peer.connect_with(connect_result());
    peer.subscribe();
    peer.fail_last(ErrorCode::PERMISSION_DENIED);
    let refused = ["a: Subscribing 0 subscribe called", "a: Unsubscribed 103 permission denied"];
    assert_eq!(peer.events(), refused);
    peer.core.subscribe("a", peer.now);
    peer.command();
    peer.fail_last(ErrorCode::TOO_MANY_REQUESTS);
    let again = ["a: Subscribing 0 subscribe called", "a: Error too many requests (111)"];
    assert_eq!(peer.events(), again);
    peer.pass(Duration::from_secs(1));
    peer.command();
    peer.pass(Duration::from_secs(5));
    assert_eq!(peer.events(), ["Connecting 3 subscribe timeout"]);
}

#[test]
fn the_token_of_a_subscription_is_asked_for_replaced_and_renewed() {
    let mut peer = Peer::new(ClientConfig::default());
    peer.connect_with(connect_result());
    let config = SubscriptionConfig::default().get_token(|_| async { Ok(String::new()) });
    peer.core.add_subscription("a".to_owned(), config);
    peer.core.subscribe("a", peer.now);
    let request = peer.token_request();
    peer.core.token(request, Ok("1".to_owned()), peer.now);
    let Request::Subscribe(subscribe) = peer.command() else { panic!("no subscribe") };
    assert_eq!(subscribe.token, "1");
    peer.fail_last(ErrorCode::TOKEN_EXPIRED);
    peer.pass(Duration::from_secs(1));
    let request = peer.token_request();
    peer.core.token(request, Ok("2".to_owned()), peer.now);
    peer.command();
    let result = SubscribeResult { expires: true, ttl: 10, ..SubscribeResult::default() };
    peer.reply(Reply { subscribe: Some(result), ..Reply::default() });
    peer.pass(Duration::from_secs(10));
    let request = peer.token_request();
    peer.core.token(request, Ok("3".to_owned()), peer.now);
    let Request::SubRefresh(refresh) = peer.command() else { panic!("no sub_refresh") };
    assert_eq!(refresh.token, "3");
    let result = SubRefreshResult { expires: true, ttl: 10, ..Default::default() };
    peer.reply(Reply { sub_refresh: Some(result), ..Reply::default() });
    peer.events();
    peer.pass(Duration::from_secs(10));
    let request = peer.token_request();
    peer.core.token(request, Err(GetTokenError::Unauthorized), peer.now);
    assert_eq!(peer.events(), ["a: Unsubscribed 1 unauthorized"]);
    assert!(matches!(peer.command(), Request::Unsubscribe(_)));
}

#[test]
fn the_code_of_an_unsubscribe_decides_whether_the_subscription_begins_again() {
    let mut peer = Peer::new(ClientConfig::default());
    peer.connect_with(connect_result());
    peer.subscribe_with(SubscribeResult { recoverable: true, ..at(3) });
    peer.unsubscribe_push(2500, "insufficient state");
    assert_eq!(peer.events(), ["a: Subscribing 2500 insufficient state"]);
    let Request::Subscribe(subscribe) = peer.command() else { panic!("no subscribe") };
    assert!(subscribe.recover);
    assert_eq!(subscribe.offset, 3);
    peer.reply(Reply { subscribe: Some(at(3)), ..Reply::default() });
    peer.events();
    peer.unsubscribe_push(2000, "server unsubscribe");
    assert_eq!(peer.events(), ["a: Unsubscribed 2000 server unsubscribe"]);
    assert!(peer.message().is_none(), "the server knows");
}

#[test]
fn what_comes_before_the_reply_of_a_subscribe_is_not_delivered() {
    let mut peer = Peer::new(ClientConfig::default());
    peer.connect_with(connect_result());
    peer.subscribe_with(SubscribeResult { recoverable: true, ..at(0) });
    peer.core.unsubscribe("a", peer.now);
    peer.core.subscribe("a", peer.now);
    peer.events();
    peer.publication("1", 1);
    assert!(peer.events().is_empty());
}

#[test]
fn subscriptions_of_the_server_are_recovered_and_end() {
    let mut peer = Peer::new(ClientConfig::default());
    let subs = BTreeMap::from([
        ("a".to_owned(), SubscribeResult { recoverable: true, ..at(4) }),
        ("b".to_owned(), SubscribeResult::default()),
    ]);
    peer.connect_with(ConnectResult { subs, ..connect_result() });
    peer.publication("5", 5);
    let join = Join { info: Some(ClientInfo { user: "u".into(), ..ClientInfo::default() }) };
    let push =
        fanwire_protocol::Push { channel: "b".into(), join: Some(join), ..Default::default() };
    peer.receive(Reply { push: Some(push), ..Reply::default() });
    assert_eq!(peer.events(), ["a: 5", "ServerJoin b"]);
    peer.core.closed(None, "", peer.now);
    peer.pass(Duration::from_secs(1));
    peer.open();
    let Request::Connect(connect) = peer.command() else { panic!("no connect") };
    let requests: Vec<_> = connect.subs.iter().map(|(channel, it)| (channel, it.offset)).collect();
    assert_eq!(requests, [(&"a".to_owned(), 5)]);
    let publication =
        fanwire_protocol::Publication { data: "6".into(), offset: 6, ..Default::default() };
    let result = SubscribeResult {
        recoverable: true,
        recovered: true,
        publications: vec![publication],
        ..at(5)
    };
    let subs = BTreeMap::from([("a".to_owned(), result)]);
    peer.events();
    let connect = Some(ConnectResult { subs, ..connect_result() });
    peer.reply(Reply { connect, ..Reply::default() });
    let events = ["Connected client", "ServerUnsubscribed b", "ServerSubscribed a", "a: 6"];
    assert_eq!(peer.events(), events);
}

#[test]
fn a_message_that_is_no_reply_ends_the_connection() {
    let mut peer = Peer::new(ClientConfig::default());
    peer.connect_with(connect_result());
    peer.core.received(b"{}\n[]", 5, peer.now);
    let events = peer.events();
    assert_eq!(events[1], "Disconnected 2 bad protocol");
}

#[test]
fn the_bytes_of_a_message_are_divided_among_its_publications() {
    let mut peer = Peer::new(ClientConfig::default());
    peer.connect_with(connect_result());
    peer.subscribe_with(SubscribeResult::default());
    let push = r#"{"push":{"channel":"a","pub":{"data":1}}}"#;
    let message = format!("{push}\n{push}");
    peer.core.received(message.as_bytes(), message.len() + 2, peer.now);
    assert_eq!(peer.wire_bytes(), [43, 41]);
}

#[test]
fn a_subscription_that_asks_from_a_position_recovers_with_its_first_subscribe() {
    let mut peer = Peer::new(ClientConfig::default());
    peer.connect_with(connect_result());
    let since = fanwire_protocol::StreamPosition { offset: 9, epoch: "e".into() };
    let config = SubscriptionConfig::default().since(since).delta(true).join_leave(true);
    peer.core.add_subscription("a".to_owned(), config);
    peer.core.subscribe("a", peer.now);
    let Request::Subscribe(subscribe) = peer.command() else { panic!("no subscribe") };
    assert!(subscribe.recover && subscribe.join_leave);
    assert_eq!(subscribe.offset, 9);
    assert_eq!(subscribe.delta, "fossil");
    let result = SubscribeResult { recoverable: true, was_recovering: true, ..at(12) };
    peer.reply(Reply { subscribe: Some(result), ..Reply::default() });
    let position = Some(fanwire_protocol::StreamPosition { offset: 12, epoch: "e".into() });
    let expect = SubscribedContext {
        recoverable: true,
        was_recovering: true,
        position,
        ..SubscribedContext::default()
    };
    assert_eq!(peer.subscribed(), Some(expect));
}

/// A result at a position of the stream.
fn at(offset: u64) -> SubscribeResult {
    SubscribeResult { offset, epoch: "e".into(), ..SubscribeResult::default() }
}

fn publish(data: &'static str) -> Command {
    let publish = PublishRequest { channel: "a".into(), data: data.into(), ..Default::default() };
    Command { publish: Some(publish), ..Command::default() }
}

fn send(data: &'static str) -> Command {
    Command { send: Some(SendRequest { data: data.into() }), ..Command::default() }
}

impl Peer {
    fn unsubscribe_push(&mut self, code: u32, reason: &str) {
        let unsubscribe = Some(Unsubscribe { code, reason: reason.to_owned() });
        let push =
            fanwire_protocol::Push { channel: "a".into(), unsubscribe, ..Default::default() };
        self.receive(Reply { push: Some(push), ..Reply::default() });
    }
}
