//! Tests of the grammar of headers and queries.
//! In: headers, queries → out: what they ask for, or the status of the refusal.
//! Pure. Never: streams.
//! Changed here: which requests are refused before their stream is looked for.

use http::HeaderMap;

use super::{LiveMode, append, config, read};
use crate::lifetime::StreamLifetime;
use crate::offset::ReadStart;
use crate::response::ErrorResponse;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

fn status<T: std::fmt::Debug>(result: Result<T, ErrorResponse>) -> u16 {
    result.expect_err("a refusal").into_response().status().as_u16()
}

#[test]
fn a_configuration_has_defaults_and_no_fork() {
    let plain = config(&HeaderMap::new()).unwrap();
    assert_eq!(plain.content_type, "application/octet-stream");
    assert!(plain.lifetime == StreamLifetime::Unlimited && !plain.is_closed);
    assert!(config(&headers(&[("stream-closed", "TRUE")])).unwrap().is_closed);
    assert!(!config(&headers(&[("stream-closed", "yes")])).unwrap().is_closed);
    assert_eq!(status(config(&headers(&[("stream-ttl", "-1")]))), 400);
    assert_eq!(status(config(&headers(&[("stream-forked-from", "/v1/stream/a")]))), 501);
    assert_eq!(status(config(&headers(&[("content-type", &"x".repeat(257))]))), 400);
}

#[test]
fn an_append_has_content_or_closes() {
    assert_eq!(status(append(&headers(&[("content-type", "text/plain")]), true)), 400);
    assert_eq!(status(append(&HeaderMap::new(), false)), 400);
    let closing = append(&headers(&[("content-type", "x/y"), ("stream-closed", "true")]), true);
    let closing = closing.unwrap();
    assert!(closing.closes && closing.content_type.is_none(), "the type of nothing is ignored");
}

#[test]
fn a_producer_has_three_headers_with_integers() {
    let producer = |id: &str, epoch: &str, seq: &str| {
        let triple = [("producer-id", id), ("producer-epoch", epoch), ("producer-seq", seq)];
        append(&headers(&[&triple[..], &[("content-type", "x/y")]].concat()), false)
    };
    let right = producer("a", "1", "9007199254740991").unwrap().producer.unwrap();
    assert_eq!((&*right.id, right.epoch, right.seq), ("a", 1, (1 << 53) - 1));
    for (id, epoch, seq) in
        [("", "0", "0"), ("a", "-1", "0"), ("a", "0", "1.5"), ("a", "0", ""), ("a", "+1", "0")]
    {
        assert_eq!(status(producer(id, epoch, seq)), 400, "{id} {epoch} {seq}");
    }
    assert_eq!(status(producer("a", "0", "9007199254740992")), 400);
    let lone = headers(&[("content-type", "x/y"), ("producer-id", "a")]);
    assert_eq!(status(append(&lone, false)), 400);
}

#[test]
fn a_query_has_each_parameter_once() {
    let beginning = read("x=1&token=a%20b").unwrap();
    assert_eq!(
        (beginning.start, beginning.live, beginning.cursor),
        (ReadStart::Beginning, None, None)
    );
    let live = read("offset=now&live=sse&cursor=12").unwrap();
    assert_eq!(
        (live.start, live.live, live.cursor),
        (ReadStart::Tail, Some(LiveMode::Sse), Some(12))
    );
    assert_eq!(read("offset=%2D1&live=long-poll&cursor=x").unwrap().live, Some(LiveMode::LongPoll));
    for wrong in [
        "offset=",
        "offset",
        "offset=-1&offset=-1",
        "live=sse",
        "offset=-1&live=x",
        "offset=a%00",
        "offset=%ff",
    ] {
        assert_eq!(status(read(wrong)), 400, "{wrong}");
    }
}
