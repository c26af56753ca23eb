//! Tests of records: encoding and decoding give the same value, and other bytes are an error value.
//! In: publications, changes, members, random and damaged bytes → out: the same values, or the kind of foreign bytes.
//! Uses proptest. Never: a Redis.
//! A new field of a record is a row here.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn client(user: &str) -> ClientInfo {
    ClientInfo {
        user: user.into(),
        client: "c".into(),
        conn_info: "\u{0}bytes".into(),
        chan_info: "{}".into(),
    }
}

/// The encoding, compared with that of prost.
fn written(record: &Record) -> Vec<u8> {
    let mut out = Vec::new();
    record.put(&mut out);
    assert_eq!(out.len(), record.length());
    assert_eq!(out, [&[VERSION][..], &record.encode_to_vec()].concat());
    out
}

/// Appends the position as the script does.
fn placed(mut record: Vec<u8>, position: &str) -> Bytes {
    record.extend_from_slice(&[15 << 3 | 2, position.len() as u8]);
    record.extend_from_slice(position.as_bytes());
    record.into()
}

#[test]
fn a_publication_comes_back_whole_with_its_position() {
    let publication = Publication {
        data: Bytes::from_static(b"\0\xff any"),
        info: Some(client("42")),
        tags: [("k".to_owned(), "v".to_owned())].into(),
        time: -7,
        ..Publication::default()
    };
    let someone = ClientId::parse("5f1b0f4c-3a8e-4b52-9d1c-0c1f7d1f4a11");
    let options = PublishOptions {
        exclude_client: someone,
        delivery: Some(DeliveryClass::Latest),
        receipt: u64::MAX,
        ..PublishOptions::default()
    };
    let record = written(&Record::of_publication(publication.clone(), &options));
    let epoch = Epoch::parse("abcdEFGH").expect("eight letters");
    assert_eq!(
        Record::read(placed(record.clone(), "9007199254740991 abcdEFGH")),
        Ok(Message::Publication {
            publication: Publication { offset: (1 << 53) - 1, ..publication.clone() },
            epoch,
            delta: Delta::Off,
            excluded: someone,
            class: Some(DeliveryClass::Latest),
            receipt: u64::MAX,
        })
    );
    assert_eq!(Record::read_stored(record.into(), 7), Ok(Publication { offset: 7, ..publication }));
}

#[test]
fn a_place_that_the_caller_gave_is_not_written() {
    let placed = Publication { offset: 5, epoch: "abcdEFGH".into(), ..Publication::default() };
    let record = written(&Record::of_publication(placed, &PublishOptions::default()));
    let bare = Message::Publication {
        publication: Publication::default(),
        epoch: Epoch::NONE,
        delta: Delta::Off,
        excluded: None,
        class: None,
        receipt: 0,
    };
    assert_eq!(Record::read(record.into()), Ok(bare));
}

/// Appends the previous record as the script does.
fn with_before(record: &[u8], before: &[u8]) -> Bytes {
    let mut record = record.to_vec();
    record.push(14 << 3 | 2);
    prost::encode_length_delimiter(before.len(), &mut record).expect("a Vec grows");
    record.extend_from_slice(before);
    record.into()
}

#[test]
fn a_delta_comes_with_the_data_of_the_record_before_it() {
    let data = |byte| Publication { data: vec![byte; 300].into(), ..Publication::default() };
    let [before, delta] = [false, true].map(|delta| {
        let options = PublishOptions { delta, ..PublishOptions::default() };
        written(&Record::of_publication(data(7), &options))
    });
    let read = |record: Bytes| match Record::read(record) {
        Ok(Message::Publication { delta, publication, .. }) => {
            assert_eq!(publication, data(7));
            delta
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(read(with_before(&delta, &before)), Delta::Against(data(7).data));
    assert_eq!(read(delta.clone().into()), Delta::Alone);
    assert_eq!(read(with_before(&delta, b"{foreign}")), Delta::Alone);
    assert_eq!(read(with_before(&before, &before)), Delta::Off);
}

#[test]
fn changes_come_back() {
    for change in [Change::Join, Change::Leave] {
        let record = Bytes::from(written(&Record::of_change(change, client("42"))));
        assert_eq!(Record::read(record.clone()), Ok(Message::Change(change, client("42"))));
        assert_eq!(Record::read_stored(record, 1), Err(Foreign::Malformed));
    }
}

#[test]
fn members_come_back_and_begin_with_their_user() {
    for user in ["", "42", &"long".repeat(100)] {
        let mut record = Vec::new();
        client(user).put(&mut record);
        assert_eq!(record.len(), client(user).length());
        assert_eq!(record.get(1) == Some(&10), !user.is_empty(), "field 1 is the first, if any");
        assert_eq!(read_member(record.into()), Ok(client(user)));
    }
}

#[test]
fn another_version_is_told_apart_from_garbage() {
    let rows: [(&'static [u8], Foreign); 5] = [
        (b"", Foreign::Version(None)),
        (b"{\"data\":1}", Foreign::Version(Some(b'{'))),
        (b"\x02\x0a\x00", Foreign::Version(Some(2))),
        (b"\x01", Foreign::Malformed),
        (b"\x01\x0a\x00\x12\x00", Foreign::Malformed),
    ];
    for (bytes, expected) in rows {
        assert_eq!(Record::read(Bytes::from_static(bytes)), Err(expected), "{bytes:?}");
    }
}

#[test]
fn a_position_is_an_offset_and_an_epoch() {
    for text in ["5", "x abcdEFGH", "5 abc", "-1 abcdEFGH", "5 abcdEFG1", "5  abcdEFGH"] {
        assert_eq!(read_position(text.as_bytes()), Err(Foreign::Malformed), "{text}");
    }
    assert_eq!(read_position(b""), Ok(Position::default()));
    let epoch = Epoch::parse("abcdEFGH").expect("eight letters");
    assert_eq!(read_position(b"5 abcdEFGH"), Ok(Position { offset: 5, epoch }));
}

#[test]
fn a_foreign_excluded_client_is_malformed() {
    let record = Record { excluded: Bytes::from_static(b"short"), ..Record::default() };
    let record = Record { publication: Some(Publication::default()), ..record };
    assert_eq!(Record::read(written(&record).into()), Err(Foreign::Malformed));
}

proptest! {
    #[test]
    fn any_publication_comes_back(
        data in prop::collection::vec(any::<u8>(), 0..200),
        tags in prop::collection::btree_map(".{0,8}", ".{0,8}", 0..4),
        user in prop::option::of(".{0,20}"),
        time in any::<i64>(),
    ) {
        let tags: BTreeMap<String, String> = tags;
        let info = user.map(|user| client(&user));
        let publication = Publication { data: data.into(), tags, info, time, ..Publication::default() };
        let record = written(&Record::of_publication(publication.clone(), &PublishOptions::default()));
        prop_assert_eq!(Record::read_stored(record.into(), 0), Ok(publication));
    }

    #[test]
    fn any_bytes_are_a_record_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = Record::read(bytes.clone().into());
        let _ = read_member(bytes.clone().into());
        let _ = Record::read(Bytes::from([&[VERSION], &bytes[..]].concat()));
        let _ = read_member(Bytes::from([&[VERSION], &bytes[..]].concat()));
    }

    #[test]
    fn a_spoiled_record_is_a_record_or_an_error(at in 0..60_usize, byte in any::<u8>(), cut in 0..60_usize) {
        let publication = Publication { info: Some(client("42")), ..Publication::default() };
        let mut record = placed(written(&Record::of_publication(publication, &PublishOptions::default())), "5 abcdEFGH").to_vec();
        let length = record.len();
        record[at % length] = byte;
        let _ = Record::read(Bytes::copy_from_slice(&record));
        record.truncate(cut);
        let _ = Record::read(record.into());
    }
}
