//! Tests of reads without a connection: subscription tokens, connection tokens, none, hooks.
//! In: tokens signed with the node's key → out: a permit or the refusal.
//! Uses a node without shards. Never: sockets, the clock.
//! Changed here: which token reads what.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_auth::{
    ChannelGrant, ConnectionToken, HmacAlgorithm, Lifetime, SubscriptionToken,
    sign_hmac_connection, sign_hmac_subscription,
};
use fanwire_broker::{Answer, RevocationChange, RevocationKind};
use fanwire_policy::hooks::{
    ConnectEvent, ConnectGrant, Hook, Hooks, Rejection, SubscribeEvent, SubscribeGrant,
};
use fanwire_policy::options::{Namespace, Options, ProxyChoice, ProxyRoute};
use fanwire_protocol::{Disconnect, Encoding, ErrorCode};
use jsonwebtoken::{EncodingKey, Header, encode};

use super::{ReadError, ReadPermit, ReadRequest};
use crate::{CommandSource, ConnectionInfo, Node, NodeParts};

const NOW_UNIX: u64 = 1_800_000_000;

fn node(now: Instant) -> Arc<Node> {
    node_with(now, |_| {})
}

fn node_with(now: Instant, change: impl FnOnce(&mut Options)) -> Arc<Node> {
    node_with_hooks(now, Hooks::default(), change)
}

fn node_with_hooks(now: Instant, hooks: Hooks, change: impl FnOnce(&mut Options)) -> Arc<Node> {
    let mut options = Options::default();
    options.client.token.hmac_secret_key = "secret".into();
    let closed = Namespace {
        name: "log".to_owned(),
        history_size: 10,
        history_ttl: Duration::from_secs(60),
        ..Namespace::default()
    };
    let open = Namespace {
        name: "news".to_owned(),
        allow_subscribe_for_client: true,
        allow_history_for_subscriber: true,
        ..closed.clone()
    };
    let plain = Namespace { name: "plain".to_owned(), ..Namespace::default() };
    options.channel.namespaces = vec![closed, open, plain];
    change(&mut options);
    let parts = NodeParts { hooks, ..NodeParts::default() };
    Node::with_parts(options, now, NOW_UNIX * 1000, parts).expect("valid options")
}

fn of_user(user: &str, lifetime: Lifetime) -> String {
    let token = ConnectionToken { user, lifetime, ..ConnectionToken::default() };
    sign_hmac_connection("secret", HmacAlgorithm::Hs256, &token).expect("valid claims")
}

fn of_channel(user: &str, channel: &str) -> String {
    let token = SubscriptionToken { user, channel, ..SubscriptionToken::default() };
    sign_hmac_subscription("secret", HmacAlgorithm::Hs256, &token).expect("valid claims")
}

/// The permit, or the code of the refusal, or the rejection of a hook. Hooks of these tests answer at once.
fn read(node: &Node, token: &str, channel: &str, now: Instant) -> Result<ReadPermit, ReadError> {
    let headers = vec![("cookie".to_owned(), Bytes::from_static(b"a=b"))];
    let client = ConnectionInfo {
        encoding: Encoding::Json,
        frame_ping: false,
        transport: "durable_streams",
        command_source: CommandSource::None,
        user: None,
        last_event_id: None,
        headers,
    };
    let mut reading = pin!(node.may_read(ReadRequest { token, channel, client }, now));
    match reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a hook did not answer"),
    }
}

fn code(result: Result<ReadPermit, ReadError>) -> Result<(), u32> {
    match result {
        Ok(_) => Ok(()),
        Err(ReadError::Error(error)) => Err(error.code),
        Err(ReadError::Hook(rejection)) => panic!("{rejection:?}"),
    }
}

#[test]
fn a_token_reads_the_channels_that_its_user_could_subscribe_to() {
    let now = Instant::now();
    let node = node(now);
    let read = |token: &str, channel: &str| code(read(&node, token, channel, now));
    assert_eq!(read(&of_channel("ann", "log:a"), "log:a"), Ok(()));
    assert_eq!(read(&of_channel("ann", "log:a"), "log:b"), Err(103));
    let ann = of_user("ann", Lifetime::Never);
    assert_eq!(read(&ann, "log:a"), Err(103), "no permission of the namespace");
    assert_eq!(read(&of_user("ann", Lifetime::Until(NOW_UNIX + 60)), "news:a"), Ok(()));
    assert_eq!(read(&of_user("", Lifetime::Until(NOW_UNIX + 60)), "news:a"), Err(103));
    assert_eq!(read(&of_user("ann", Lifetime::Until(NOW_UNIX - 60)), "news:a"), Err(109));
    assert_eq!(read("", "news:a"), Err(101));
    assert_eq!(read("a.b.c", "news:a"), Err(101));
    assert_eq!(read(&of_channel("ann", "plain:a"), "plain:a"), Err(108));
    assert_eq!(read(&ann, "other:a"), Err(102));
    assert_eq!(read(&ann, "news:ü"), Err(107));
}

#[test]
fn a_blocked_user_reads_nothing_and_goes_on_with_nothing() {
    let now = Instant::now();
    let node = node(now);
    let tokens = [of_channel("ann", "news:a"), of_user("ann", Lifetime::Until(NOW_UNIX + 60))];
    let open = tokens.each_ref().map(|token| read(&node, token, "news:a", now).expect("a permit"));
    assert!(open.iter().all(|permit| node.still_permits(permit, now).is_ok()));
    let change = RevocationChange { subject: "ann".to_owned(), ..RevocationChange::default() };
    let before = node.revocations().changes();
    let revoked = node.revocations().revoke(RevocationKind::BlockUser, change, now, NOW_UNIX);
    assert!(revoked.is_ok());
    assert_ne!(node.revocations().changes(), before);
    for (token, permit) in tokens.iter().zip(&open) {
        assert_eq!(code(read(&node, token, "news:a", now)), Err(109));
        let ended = node.still_permits(permit, now).map_err(|error| error.code);
        assert_eq!(ended, Err(109));
    }
}

#[test]
fn a_permit_ends_with_its_token() {
    let now = Instant::now();
    let node = node(now);
    let token = of_user("ann", Lifetime::Until(NOW_UNIX + 60));
    let permit = read(&node, &token, "news:a", now).expect("a permit");
    let lasts = node.permitted_for(&permit, now).expect("an end");
    assert_eq!(lasts, Duration::from_secs(60));
    let ended = node.still_permits(&permit, now + lasts).map_err(|error| error.code);
    assert_eq!(ended, Err(110));
    let endless = read(&node, &of_channel("ann", "log:a"), "log:a", now).expect("a permit");
    assert_eq!(node.permitted_for(&endless, now), None);
}

#[test]
fn a_connect_hook_is_asked_first_and_may_refuse() {
    let now = Instant::now();
    let end = Disconnect { code: 4501, reason: "nobody".into() };
    let refuse = end.clone();
    let connect = move |_: ConnectEvent| Answer::now(Err(refuse.clone().into()));
    let hooks = Hooks { connect: Some(Hook::new(connect)), ..Hooks::default() };
    let node = node_with_hooks(now, hooks, |options| {
        options.client.allow_anonymous_connect_without_token = true;
    });
    let refused = read(&node, "", "news:a", now).expect_err("a refusal");
    assert_eq!(refused, ReadError::Hook(end.into()));
    let ann = of_user("ann", Lifetime::Until(NOW_UNIX + 60));
    assert_eq!(code(read(&node, &ann, "news:a", now)), Ok(()), "its token decides, as at connect");
}

#[test]
fn a_subscribe_hook_decides_about_who_it_gets_from_the_connect_hook() {
    let now = Instant::now();
    let connect = |event: ConnectEvent| {
        let user = event.context.headers[0].0.clone();
        let meta = Bytes::from_static(b"{}");
        let expire_at = Some(NOW_UNIX + 9);
        let channels = [("log:granted".to_owned(), Default::default())].into();
        Answer::now(Ok(Some(ConnectGrant {
            user,
            meta,
            expire_at,
            channels,
            ..ConnectGrant::default()
        })))
    };
    let subscribe = |event: SubscribeEvent| {
        let SubscribeEvent { client, context, channel, .. } = event;
        assert_eq!((&*client.user, &context.meta[..]), ("cookie", &b"{}"[..]));
        assert_eq!((client.client.len(), context.transport), (36, "durable_streams"));
        match &*channel {
            "news:refused" => {
                Answer::now(Err(Rejection::Error(ErrorCode::PERMISSION_DENIED.into())))
            }
            "news:undecided" | "log:undecided" => Answer::now(Ok(None)),
            _ => Answer::now(Ok(Some(SubscribeGrant {
                expire_at: Some(NOW_UNIX + 5),
                ..Default::default()
            }))),
        }
    };
    let hooks = Hooks {
        connect: Some(Hook::new(connect)),
        subscribe: Some(Hook::new(subscribe)),
        ..Hooks::default()
    };
    let node = node_with_hooks(now, hooks, |_| {});
    let refused = read(&node, "", "news:refused", now).expect_err("a refusal");
    assert!(matches!(refused, ReadError::Hook(Rejection::Error(_))), "{refused:?}");
    let permit = read(&node, "", "news:a", now).expect("a permit");
    assert_eq!(permit.user(), "cookie");
    assert_eq!(node.permitted_for(&permit, now), Some(Duration::from_secs(5)), "the earlier end");
    assert_eq!(code(read(&node, "", "news:undecided", now)), Ok(()));
    assert_eq!(code(read(&node, "", "log:undecided", now)), Err(103));
    assert_eq!(
        code(read(&node, "", "log:granted", now)),
        Err(103),
        "subscribed, but without history"
    );
    let of_token = of_channel("ann", "news:refused");
    assert_eq!(
        code(read(&node, &of_token, "news:refused", now)),
        Ok(()),
        "a subscription token decides alone"
    );
}

/// A stream is read as it is stored, so a reader from whom something is hidden reads nothing.
#[test]
fn a_grant_with_a_filter_reads_nothing() {
    let now = Instant::now();
    let filter = Bytes::from_static(br#"{"key":"team","cmp":"ex"}"#);
    let hidden = ChannelGrant { server_tags_filter: filter.clone(), ..ChannelGrant::default() };
    let connect = move |_: ConnectEvent| {
        let channels =
            [("news:hidden".to_owned(), hidden.clone()), ("news:a".to_owned(), Default::default())];
        let user = "ann".to_owned();
        let channels = channels.into();
        Answer::now(Ok(Some(ConnectGrant { user, channels, ..ConnectGrant::default() })))
    };
    let subscribe = move |_: SubscribeEvent| {
        let server_tags_filter = filter.clone();
        Answer::now(Ok(Some(SubscribeGrant { server_tags_filter, ..SubscribeGrant::default() })))
    };
    let hooks = Hooks {
        connect: Some(Hook::new(connect)),
        subscribe: Some(Hook::new(subscribe)),
        ..Hooks::default()
    };
    let node = node_with_hooks(now, hooks, |_| {});
    assert_eq!(code(read(&node, "", "news:a", now)), Ok(()));
    assert_eq!(code(read(&node, "", "news:hidden", now)), Err(103), "of the connect hook");
    assert_eq!(code(read(&node, "", "news:asked", now)), Err(103), "of the subscribe hook");
    let claims = serde_json::json!({
        "sub": "ann", "channel": "news:a", "server_tags_filter": {"key": "team", "cmp": "ex"},
    });
    let key = EncodingKey::from_secret(b"secret");
    let token = encode(&Header::default(), &claims, &key).expect("claims can be signed");
    assert_eq!(code(read(&node, &token, "news:a", now)), Err(103), "of a token");
}

#[test]
fn a_proxy_of_publication_streams_has_no_subscriber_to_send_to() {
    let now = Instant::now();
    let subscribe = |_: SubscribeEvent, _: ProxyRoute| panic!("no hook is asked");
    let hooks = Hooks { subscribe: Some(Hook::of_proxies(subscribe)), ..Hooks::default() };
    let node = node_with_hooks(now, hooks, |options| {
        options.client.allow_anonymous_connect_without_token = true;
        let news = &mut options.channel.namespaces[1];
        news.subscribe_stream_proxy = ProxyChoice { enabled: true, ..ProxyChoice::default() };
    });
    assert_eq!(code(read(&node, "", "news:a", now)), Err(103));
}

#[test]
fn an_anonymous_token_is_refused_where_connections_refuse_it() {
    let now = Instant::now();
    let node = node_with(now, |options| {
        options.client.disallow_anonymous_connection_tokens = true;
        options.channel.namespaces[1].allow_subscribe_for_anonymous = true;
        options.channel.namespaces[1].allow_history_for_anonymous = true;
    });
    assert_eq!(code(read(&node, &of_user("", Lifetime::Never), "news:a", now)), Err(103));
}
