//! Buffer for publications of a channel while sessions subscribe to it: the latest ones, shared by all of these sessions.
//! In: sessions that start or stop waiting, broadcasts, possible gaps → out: publications since each start, and whether all are there.
//! Uses: values only. Never: sessions; `pending.rs` tracks which session waits for which channel.
//! Changed here: how much is buffered.

use std::collections::VecDeque;
use std::sync::Arc;

use fanwire_protocol::ErrorCode;

use crate::broadcast::Broadcast;

/// Joins and leaves are not buffered: a client that needs the members requests the presence after its subscribe
/// reply, and gets a state that includes them.
///
/// Exists as long as a session waits for the channel. In a channel with continuous subscribes that is for ever, so
/// the buffer keeps the latest publications only: sessions that have waited for too long are refused, later ones are
/// not.
#[derive(Debug, Default)]
pub(super) struct ChannelBuffer {
    waiters: u32,
    /// How many publications were dropped from the front.
    gone: u64,
    /// Publications in order of arrival; `None` marks a possible gap.
    buffered: VecDeque<Option<Arc<Broadcast>>>,
    bytes: usize,
}

/// The publications buffered for a session.
#[derive(Debug, Default)]
pub(crate) struct BufferedMessages {
    /// Publications as broadcasts, in order of arrival.
    pub(crate) broadcasts: Vec<Arc<Broadcast>>,
    /// Publications may be missing among or after those.
    pub(crate) may_have_gap: bool,
}

impl BufferedMessages {
    /// Appends later publications.
    pub(super) fn append(&mut self, next: Self) {
        self.broadcasts.extend(next.broadcasts);
        self.may_have_gap |= next.may_have_gap;
    }
}

impl ChannelBuffer {
    /// Adds a waiting session. Returns the number of its first publication.
    pub(super) fn enter(&mut self) -> u64 {
        self.waiters += 1;
        self.gone + self.buffered.len() as u64
    }

    /// Buffers a broadcast.
    pub(super) fn hold(&mut self, broadcast: &Arc<Broadcast>) {
        self.bytes += broadcast.payload_bytes();
        self.keep(Some(Arc::clone(broadcast)));
    }

    /// Marks a possible gap.
    pub(super) fn report_possible_gap(&mut self) {
        self.keep(None);
    }

    fn keep(&mut self, one: Option<Arc<Broadcast>>) {
        self.buffered.push_back(one);
        while self.buffered.len() > HELD_MAX || self.bytes > HELD_BYTES_MAX {
            let oldest = self.buffered.pop_front().expect("more than nothing is too much");
            self.bytes -= oldest.map_or(0, |oldest| oldest.payload_bytes());
            self.gone += 1;
        }
    }

    /// Removes a waiting session. Returns the publications since [`enter`](Self::enter).
    ///
    /// # Errors
    /// 100 when they exceeded the buffer.
    pub(super) fn leave(&mut self, from: u64) -> Result<BufferedMessages, ErrorCode> {
        self.waiters -= 1;
        let first = from.checked_sub(self.gone).ok_or(ErrorCode::INTERNAL)?;
        let since = self.buffered.range(first as usize..);
        let may_have_gap = since.clone().any(Option::is_none);
        Ok(BufferedMessages { broadcasts: since.flatten().cloned().collect(), may_have_gap })
    }

    /// Whether no session waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiters == 0
    }
}

/// Publications of one channel in the buffer; a session that needs earlier ones gets error 100.
pub(super) const HELD_MAX: usize = 4096;
/// Bytes of their payloads; beyond them also error 100.
pub(super) const HELD_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests;
