//! Tests of `api_service`: the log line of back-pressure, and texts.
//! In: times → out: lines, responses.
//! Uses no sockets; a log that stores its lines.
//! Changed here: tests of `api_service.rs`.

use std::{fmt, time::Duration};

use parking_lot::Mutex;
use tracing::{Event, Metadata, Subscriber, field, span};

use super::*;

#[test]
fn back_pressure_is_logged() {
    let (log, log_throttle, now) = (Log::default(), LogThrottle::default(), Instant::now());
    let lines = Arc::clone(&log.0);
    tracing::subscriber::with_default(log, || {
        for _ in 0..3 {
            assert_eq!(busy(&log_throttle, now).status(), StatusCode::SERVICE_UNAVAILABLE);
        }
        busy(&log_throttle, now + Duration::from_secs(60));
    });
    let line =
        "refusing API requests with 503: the inbox of a shard held more than 32 MiB for 30 s";
    let again = format!("{line}; 3 times since this was last logged");
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
        event.record(&mut |_: &field::Field, value: &dyn fmt::Debug| {
            self.0.lock().push(format!("{value:?}"));
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
fn a_text_response_has_the_type_text() {
    let answer = late();
    assert_eq!((answer.status().as_u16(), answer.body().as_ref()), (408, LATE.as_bytes()));
    assert_eq!(answer.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
}
