//! Live reads as server-sent events: data and control events in turn, for a minute.
//! In: a stream and a first batch → out: a response whose body makes a batch when its connection takes one.
//! Uses `reads` to wait. A client that does not read makes no batch. Never: rules of streams.
//! Changed here: when a response ends. The text of events is in `content`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use fanwire_broker::Position;
use futures_util::stream::unfold;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use tokio::sync::OwnedSemaphorePermit;

use crate::DurableStreams;
use crate::content::{ContentKind, write_control};
use crate::header::SSE_ENCODING;
use crate::offset::{self, ReadStart};
use crate::reads::next_cursor;
use crate::response::{finish, reply};
use crate::storage::{SSE_BATCH_BYTES, StreamBatch};
use crate::table::StreamEntry;

/// A response that has begun.
struct SseReader {
    streams: Arc<DurableStreams>,
    entry: Arc<StreamEntry>,
    /// Not written yet.
    batch: Option<StreamBatch>,
    next: Position,
    cursor: Option<u64>,
    deadline: Instant,
    has_ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl DurableStreams {
    /// A response that begins with `first`, and lasts until `durable_streams.sse_timeout` or the end of the stream.
    pub(crate) fn sse(
        self: &Arc<Self>,
        entry: Arc<StreamEntry>,
        first: StreamBatch,
        cursor: Option<u64>,
        permit: OwnedSemaphorePermit,
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
            entry,
            next: first.next,
            batch: Some(first),
            cursor,
            deadline: Instant::now() + self.options.sse_timeout,
            has_ended: false,
            _permit: permit,
        };
        let events = unfold(reader, |mut reader| async move {
            let events = reader.events().await?;
            Some((Ok::<Bytes, Infallible>(events), reader))
        });
        finish(response, Body::from_stream(events))
    }
}

impl SseReader {
    /// The events of the next batch; `None` at the end.
    async fn events(&mut self) -> Option<Bytes> {
        if self.has_ended {
            return None;
        }
        let batch = match self.batch.take() {
            Some(batch) => batch,
            None => {
                let from = ReadStart::At(self.next);
                let waited = self.streams.wait(&self.entry, from, self.deadline, SSE_BATCH_BYTES);
                waited.await.ok()??
            }
        };
        self.next = batch.next;
        self.has_ended = batch.is_closed || Instant::now() >= self.deadline;
        let cursor = next_cursor(self.cursor);
        self.cursor = Some(cursor.saturating_sub(1));
        let mut events = BytesMut::new();
        batch.kind.write_event(&batch.payloads, &mut events);
        let next = offset::format(batch.next);
        write_control(&next, Some(cursor), (batch.is_up_to_date, batch.is_closed), &mut events);
        Some(events.freeze())
    }
}
