//! Tests of `api_service`: how long a body may take, and what the log says.
//! In: futures, and tokio's clock, which jumps to the next timer → out: answers, and when.
//! Uses no sockets; a log that keeps its lines.
//! Changed here: tests of `api_service.rs`.

use std::fmt;

use parking_lot::Mutex;
use tokio::time;
use tracing::{Event, Metadata, Subscriber, field, span};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_body_may_take_half_a_minute() {
    for pause in [Duration::ZERO, BACKLOG_PAUSE, REQUEST_TIMEOUT - BACKLOG_PAUSE] {
        assert_eq!(in_time(pin!(sleep(pause))).await, Some(()));
    }
    let start = time::Instant::now();
    assert_eq!(in_time(pin!(std::future::pending::<()>())).await, None);
    assert_eq!(start.elapsed(), REQUEST_TIMEOUT);
}

#[test]
fn publishers_that_the_shards_cannot_follow_are_told_of_in_the_log() {
    let (log, told, now) = (Log::default(), LogThrottle::default(), Instant::now());
    let lines = Arc::clone(&log.0);
    tracing::subscriber::with_default(log, || {
        for _ in 0..3 {
            assert_eq!(busy(&told, now).status(), StatusCode::SERVICE_UNAVAILABLE);
        }
        busy(&told, now + Duration::from_secs(60));
    });
    let line = "refusing API requests with 503: a shard was more than 32 MiB behind for 30 s";
    let again = format!("{line}; 3 cases since this was said last");
    assert_eq!(*lines.lock(), [line.to_owned(), again]);
}

/// The warnings of a test.
#[derive(Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut |_: &field::Field, said: &dyn fmt::Debug| {
            self.0.lock().push(format!("{said:?}"));
        });
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[test]
fn an_answer_in_words_says_that_it_is_one() {
    let answer = said(StatusCode::REQUEST_TIMEOUT, LATE);
    assert_eq!((answer.status().as_u16(), answer.body().as_ref()), (408, LATE.as_bytes()));
    assert_eq!(answer.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
}
