//! Bodies of a connection: those of requests have a time limit below all endpoints (RFC 9110 §15.5.9), those of responses a guard.
//! In: a body → out: the same body; an error when the peer does not send enough of a request in time.
//! Uses tokio's timer, and the slots that say how long a peer may take; never reads ahead.
//! Changed here: how long a body may take. `listener` answers a request that is late, `timeout_stream` limits heads.

use std::{
    io::{self, ErrorKind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    BoxError,
    body::{Bytes, HttpBody},
};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::{
    exchange::Exchange,
    slots::{ConnectionSlots, TIMEOUT_SCARCE},
};

/// The body of a request; records in the exchange when it was read to its end, or is late.
pub struct TrackedBody<B> {
    body: B,
    pub(crate) exchange: Arc<Exchange>,
    /// `None` for a body that may take for ever.
    slots: Option<Arc<ConnectionSlots>>,
    received: u64,
    /// Since the first wait: its beginning, and the timer of the next check.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

/// The body of a response; drops its guard when it was sent, or is not wanted any more.
pub(crate) struct GuardedBody<B, G> {
    pub(crate) body: B,
    pub(crate) _guard: G,
}

impl<B> TrackedBody<B> {
    pub(crate) fn new(body: B, exchange: Arc<Exchange>, slots: &Arc<ConnectionSlots>) -> Self {
        Self { body, exchange, slots: Some(Arc::clone(slots)), received: 0, waiting: None }
    }

    /// The same body without a time limit, for streams of commands of a caller whose key was checked.
    #[must_use]
    pub fn endless(self) -> Self {
        Self { slots: None, ..self }
    }

    /// Looks whether the peer has had its time. Then the listener drops the endpoint that waits for this body; what waits for it
    /// elsewhere, as a response that has begun does, finds it late at the next look.
    fn look_at_time(&mut self, context: &mut Context<'_>) {
        let Some(slots) = &self.slots else { return };
        loop {
            let now = Instant::now();
            let first_look = || Box::pin(sleep_until(now + TIMEOUT_SCARCE));
            let (begun, timer) = self.waiting.get_or_insert_with(|| (now, first_look()));
            let earned = Duration::from_millis(self.received * 1000 / BYTES_PER_SECOND_MIN);
            let deadline = *begun + slots.limit(BODY_TIMEOUT) + earned;
            if now >= deadline {
                self.exchange.be_late();
                return context.waker().wake_by_ref();
            }
            if timer.as_mut().poll(context).is_pending() {
                return;
            }
            // Slots may become scarce before the deadline.
            timer.as_mut().reset(deadline.min(now + TIMEOUT_SCARCE));
        }
    }
}

impl<B> HttpBody for TrackedBody<B>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.exchange.is_late() {
            return Poll::Ready(Some(Err(io::Error::from(ErrorKind::TimedOut).into())));
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.exchange.end_body();
        }
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                self.received += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            Poll::Pending => self.look_at_time(context),
            Poll::Ready(_) => {}
        }
        frame.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B: HttpBody + Unpin, G: Unpin> HttpBody for GuardedBody<B, G> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Time for a body of no bytes (Centrifugo: 30 s). Each byte earns more of it.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A peer that sends at this rate is never late, so that large batches pass over slow lines.
const BYTES_PER_SECOND_MIN: u64 = 4096;

#[cfg(test)]
mod tests;
