//! Tests of `timeout_stream`: which peers time out.
//! In: pipes, and tokio's clock, which jumps to the next timer → out: errors, and their times.
//! Uses no sockets.
//! Changed here: tests of `timeout_stream.rs`.

use axum::{body::Bytes, http::Request};
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::{super::bodies::TrackedBody, *};

const TIMEOUTS: Timeouts = Timeouts {
    head: Duration::from_secs(10),
    idle: Duration::from_secs(180),
    write: Duration::from_secs(30),
    linger: LingerLimits {
        time: Duration::from_secs(30),
        silence: Duration::from_secs(5),
        bytes: 1_000,
        head_bytes: 100,
    },
};

impl PeerEnd for DuplexStream {
    fn poll_peer_end(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Pending
    }
}

fn pair() -> (TimeoutStream<DuplexStream>, DuplexStream, Arc<Exchange>) {
    let exchange = Arc::default();
    let (ours, theirs) = duplex(16);
    (
        TimeoutStream::new(ours, TIMEOUTS, ConnectionSlots::new(1), Arc::clone(&exchange)),
        theirs,
        exchange,
    )
}

/// Reads until a time limit fails the read. Returns the seconds from `start`.
async fn seconds_until_timeout(ours: &mut TimeoutStream<DuplexStream>, start: Instant) -> u64 {
    loop {
        match ours.read_u8().await {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                return start.elapsed().as_secs();
            }
        }
    }
}

async fn send_after(theirs: &mut DuplexStream, after: Duration) {
    sleep(after).await;
    theirs.write_all(b"x").await.expect("room in the pipe");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_nothing_times_out() {
    let (mut ours, _theirs, _) = pair();
    let start = Instant::now();
    let error = ours.write_all(&[0; 17]).await.expect_err("one byte too many for the pipe");
    assert_eq!((error.kind(), start.elapsed().as_secs()), (ErrorKind::TimedOut, 30));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_keeps_reading_gets_everything_and_leaves_no_timer() {
    let (mut ours, mut theirs, _) = pair();
    let mut taken = Vec::new();
    let writing = async {
        ours.write_all(&[7; 1000]).await.expect("the peer reads");
        assert!(ours.write_timer.is_none());
        drop(ours);
    };
    let (_, read) = tokio::join!(writing, theirs.read_to_end(&mut taken));
    read.expect("a pipe");
    assert_eq!(taken, [7; 1000]);
}

#[tokio::test(start_paused = true)]
async fn the_first_head_must_arrive_in_time_in_one_or_many_pieces() {
    let (mut ours, _theirs, _) = pair();
    assert_eq!(seconds_until_timeout(&mut ours, Instant::now()).await, 10, "no bytes");
    let (mut ours, mut theirs, _) = pair();
    let start = Instant::now();
    let trickling = async {
        for _ in 0..100 {
            send_after(&mut theirs, Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        seconds = seconds_until_timeout(&mut ours, start) => assert_eq!(seconds, 10),
        () = trickling => panic!("it did not time out"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_may_be_idle_for_longer_between_requests() {
    let (mut ours, mut theirs, _) = pair();
    for _ in 0..3 {
        ours.write_all(b"answer").await.expect("room in the pipe");
        let mut answer = [0; 6];
        theirs.read_exact(&mut answer).await.expect("a pipe");
        let (read, ()) =
            tokio::join!(ours.read_u8(), send_after(&mut theirs, Duration::from_secs(179)));
        assert_eq!(read.expect("in time"), b'x');
    }
    let start = Instant::now();
    assert_eq!(seconds_until_timeout(&mut ours, start).await, 10, "a head was begun");
    ours.write_all(b"answer").await.expect("room in the pipe");
    let start = Instant::now();
    assert_eq!(seconds_until_timeout(&mut ours, start).await, 180);
}

#[tokio::test(start_paused = true)]
async fn no_read_limit_applies_while_a_request_is_in_flight() {
    let (mut ours, mut theirs, exchange) = pair();
    let in_flight = exchange.begin_request(&mut Request::new(Full::new(Bytes::new())));
    let (read, ()) =
        tokio::join!(ours.read_u8(), send_after(&mut theirs, Duration::from_secs(3600)));
    assert_eq!(read.expect("a body has limits of its own"), b'x');
    ours.write_all(b"answer").await.expect("room in the pipe");
    drop(in_flight);
    let start = Instant::now();
    assert_eq!(seconds_until_timeout(&mut ours, start).await, 180);
}

/// The seconds from a response to the close of its socket, while the peer sends `piece` `times` times, once a second.
async fn closed(body: &'static str, is_read: bool, piece: &[u8], times: usize) -> u64 {
    let (mut ours, mut theirs, exchange) = pair();
    let mut request = Request::new(Full::<Bytes>::from(body));
    let in_flight = exchange.begin_request(&mut request);
    if is_read {
        let slots = ConnectionSlots::new(1);
        let body = TrackedBody::new(request.into_body(), Arc::clone(&exchange), &slots);
        body.collect().await.expect("complete");
    }
    drop(in_flight);
    let start = Instant::now();
    let sending = async {
        for _ in 0..times {
            sleep(Duration::from_secs(1)).await;
            if theirs.write_all(piece).await.is_err() {
                return;
            }
        }
        // It sends nothing more and stays open.
        sleep(Duration::from_secs(3600)).await;
    };
    tokio::select! {
        result = ours.shutdown() => result.expect("a pipe"),
        () = sending => panic!("it was not closed"),
    }
    start.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn after_a_request_that_was_read_the_socket_is_closed_at_once() {
    assert_eq!(closed("", false, b"", 0).await, 0, "no body");
    assert_eq!(closed("body", true, b"", 0).await, 0);
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_an_answered_request_is_discarded_within_limits() {
    assert_eq!(closed("body", false, b"", 0).await, 5, "silence");
    assert_eq!(closed("body", false, b"x", 20).await, 25, "silence behind the last piece");
    assert_eq!(closed("body", false, b"x", 100).await, 30, "time");
    assert_eq!(closed("body", false, &[0; 100], 100).await, 11, "bytes");
}

#[tokio::test(start_paused = true)]
async fn discarding_ends_when_the_peer_closes_its_side() {
    let (mut ours, mut theirs, exchange) = pair();
    let in_flight = exchange.begin_request(&mut Request::new(Full::<Bytes>::from("body")));
    drop(in_flight);
    theirs.write_all(b"rest").await.expect("room in the pipe");
    drop(theirs);
    let start = Instant::now();
    ours.shutdown().await.expect("a pipe");
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_was_refused_counts_as_unread() {
    let (mut ours, mut theirs, _) = pair();
    theirs.write_all(b"head").await.expect("room in the pipe");
    ours.read_exact(&mut [0; 4]).await.expect("a pipe");
    ours.write_all(b"400").await.expect("room in the pipe");
    let start = Instant::now();
    ours.shutdown().await.expect("a pipe");
    assert_eq!(start.elapsed(), TIMEOUTS.linger.silence);
}

#[tokio::test(start_paused = true)]
async fn less_is_discarded_of_a_refused_head_than_of_a_body() {
    let (mut ours, mut theirs, _) = pair();
    theirs.write_all(b"head").await.expect("room in the pipe");
    ours.read_exact(&mut [0; 4]).await.expect("a pipe");
    let flood = async {
        let mut sent = 0;
        while theirs.write_all(b"flood").await.is_ok() {
            sent += 5;
            assert!(sent < TIMEOUTS.linger.bytes, "as much as of a body");
        }
    };
    let start = Instant::now();
    let end = async {
        ours.shutdown().await.expect("a pipe");
        drop(ours);
    };
    tokio::join!(flood, end);
    assert_eq!(start.elapsed(), Duration::ZERO);
}
