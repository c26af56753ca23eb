//! Tests of replies that no script of this version gives.
//! In: values → out: refusals, skipped records; never a panic.
//! Uses: no Redis. Never: the scripts, which `tests/it/maps.rs` runs.
//! Changed here: tests of how replies are read.

use proptest::prelude::*;

use super::*;

fn text_value(text: &[u8]) -> Value {
    Value::BulkString(text.to_vec())
}

#[test]
fn an_entry_is_read_with_its_offset_unless_its_map_has_none() {
    let publication = Publication { key: "k".into(), ..Publication::default() };
    let message = publication.encode_to_vec();
    let entry = Bytes::from([b"7 12 3 0 e p".as_slice(), &message].concat());
    let read = |epoch| read_entry(&entry, epoch).map(|entry| (entry.key, entry.offset));
    assert_eq!(read(Epoch::random()), Some(("k".to_owned(), 7)));
    assert_eq!(read(Epoch::NONE), Some(("k".to_owned(), 0)));
    for foreign in ["", "7", "7 12 3 0", "7 12 99 0 abc", "x 12 0 0 ", "7 12 0 0 \u{ff}"] {
        assert_eq!(read_entry(&Bytes::from(foreign.to_owned()), Epoch::NONE), None, "{foreign}");
    }
}

#[test]
fn a_cursor_of_another_redis_is_lost_and_a_foreign_entry_is_skipped() {
    let health = Health::default();
    let read = |reply| read_state(reply, &StateQuery::default(), "name", &health);
    assert_eq!(read(text_value(b"lost")), Ok(Err(PositionLost)));
    let found = Value::Array(vec![text_value(b"k"), text_value(b"garbage")]);
    let cursor = text_value(b"17");
    let run_id = text_value(b"abc");
    let top = text_value(b"");
    let reply = Value::Array(vec![top, Value::Int(1), cursor, run_id, found]);
    let page = StatePage { cursor: "17.abc".into(), ..StatePage::default() };
    assert_eq!(read(reply), Ok(Ok(MapState { page, count: 1 })));
    assert_eq!(health.foreign_count(), 1);
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(Value::BulkString),
        any::<i64>().prop_map(Value::Int),
        "(|version|bytes|position_mismatch|[0-9]{1,3} [A-Za-z]{8})"
            .prop_map(|text| Value::BulkString(text.into())),
        Just(Value::Nil),
    ];
    leaf.prop_recursive(3, 40, 6, |inner| {
        proptest::collection::vec(inner, 0..6).prop_map(Value::Array)
    })
}

proptest! {
    #[test]
    fn senseless_replies_are_errors_or_read_without_a_panic(reply in values(), reverse in any::<bool>()) {
        let health = Health::default();
        let since = Some(Position { offset: 3, epoch: Epoch::NONE });
        let query = ChangesQuery { since, reverse, limit: Some(2) };
        let _ = read_outcome(reply.clone(), &health);
        let _ = read_state(reply.clone(), &StateQuery::default(), "name", &health);
        let changes = read_changes(reply.clone(), query, "name", &health);
        let _ = read_sweep(reply);
        if let Ok(Ok(slice)) = changes {
            prop_assert!(slice.publications.len() <= 2);
        }
    }
}
