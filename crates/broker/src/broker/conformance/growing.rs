//! The promises of every broker about growing messages: one text for all, one stored publication, nothing lost (server API §3 append).
//! In: a function that makes a broker in front of a recorder → out: a panic that names the broken promise.
//! Uses: the recorder of `conformance.rs`; an interval so long, or zero, that no test depends on the time. Never: expiry.
//! Changed here: the promises about growing messages.

use std::time::{Duration, Instant};

use fanwire_protocol::{Publication, json_string};

use super::{MakeBroker, Recorder, THREADS, in_threads, numbered, start};
use crate::{
    Append, AppendError, AppendLimits, Appended, Broker, Delta, Fragment, PublishOptions, Query,
    Retention, StreamSlice,
};

pub(super) fn check(make: MakeBroker<'_>) {
    each_publication_has_the_whole_text(make);
    history_has_the_newest_publication_of_each_message(make);
    trimmed_publications_count_as_dropped(make);
    removed_history_counts_as_dropped(make);
    fragments_wait_for_the_interval(make);
    what_the_text_has_is_not_appended_again(make);
    refused_fragments_change_nothing(make);
    other_fields_replace_those_before(make);
    limits_are_kept(make);
    texts_are_escaped(make);
    a_delta_is_made_against_the_publication_before(make);
    fragments_of_many_threads_are_appended_whole(make);
}

fn retention(size: usize) -> Retention {
    Retention { size, ttl: Duration::from_secs(600), meta_ttl: Duration::from_secs(6000) }
}

fn string(text: &str) -> Fragment {
    Fragment { text: text.into(), head: "\"".into(), ..Fragment::default() }
}

fn at(at: u64, text: &str) -> Fragment {
    Fragment { at: Some(at), ..string(text) }
}

fn last(fragment: Fragment) -> Fragment {
    Fragment { is_final: true, ..fragment }
}

/// A change of message `key` whose publications do not wait.
fn change(key: &str, fragment: Fragment) -> Append {
    let limits = AppendLimits { interval: Duration::ZERO, ..AppendLimits::default() };
    let tags = [("key".to_owned(), key.to_owned())].into();
    let publication = Publication { tags, ..Publication::default() };
    Append { key: key.into(), fragment: Some(fragment), publication, delta: false, limits }
}

fn put(broker: &dyn Broker, append: Append) -> Result<Appended, AppendError> {
    let answer = broker.append("a", append, retention(5), Instant::now());
    answer.wait().expect("the broker is available")
}

fn grow(broker: &dyn Broker, key: &str, text: &str) -> u64 {
    put(broker, change(key, string(text))).expect("it is appended").position.offset
}

fn read(broker: &dyn Broker, query: Query) -> StreamSlice {
    let slice = broker.history("a", query, retention(5), Instant::now());
    slice.wait().expect("the broker is available")
}

/// Offsets and data of the stored publications.
fn stored(broker: &dyn Broker, query: Query) -> Vec<(u64, String)> {
    rows(read(broker, query).publications.into_iter())
}

fn rows(publications: impl Iterator<Item = Publication>) -> Vec<(u64, String)> {
    publications.map(|one| (one.offset, String::from_utf8_lossy(&one.data).into())).collect()
}

fn arrived(recorder: &Recorder, count: usize) -> Vec<(u64, String)> {
    rows(recorder.wait_for(count).into_iter().map(|(_, publication)| publication))
}

fn expected(rows: &[(u64, &str)]) -> Vec<(u64, String)> {
    rows.iter().map(|(offset, data)| (*offset, (*data).to_owned())).collect()
}

fn publish(broker: &dyn Broker, number: usize) -> u64 {
    let options = PublishOptions::default();
    let now = Instant::now();
    let published = broker.publish("a", numbered(0, number), &options, retention(5), now);
    published.wait().expect("the broker is available").offset
}

fn each_publication_has_the_whole_text(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let first = put(&*broker, change("k", at(0, "Once "))).expect("a new message");
    assert_eq!((first.position.offset, first.length, first.is_duplicate), (1, 5, false));
    let second = put(&*broker, change("k", at(5, "upon"))).expect("it grows");
    assert_eq!((second.position.offset, second.length), (2, 9));
    assert_eq!(second.position.epoch, first.position.epoch);
    put(&*broker, change("k", last(at(9, " a time")))).expect("it ends");
    let rows = [(1, r#""Once ""#), (2, r#""Once upon""#), (3, r#""Once upon a time""#)];
    assert_eq!(arrived(&recorder, 3), expected(&rows));
    let tags = recorder.wait_for(3).remove(2).1.tags;
    assert_eq!(tags.get("key").map(String::as_str), Some("k"));
}

fn history_has_the_newest_publication_of_each_message(make: MakeBroker<'_>) {
    let (_, broker) = start(make, &["a"]);
    assert_eq!(publish(&*broker, 0), 1);
    for (key, text, offset) in [("x", "A", 2), ("y", "1", 3), ("x", "B", 4)] {
        assert_eq!(grow(&*broker, key, text), offset);
    }
    assert_eq!(publish(&*broker, 1), 5);
    assert_eq!(grow(&*broker, "x", "C"), 6);
    let all = [(1, "0 0"), (3, r#""1""#), (5, "0 1"), (6, r#""ABC""#)];
    assert_eq!(stored(&*broker, Query::default()), expected(&all));
    let slice = read(&*broker, Query::TOP);
    assert_eq!((slice.top.offset, slice.dropped), (6, Some(0)));
    let since = |since| Query { since: Some(since), ..Query::default() };
    assert_eq!(stored(&*broker, since(2)), expected(&all[1..]));
    assert_eq!(stored(&*broker, since(3)), expected(&all[2..]));
    assert_eq!(stored(&*broker, since(6)), []);
    let back = |since| Query { since: Some(since), reverse: true, limit: Some(2) };
    assert_eq!(stored(&*broker, back(6)), expected(&[all[2], all[1]]));
    assert_eq!(stored(&*broker, back(5)), expected(&[all[1], all[0]]));
}

fn trimmed_publications_count_as_dropped(make: MakeBroker<'_>) {
    let (_, broker) = start(make, &["a"]);
    for number in 0..7 {
        publish(&*broker, number); // 3 to 7 are kept
    }
    assert_eq!(read(&*broker, Query::TOP).dropped, None);
    for _ in 0..9 {
        grow(&*broker, "k", "x"); // 4 to 7 and 16
    }
    let offsets = |slice: StreamSlice| {
        let stored = slice.publications.iter().map(|one| one.offset);
        (Vec::from_iter(stored), slice.dropped)
    };
    assert_eq!(offsets(read(&*broker, Query::default())), (vec![4, 5, 6, 7, 16], Some(3)));
    assert_eq!(publish(&*broker, 7), 17);
    assert_eq!(offsets(read(&*broker, Query::default())), (vec![5, 6, 7, 16, 17], Some(4)));
    for number in 0..4 {
        publish(&*broker, number);
    }
    assert_eq!(offsets(read(&*broker, Query::default())), (vec![17, 18, 19, 20, 21], Some(16)));
    assert_eq!(grow(&*broker, "k", "y"), 22);
    let newest = Query { reverse: true, limit: Some(1), ..Query::default() };
    assert_eq!(stored(&*broker, newest), expected(&[(22, r#""xxxxxxxxxy""#)]));
}

fn removed_history_counts_as_dropped(make: MakeBroker<'_>) {
    let (_, broker) = start(make, &["a"]);
    for text in ["A", "B"] {
        grow(&*broker, "k", text);
    }
    broker.remove_history("a", Instant::now()).wait().expect("the broker is available");
    let slice = read(&*broker, Query::default());
    assert_eq!((slice.publications.len(), slice.top.offset, slice.dropped), (0, 2, Some(2)));
    assert_eq!(publish(&*broker, 0), 3);
    assert_eq!(read(&*broker, Query::default()).dropped, Some(2));
    assert_eq!(grow(&*broker, "k", "C"), 4);
    assert_eq!(stored(&*broker, Query::default()), expected(&[(3, "0 0"), (4, r#""ABC""#)]));
}

fn fragments_wait_for_the_interval(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let limits = AppendLimits { interval: Duration::from_secs(600), ..AppendLimits::default() };
    let slow = |fragment| Append { limits, ..change("k", fragment) };
    let rest = |broker: &dyn Broker| {
        let flush = Append { fragment: None, ..slow(string("")) };
        put(broker, flush).expect("nothing to refuse")
    };
    assert_eq!(put(&*broker, slow(string("A"))).expect("at once").publish_after, None);
    let waits = put(&*broker, slow(string("B"))).expect("it waits");
    let after = waits.publish_after.expect("text waits");
    assert!(after > Duration::from_secs(500) && after <= limits.interval, "{after:?}");
    assert_eq!((waits.position.offset, waits.length), (1, 2));
    let more = put(&*broker, slow(string("C"))).expect("it waits, too");
    assert_eq!((more.publish_after, more.length), (None, 3));
    assert_eq!(rest(&*broker).position.offset, 2);
    assert_eq!(rest(&*broker).position.offset, 2, "nothing waits");
    put(&*broker, slow(string("D"))).expect("it waits");
    let ended = put(&*broker, slow(last(string("")))).expect("at once");
    assert_eq!((ended.position.offset, ended.length, ended.publish_after), (3, 4, None));
    let unknown = Append { fragment: None, ..change("none", string("")) };
    assert_eq!(put(&*broker, unknown), Ok(Appended::default()));
    let rows = [(1, r#""A""#), (2, r#""ABC""#), (3, r#""ABCD""#)];
    assert_eq!(arrived(&recorder, 3), expected(&rows));
}

fn what_the_text_has_is_not_appended_again(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let check = |fragment, offset, length, is_duplicate| {
        let appended = put(&*broker, change("k", fragment)).expect("it fits");
        let found = (appended.position.offset, appended.length, appended.is_duplicate);
        assert_eq!(found, (offset, length, is_duplicate));
    };
    check(at(0, "Grüße"), 1, 7, false);
    check(at(0, "Grüße"), 1, 7, true);
    check(at(2, "ü"), 1, 7, true);
    check(at(7, ", Welt"), 2, 13, false);
    check(at(0, "Grüße"), 2, 13, true);
    check(at(0, "Grüße, Welt!"), 3, 14, false);
    check(string(""), 3, 14, false);
    check(at(14, ""), 3, 14, false);
    check(last(at(13, "!")), 4, 14, true);
    check(last(at(13, "!")), 4, 14, true);
    check(at(0, "Grüße"), 4, 14, true);
    let rows = arrived(&recorder, 4);
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[3].1, r#""Grüße, Welt!""#);
    assert_eq!(stored(&*broker, Query::default()), rows[3..]);
}

fn refused_fragments_change_nothing(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let check = |fragment, refusal| {
        assert_eq!(put(&*broker, change("k", fragment)), Err(refusal));
    };
    check(at(1, "x"), AppendError::At(0));
    grow(&*broker, "k", "née");
    check(at(5, "x"), AppendError::At(4));
    check(at(3, "x"), AppendError::At(4));
    check(at(2, "e"), AppendError::At(4));
    check(at(u64::MAX >> 12, "x"), AppendError::At(4));
    check(Fragment { field: "f".into(), ..string("x") }, AppendError::OtherField);
    put(&*broker, change("k", last(string("!")))).expect("it ends");
    check(string("x"), AppendError::Final(5));
    check(at(5, "x"), AppendError::Final(5));
    check(at(4, "!!"), AppendError::Final(5));
    check(at(4, "?"), AppendError::At(5));
    publish(&*broker, 0);
    assert_eq!(arrived(&recorder, 3)[1..], expected(&[(2, r#""née!""#), (3, "0 0")]));
}

fn other_fields_replace_those_before(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let fields = |head: &str, replaces_head, text: &str| Fragment {
        field: "t".into(),
        head: head.into(),
        replaces_head,
        ..string(text)
    };
    let (bare, with_fields) = (r#"{"t":""#, r#"{"a":1,"t":""#);
    for fragment in [
        fields(with_fields, true, "x"),
        fields(bare, false, "y"),
        fields(with_fields, true, ""),
        last(fields(r#"{"a":2,"t":""#, true, "")),
        fields(bare, false, ""),
    ] {
        put(&*broker, change("k", fragment)).expect("it is accepted");
    }
    publish(&*broker, 0);
    let rows = [(1, r#"{"a":1,"t":"x"}"#), (2, r#"{"a":1,"t":"xy"}"#), (3, r#"{"a":2,"t":"xy"}"#)];
    assert_eq!(arrived(&recorder, 4)[..3], expected(&rows));
}

fn limits_are_kept(make: MakeBroker<'_>) {
    let (_, broker) = start(make, &["a"]);
    let limited = |key: &str, fragment| {
        let limits = AppendLimits {
            message_bytes_max: 10,
            messages_max: 2,
            ..change("", string("")).limits
        };
        put(&*broker, Append { limits, ..change(key, fragment) })
    };
    assert_eq!(limited("x", string("0123456789")), Err(AppendError::TooLong));
    assert!(limited("x", string("012345678")).is_ok(), "a quote is the tenth byte");
    assert_eq!(limited("x", string("9")), Err(AppendError::TooLong));
    assert!(limited("y", string("0")).is_ok());
    for number in 0..1000 {
        assert_eq!(limited(&number.to_string(), string("0")), Err(AppendError::TooMany));
    }
    assert!(limited("y", string("1")).is_ok(), "messages that are there grow on");
    assert_eq!(limited("x", last(string(""))).expect("a free slot").length, 9);
    assert!(limited("z", string("0")).is_ok());
    assert_eq!(limited("x", string("0")), Err(AppendError::Final(9)));
    assert_eq!(limited("0", string("0")), Err(AppendError::TooMany));
}

fn texts_are_escaped(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let text = "\"\\\n\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f}/é😀</p>&";
    grow(&*broker, "k", text);
    let data = recorder.wait_for(1).remove(0).1.data;
    assert_eq!(data, json_string(text));
}

fn a_delta_is_made_against_the_publication_before(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let with_delta = |key, text| {
        let append = Append { delta: true, ..change(key, string(text)) };
        put(&*broker, append).expect("it is appended");
    };
    with_delta("x", "A");
    with_delta("x", "B");
    with_delta("y", "C");
    recorder.wait_for(3);
    let against = |data: &'static str| Delta::Against(data.into());
    assert_eq!(recorder.deltas(), [Delta::Alone, against(r#""A""#), against(r#""AB""#)]);
}

fn fragments_of_many_threads_are_appended_whole(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    in_threads(|thread| {
        for number in 0..50 {
            grow(&*broker, "k", &format!("{thread}:{number};"));
        }
    });
    let rows = arrived(&recorder, THREADS * 50);
    for pair in rows.windows(2) {
        let [before, after] = [&pair[0].1, &pair[1].1].map(|data| data.trim_matches('"'));
        let added = after.strip_prefix(before).expect("text is only added");
        assert_eq!(added.matches(';').count(), 1, "{added}");
        assert_eq!(pair[1].0, pair[0].0 + 1);
    }
    assert_eq!(stored(&*broker, Query::default()), rows[rows.len() - 1..]);
}
