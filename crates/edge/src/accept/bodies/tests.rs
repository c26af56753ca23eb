//! Tests of `bodies`: which bodies are late.
//! In: bodies whose pieces come at times, and tokio's clock, which jumps to the next timer → out: their bytes, or when they were late.
//! Uses no sockets.
//! Changed here: tests of `bodies.rs`. What a late request gets is tested in `listener`.

use std::future::poll_fn;

use futures_util::{StreamExt, stream::unfold};
use http_body_util::{BodyExt, StreamBody};
use tokio::time::{sleep, timeout};

use super::*;

/// A body of `count` pieces of `bytes` bytes, each a second after the one before it; then it is silent.
fn body(count: usize, bytes: usize) -> impl HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin {
    let pieces = unfold(count, move |left| async move {
        match left {
            0 => std::future::pending::<()>().await,
            _ => sleep(Duration::from_secs(1)).await,
        }
        Some((Ok::<_, BoxError>(Frame::data(Bytes::from(vec![7; bytes]))), left - 1))
    });
    StreamBody::new(Box::pin(pieces))
}

/// Slots of which these are taken.
async fn slots(all: usize, taken: usize) -> (Arc<ConnectionSlots>, Vec<impl Sized>) {
    let slots = ConnectionSlots::new(all);
    let mut held = Vec::new();
    for _ in 0..taken {
        held.push(slots.take(|| {}).await);
    }
    (slots, held)
}

/// The seconds until a body is late.
async fn seconds_until_late(
    body: impl HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
    slots: &Arc<ConnectionSlots>,
) -> u64 {
    let start = Instant::now();
    let mut body = TrackedBody::new(body, Arc::default(), slots);
    poll_fn(|context| {
        loop {
            match Pin::new(&mut body).poll_frame(context) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Pending if body.exchange.is_late() => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
                Poll::Ready(_) => panic!("it ends before it is late"),
            }
        }
    })
    .await;
    let error = body.frame().await.expect("a frame").expect_err("it stays late");
    assert!(error.downcast::<io::Error>().is_ok_and(|it| it.kind() == ErrorKind::TimedOut));
    start.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_silent_body_is_late_after_half_a_minute_and_sooner_while_slots_are_scarce() {
    for (taken, seconds) in [(0, 30), (50, 30), (51, 2), (100, 2)] {
        let (slots, _held) = slots(100, taken).await;
        assert_eq!(seconds_until_late(body(0, 0), &slots).await, seconds, "{taken} of 100");
        assert_eq!(seconds_until_late(body(1, 1), &slots).await, seconds, "one byte");
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_trickle_earn_little_and_those_of_a_slow_line_enough() {
    let (ample, _) = slots(1, 0).await;
    let (scarce, _held) = slots(2, 2).await;
    assert_eq!(seconds_until_late(body(1_000, 1), &ample).await, 30);
    assert_eq!(seconds_until_late(body(1_000, 1), &scarce).await, 2);
    let seconds = seconds_until_late(body(1_000, 2_048), &scarce).await;
    assert!((3..=4).contains(&seconds), "{seconds} s at half of the rate");
    for slots in [ample, scarce] {
        let whole = TrackedBody::new(body(1_000, 4_096), Arc::default(), &slots);
        let mut whole = whole.into_data_stream();
        for second in 0..1_000 {
            let piece = whole.next().await.expect("a piece");
            assert!(piece.is_ok(), "{second}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_began_in_ample_times_is_late_soon_after_slots_became_scarce() {
    let (slots, _held) = slots(100, 50).await;
    let taking = async {
        sleep(Duration::from_secs(5)).await;
        let slot = slots.take(|| {}).await;
        sleep(Duration::from_secs(60)).await;
        drop(slot);
    };
    tokio::select! {
        seconds = seconds_until_late(body(0, 0), &slots) => assert!((5..=7).contains(&seconds), "{seconds}"),
        () = taking => panic!("it was never late"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_body_is_never_late() {
    let (scarce, _held) = slots(2, 2).await;
    let endless = TrackedBody::new(body(1, 1), Arc::default(), &scarce).endless();
    let mut endless = endless.into_data_stream();
    assert!(endless.next().await.expect("a piece").is_ok());
    let next = timeout(Duration::from_secs(86_400), endless.next());
    assert!(next.await.is_err(), "a day of silence");
}
