//! Tests of the record of a session as bytes. That a whole move keeps each field is tested in `hub/takeover/tests.rs`.
//! In: records with other values in some fields, any bytes → out: equal records, or none.
//! Uses: proptest. Never: a hub.
//! Changed here: the example of a new field, in [`CHANGES`].

use fanwire_testing::fingerprint;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;

use super::*;

/// A connected session without anything else.
pub(crate) fn plain() -> SessionRecord {
    SessionRecord {
        connection: ConnectionRecord {
            phase: 2,
            encoding: "json".into(),
            transport: "websocket".into(),
            ..ConnectionRecord::default()
        },
        id: vec![7; 16],
        timers: TimersRecord { beat: Some(5_000), ..TimersRecord::default() },
        context: Some(ContextRecord::default()),
        ..SessionRecord::default()
    }
}

fn news(record: &mut SessionRecord) -> &mut SubscriptionRecord {
    if record.subscriptions.is_empty() {
        let channel = "news".to_owned();
        record.subscriptions.push(SubscriptionRecord { channel, ..SubscriptionRecord::default() });
    }
    &mut record.subscriptions[0]
}

fn position(record: &mut SessionRecord) -> &mut PositionRecord {
    let first = PositionRecord { epoch: "abcdefgh".into(), ..PositionRecord::default() };
    news(record).position.get_or_insert(first)
}

fn terms(record: &mut SessionRecord) -> &mut TermsRecord {
    let info = Bytes::from_static(b"{}");
    news(record).terms.get_or_insert(TermsRecord { info, ..TermsRecord::default() })
}

fn token() -> TokenRecord {
    TokenRecord { uid: "t1".into(), issued_at: 1_700_000_000 }
}

fn rate(namespace: &str, is_of_subscribes: bool) -> NamespaceRateRecord {
    NamespaceRateRecord { namespace: namespace.into(), is_of_subscribes, nanos: 4_000 }
}

fn tile(x: i32) -> TileRecord {
    TileRecord { x, y: 2, layer: 1, ring: 3 }
}

/// A value of a field, set in a record.
pub(crate) type FieldChange = fn(&mut SessionRecord);

/// Each field of a session that is connected, with a value that the plain one does not have.
pub(crate) const CHANGES: &[(&str, FieldChange)] = &[
    ("encoding", |record| record.connection.encoding = "protobuf".into()),
    ("frame_ping", |record| record.connection.frame_ping = true),
    ("command_source", |record| record.connection.command_source = 1),
    ("transport", |record| record.connection.transport = "sse".into()),
    ("user", |record| record.user = "42".into()),
    ("id", |record| record.id = vec![8; 16]),
    ("secret", |record| record.secret = vec![9; 16]),
    ("info", |record| record.info = Bytes::from_static(b"{\"a\":1}")),
    ("expire_at", |record| record.expire_at = Some(1_800_000_100)),
    ("connected_at_ms", |record| record.connected_at_ms = 1_799_999_999_123),
    ("beat", |record| record.timers.beat = Some(9_000)),
    ("pong", |record| record.timers.pong = Some(3_000)),
    ("awaits_pong", |record| record.timers.awaits_pong = true),
    ("headers", |record| {
        let header = HeaderRecord { name: "x".into(), value: Bytes::from_static(b"\xff") };
        record.context.get_or_insert_default().headers.push(header);
    }),
    ("emulated_headers", |record| {
        let header = EmulatedHeaderRecord { name: "y".into(), value: "z".into() };
        record.context.get_or_insert_default().emulated_headers.push(header);
    }),
    ("meta", |record| {
        record.context.get_or_insert_default().meta = Bytes::from_static(b"{\"m\":1}");
    }),
    ("app.name", |record| record.app.name = "js".into()),
    ("app.version", |record| record.app.version = "5.3".into()),
    ("app.labels", |record| drop(record.app.labels.insert("plan".into(), "pro".into()))),
    ("grant.channels_hash", |record| {
        record.grant.get_or_insert_default().channels_hash = u64::MAX - 1;
    }),
    ("grant.token", |record| record.grant.get_or_insert_default().token = Some(token())),
    ("channel", |record| news(record).channel = "other".into()),
    ("a second channel", |record| {
        let channel = "chat:1".to_owned();
        record.subscriptions.push(SubscriptionRecord { channel, ..SubscriptionRecord::default() });
    }),
    ("server_side", |record| news(record).server_side = true),
    ("present", |record| {
        news(record).present = true;
        record.timers.renewal = Some(32_000);
    }),
    ("announced", |record| news(record).announced = true),
    ("wants_join_leave", |record| news(record).wants_join_leave = true),
    ("has_entries", |record| {
        news(record).has_entries = true;
        record.timers.renewal = Some(32_000);
    }),
    ("offset", |record| position(record).offset = 17),
    ("epoch", |record| position(record).epoch = "ijklmnop".into()),
    ("may_have_gap", |record| position(record).may_have_gap = true),
    ("delta", |record| news(record).delta = 2),
    ("terms.info", |record| terms(record).info = Bytes::from_static(b"{\"c\":1}")),
    ("terms.expire_at", |record| terms(record).expire_at = Some(1_800_000_200)),
    ("terms.filter", |record| {
        let filter = FilterNode { key: "k".into(), cmp: "ex".into(), ..FilterNode::default() };
        terms(record).filter = Some(filter);
    }),
    ("terms.server_filter", |record| {
        let filter = FilterNode { key: "s".into(), cmp: "nex".into(), ..FilterNode::default() };
        terms(record).server_filter = Some(filter);
    }),
    ("terms.is_refreshed_by_hook", |record| terms(record).is_refreshed_by_hook = true),
    ("terms.token", |record| terms(record).token = Some(token())),
    ("views", |record| {
        let tiles = vec![tile(-1), tile(3)];
        record.views.push(ViewRecord { channel: "news".into(), tiles });
    }),
    ("rates.commands", |record| record.rates.get_or_insert_default().commands = 1_000),
    ("rates.refusals", |record| record.rates.get_or_insert_default().refusals = 2_000),
    ("rates.namespaces", |record| {
        let namespaces = vec![rate("", true), rate("chat", false)];
        record.rates.get_or_insert_default().namespaces = namespaces;
    }),
];

/// Records with some of these changes.
pub(crate) fn any_record() -> impl Strategy<Value = SessionRecord> {
    subsequence(CHANGES.to_vec(), 0..=CHANGES.len()).prop_map(|changes| {
        let mut record = plain();
        changes.into_iter().for_each(|(_, change)| change(&mut record));
        record
    })
}

proptest! {
    #[test]
    fn a_record_is_read_as_it_was_written(record in any_record()) {
        prop_assert_eq!(SessionRecord::decode(&record.encode()), Some(record));
    }

    #[test]
    fn any_bytes_are_a_record_or_not(mut bytes in vec(any::<u8>(), 0..100)) {
        if let Some(format) = bytes.first_mut() {
            *format = SESSION_FORMAT;
        }
        let record = SessionRecord::decode(&bytes);
        prop_assert_eq!(record.as_ref().and_then(|it| SessionRecord::decode(&it.encode())), record);
    }
}

#[test]
fn a_record_of_another_format_is_refused() {
    let mut bytes = plain().encode();
    bytes[0] = SESSION_FORMAT + 1;
    assert_eq!(SessionRecord::decode(&bytes), None);
    assert_eq!(SessionRecord::decode(&[]), None);
}

#[test]
fn another_layout_has_another_format() {
    let mut record = plain();
    CHANGES.iter().for_each(|(_, change)| change(&mut record));
    record.connection.user = Some("42".into());
    record.connection.last_event_id = Some("17.abcdefgh".into());
    record.timers.is_held = true;
    assert_eq!((SESSION_FORMAT, fingerprint(&record.encode())), (1, 0xd4d0_d4ce));
}
