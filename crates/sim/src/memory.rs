//! The memory engine of the product, with a witness behind it, which writes down what was accepted.
//! In: deliveries of the engine → out: the same deliveries, entries of the truth.
//! Uses `Deliver`. Never: changes a delivery.
//! Changed here: what is written down of a publication or of a change of a map.

use std::sync::{Arc, OnceLock};

use fanwire_broker::{
    Chance, Change, Deliver, DeliverOptions, MemoryBroker, MemoryEngine, MemoryPresence,
    MemoryState, MemoryUserStatuses,
};
use fanwire_node::NodeParts;
use fanwire_protocol::{ClientInfo, Publication};
use parking_lot::Mutex;

use crate::truth::{Truth, TruthEntry};

/// The parts of a node with a memory engine, which goes on from a state, and a function that returns the engine when the node was made.
pub fn parts_in_memory(
    truth: Arc<Mutex<Truth>>,
    chance: Arc<dyn Chance>,
    state: Option<MemoryState>,
) -> (NodeParts, impl FnOnce() -> MemoryEngine) {
    let presence = Arc::new(MemoryPresence::new());
    let user_statuses = Arc::new(MemoryUserStatuses::default());
    let made = Arc::<OnceLock<Arc<MemoryBroker>>>::default();
    let made_by_node = Arc::clone(&made);
    let parts = NodeParts {
        presence: Some(presence.clone()),
        user_statuses: Some(user_statuses.clone()),
        ..NodeParts::with_broker(move |deliver| {
            let witness = Arc::new(Witness { inner: deliver, truth });
            let broker = match state {
                Some(state) => MemoryBroker::with_state(witness, HISTORY_BYTES_MAX, state),
                None => MemoryBroker::with_chance(witness, HISTORY_BYTES_MAX, &*chance),
            };
            made_by_node.get_or_init(|| Arc::new(broker)).clone()
        })
    };
    let engine = move || {
        let broker = Arc::clone(made.get().expect("the node has made it"));
        MemoryEngine { broker, presence, user_statuses }
    };
    (parts, engine)
}

/// Receives what the engine accepted, before the node does.
struct Witness {
    inner: Arc<dyn Deliver>,
    truth: Arc<Mutex<Truth>>,
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

/// More than a run publishes.
const HISTORY_BYTES_MAX: usize = 1 << 30;
