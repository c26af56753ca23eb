//! A witness behind the memory engine of the product, which writes down what was accepted.
//! In: deliveries of the engine → out: the same deliveries, entries of the truth.
//! Uses `Deliver`. Never: changes a delivery.
//! Changed here: what is written down of a publication or of a change of a map.

use std::sync::Arc;

use fanwire_broker::{Change, Deliver, DeliverOptions};
use fanwire_protocol::{ClientInfo, Publication};
use parking_lot::Mutex;

use crate::truth::{Truth, TruthEntry};

/// Receives what the engine accepted, before the node does.
pub struct Witness {
    inner: Arc<dyn Deliver>,
    truth: Arc<Mutex<Truth>>,
}

impl Witness {
    pub fn new(inner: Arc<dyn Deliver>, truth: Arc<Mutex<Truth>>) -> Self {
        Self { inner, truth }
    }
}

impl Deliver for Witness {
    fn deliver(&self, channel: &str, publication: Publication, options: DeliverOptions) {
        if let Some(entry) = TruthEntry::of(&publication, options.accepted_at, options.accepted_at)
        {
            let mut truth = self.truth.lock();
            match publication.offset {
                0 => truth.pass_on(channel, entry.number),
                offset => truth.store(channel, options.epoch.as_str(), offset, entry),
            }
        }
        self.inner.deliver(channel, publication, options);
    }

    fn deliver_join_leave(&self, channel: &str, change: Change, info: ClientInfo) {
        self.inner.deliver_join_leave(channel, change, info);
    }

    fn report_possible_gap(&self, channel: &str) {
        self.inner.report_possible_gap(channel);
    }

    fn is_congested(&self) -> bool {
        self.inner.is_congested()
    }
}
