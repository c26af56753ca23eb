//! Live reads: how many there are, and how each of them waits for content.
//! In: streams, permits of readers → out: reads with their places; batches, or the end of a permit.
//! Uses `storage`. A reader registers before it reads, or it would miss what comes in between. Never: HTTP bodies.
//! Changed here: what ends a read. Its response is made in `reads` and `sse`.

use std::collections::HashMap;
use std::sync::Arc;

use fanwire_node::ReadPermit;
use fanwire_node::protocol::ErrorCode;
use http::Extensions;
use http::header::CONNECTION;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use crate::offset::ReadStart;
use crate::response::ErrorResponse;
use crate::storage::StreamBatch;
use crate::table::StreamEntry;
use crate::{DurableStreams, LongResponse};

/// A read that may wait. Its places are free again when it is dropped.
pub(crate) struct LiveRead {
    entry: Arc<StreamEntry>,
    /// `None` for a read by a key of the API, whose end is not announced.
    permit: Option<ReadPermit>,
    permitted_until: Option<Instant>,
    /// Most bytes of a batch.
    bytes_max: usize,
    _place: OwnedSemaphorePermit,
    _place_of_user: Option<PlaceOfUser>,
    _response: LongResponse,
}

/// The live reads that there may be.
pub(crate) struct LiveLimits {
    pub(crate) places: Arc<Semaphore>,
    reads_of_user_max: usize,
    /// Reads of users that have some; never of anonymous ones, whom nothing tells apart.
    by_user: Arc<Mutex<HashMap<String, usize>>>,
}

/// One of the live reads of a user.
struct PlaceOfUser {
    user: String,
    by_user: Arc<Mutex<HashMap<String, usize>>>,
}

impl LiveLimits {
    pub(crate) fn new(reads_max: usize, reads_of_user_max: usize) -> Self {
        let places = Arc::new(Semaphore::new(reads_max));
        let by_user = Arc::default();
        Self { places, reads_of_user_max, by_user }
    }

    fn place_of(&self, user: &str) -> Result<Option<PlaceOfUser>, ErrorResponse> {
        if user.is_empty() {
            return Ok(None);
        }
        let mut by_user = self.by_user.lock();
        let reads = by_user.entry(user.to_owned()).or_default();
        if *reads >= self.reads_of_user_max {
            let text = "durable_streams.max_live_reads_per_user reads of this user are waiting";
            return Err(ErrorResponse::new(429, text));
        }
        *reads += 1;
        Ok(Some(PlaceOfUser { user: user.to_owned(), by_user: Arc::clone(&self.by_user) }))
    }
}

impl Drop for PlaceOfUser {
    fn drop(&mut self) {
        let mut by_user = self.by_user.lock();
        if let Some(reads) = by_user.get_mut(&self.user) {
            *reads -= 1;
            if *reads == 0 {
                by_user.remove(&self.user);
            }
        }
    }
}

impl DurableStreams {
    /// A live read of a stream.
    ///
    /// # Errors
    /// 429 beyond a limit of live reads, 503 beyond that of connections.
    pub(crate) fn begin_live(
        &self,
        entry: Arc<StreamEntry>,
        permit: Option<ReadPermit>,
        extensions: &Extensions,
        bytes_max: usize,
    ) -> Result<LiveRead, ErrorResponse> {
        let text = "durable_streams.max_live_reads reads are waiting";
        let place = self
            .live
            .places
            .clone()
            .try_acquire_owned()
            .map_err(|_| ErrorResponse::new(429, text))?;
        let user = permit.as_ref().map_or("", ReadPermit::user);
        let place_of_user = self.live.place_of(user)?;
        // One that is kept would take a descriptor, of which there may be no more.
        let full = || {
            ErrorResponse::new(503, "this node has reached its connection limit")
                .with(CONNECTION, "close")
        };
        let response = (self.connections.begin_long_response)(extensions).ok_or_else(full)?;
        let lasts = permit
            .as_ref()
            .and_then(|permit| self.node.permitted_for(permit, std::time::Instant::now()));
        Ok(LiveRead {
            entry,
            permit,
            permitted_until: lasts.and_then(|lasts| Instant::now().checked_add(lasts)),
            bytes_max,
            _place: place,
            _place_of_user: place_of_user,
            _response: response,
        })
    }

    /// Waits for content after a place, or the end of the stream. The batch is empty when nothing came in time, or the server
    /// stops.
    ///
    /// # Errors
    /// 404 when the stream was removed, 410 when its content was, 401 when the permit has ended.
    pub(crate) async fn wait(
        &self,
        read: &LiveRead,
        start: ReadStart,
        deadline: Instant,
    ) -> Result<StreamBatch, ErrorResponse> {
        let mut from = start;
        let mut is_closing = self.is_closing.subscribe();
        loop {
            let changed = read.entry.changed.notified();
            let revoked = self.revoked.notified();
            tokio::pin!(changed, revoked);
            changed.as_mut().enable();
            revoked.as_mut().enable();
            if let Some(permit) = &read.permit {
                let permitted = self.node.still_permits(permit, std::time::Instant::now());
                permitted.map_err(ErrorResponse::of_channel)?;
            }
            let batch = {
                let mut state = read.entry.state.lock();
                if state.is_removed {
                    return Err(ErrorResponse::new(404, "the stream was deleted, or has expired"));
                }
                self.batch(&read.entry.channel, &mut state, from, read.bytes_max)?
            };
            if !batch.payloads.is_empty() || batch.is_closed {
                return Ok(batch);
            }
            // What was left out is not read again.
            from = ReadStart::At(batch.next);
            if !batch.is_up_to_date {
                continue;
            }
            let permit_ends = sleep_until(read.permitted_until.unwrap_or(deadline));
            tokio::select! {
                () = changed => {}
                () = revoked => {}
                () = sleep_until(deadline) => return Ok(batch),
                () = permit_ends, if read.permitted_until.is_some() => {
                    return Err(ErrorResponse::of_channel(ErrorCode::EXPIRED));
                }
                _ = is_closing.wait_for(|closing| *closing) => return Ok(batch),
            }
        }
    }
}
