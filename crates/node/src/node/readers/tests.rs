//! Tests of reads without a connection: subscription tokens, connection tokens, none.
//! In: tokens signed with the node's key → out: permission or the code of the refusal.
//! Uses a node without shards. Never: sockets, the clock.
//! Changed here: which token reads what.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_auth::{
    ConnectionToken, HmacAlgorithm, Lifetime, SubscriptionToken, sign_hmac_connection,
    sign_hmac_subscription,
};
use fanwire_broker::{RevocationChange, RevocationKind};
use fanwire_policy::options::{Namespace, Options};

use crate::Node;

const NOW_UNIX: u64 = 1_800_000_000;

fn node(now: Instant) -> Arc<Node> {
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
    Node::starting_at(options, now, NOW_UNIX * 1000).expect("valid options")
}

fn of_user(user: &str, lifetime: Lifetime) -> String {
    let token = ConnectionToken { user, lifetime, ..ConnectionToken::default() };
    sign_hmac_connection("secret", HmacAlgorithm::Hs256, &token).expect("valid claims")
}

fn of_channel(user: &str, channel: &str) -> String {
    let token = SubscriptionToken { user, channel, ..SubscriptionToken::default() };
    sign_hmac_subscription("secret", HmacAlgorithm::Hs256, &token).expect("valid claims")
}

#[test]
fn a_token_reads_the_channels_that_its_user_could_subscribe_to() {
    let now = Instant::now();
    let node = node(now);
    let read =
        |token: &str, channel: &str| node.may_read(token, channel, now).map_err(|error| error.code);
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
fn a_blocked_user_reads_nothing() {
    let now = Instant::now();
    let node = node(now);
    let change = RevocationChange { subject: "ann".to_owned(), ..RevocationChange::default() };
    let revoked = node.revocations().revoke(RevocationKind::BlockUser, change, (now, NOW_UNIX));
    assert!(revoked.is_ok());
    for token in [of_channel("ann", "news:a"), of_user("ann", Lifetime::Until(NOW_UNIX + 60))] {
        let read = node.may_read(&token, "news:a", now);
        assert_eq!(read.map_err(|error| error.code), Err(109));
    }
}
