//! Tests of the records of streams: each field is read as it was written, and impossible ones are refused.
//! In: records with one other field each, any bytes → out: the same records, or none.
//! Uses: proptest. What requests notice is tested in `tests.rs` of the crate.
//! Changed here: an example of each new field.

use fanwire_testing::fingerprint;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn producer(used_ms: u64) -> ProducerRecord {
    ProducerRecord { id: "p".into(), epoch: 1, seq: 2, used_ms }
}

type FieldChange = fn(&mut StreamRecord);

const CHANGES: &[(&str, FieldChange)] = &[
    ("channel", |record| record.channel = "log:a".into()),
    ("content_type", |record| record.content_type = "text/plain; charset=utf-8".into()),
    ("ttl", |record| record.ttl = Some(60)),
    ("expires_at", |record| record.expires_at = Some("2030-01-31T12:00:00Z".into())),
    ("is_closed", |record| record.is_closed = true),
    ("start_offset", |record| record.start_offset = 7),
    ("start_epoch", |record| record.start_epoch = "abcdefgh".into()),
    ("used_ms", |record| record.used_ms = 1_700_000_000_123),
    ("closed_by", |record| record.closed_by = Some(producer(0))),
    ("last_seq", |record| record.last_seq = Some("0007".into())),
    ("producers", |record| record.producers.push(producer(1_700_000_000_000))),
    ("is_adopted", |record| record.is_adopted = true),
    ("is_put", |record| record.is_put = true),
    ("look_at", |record| record.look_at = Some(1_700_000_060_000)),
    ("published_ms", |record| record.published_ms = 1_700_000_000_500),
];

fn read_again(record: StreamRecord) -> Option<StreamRecord> {
    let known = record.known()?;
    let state = known.entry.state.lock();
    Some(StreamRecord::new(&known, &state))
}

#[test]
fn each_field_of_a_stream_moves() {
    for (field, change) in CHANGES {
        let mut record = StreamRecord::default();
        change(&mut record);
        assert_ne!(record, StreamRecord::default(), "{field}");
        assert_eq!(read_again(record.clone()), Some(record), "{field}");
    }
}

#[test]
fn an_impossible_stream_is_refused() {
    let impossible: [FieldChange; 3] = [
        |record| record.start_epoch = "short".into(),
        |record| record.expires_at = Some("tomorrow".into()),
        |record| {
            record.ttl = Some(1);
            record.expires_at = Some("2030-01-31T12:00:00Z".into());
        },
    ];
    for change in impossible {
        let mut record = StreamRecord::default();
        change(&mut record);
        assert_eq!(read_again(record), None);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_table_or_not(bytes in vec(any::<u8>(), 0..100)) {
        if let Ok(table) = TableRecord::decode(bytes.as_slice()) {
            for record in table.streams {
                let once = read_again(record);
                prop_assert_eq!(once.clone().and_then(read_again), once);
            }
        }
    }
}

/// Another layout takes another format of the takeover, in `crates/fanwire/src/takeover.rs`, and then this number.
#[test]
fn the_layout_is_that_of_the_format_of_takeovers() {
    let mut record = StreamRecord::default();
    CHANGES.iter().for_each(|(_, change)| change(&mut record));
    let table = TableRecord { streams: vec![record] };
    assert_eq!(fingerprint(&table.encode_to_vec()), 0xb6f9_3dd4);
}
