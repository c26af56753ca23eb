//! Tests of the client's JSON: commands from positions, and what the server's messages mean.
//! In: texts as they stand in frames → out: meanings.
//! Uses nothing but the messages.
//! Changed here: expectations of `messages`.

use super::super::stream::Faults;
use super::*;

#[test]
fn a_client_recovers_from_where_it_was() {
    let (fresh, mut known) = (Stream::default(), Stream::default());
    let answer = Answer { offset: 7, epoch: "abc".to_owned(), recovered: false };
    known.subscribed(answer, &mut Faults::default());
    let text = commands([("a", &fresh), ("b", &known)].into_iter());
    let expect = "{\"id\":1,\"connect\":{}}\n\
                  {\"id\":2,\"subscribe\":{\"channel\":\"a\"}}\n\
                  {\"id\":3,\"subscribe\":{\"channel\":\"b\",\"recover\":true,\"epoch\":\"abc\",\"offset\":7}}";
    assert_eq!(String::from_utf8_lossy(&text), expect);
}

#[test]
fn messages_mean_what_they_say() {
    let publication = |n| Publication { offset: n, data: Data { n } };
    let rows = [
        ("{}", Message::Ping),
        (r#"{"id":1,"connect":{"client":"x","ping":25}}"#, Message::Connected),
        (
            r#"{"id":3,"subscribe":{"recoverable":true,"epoch":"e","offset":4,"recovered":true,
               "publications":[{"data":{"n":5},"offset":5}]}}"#,
            Message::Subscribed(
                1,
                Answer { offset: 4, epoch: "e".to_owned(), recovered: true },
                vec![publication(5)],
            ),
        ),
        (
            r#"{"push":{"channel":"a","pub":{"data":{"n":6},"offset":6}}}"#,
            Message::Publication("a".into(), publication(6)),
        ),
        (r#"{"push":{"channel":"a","unsubscribe":{"code":2500}}}"#, Message::Ended),
        (r#"{"push":{"disconnect":{"code":3001}}}"#, Message::Ended),
    ];
    for (text, expect) in rows {
        assert_eq!(message(text.as_bytes()).expect(text), expect);
    }
}

#[test]
fn errors_of_the_server_end_the_run() {
    for text in [r#"{"id":2,"error":{"code":103,"message":"permission denied"}}"#, "[1]", ""] {
        assert!(message(text.as_bytes()).is_err(), "{text}");
    }
}
