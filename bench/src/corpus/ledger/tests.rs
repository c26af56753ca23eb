//! Tests of the check itself: each kind of wrong delivery must be found.
//! In: messages in right and wrong sequences → out: accepted, or refused with words that say what is wrong.
//! Uses `ledger` only; never a socket.
//! Reading corpus files is tested in `files`.

use super::*;

fn sources() -> Vec<Source> {
    let messages = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    vec![
        Source { channel: "a".into(), binary: false, messages: messages(&["1", "2", "3"]) },
        Source { channel: "b".into(), binary: true, messages: messages(&["x"]) },
    ]
}

fn message(channel: &str, data: &str) -> Vec<u8> {
    format!(r#"{{"push":{{"channel":"{channel}","pub":{{"data":{data}}}}}}}"#).into_bytes()
}

/// Publishes two of channel `a` to two JSON subscribers; the last delivery must fail with these words.
fn check(deliveries: &[(usize, &str)], wrong: &str) {
    let sources = sources();
    let mut ledger = Ledger::new(&sources, 2, 0);
    ledger.published(0);
    ledger.published(0);
    let (last, first) = deliveries.split_last().expect("at least one delivery");
    for (subscriber, data) in first {
        ledger.publication(*subscriber, &message("a", data)).expect("a right delivery");
    }
    let error = ledger.publication(last.0, &message("a", last.1)).expect_err("a wrong delivery");
    assert!(format!("{error:#}").contains(wrong), "{error:#}");
}

#[test]
fn right_deliveries_close_their_publications() {
    let sources = sources();
    let mut ledger = Ledger::new(&sources, 2, 0);
    ledger.published(0);
    ledger.published(0);
    assert_eq!(ledger.open(), 2);
    for (subscriber, data) in [(0, "1"), (0, "2"), (1, "1")] {
        ledger.publication(subscriber, &message("a", data)).expect("a right delivery");
    }
    assert_eq!(ledger.missing(), "publication 2 of a lacks 1 subscribers");
    ledger.publication(1, &message("a", "2")).expect("a right delivery");
    assert_eq!((ledger.open(), ledger.deliveries()), (0, 4));
}

#[test]
fn binary_channels_are_due_to_protobuf_subscribers_only() {
    let sources = sources();
    let mut ledger = Ledger::new(&sources, 2, 1);
    ledger.published(1);
    let protobuf = [0x22, 8, 0x12, 1, b'b', 0x22, 3, 0x22, 1, b'x'];
    ledger.publication(2, &protobuf).expect("a right delivery");
    assert_eq!(ledger.open(), 0);
}

#[test]
fn a_missing_publication_is_found_at_the_next() {
    check(&[(0, "2")], "publication 2 came where 1 was due");
}

#[test]
fn a_repeated_publication_is_found() {
    check(&[(0, "1"), (0, "1")], "publication 1 came where 2 was due");
    check(&[(0, "1"), (0, "2"), (0, "2")], "publication 2 came once more");
}

#[test]
fn a_damaged_publication_is_found() {
    check(&[(0, "7")], "publication 1 is damaged");
    check(&[(1, "1"), (0, "7")], "publication 1 is damaged");
    check(&[(1, "1"), (0, "1}")], "Json subscriber 0, channel a");
}

#[test]
fn a_foreign_message_is_found() {
    check(&[(0, "1"), (1, "1"), (0, "2"), (0, "9")], "was not published");
    let sources = sources();
    let error = Ledger::new(&sources, 1, 0).publication(0, br#"{"push":{"channel":"z"}}"#);
    assert!(error.expect_err("no such channel").to_string().contains("not a publication"));
}
