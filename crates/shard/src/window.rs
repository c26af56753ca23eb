//! The state of one peer's window, so far as references need it (RFC 7692 §7.1.1.1).
//! In: compressed messages in the order in which they are queued → out: the reference that a publication's frame may use, the
//! checksum of a compressed stream.
//! Uses `deflate::gap`; never queues, never compresses.
//! Changed here: the state per connection and subscription. Only `ConnectionWriter` changes it, with every frame it queues.

use fanwire_deflate::gap::{
    EmbeddedPart, Publication, Reference, SubscriptionWindow, WindowCounter,
};
use fanwire_deflate::{Checksum, Envelope, Segment};
use smallvec::SmallVec;

use super::transport::Framing;

/// A publication embedded in another message, such as a reply; the channel's next publication may refer to it.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedPublication {
    /// The window of its subscription.
    pub window: WindowIndex,
    /// Its position in the message, in bytes.
    pub at: usize,
    pub embedded_part: EmbeddedPart,
}

/// Index of a subscription among those whose publications a connection's window has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowIndex(pub u32);

/// A message that compressed streams of one framing share, with the bytes around it.
#[derive(Clone, Debug)]
pub struct StreamMessage {
    prefix_bytes: usize,
    suffix_bytes: usize,
    segment: Segment,
}

impl StreamMessage {
    /// Reads the message once, for all streams. It has no line feed if it is JSON.
    pub fn new(framing: Framing, is_binary: bool, message: &[u8]) -> Self {
        let Envelope { prefix, suffix } = framing.envelope(is_binary);
        let segment = Segment::new(&[prefix, message, suffix]);
        Self { prefix_bytes: prefix.len(), suffix_bytes: suffix.len(), segment }
    }
}

/// Positions in the window of one peer; empty until the first publication in context.
#[derive(Default)]
pub(super) struct PeerWindow {
    counter: WindowCounter,
    /// Bytes of all plaintext of a compressed stream; `None` for WebSocket, and after queued bytes of a stream were dropped.
    checksum: Option<Checksum>,
    /// By [`WindowIndex`]. An old entry of an ended subscription does no harm: sequence numbers of
    /// publications are unique, so it does not match another channel.
    subscriptions: SmallVec<[SubscriptionWindow; 1]>,
}

impl PeerWindow {
    /// The reference that the frame of `publication` may use, for a subscription and a window of `window_bits`,
    /// behind a prefix of `prefix_bytes`.
    pub(super) fn reference(
        &self,
        window: WindowIndex,
        publication: &Publication,
        window_bits: u8,
        prefix_bytes: usize,
    ) -> Reference {
        let subscription = self.subscriptions.get(window.0 as usize).copied().unwrap_or_default();
        let mut counter = self.counter;
        counter.advance(prefix_bytes);
        subscription.reference(publication, counter, window_bits)
    }

    /// Records the plaintext that a compressed stream begins with, and its checksum.
    pub(super) fn begin_stream(&mut self, plaintext_bytes: usize, checksum: Checksum) {
        self.counter.advance(plaintext_bytes);
        self.checksum = Some(checksum);
    }

    /// Queued bytes of a compressed stream were dropped, so it has no checksum any more.
    pub(super) fn lost(&mut self) {
        self.checksum = None;
    }

    /// The checksum of a compressed stream.
    pub(super) fn checksum(&self) -> Option<Checksum> {
        self.checksum
    }

    /// Plaintext bytes of all compressed messages.
    pub(super) fn plaintext_bytes(&self) -> u64 {
        self.counter.bytes()
    }

    /// Records a queued compressed message for this peer alone, of `plaintext_bytes`, the publications embedded in it, and
    /// the checksum of a stream behind it.
    pub(super) fn queued(
        &mut self,
        plaintext_bytes: usize,
        embedded: impl Iterator<Item = EmbeddedPublication>,
        checksum: Option<Checksum>,
    ) {
        for EmbeddedPublication { window, at, embedded_part } in embedded {
            let counter = self.counter;
            self.subscription_mut(window).embedded(embedded_part, at, counter);
        }
        self.counter.advance(plaintext_bytes);
        self.checksum = checksum;
    }

    /// Records a queued compressed message of `message_bytes` that is in no history; `stream` is set for a stream.
    #[inline]
    pub(super) fn queued_shared(&mut self, message_bytes: usize, stream: Option<&StreamMessage>) {
        debug_assert_eq!(self.checksum.is_some(), stream.is_some());
        match stream {
            None => self.counter.advance(message_bytes),
            Some(StreamMessage { segment, .. }) => {
                self.counter.advance(segment.bytes() as usize);
                self.append(segment);
            }
        }
    }

    /// Records a queued compressed publication for a subscription; `stream` is set for a stream.
    pub(super) fn queued_publication(
        &mut self,
        window: WindowIndex,
        publication: &Publication,
        stream: Option<&StreamMessage>,
    ) {
        let mut counter = self.counter;
        if let Some(stream) = stream {
            counter.advance(stream.prefix_bytes);
        }
        self.subscription_mut(window).queued(publication, &mut counter);
        if let Some(stream) = stream {
            counter.advance(stream.suffix_bytes);
            self.append(&stream.segment);
        }
        self.counter = counter;
    }

    /// Moves a subscription, replacing the one at `to`.
    pub(super) fn moved(&mut self, from: WindowIndex, to: WindowIndex) {
        let subscription = self.subscriptions.get_mut(from.0 as usize).map(std::mem::take);
        if let Some(replaced) = self.subscriptions.get_mut(to.0 as usize) {
            *replaced = subscription.unwrap_or_default();
        } else if let Some(subscription) = subscription {
            *self.subscription_mut(to) = subscription;
        }
    }

    fn append(&mut self, segment: &Segment) {
        self.checksum = self.checksum.map(|checksum| checksum.with_segment(segment));
    }

    fn subscription_mut(&mut self, window: WindowIndex) -> &mut SubscriptionWindow {
        let index = window.0 as usize;
        if self.subscriptions.len() <= index {
            self.subscriptions.resize(index + 1, SubscriptionWindow::default());
        }
        &mut self.subscriptions[index]
    }
}

#[cfg(test)]
mod tests;
