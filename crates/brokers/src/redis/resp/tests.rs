//! Tests of RESP2: replies of every kind, cut anywhere, and bytes that are no reply.
//! In: texts as a Redis writes them, random bytes → out: replies, or an error.
//! Uses proptest. Never: sockets.
//! A new kind of reply is a row here.

use proptest::prelude::*;

use super::*;

fn take(text: &[u8]) -> Result<Option<Reply>, Malformed> {
    Reply::take(&mut BytesMut::from(text))
}

fn bulk(text: &'static str) -> Reply {
    Reply::Bulk(Bytes::from_static(text.as_bytes()))
}

#[test]
fn every_kind_of_reply_is_read() {
    let rows: [(&str, Reply); 9] = [
        ("+OK\r\n", Reply::Simple("OK".into())),
        ("-ERR no\r\n", Reply::Error("ERR no".into())),
        (":-7\r\n", Reply::Integer(-7)),
        ("$5\r\na\r\nb \r\n", bulk("a\r\nb ")),
        ("$0\r\n\r\n", bulk("")),
        ("$-1\r\n", Reply::Null),
        ("*-1\r\n", Reply::Null),
        ("*0\r\n", Reply::Array(vec![])),
        (
            "*2\r\n*1\r\n$1\r\na\r\n:1\r\n",
            Reply::Array(vec![Reply::Array(vec![bulk("a")]), Reply::Integer(1)]),
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(take(text.as_bytes()), Ok(Some(expected)), "{text:?}");
        for cut in 0..text.len() {
            assert_eq!(take(&text.as_bytes()[..cut]), Ok(None), "{text:?} cut at {cut}");
        }
    }
}

#[test]
fn what_follows_a_reply_stays() {
    let mut buffer = BytesMut::from("+a\r\n:1\r\n$");
    assert_eq!(Reply::take(&mut buffer), Ok(Some(Reply::Simple("a".into()))));
    assert_eq!(Reply::take(&mut buffer), Ok(Some(Reply::Integer(1))));
    assert_eq!(Reply::take(&mut buffer), Ok(None));
    assert_eq!(buffer, "$");
}

#[test]
fn what_is_no_redis_is_refused_at_once() {
    let deep = "*1\r\n".repeat(9);
    let rows = [
        "HTTP/1.1 400 Bad Request\r\n",
        "H",
        "$x\r\n",
        "$-2\r\n",
        "*-2\r\n",
        ":\r\n",
        "$1\r\nab\r\n",
        "$999999999999\r\n",
        &deep,
    ];
    for text in rows {
        assert_eq!(take(text.as_bytes()), Err(Malformed), "{text:?}");
    }
    assert_eq!(take(&[b"+".as_slice(), &[b'a'; LINE_BYTES_MAX + 1]].concat()), Err(Malformed));
}

#[test]
fn a_claimed_length_allocates_nothing() {
    assert_eq!(take(b"*2000000000\r\n"), Ok(None));
    assert_eq!(take(b"$500000000\r\n"), Ok(None));
}

#[test]
fn commands_are_arrays_of_texts() {
    let mut command = Command::new(3, 0);
    command.text("SET").text(b"\r\n").number(1024);
    assert_eq!(command.bytes(), b"*3\r\n$3\r\nSET\r\n$2\r\n\r\n\r\n$4\r\n1024\r\n");
    assert_eq!(Command::of(&[b"PING"]).bytes(), b"*1\r\n$4\r\nPING\r\n");
    assert_eq!(Command::new(1, 0).number(0).bytes(), b"*1\r\n$1\r\n0\r\n");
    assert_eq!(
        Command::new(1, 0).number(u64::MAX).bytes(),
        b"*1\r\n$20\r\n18446744073709551615\r\n"
    );
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let text = prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from);
    let line = "[^\r\n]{0,20}".prop_map(|line| Bytes::from(line.into_bytes()));
    let leaf = prop_oneof![
        text.prop_map(Reply::Bulk),
        line.clone().prop_map(Reply::Simple),
        line.prop_map(Reply::Error),
        any::<i64>().prop_map(Reply::Integer),
        Just(Reply::Null),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| prop::collection::vec(inner, 0..5).prop_map(Reply::Array))
}

fn write(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Simple(text) => out.extend_from_slice(&[b"+", &text[..], b"\r\n"].concat()),
        Reply::Error(text) => out.extend_from_slice(&[b"-", &text[..], b"\r\n"].concat()),
        Reply::Integer(number) => out.extend_from_slice(format!(":{number}\r\n").as_bytes()),
        Reply::Bulk(text) => {
            out.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
            out.extend_from_slice(&[&text[..], b"\r\n"].concat());
        }
        Reply::Null => out.extend_from_slice(b"$-1\r\n"),
        Reply::Array(parts) => {
            out.extend_from_slice(format!("*{}\r\n", parts.len()).as_bytes());
            parts.iter().for_each(|part| write(part, out));
        }
    }
}

proptest! {
    #[test]
    fn replies_come_back_whatever_they_are_cut_into(
        replies in prop::collection::vec(any_reply(), 0..5),
        piece in 1..40_usize,
    ) {
        let mut text = Vec::new();
        replies.iter().for_each(|reply| write(reply, &mut text));
        let (mut buffer, mut read) = (BytesMut::new(), Vec::new());
        for piece in text.chunks(piece) {
            buffer.extend_from_slice(piece);
            while let Some(reply) = Reply::take(&mut buffer).expect("well formed") {
                read.push(reply);
            }
        }
        prop_assert_eq!(read, replies);
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn any_bytes_are_a_reply_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut buffer = BytesMut::from(&bytes[..]);
        while let Ok(Some(_)) = Reply::take(&mut buffer) {}
    }

    #[test]
    fn bytes_near_the_protocol_are_a_reply_or_an_error(text in "[*$:+\\-0-9\r\na]{0,40}") {
        let mut buffer = BytesMut::from(text.as_bytes());
        while let Ok(Some(_)) = Reply::take(&mut buffer) {}
    }
}
