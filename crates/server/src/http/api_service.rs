//! The server API at a listener: requests that go past the router, with a limit on their time and back-pressure.
//! In: POST requests below the API's prefix → out: answers in one piece.
//! Uses the API's face; never looks into a request beyond its method and path.
//! Changed here: how long a request may take, when it waits, and that the log says so. What is answered lives in `api`.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use axum::{
    body::{Bytes, HttpBody},
    http::{HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE},
};
use fanwire_api::http::{HttpApi, Place};
use fanwire_telemetry::LogThrottle;
use tokio::time::{sleep, timeout};

use crate::shard::INBOX_BYTES_MAX;
use fanwire_fanout::Shards;

/// The API, and whom it must not outrun.
pub struct ApiService {
    pub face: HttpApi,
    pub shards: Arc<Shards>,
    /// What the log said of requests that were refused.
    pub(super) told: LogThrottle,
}

impl ApiService {
    /// What a request asks of the API, if it does.
    pub(super) fn place<B>(&self, request: &Request<B>) -> Option<Place> {
        let is_asking = request.method() == Method::POST;
        is_asking.then(|| self.face.place(request.uri().path())).flatten()
    }

    /// Answers. Before the body is read a publisher that is faster than the shards waits for them, instead of filling their
    /// inboxes. What was asked is done to its end, however long that takes: a client may repeat what got 408 (RFC 9110
    /// §15.5.9), and a publication would come twice.
    pub(super) async fn answer<B>(&self, place: Place, request: Request<B>) -> Response<Bytes>
    where
        B: HttpBody<Data = Bytes>,
    {
        if in_time(pin!(self.room())).await.is_none() {
            return busy(&self.told, Instant::now());
        }
        let read = in_time(pin!(self.face.read(place, request))).await;
        match read {
            Some(Ok(asked)) => self.face.answer(asked).await,
            Some(Err(refused)) => refused,
            None => said(StatusCode::REQUEST_TIMEOUT, LATE),
        }
    }

    async fn room(&self) {
        while self.shards.backlog_bytes() > INBOX_BYTES_MAX {
            sleep(BACKLOG_PAUSE).await;
        }
    }
}

/// What comes in the time that a peer has. Most is there at once: that costs no look at the clock and no timer.
/// It is pinned already: moved into here it would have its room twice in every request.
async fn in_time<F: Future>(mut coming: Pin<&mut F>) -> Option<F::Output> {
    match poll_fn(|context| Poll::Ready(coming.as_mut().poll(context))).await {
        Poll::Ready(come) => Some(come),
        Poll::Pending => timeout(REQUEST_TIMEOUT, coming).await.ok(),
    }
}

/// The shards did not catch up. Operators hear of it, as publishers do.
fn busy(told: &LogThrottle, now: Instant) -> Response<Bytes> {
    if let Some(cases) = told.happens("busy", now) {
        tracing::warn!(
            "refusing API requests with 503: a shard was more than {} MiB behind for {} s{cases}",
            INBOX_BYTES_MAX >> 20,
            REQUEST_TIMEOUT.as_secs()
        );
    }
    said(StatusCode::SERVICE_UNAVAILABLE, BUSY)
}

fn said(status: StatusCode, words: &'static str) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::from_static(words.as_bytes()));
    *answer.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, text);
    answer
}

const BUSY: &str = "the shards do not catch up, nothing was done\n";
const LATE: &str = "timed out reading the request\n";

/// For the body of an API request (Centrifugo: 30 s), and before it for the shards.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A shard drains its whole inbox in a few milliseconds.
const BACKLOG_PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
