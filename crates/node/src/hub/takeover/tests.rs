//! Tests of a move of one session: each field of its record arrives, and impossible records change nothing.
//! In: records → out: the records that the next program would get, counts of the node.
//! Uses: hubs of nodes without clients. What clients notice is tested in `tests/it/takeover.rs`.
//! Changed here: what makes a record impossible. Examples of fields are in `session_record/tests.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{Answer, Bus};
use fanwire_policy::hooks::Hooks;
use fanwire_policy::options::{MapMode, Namespace, Options, SubscriptionType};
use fanwire_protocol::FilterNode;
use proptest::prelude::*;

use super::*;
use crate::node::{Counts, Node, NodeParts};
use crate::registry::ShardId;
use crate::session_record::tests::{CHANGES, FieldChange, any_record, plain};
use crate::session_record::{PositionRecord, SubscriptionRecord, TermsRecord, ViewRecord};

const KEY: ConnectionKey = ConnectionKey { index: 3, generation: 9 };

struct NoInbox;

impl crate::notice::Inbox for NoInbox {
    fn push(&self, _notice: crate::notice::Notice) {}
}

/// A hub of a node of its own, with channels without a namespace and the namespaces `chat`, `poll` and `map`.
fn hub(now: Instant) -> Hub {
    hub_with(Hooks::default(), now)
}

fn hub_with(hooks: Hooks, now: Instant) -> Hub {
    let named = |name: &str| Namespace { name: name.into(), ..Namespace::default() };
    let mut options = Options::default();
    options.channel.namespaces = vec![named("chat"), named("poll"), named("map")];
    options.channel.namespaces[1].subscription_type = SubscriptionType::SharedPoll;
    options.channel.namespaces[2].subscription_type = SubscriptionType::Map;
    options.channel.namespaces[2].map.mode = MapMode::Persistent;
    options.shared_poll.hmac_secret_key = "secret".into();
    let parts = NodeParts { hooks, ..NodeParts::default() };
    let node =
        Node::with_parts(options, now, 1_800_000_000_000, parts).expect("the options are good");
    let shard = node.attach(Arc::new(NoInbox));
    assert_eq!(shard, ShardId(0));
    Hub::new(node, shard)
}

/// The record that another program gets after this one has adopted it.
fn moved(record: &SessionRecord) -> Option<SessionRecord> {
    let now = Instant::now();
    let mut hub = hub(now);
    assert!(hub.adopt(KEY, &record.encode(), now));
    SessionRecord::decode(&hub.save(KEY, now)?)
}

#[test]
fn each_field_of_a_record_moves() {
    for (field, change) in CHANGES {
        let mut record = plain();
        change(&mut record);
        assert_ne!(record, plain(), "{field}");
        assert_eq!(moved(&record), Some(record), "{field}");
    }
}

#[test]
fn a_connection_that_is_not_connected_moves_with_its_request() {
    for phase in [0, 1] {
        let mut record = plain();
        record.connection.phase = phase;
        record.connection.command_source = 2;
        record.connection.user = Some("42".into());
        record.connection.last_event_id = Some("17.abcdefgh".into());
        assert_eq!(moved(&record), Some(record.clone()));
        record.connection.last_event_id = Some(String::new());
        assert_eq!(moved(&record), Some(record));
    }
}

#[test]
fn the_time_to_a_pong_begins_again_for_a_connection_that_was_not_read() {
    let mut record = plain();
    record.timers.awaits_pong = true;
    record.timers.pong = Some(1);
    record.timers.is_held = true;
    let moved = moved(&record).expect("it moves");
    let pong_timeout = Options::default().client.pong_timeout.as_millis() as u64;
    assert_eq!(moved.timers.pong, Some(pong_timeout));
    assert!(!moved.timers.is_held);
}

#[test]
fn times_pass_in_the_new_program_from_its_own_start() {
    let before = Instant::now();
    let mut old = hub(before);
    assert!(old.adopt(KEY, &plain().encode(), before + Duration::from_secs(100)));
    let saved = old.save(KEY, before + Duration::from_secs(101)).expect("it moves");
    let mut new = hub(before);
    assert!(new.adopt(KEY, &saved, before));
    let saved = new.save(KEY, before + Duration::from_secs(1)).expect("it moves");
    let record = SessionRecord::decode(&saved).expect("a record");
    assert_eq!(record.timers.beat, Some(3_000));
}

proptest! {
    #[test]
    fn any_fields_move_together(record in any_record()) {
        prop_assert_eq!(moved(&record), Some(record));
    }
}

fn subscribe(record: &mut SessionRecord, channel: &str) {
    let channel = channel.to_owned();
    record.subscriptions.push(SubscriptionRecord { channel, ..SubscriptionRecord::default() });
}

const IMPOSSIBLE: &[(&str, FieldChange)] = &[
    ("phase", |record| record.connection.phase = 3),
    ("encoding", |record| record.connection.encoding = "xml".into()),
    ("command_source", |record| record.connection.command_source = 3),
    ("transport", |record| record.connection.transport = "carrier pigeon".into()),
    ("id", |record| record.id.truncate(15)),
    ("secret", |record| record.secret = vec![1]),
    ("a channel twice", |record| {
        subscribe(record, "news");
        subscribe(record, "news");
    }),
    ("a tile twice", |record| {
        let tiles = vec![Default::default(); 2];
        record.views.push(ViewRecord { channel: "news".into(), tiles });
    }),
    ("an unknown namespace", |record| subscribe(record, "unknown:1")),
    ("a channel before connect", |record| {
        record.connection.phase = 0;
        subscribe(record, "news");
    }),
    ("delta", |record| {
        subscribe(record, "news");
        record.subscriptions[0].delta = 4;
    }),
    ("epoch", |record| {
        subscribe(record, "news");
        let epoch = "not letters".to_owned();
        record.subscriptions[0].position = Some(PositionRecord { epoch, ..Default::default() });
    }),
    ("filter", |record| {
        subscribe(record, "news");
        let filter = FilterNode { op: "nor".into(), ..FilterNode::default() };
        let terms = TermsRecord { filter: Some(filter), ..TermsRecord::default() };
        record.subscriptions[0].terms = Some(terms);
    }),
];

#[test]
fn an_impossible_record_changes_nothing() {
    let now = Instant::now();
    let mut hub = hub(now);
    for (cause, change) in IMPOSSIBLE {
        let mut record = plain();
        change(&mut record);
        assert!(!hub.adopt(KEY, &record.encode(), now), "{cause}");
        assert_eq!(hub.node.counts(), Counts::default(), "{cause}");
        assert_eq!(hub.save(KEY, now), None, "{cause}");
    }
    assert!(hub.adopt(KEY, &plain().encode(), now));
    assert!(!hub.adopt(KEY, &plain().encode(), now), "the index is in use");
}

#[test]
fn a_subscription_to_a_shared_poll_stays() {
    let mut record = plain();
    subscribe(&mut record, "poll:1");
    assert_eq!(moved(&record), None);
}

struct NoNodes;

impl Bus for NoNodes {
    fn send(&self, _to: Option<&str>, _message: Bytes) -> Answer<usize> {
        Answer::now(Ok(0))
    }
}

#[test]
fn a_subscription_to_a_map_stays_where_nodes_share_it() {
    let now = Instant::now();
    let mut record = plain();
    subscribe(&mut record, "map:1");
    assert_eq!(moved(&record), Some(record.clone()));
    let mut hub = hub(now);
    hub.node.cluster().join(Arc::new(NoNodes));
    assert!(hub.adopt(KEY, &record.encode(), now));
    assert_eq!(hub.save(KEY, now), None);
}

#[test]
fn a_connection_stays_with_what_is_around_the_node() {
    let now = Instant::now();
    let stays = |_: &str, channel: &str| channel == "news";
    let hooks = Hooks { stays: Some(Box::new(stays)), ..Hooks::default() };
    let mut hub = hub_with(hooks, now);
    let mut record = plain();
    assert!(hub.adopt(KEY, &record.encode(), now));
    assert!(hub.save(KEY, now).is_some());
    subscribe(&mut record, "news");
    let other = ConnectionKey { index: 4, ..KEY };
    assert!(hub.adopt(other, &record.encode(), now));
    assert_eq!(hub.save(other, now), None);
}
