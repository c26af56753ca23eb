//! Tests of `http2`: when a connection is idle, and what of a request is changed.
//! In: streams that begin and end, pipes, and tokio's clock, which jumps to the next timer → out: when a connection ended; headers.
//! Uses no sockets.
//! Changed here: tests of `http2.rs` without a server. Requests of a client are in `crates/fanwire/tests/it/http2.rs`.

use tokio::{io::AsyncReadExt, time::Instant};

use super::*;

/// The seconds until a connection is idle, whose stream is open for this time.
async fn seconds_until_idle(open: Duration, slots: &Arc<ConnectionSlots>) -> u64 {
    let (streams, start) = (Arc::<Streams>::default(), Instant::now());
    let stream = OpenStream::begin(&streams);
    let ending = async {
        sleep(open).await;
        drop(stream);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = idle(&streams, slots) => {}
        () = ending => {}
    }
    start.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_an_open_stream_is_not_idle() {
    let slots = ConnectionSlots::new(2);
    let hour = Duration::from_secs(3_600);
    assert_eq!(seconds_until_idle(hour, &slots).await, 3_600 + 180);
    let _all = [slots.take(|| {}).await, slots.take(|| {}).await];
    assert_eq!(seconds_until_idle(hour, &slots).await, 3_600 + 2, "slots are scarce");
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_gives_way_and_one_with_a_stream_does_not() {
    let slots = ConnectionSlots::new(1);
    let only = slots.take(|| {}).await;
    let (with_stream, without) = (Arc::<Streams>::default(), Arc::<Streams>::default());
    let _stream = OpenStream::begin(&with_stream);
    let ends = async {
        tokio::select! {
            () = idle(&with_stream, &slots) => panic!("it has a stream"),
            () = idle(&without, &slots) => drop(only),
        }
    };
    let start = Instant::now();
    let waiting = async {
        sleep(Duration::from_secs(1)).await;
        slots.take(|| panic!("no shard has any")).await
    };
    let ((), _slot) = tokio::join!(ends, waiting);
    assert_eq!(start.elapsed().as_secs(), 1);
}

/// The seconds until the connection of a peer ends that sends these bytes alone, and reads.
async fn seconds_until_end(bytes: &[u8]) -> u64 {
    let (ours, mut theirs) = tokio::io::duplex(1 << 16);
    theirs.write_all(bytes).await.expect("room in the pipe");
    let slots = ConnectionSlots::new(2);
    let _all = [slots.take(|| {}).await, slots.take(|| {}).await];
    let start = Instant::now();
    let peer = ([127, 0, 0, 1], 1).into();
    let settings = ConnectionSettings { peer, slots, has_small_messages: false };
    let answer = |_: Request<TrackedBody<Incoming>>| async { Response::new(Body::empty()) };
    serve(ours, settings, answer, std::future::pending()).await;
    theirs.read_to_end(&mut Vec::new()).await.expect("a pipe");
    start.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_begins_and_says_no_more_keeps_a_scarce_slot_for_some_seconds() {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    // HEADERS of stream 1 without END_HEADERS, which CONTINUATION would follow.
    let half_a_head = [0, 0, 1, 1, 0, 0, 0, 0, 1, 0x83];
    for bytes in [
        [&preface[..], &settings].concat(),
        [&preface[..], &settings, &half_a_head].concat(),
        preface[..10].to_vec(),
    ] {
        let seconds = seconds_until_end(&bytes).await;
        assert!((2..=4).contains(&seconds), "{seconds} s for {bytes:?}");
    }
}

#[test]
fn cookies_become_one_field() {
    for (fields, expect) in [
        (&[][..], None),
        (&[&b"a=1"[..]][..], Some(&b"a=1"[..])),
        (&[b"a=1", b"b=2", b"c=3"], Some(b"a=1; b=2; c=3")),
        (&[b"a=1; b=2", b"c=\xff\xfc"], Some(b"a=1; b=2; c=\xff\xfc")),
        (&[b"a=1", b""], Some(b"a=1; ")),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("x", HeaderValue::from_static("1"));
        for field in fields {
            headers.append(COOKIE, HeaderValue::from_bytes(field).expect("a value"));
        }
        join_cookies(&mut headers);
        let joined: Vec<_> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(joined, expect.into_iter().collect::<Vec<_>>());
    }
}
