//! The result of a subscribe to a map channel that switches to live: the last entries, and what changed since the pages (protocol §27).
//! In: the position of the pages, what was read of the stream after it → out: the result, or error 112.
//! Uses: values only. Never: reads, or makes the subscription; `command/map/live.rs` reads.
//! Changed here: when a client has everything up to the top.

use fanwire_broker::{Position, StreamSlice};
use fanwire_policy::filter::SubscriptionFilter;
use fanwire_protocol::{ErrorCode, Publication, SubscribeResult};

use super::{MAP, retain_wanted};

/// A switch to live that waits for the changes since the pages.
#[derive(Debug)]
pub(crate) struct LiveSwitch {
    /// The position of the pages; empty in an ephemeral map.
    pub(crate) since: Position,
    pub(crate) has_stream: bool,
    /// Most changes after that position.
    pub(crate) changes_max: usize,
    /// The entries of the last page.
    pub(crate) entries: Vec<Publication>,
    /// The client was subscribed before, and asked for what it missed.
    pub(crate) recovers: bool,
    /// Milliseconds in which the client sends one value of a key; 0 = each.
    pub(crate) publish_debounce: u32,
}

impl LiveSwitch {
    /// The result, with the changes that were read: all of them, and one more than a client may lack if there are more.
    ///
    /// # Errors
    /// 112 when the client lacks too many, or the map began again.
    pub(crate) fn result(
        self,
        read: StreamSlice,
        filter: Option<&SubscriptionFilter>,
    ) -> Result<SubscribeResult, ErrorCode> {
        let Self { since, has_stream, changes_max, mut entries, recovers, publish_debounce } = self;
        let StreamSlice { mut publications, top, .. } = read;
        let is_behind = has_stream && publications.len() > changes_max;
        if is_behind || since.epoch != top.epoch {
            return Err(ErrorCode::UNRECOVERABLE_POSITION);
        }
        retain_wanted(&mut publications, filter);
        retain_wanted(&mut entries, filter);
        Ok(SubscribeResult {
            r#type: MAP,
            state: entries,
            publications,
            offset: top.offset,
            epoch: top.epoch.to_string(),
            recoverable: has_stream,
            was_recovering: recovers,
            recovered: recovers,
            publish_debounce,
            ..SubscribeResult::default()
        })
    }
}
