//! Starts a publish in many channels, a part of them at each poll.
//! In: channels, a publication and its options → out: one ready or pending answer per channel, in their order.
//! Uses the node's publisher. Never: waits for an answer.
//! Changed here: how many are started per poll. The answers are handled in `broadcast`.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::slice;
use std::task::{Context, Poll};
use std::time::Instant;

use fanwire_broker::{Answer, Position, PublishOptions};
use fanwire_node::ChannelPublisher;
use fanwire_node::protocol::{ErrorCode, Publication};

/// Starts the publishes of a broadcast. Other tasks run between two parts: among them the connection to the broker, which
/// sends the first part while the next one is prepared. Dropping it starts the rest at once, so that a caller that
/// disconnects leaves no partial broadcast.
pub(super) struct PublishMany<'a> {
    publisher: ChannelPublisher<'a>,
    channels: slice::Iter<'a, String>,
    publication: Publication,
    options: PublishOptions,
    now: Instant,
    pending: Vec<PendingPublish>,
    /// Number of channels per poll.
    part: usize,
}

/// The result of one channel.
pub(super) type PendingPublish = Answer<Position, ErrorCode>;

impl<'a> PublishMany<'a> {
    pub(super) fn new(
        publisher: ChannelPublisher<'a>,
        channels: &'a [String],
        publication: Publication,
        options: PublishOptions,
        now: Instant,
    ) -> Self {
        let pending = Vec::with_capacity(channels.len());
        let part = channels.len().div_ceil(PARTS).clamp(PART_MIN, PART_MAX);
        Self { publisher, channels: channels.iter(), publication, options, now, pending, part }
    }

    /// Starts the publish in the next channel.
    fn next(&mut self) -> Option<PendingPublish> {
        let channel = self.channels.next()?;
        if channel.is_empty() {
            return Some(Answer::now(Err(ErrorCode::BAD_REQUEST)));
        }
        let (publication, options) = match self.channels.len() {
            0 => (mem::take(&mut self.publication), mem::take(&mut self.options)),
            _ => (self.publication.clone(), self.options.clone()),
        };
        Some(self.publisher.publish(channel, publication, options, self.now))
    }
}

impl Future for PublishMany<'_> {
    type Output = Vec<PendingPublish>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Vec<PendingPublish>> {
        for _ in 0..self.part {
            let Some(pending) = self.next() else {
                return Poll::Ready(mem::take(&mut self.pending));
            };
            self.pending.push(pending);
        }
        if self.channels.len() == 0 {
            return Poll::Ready(mem::take(&mut self.pending));
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for PublishMany<'_> {
    fn drop(&mut self) {
        // After a panic in a publish, publishing again could panic inside drop.
        while !std::thread::panicking()
            && let Some(pending) = self.next()
        {
            drop(pending);
        }
    }
}

/// Number of parts, within the limits below: Redis works on one part while the next is prepared (100 channels with Redis,
/// both cores awake: two parts take 0.92 of the time of one, three 0.83, four 0.88; medians of 70 alternating runs).
const PARTS: usize = 3;
/// Minimum of channels per part, because each part costs a write and a wake-up.
pub(super) const PART_MIN: usize = 32;
/// Maximum of channels per part: 0.1 ms of work, or 0.2 ms with Redis (`fanwire-bench broadcast --channels 5000`: 1.57 times
/// redis-benchmark with all 5,000 in one part, 1.29 times in parts of this size).
pub(super) const PART_MAX: usize = 256;

#[cfg(test)]
mod tests;
