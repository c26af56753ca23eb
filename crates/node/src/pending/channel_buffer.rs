//! What was published to a channel while somebody was entering it: the latest of it, for all who are on their way.
//! In: waiters that come and go, broadcasts, doubts → out: to each what was published since it came, and whether that is all.
//! Uses: values only. Never: sessions; who waits for what is known in `pending.rs`.
//! Change here: how much is kept for those who are entering.

use std::collections::VecDeque;
use std::sync::Arc;

use fanwire_protocol::ErrorCode;

use crate::broadcast::Broadcast;

/// Joins and leaves are not kept: whoever wants to know who is there asks after its subscribe reply, whether it waited or
/// not, and is told of a state that has them.
///
/// Kept as long as somebody is on the way in. In a channel that somebody is always entering that is for ever, so a channel_buffer
/// keeps the latest only: sessions that have waited for too long are refused, later ones are not.
#[derive(Debug, Default)]
pub(super) struct ChannelBuffer {
    waiters: u32,
    /// How many were kept once and are not any more.
    gone: u64,
    /// In the order in which they came; `None` where something may be missing.
    buffered: VecDeque<Option<Arc<Broadcast>>>,
    bytes: usize,
}

/// What was held for somebody on the way in.
#[derive(Debug, Default)]
pub(crate) struct BufferedMessages {
    /// What was published.
    pub(crate) broadcasts: Vec<Arc<Broadcast>>,
    /// Publications may be missing among or behind those.
    pub(crate) is_doubted: bool,
}

impl BufferedMessages {
    /// What came next.
    pub(super) fn append(&mut self, next: Self) {
        self.broadcasts.extend(next.broadcasts);
        self.is_doubted |= next.is_doubted;
    }
}

impl ChannelBuffer {
    /// One more is on the way in. Returns from where on it is owed what is held.
    pub(super) fn enter(&mut self) -> u64 {
        self.waiters += 1;
        self.gone + self.buffered.len() as u64
    }

    /// Keeps a broadcast.
    pub(super) fn hold(&mut self, broadcast: &Arc<Broadcast>) {
        self.bytes += broadcast.payload_bytes();
        self.keep(Some(Arc::clone(broadcast)));
    }

    /// Publications may have been lost on their way here.
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

    /// One less is on the way in. Returns what was held since it [came](Self::enter).
    ///
    /// # Errors
    /// 100 when that was too much to be kept.
    pub(super) fn leave(&mut self, from: u64) -> Result<BufferedMessages, ErrorCode> {
        self.waiters -= 1;
        let first = from.checked_sub(self.gone).ok_or(ErrorCode::INTERNAL)?;
        let since = self.buffered.range(first as usize..);
        let is_doubted = since.clone().any(Option::is_none);
        Ok(BufferedMessages { broadcasts: since.flatten().cloned().collect(), is_doubted })
    }

    /// Whether nobody is on the way in.
    pub(super) fn is_empty(&self) -> bool {
        self.waiters == 0
    }
}

/// Publications of one channel that a shard keeps for sessions that are entering it; one that is owed more gets error 100.
pub(super) const HELD_MAX: usize = 4096;
/// Their payloads in bytes; beyond them it is error 100, too.
pub(super) const HELD_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests;
