//! What one peer's inflater has in its window, as far as the shard remembers it (RFC 7692 §7.1.1.1).
//! In: compressed messages in the order in which they are queued → out: what a publication's frame may refer to.
//! Uses `deflate::gap`; never queues, never compresses.
//! Changed here: the state per connection and subscription. Who advance_window it: `ConnectionWriter` alone, with every frame it queues.

use fanwire_deflate::gap::{Counter, EmbeddedPart, Publication, Reference, SubscriptionWindow};
use smallvec::SmallVec;

/// A message that is no publication holds one, which the next one of its channel may refer to.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedPublication {
    /// Of the subscription.
    pub place: u32,
    /// Where in the message.
    pub at: usize,
    pub embedded_part: EmbeddedPart,
}

/// Positions in the window of one peer; empty until the first publication in context.
#[derive(Default)]
pub(super) struct PeerWindow {
    counter: Counter,
    /// By place of the subscription. What a former subscription left at a place does no harm: numbers of publications
    /// are unique, so it is not taken for another channel's.
    subscriptions: SmallVec<[SubscriptionWindow; 1]>,
}

impl PeerWindow {
    /// What the frame of `publication` may refer to, for the subscription at `place` and a window of `window_bits`.
    pub(super) fn reference(
        &self,
        place: u32,
        publication: &Publication,
        window_bits: u8,
    ) -> Reference {
        let subscription = self.subscriptions.get(place as usize).copied().unwrap_or_default();
        subscription.reference(publication, self.counter, window_bits)
    }

    /// A compressed message of `message_bytes` was queued that is in no history, with these embedded.
    pub(super) fn queued(&mut self, message_bytes: usize, embedded: &[EmbeddedPublication]) {
        for publication in embedded {
            let EmbeddedPublication { place, at, embedded_part } = *publication;
            let counter = self.counter;
            self.subscription_mut(place).embedded(embedded_part, at, counter);
        }
        self.counter.advance(message_bytes);
    }

    /// A publication was queued, compressed, for the subscription at `place`.
    pub(super) fn queued_publication(&mut self, place: u32, publication: &Publication) {
        let mut counter = self.counter;
        self.subscription_mut(place).queued(publication, &mut counter);
        self.counter = counter;
    }

    /// The subscription at place `from` is at `to` from now on, instead of another one.
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
