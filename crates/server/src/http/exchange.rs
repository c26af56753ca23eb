//! What HTTP tells its socket of the request that is served, as neither sees the other (RFC 9112 §9.3).
//! In: requests, pieces of their bodies, statuses → out: whether one is being answered, or unread; an upgrade that was refused.
//! Uses atomics and a lock that the task of one connection alone takes; never a socket, never time.
//! Changed here: when a request counts as read. What follows from that lives in `timeout_stream` and `listener`.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use axum::{
    body::{Bytes, HttpBody},
    http::{Request, StatusCode},
};
use hyper::{
    body::{Frame, SizeHint},
    upgrade::OnUpgrade,
};
use parking_lot::Mutex;

/// The state of one HTTP connection.
#[derive(Default)]
pub(super) struct Exchange {
    is_answering: AtomicBool,
    is_unread: AtomicBool,
    is_in_head: AtomicBool,
    refused: Mutex<Option<OnUpgrade>>,
}

/// Says that a request is being answered, until it is dropped: its body has limits of its own.
pub(super) struct Answering {
    exchange: Arc<Exchange>,
    upgrade: Option<OnUpgrade>,
}

/// The body of a request, which says when all of it was read.
pub(super) struct TrackedBody<B> {
    body: B,
    exchange: Arc<Exchange>,
}

impl Exchange {
    /// Some bytes came that no answer waits for: of a head, unless the request before was not read whole.
    pub(super) fn begin_head(&self) {
        // What comes behind an answer that was given early is the rest of its request.
        if !self.is_unread.swap(true, Relaxed) {
            self.is_in_head.store(true, Relaxed);
        }
    }

    /// The head is there; what remains to be read is the body.
    pub(super) fn begin_answer<B: HttpBody>(
        self: &Arc<Self>,
        request: Request<B>,
    ) -> (Request<TrackedBody<B>>, Answering) {
        self.is_answering.store(true, Relaxed);
        self.is_in_head.store(false, Relaxed);
        self.is_unread.store(!request.body().is_end_stream(), Relaxed);
        let upgrade = request.extensions().get::<OnUpgrade>().cloned();
        let request = request.map(|body| TrackedBody { body, exchange: Arc::clone(self) });
        (request, Answering { exchange: Arc::clone(self), upgrade })
    }

    /// What the last request for an upgrade waited for that did not get 101.
    pub(super) fn refused_upgrade(&self) -> Option<OnUpgrade> {
        self.refused.lock().take()
    }

    /// Whether the head that was begun last has not come whole.
    pub(super) fn is_in_head(&self) -> bool {
        self.is_in_head.load(Relaxed)
    }

    pub(super) fn is_answering(&self) -> bool {
        self.is_answering.load(Relaxed)
    }

    /// Whether a request was begun of which something was not read: it may be on its way still.
    pub(super) fn is_unread(&self) -> bool {
        self.is_unread.load(Relaxed)
    }
}

impl Answering {
    /// The answer is there, with this status.
    pub(super) fn end(mut self, status: StatusCode) {
        if let Some(upgrade) = self.upgrade.take_if(|_| status != StatusCode::SWITCHING_PROTOCOLS) {
            *self.exchange.refused.lock() = Some(upgrade);
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.exchange.is_answering.store(false, Relaxed);
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.exchange.is_unread.store(false, Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
