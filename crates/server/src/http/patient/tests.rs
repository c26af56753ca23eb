//! Tests of `patient`: who is given up, and who is not.
//! In: pipes, and tokio's clock, which jumps to the next timer → out: errors, and when.
//! Uses no sockets.
//! Change here: tests of `patient.rs`.

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

const PATIENCE: Patience = Patience {
    head: Duration::from_secs(10),
    idle: Duration::from_secs(180),
    write: Duration::from_secs(30),
};

fn pair() -> (Patient<DuplexStream>, DuplexStream, Arc<AtomicBool>) {
    let is_answering = Arc::default();
    let (ours, theirs) = duplex(16);
    (Patient::new(ours, PATIENCE, Arc::clone(&is_answering)), theirs, is_answering)
}

/// Reads until it fails with a time limit; the seconds from `start` until then.
async fn given_up(ours: &mut Patient<DuplexStream>, start: Instant) -> u64 {
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
    let (mut ours, mut theirs, is_answering) = pair();
    let answering = Answering::begin(&is_answering);
    let (read, ()) = tokio::join!(ours.read_u8(), say(&mut theirs, Duration::from_secs(3600)));
    assert_eq!(read.expect("a body has limits of its own"), b'x');
    ours.write_all(b"answer").await.expect("room in the pipe");
    drop(answering);
    let start = Instant::now();
    assert_eq!(given_up(&mut ours, start).await, 180);
}
