//! GET and HEAD: catch-up and long-poll in one body.
//! In: requests of a channel → out: responses.
//! Uses `storage`, and `live` to wait. Never: rules of streams.
//! Changed here: headers of reads. SSE is in `sse`, what a batch has in `storage`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use fanwire_node::ReadPermit;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::request::Parts;
use rand::Rng as _;
use tokio::time::Instant;

use crate::header::{
    CURSOR, NEXT_OFFSET, STREAM_CLOSED, STREAM_EXPIRES_AT, STREAM_TTL, UP_TO_DATE,
};
use crate::lifetime::StreamLifetime;
use crate::live::LiveRead;
use crate::offset::ReadStart;
use crate::request::{LiveMode, ReadQuery};
use crate::response::{ErrorResponse, finish, reply};
use crate::storage::{BATCH_BYTES, SSE_BATCH_BYTES, StreamBatch, now_ms};
use crate::{DurableStreams, offset, request};

impl DurableStreams {
    pub(crate) async fn get(
        self: &Arc<Self>,
        channel: &str,
        head: &Parts,
        permit: Option<ReadPermit>,
    ) -> Result<Response, ErrorResponse> {
        let query = request::read(head.uri.query().unwrap_or_default())?;
        let is_sse = query.live == Some(LiveMode::Sse);
        let bytes_max = if is_sse { SSE_BATCH_BYTES } else { BATCH_BYTES };
        let (entry, batch) = self.with_stream(channel, |entry, state| {
            state.touch(now_ms());
            Ok((entry.clone(), self.batch(channel, state, query.start, bytes_max)?))
        })?;
        match query.live {
            None => Ok(catch_up(&batch, &query, head)),
            Some(mode) => {
                let read = self.begin_live(entry, permit, &head.extensions, bytes_max)?;
                match mode {
                    LiveMode::Sse => Ok(self.sse(read, batch, query.cursor)),
                    LiveMode::LongPoll => self.long_poll(read, batch, query.cursor).await,
                }
            }
        }
    }

    /// Metadata; does not restart the window of the lifetime.
    pub(crate) fn head(&self, channel: &str) -> Result<Response, ErrorResponse> {
        self.with_stream(channel, |_, state| {
            let config = state.config();
            let mut response = reply(200)
                .header(CONTENT_TYPE, &config.content_type)
                .header(NEXT_OFFSET, offset::format(self.tail(channel)?))
                .header(CACHE_CONTROL, "no-store");
            match &config.lifetime {
                StreamLifetime::Unlimited => {}
                StreamLifetime::Window(seconds) => response = response.header(STREAM_TTL, *seconds),
                StreamLifetime::Until { text, .. } => {
                    response = response.header(STREAM_EXPIRES_AT, text);
                }
            }
            if config.is_closed {
                response = response.header(STREAM_CLOSED, "true");
            }
            Ok(finish(response, Body::empty()))
        })
    }

    async fn long_poll(
        self: &Arc<Self>,
        read: LiveRead,
        first: StreamBatch,
        cursor: Option<u64>,
    ) -> Result<Response, ErrorResponse> {
        let deadline = Instant::now() + self.options.long_poll_timeout;
        let is_news = |batch: &StreamBatch| !batch.payloads.is_empty() || batch.is_closed;
        let batch = if is_news(&first) {
            first
        } else {
            self.wait(&read, ReadStart::At(first.next), deadline).await?
        };
        let status = if batch.payloads.is_empty() { 204 } else { 200 };
        let mut response = head_of(status, &batch);
        if is_news(&batch) {
            response = response.header(ETAG, etag(&batch));
        }
        if !batch.is_closed {
            response = response.header(CURSOR, next_cursor(cursor));
        }
        let body =
            if status == 204 { Body::empty() } else { batch.kind.joined(&batch.payloads).into() };
        Ok(finish(response.header(CACHE_CONTROL, "no-store"), body))
    }
}

fn catch_up(batch: &StreamBatch, query: &ReadQuery, head: &Parts) -> Response {
    let response = |status| head_of(status, batch);
    if query.start == ReadStart::Tail {
        let body = batch.kind.joined(&[]);
        return finish(response(200).header(CACHE_CONTROL, "no-store"), body.into());
    }
    let etag = etag(batch);
    // What lies between two offsets never changes; the tail does.
    let caching = if batch.is_up_to_date && !batch.is_closed {
        "private, no-cache"
    } else {
        "private, max-age=60, stale-while-revalidate=300"
    };
    let known = head
        .headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let is_known =
        known.map(|one| one.trim().trim_start_matches("W/")).any(|one| one == etag || one == "*");
    let (status, body) = if is_known {
        (304, Body::empty())
    } else {
        (200, batch.kind.joined(&batch.payloads).into())
    };
    finish(response(status).header(ETAG, etag).header(CACHE_CONTROL, caching), body)
}

/// A response with what every batch has.
fn head_of(status: u16, batch: &StreamBatch) -> http::response::Builder {
    let mut response = reply(status)
        .header(CONTENT_TYPE, &batch.content_type)
        .header(NEXT_OFFSET, offset::format(batch.next));
    if batch.is_up_to_date {
        response = response.header(UP_TO_DATE, "true");
    }
    if batch.is_closed {
        response = response.header(STREAM_CLOSED, "true");
    }
    response
}

/// Start, end, epoch, and whether the stream ends there.
fn etag(batch: &StreamBatch) -> String {
    let closed = if batch.is_closed { ":c" } else { "" };
    format!("\"{}:{}{closed}\"", batch.start.offset, offset::format(batch.next))
}

/// Counts intervals of 20 s since 2024-10-09. Always above the client's cursor, so that caches do not repeat a response.
pub(crate) fn next_cursor(of_client: Option<u64>) -> u64 {
    cursor_at(now_ms(), of_client, Duration::from_secs(rand::rng().random_range(1..=3600)))
}

fn cursor_at(now_ms: u64, of_client: Option<u64>, jitter: Duration) -> u64 {
    let now = (now_ms / 1000).saturating_sub(CURSOR_BEGINS) / CURSOR_INTERVAL;
    match of_client {
        Some(cursor) if cursor >= now => {
            cursor.saturating_add((jitter.as_secs() / CURSOR_INTERVAL).max(1))
        }
        _ => now,
    }
}

/// Unix second of 2024-10-09T00:00:00Z.
const CURSOR_BEGINS: u64 = 1_728_432_000;
const CURSOR_INTERVAL: u64 = 20;

#[cfg(test)]
mod tests;
