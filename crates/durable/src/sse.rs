//! Live reads as server-sent events: data and control events in turn, for a minute; comments while nothing comes.
//! In: a stream and a first batch → out: a response whose body makes a batch when its connection takes one.
//! Uses `live` to wait. A client that does not read makes no batch. Never: rules of streams.
//! Changed here: when a response ends. The text of events is in `content`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use fanwire_broker::Position;
use futures_util::stream::unfold;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use tokio::time::Instant;

use crate::DurableStreams;
use crate::content::{ContentKind, ControlEvent};
use crate::header::SSE_ENCODING;
use crate::live::LiveRead;
use crate::offset::{self, ReadStart};
use crate::reads::next_cursor;
use crate::response::{finish, reply};
use crate::storage::StreamBatch;

/// A response that has begun.
struct SseReader {
    streams: Arc<DurableStreams>,
    read: LiveRead,
    /// The batch that is not written yet.
    batch: Option<StreamBatch>,
    next: Position,
    cursor: Option<u64>,
    deadline: Instant,
    has_ended: bool,
}

impl DurableStreams {
    /// A response that begins with `first`, and lasts until `durable_streams.sse_timeout` or the end of the stream.
    pub(crate) fn sse(
        self: &Arc<Self>,
        read: LiveRead,
        first: StreamBatch,
        cursor: Option<u64>,
    ) -> Response {
        let mut response = reply(200)
            .header(CONTENT_TYPE, "text/event-stream")
            .header(CACHE_CONTROL, "no-cache")
            .header("x-accel-buffering", "no");
        if first.kind == ContentKind::Binary {
            response = response.header(SSE_ENCODING, "base64");
        }
        let reader = SseReader {
            streams: self.clone(),
            read,
            next: first.next,
            batch: Some(first),
            cursor,
            deadline: Instant::now() + self.options.sse_timeout,
            has_ended: false,
        };
        let events = unfold(reader, |mut reader| async move {
            let events = reader.events().await?;
            Some((Ok::<Bytes, Infallible>(events), reader))
        });
        finish(response, Body::from_stream(events))
    }
}

impl SseReader {
    /// The events of the next batch, or a comment; `None` at the end.
    async fn events(&mut self) -> Option<Bytes> {
        if self.has_ended {
            return None;
        }
        let batch = match self.batch.take() {
            Some(batch) => batch,
            None => {
                let until = self.deadline.min(Instant::now() + COMMENT_INTERVAL);
                let from = ReadStart::At(self.next);
                let batch = self.streams.wait(&self.read, from, until).await.ok()?;
                if batch.next == self.next && !batch.is_closed {
                    let goes_on = until < self.deadline && !*self.streams.is_closing.borrow();
                    return goes_on.then(|| Bytes::from_static(COMMENT));
                }
                batch
            }
        };
        self.next = batch.next;
        self.has_ended = batch.is_closed || Instant::now() >= self.deadline;
        let cursor = next_cursor(self.cursor);
        self.cursor = Some(cursor.saturating_sub(1));
        let mut events = BytesMut::new();
        batch.kind.write_event(&batch.payloads, &mut events);
        let control = ControlEvent {
            next: &offset::format(batch.next),
            cursor: Some(cursor),
            is_up_to_date: batch.is_up_to_date,
            is_closed: batch.is_closed,
        };
        control.write(&mut events);
        Some(events.freeze())
    }
}

/// The peer of a connection that is gone is noticed at a write. Proxies often close one that is silent for a minute.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);
/// Clients skip it (WHATWG HTML §9.2.6).
const COMMENT: &[u8] = b":\n\n";
