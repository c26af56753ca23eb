//! Tests of the form of members and records: what is written is read back, and foreign bytes are refused.
//! In: changes, values of Redis → out: entries, or what is left out.
//! Uses: the commands and decoders alone.
//! Changed here: tests of the form. A real Redis is in `tests/it/revocations.rs`.

use super::*;

fn text_of(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}

#[test]
fn a_page_is_read_and_foreign_members_are_left_out() {
    let health = Health::at([].into_iter());
    let keys = Keys::new("p", false);
    let page = |table, members: &[&str], before: &[&str]| {
        let array = |texts: &[&str]| Value::Array(texts.iter().map(|text| text_of(text)).collect());
        let reply = vec![text_of("7 abcdefgh"), text_of("0"), array(members), array(before)];
        read_page(Value::Array(reply), RevocationCursor { table, scan: 3 }, &keys, &health)
    };
    let change = |kind, subject: &str, channel: Option<&str>, expire_at, issued_before| {
        let subject = subject.to_owned();
        let channel = channel.map(str::to_owned);
        RevocationChange { kind, subject, channel, expire_at, issued_before }
    };
    let blocked = page(0, &["ada", "inf", "*", "1800000000000", "old", "0"], &[]);
    let blocked = blocked.expect("a reply of the script");
    let position = Position { offset: 7, epoch: Epoch::parse("abcdefgh").expect("letters") };
    assert_eq!(blocked.position, position);
    assert_eq!(blocked.next, Some(RevocationCursor { table: 1, scan: 0 }));
    let kind = RevocationKind::BlockUser;
    assert_eq!(
        blocked.entries,
        [
            change(kind, "ada", None, 0, 0),
            change(kind, "*", None, 1_800_000_000, 0),
            change(kind, "old", None, 1, 0)
        ]
    );
    let invalidated =
        page(2, &["3.ada", "inf", "3.adanews", "inf", "9.ada", "inf", "x", "inf"], &["5", "6"]);
    let invalidated = invalidated.expect("a reply of the script");
    assert_eq!(invalidated.next, None);
    let kind = RevocationKind::InvalidateTokens;
    assert_eq!(
        invalidated.entries,
        [change(kind, "ada", None, 0, 5), change(kind, "ada", Some("news"), 0, 6)]
    );
    assert_eq!(health.foreign_count(), 2);
}

#[test]
fn a_change_with_an_unknown_kind_or_without_a_position_is_foreign() {
    let record = |kind, position: &'static str| {
        let record = RevocationRecord { kind, position: position.into(), ..Default::default() };
        let mut bytes = Vec::new();
        record.put(&mut bytes);
        read_change(bytes.into())
    };
    assert!(record(4, "1 abcdefgh").is_ok());
    assert_eq!(record(5, "1 abcdefgh"), Err(Foreign::Malformed));
    assert_eq!(record(1, "x"), Err(Foreign::Malformed));
    assert_eq!(read_change(Bytes::new()), Err(Foreign::Version(None)));
}
