//! The state of one peer's window, so far as references need it (RFC 7692 §7.1.1.1).
//! In: compressed messages in the order in which they are queued → out: the reference that a publication's frame may use.
//! Uses `deflate::gap`; never queues, never compresses.
//! Changed here: the state per connection and subscription. Only `ConnectionWriter` changes it, with every frame it queues.

use fanwire_deflate::gap::{Counter, EmbeddedPart, Publication, Reference, SubscriptionWindow};
use smallvec::SmallVec;

/// A publication embedded in another message, such as a reply; the channel's next publication may refer to it.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedPublication {
    /// The place of its subscription.
    pub place: u32,
    /// Its position in the message, in bytes.
    pub at: usize,
    pub embedded_part: EmbeddedPart,
}

/// Positions in the window of one peer; empty until the first publication in context.
#[derive(Default)]
pub(super) struct PeerWindow {
    counter: Counter,
    /// By place of the subscription. An old entry of an ended subscription does no harm: sequence numbers of
    /// publications are unique, so it does not match another channel.
    subscriptions: SmallVec<[SubscriptionWindow; 1]>,
}

impl PeerWindow {
    /// The reference that the frame of `publication` may use, for the subscription at `place` and a window of
    /// `window_bits`.
    pub(super) fn reference(
        &self,
        place: u32,
        publication: &Publication,
        window_bits: u8,
    ) -> Reference {
        let subscription = self.subscriptions.get(place as usize).copied().unwrap_or_default();
        subscription.reference(publication, self.counter, window_bits)
    }

    /// Records a queued compressed message of `message_bytes` that is in no history, and the publications embedded in
    /// it.
    pub(super) fn queued(&mut self, message_bytes: usize, embedded: &[EmbeddedPublication]) {
        for publication in embedded {
            let EmbeddedPublication { place, at, embedded_part } = *publication;
            let counter = self.counter;
            self.subscription_mut(place).embedded(embedded_part, at, counter);
        }
        self.counter.advance(message_bytes);
    }

    /// Records a queued compressed publication for the subscription at `place`.
    pub(super) fn queued_publication(&mut self, place: u32, publication: &Publication) {
        let mut counter = self.counter;
        self.subscription_mut(place).queued(publication, &mut counter);
        self.counter = counter;
    }

    /// Moves the subscription from place `from` to `to`, replacing the one there.
    pub(super) fn moved(&mut self, from: u32, to: u32) {
        let subscription = self.subscriptions.get_mut(from as usize).map(std::mem::take);
        if let Some(place) = self.subscriptions.get_mut(to as usize) {
            *place = subscription.unwrap_or_default();
        } else if let Some(subscription) = subscription {
            *self.subscription_mut(to) = subscription;
        }
    }

    fn subscription_mut(&mut self, place: u32) -> &mut SubscriptionWindow {
        let place = place as usize;
        if self.subscriptions.len() <= place {
            self.subscriptions.resize(place + 1, SubscriptionWindow::default());
        }
        &mut self.subscriptions[place]
    }
}

#[cfg(test)]
mod tests;
