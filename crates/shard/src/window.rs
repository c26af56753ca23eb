//! What one peer's inflater has in its window, as far as the shard remembers it (RFC 7692 §7.1.1.1).
//! In: compressed messages in the order in which they are queued → out: what a publication's frame may refer to.
//! Uses `deflate::gap`; never queues, never compresses.
//! Changed here: the state per connection and subscription. Who moves it: `ConnectionWriter` alone, with every frame it queues.

use fanwire_deflate::gap::{Counter, Publication, Quote, Reference, SubscriptionWindow};
use smallvec::SmallVec;

/// A message that is no publication holds one, which the next one of its channel may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Quotation {
    /// Of the subscription.
    pub place: u32,
    /// Where in the message.
    pub at: usize,
    pub quote: Quote,
}

/// Positions in the window of one peer; empty until the first publication in context.
#[derive(Default)]
pub(super) struct Window {
    counter: Counter,
    /// By place of the subscription. What a former subscription left at a place does no harm: numbers of publications
    /// are unique, so it is not taken for another channel's.
    reaches: SmallVec<[SubscriptionWindow; 1]>,
}

impl Window {
    /// What the frame of `publication` may refer to, for the subscription at `place` and a window of `window_bits`.
    pub(super) fn reference(
        &self,
        place: u32,
        publication: &Publication,
        window_bits: u8,
    ) -> Reference {
        let reach = self.reaches.get(place as usize).copied().unwrap_or_default();
        reach.reference(publication, self.counter, window_bits)
    }

    /// A compressed message of `message_bytes` was queued that is in no history, with these quotations.
    pub(super) fn queued(&mut self, message_bytes: usize, quotations: &[Quotation]) {
        for quotation in quotations {
            let Quotation { place, at, quote } = *quotation;
            let counter = self.counter;
            self.reach_mut(place).quoted(quote, at, counter);
        }
        self.counter.advance(message_bytes);
    }

    /// A publication was queued, compressed, for the subscription at `place`.
    pub(super) fn queued_publication(&mut self, place: u32, publication: &Publication) {
        let mut counter = self.counter;
        self.reach_mut(place).queued(publication, &mut counter);
        self.counter = counter;
    }

    /// The subscription at place `from` is at `to` from now on, instead of another one.
    pub(super) fn moved(&mut self, from: u32, to: u32) {
        let reach = self.reaches.get_mut(from as usize).map(std::mem::take);
        if let Some(place) = self.reaches.get_mut(to as usize) {
            *place = reach.unwrap_or_default();
        } else if let Some(reach) = reach {
            *self.reach_mut(to) = reach;
        }
    }

    fn reach_mut(&mut self, place: u32) -> &mut SubscriptionWindow {
        let place = place as usize;
        if self.reaches.len() <= place {
            self.reaches.resize(place + 1, SubscriptionWindow::default());
        }
        &mut self.reaches[place]
    }
}

#[cfg(test)]
mod tests;
