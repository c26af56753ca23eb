//! Deliveries of publications with a receipt: counted one by one, in a loop of their own.
//! In: receivers of a broadcast with a receipt → out: the same frames as for others, and counts in the receipt.
//! Uses `frames`, `backlog` and the observer of `shard`. Never: costs anything for other broadcasts.
//! Changed here: what counts as a delivery. The counts are in `receipt.rs` of `cluster`.

use std::{rc::Rc, sync::Arc, time::Instant};

use fanwire_node::{Broadcast, DeltaMode, Receipt, SubscriptionIndex};
use fanwire_shard::{ConnectionWriter, FrameObserver, observe_frame};

use super::HubWriter;

/// Counts frames of a publication in its receipt.
struct ReceiptObserver(Arc<Receipt>);

impl FrameObserver for ReceiptObserver {
    fn taken(&self, at: Instant, is_same_turn: bool) {
        self.0.take(at, is_same_turn);
    }

    fn lost(&self) {
        self.0.drop_one();
    }
}

/// The observer of a broadcast's frames, if it has a receipt.
pub(super) fn observer(broadcast: &Broadcast) -> Option<Rc<dyn FrameObserver>> {
    let receipt = Arc::clone(broadcast.receipt()?);
    Some(Rc::new(ReceiptObserver(receipt)))
}

/// Observes the frame of a publication that waited before it was queued.
pub(super) fn observe_late(broadcast: &Broadcast, connection: u32, out: &mut ConnectionWriter) {
    if let Some(observer) = observer(broadcast) {
        observe_frame(out, connection, true, &observer);
    }
}

impl HubWriter<'_> {
    /// Delivers a broadcast with a receipt. Sockets are written for some receivers at a time, so that their times differ.
    pub(super) fn deliver_observed(
        &mut self,
        receivers: impl Iterator<Item = (u32, SubscriptionIndex)>,
        broadcast: &Arc<Broadcast>,
        delta_mode: DeltaMode,
        observer: &Rc<dyn FrameObserver>,
    ) {
        let mut ready = std::mem::take(self.ready);
        let mut receivers = receivers.peekable();
        while receivers.peek().is_some() {
            for (connection, subscription) in receivers.by_ref().take(RECEIVERS_AT_ONCE) {
                if let Some(receipt) = broadcast.receipt() {
                    receipt.add_subscriber();
                }
                if !self.waits(connection, subscription, broadcast, delta_mode) {
                    ready.push((connection, subscription));
                }
            }
            if delta_mode == DeltaMode::Plain {
                self.frames.deliver_to_all(ready.iter().copied(), broadcast, self.out);
            } else {
                for (connection, subscription) in &ready {
                    let to = *connection;
                    let frames = &mut *self.frames;
                    frames.deliver(to, *subscription, broadcast, delta_mode, self.out);
                }
            }
            ready.drain(..).for_each(|(to, _)| observe_frame(self.out, to, false, observer));
        }
        *self.ready = ready;
    }
}

const RECEIVERS_AT_ONCE: usize = 256;
