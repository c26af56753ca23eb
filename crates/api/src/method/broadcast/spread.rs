//! Beginning a publication in many channels, a part of them at each poll.
//! In: channels, what to publish and how → out: an answer for each channel that is there or comes later, in their order.
//! Uses the node's publish. Never: waits for an answer.
//! Change here: how many are begun at once. What their answers become lives in `broadcast`.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::slice;
use std::task::{Context, Poll};
use std::time::Instant;

use fanwire_broker::{Answer, Position, PublishOptions};
use fanwire_node::Node;
use fanwire_node::protocol::{ErrorCode, Publication};

/// A broadcast that begins. Between two parts others have their turn: among them who sends the first part to a broker, which
/// works on it while the next one is begun. One that is dropped begins the rest at once, so that a caller who goes
/// away leaves no broadcast half done.
pub(super) struct Spread<'a> {
    node: &'a Node,
    channels: slice::Iter<'a, String>,
    publication: Publication,
    options: PublishOptions,
    now: Instant,
    begun: Vec<Begun>,
    /// Channels that are begun at one poll.
    part: usize,
}

/// What becomes of one channel.
pub(super) type Begun = Answer<Position, ErrorCode>;

impl<'a> Spread<'a> {
    pub(super) fn new(
        node: &'a Node,
        channels: &'a [String],
        publication: Publication,
        options: PublishOptions,
        now: Instant,
    ) -> Self {
        let begun = Vec::with_capacity(channels.len());
        let part = channels.len().div_ceil(PARTS).clamp(PART_MIN, PART_MAX);
        Self { node, channels: channels.iter(), publication, options, now, begun, part }
    }

    /// Begins the next channel.
    fn next(&mut self) -> Option<Begun> {
        let channel = self.channels.next()?;
        if channel.is_empty() {
            return Some(Answer::now(Err(ErrorCode::BAD_REQUEST)));
        }
        let (publication, options) = match self.channels.len() {
            0 => (mem::take(&mut self.publication), mem::take(&mut self.options)),
            _ => (self.publication.clone(), self.options.clone()),
        };
        Some(self.node.publish(channel, publication, options, self.now))
    }
}

impl Future for Spread<'_> {
    type Output = Vec<Begun>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Vec<Begun>> {
        for _ in 0..self.part {
            let Some(begun) = self.next() else {
                return Poll::Ready(mem::take(&mut self.begun));
            };
            self.begun.push(begun);
        }
        if self.channels.len() == 0 {
            return Poll::Ready(mem::take(&mut self.begun));
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Spread<'_> {
    fn drop(&mut self) {
        // Who panics while publishing does not get to do it again.
        while !std::thread::panicking()
            && let Some(begun) = self.next()
        {
            drop(begun);
        }
    }
}

/// So many parts, as long as they have no less than the fewest channels and no more than the most: while Redis works on the
/// first, the next is begun (100 channels with Redis, both cores awake: 0.92 of one part's time in two, 0.83 in three, 0.88 in
/// four, medians of 70 turns taken in turn).
const PARTS: usize = 3;
/// Fewest channels that are begun at once, unless there are no more: each part is a write and a wake-up of its own.
pub(super) const PART_MIN: usize = 32;
/// Most channels that are begun at once: a tenth of a millisecond of work, or a fifth with Redis
/// (`fanwire-bench broadcast --channels 5000`: 1.57 times redis-benchmark for all 5,000 at once, 1.29 times in these parts).
pub(super) const PART_MAX: usize = 256;

#[cfg(test)]
mod tests;
