//! The span of the API call that runs in a task, for what the call waits for.
//! In: the span of a call, work of its method → out: spans of the broker, publications whose deliveries become spans.
//! Uses the tracer of the process and the clock. Never: which call it is.
//! Changed here: spans within a call. Spans of deliveries are made in crate `traces`, those of calls in `traced`.

use std::fmt::Display;
use std::time::SystemTime;

use fanwire_telemetry::{Span, SpanKind, TraceContext, TracedDelivery, tracer};

tokio::task_local! {
    static CALL: TraceContext;
}

/// Runs a call whose span this is.
pub(crate) async fn within<T>(span: TraceContext, call: impl Future<Output = T>) -> T {
    CALL.scope(span, call).await
}

/// Waits for the broker, in a span of the call.
pub(crate) async fn broker<T, E: Display>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let call = CALL.try_with(|call| *call).ok();
    let span = call.and_then(|call| {
        Span::begin(
            || "broker publish".to_owned(),
            SpanKind::Producer,
            Some(call),
            SystemTime::now(),
        )
    });
    let result = work.await;
    if let Some(mut span) = span {
        span.error = result.as_ref().err().map(E::to_string);
        span.finish(SystemTime::now());
    }
    result
}

/// Whether the deliveries of a publication of this call become a span; then it needs a receipt.
pub(crate) fn wants_receipt() -> bool {
    let is_traced = CALL.try_with(|_| ()).is_ok();
    is_traced && tracer().is_some_and(|tracer| tracer.has_room_for_delivery())
}

/// Makes the deliveries of a publication a span of this call, once they are known.
pub(crate) fn await_delivery(receipt: u64, channel: &str) {
    if let (Ok(parent), Some(tracer)) = (CALL.try_with(|call| *call), tracer()) {
        let channel = channel.to_owned();
        let start = SystemTime::now();
        tracer.await_delivery(TracedDelivery { receipt, channel, parent, start });
    }
}
