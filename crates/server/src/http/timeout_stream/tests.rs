//! Tests of `timeout_stream`: who is given up, and who is not.
//! In: pipes, and tokio's clock, which jumps to the next timer → out: errors, and when.
//! Uses no sockets.
//! Change here: tests of `timeout_stream.rs`.

use axum::{body::Bytes, http::Request};
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

const PATIENCE: Patience = Patience {
    head: Duration::from_secs(10),
    idle: Duration::from_secs(180),
    write: Duration::from_secs(30),
    linger: Linger {
        time: Duration::from_secs(30),
        silence: Duration::from_secs(5),
        bytes: 1_000,
        head_bytes: 100,
    },
};

fn pair() -> (TimeoutStream<DuplexStream>, DuplexStream, Arc<Exchange>) {
    let exchange = Arc::default();
    let (ours, theirs) = duplex(16);
    (TimeoutStream::new(ours, PATIENCE, Arc::clone(&exchange)), theirs, exchange)
}

/// Reads until it fails with a time limit; the seconds from `start` until then.
async fn given_up(ours: &mut TimeoutStream<DuplexStream>, start: Instant) -> u64 {
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

async fn say(theirs: &mut DuplexStream, after: Duration) {
    sleep(after).await;
    theirs.write_all(b"x").await.expect("room in the pipe");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_nothing_is_given_up() {
    let (mut ours, _theirs, _) = pair();
    let start = Instant::now();
    let error = ours.write_all(&[0; 17]).await.expect_err("one byte too many for the pipe");
    assert_eq!((error.kind(), start.elapsed().as_secs()), (ErrorKind::TimedOut, 30));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_on_gets_everything_and_leaves_no_timer() {
    let (mut ours, mut theirs, _) = pair();
    let mut taken = Vec::new();
    let writing = async {
        ours.write_all(&[7; 1000]).await.expect("somebody reads");
        assert!(ours.blocked.is_none());
        drop(ours);
    };
    let (_, read) = tokio::join!(writing, theirs.read_to_end(&mut taken));
    read.expect("a pipe");
    assert_eq!(taken, [7; 1000]);
}

#[tokio::test(start_paused = true)]
async fn the_first_head_must_be_there_in_time_however_it_comes() {
    let (mut ours, _theirs, _) = pair();
    assert_eq!(given_up(&mut ours, Instant::now()).await, 10, "nothing came");
    let (mut ours, mut theirs, _) = pair();
    let start = Instant::now();
    let trickling = async {
        for _ in 0..100 {
            say(&mut theirs, Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        seconds = given_up(&mut ours, start) => assert_eq!(seconds, 10),
        () = trickling => panic!("it was not given up"),
    }
}

#[tokio::test(start_paused = true)]
async fn between_requests_a_peer_may_be_silent_for_longer() {
    let (mut ours, mut theirs, _) = pair();
    for _ in 0..3 {
        ours.write_all(b"answer").await.expect("room in the pipe");
        let mut answer = [0; 6];
        theirs.read_exact(&mut answer).await.expect("a pipe");
        let (read, ()) = tokio::join!(ours.read_u8(), say(&mut theirs, Duration::from_secs(179)));
        assert_eq!(read.expect("it came in time"), b'x');
    }
    let start = Instant::now();
    assert_eq!(given_up(&mut ours, start).await, 10, "a head was begun");
    ours.write_all(b"answer").await.expect("room in the pipe");
    let start = Instant::now();
    assert_eq!(given_up(&mut ours, start).await, 180);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_waited_for_while_a_request_is_answered() {
    let (mut ours, mut theirs, exchange) = pair();
    let (_, answering) = exchange.begin_answer(Request::new(Full::new(Bytes::new())));
    let (read, ()) = tokio::join!(ours.read_u8(), say(&mut theirs, Duration::from_secs(3600)));
    assert_eq!(read.expect("a body has limits of its own"), b'x');
    ours.write_all(b"answer").await.expect("room in the pipe");
    drop(answering);
    let start = Instant::now();
    assert_eq!(given_up(&mut ours, start).await, 180);
}

/// The seconds that a socket takes to close behind an answer; meanwhile the peer sends `piece` every second, so many times.
async fn closed(body: &'static str, is_read: bool, piece: &[u8], times: usize) -> u64 {
    let (mut ours, mut theirs, exchange) = pair();
    let (request, answering) = exchange.begin_answer(Request::new(Full::<Bytes>::from(body)));
    if is_read {
        request.into_body().collect().await.expect("all of it is there");
    }
    drop(answering);
    let start = Instant::now();
    let sending = async {
        for _ in 0..times {
            sleep(Duration::from_secs(1)).await;
            if theirs.write_all(piece).await.is_err() {
                return;
            }
        }
        // It says no more, and does not end.
        sleep(Duration::from_secs(3600)).await;
    };
    tokio::select! {
        result = ours.shutdown() => result.expect("a pipe"),
        () = sending => panic!("it was not closed"),
    }
    start.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn behind_a_request_that_was_read_a_socket_is_closed_at_once() {
    assert_eq!(closed("", false, b"", 0).await, 0, "no body");
    assert_eq!(closed("body", true, b"", 0).await, 0);
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_request_that_was_answered_is_discarded_within_limits() {
    assert_eq!(closed("body", false, b"", 0).await, 5, "silence");
    assert_eq!(closed("body", false, b"x", 20).await, 25, "silence behind the last piece");
    assert_eq!(closed("body", false, b"x", 100).await, 30, "time");
    assert_eq!(closed("body", false, &[0; 100], 100).await, 11, "bytes");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_ends_its_side_is_not_waited_for() {
    let (mut ours, mut theirs, exchange) = pair();
    let (_, answering) = exchange.begin_answer(Request::new(Full::<Bytes>::from("body")));
    drop(answering);
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
    assert_eq!(start.elapsed(), PATIENCE.linger.silence);
}

#[tokio::test(start_paused = true)]
async fn of_a_head_that_was_refused_less_is_discarded_than_of_a_body() {
    let (mut ours, mut theirs, _) = pair();
    theirs.write_all(b"head").await.expect("room in the pipe");
    ours.read_exact(&mut [0; 4]).await.expect("a pipe");
    let flood = async {
        let mut sent = 0;
        while theirs.write_all(b"flood").await.is_ok() {
            sent += 5;
            assert!(sent < PATIENCE.linger.bytes, "as much as of a body");
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
