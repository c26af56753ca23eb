//! Distribution of memory between histories: idle ones end, and when memory is short those of least worth are shortened.
//! In: a call every few seconds → out: histories shortened or ended, memory reserved for requests, idle channels removed.
//! Uses the table of channels and one lock at a time; never runs on a shard or on a publisher's thread.
//! Changed here: which history keeps memory. The worth of a history is estimated in `channel::share`.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    sync::Arc,
};

use super::{
    Contexts, TextKind,
    channel::{Channel, EncodingHistory, Share},
};

impl Contexts {
    /// Distributes the memory between histories. Call it every [`SWEEP_INTERVAL`](Self::SWEEP_INTERVAL).
    /// `has_subscribers` returns whether a channel has subscribers on this node.
    pub fn sweep(&self, has_subscribers: impl Fn(&str) -> bool) {
        let Some(_sweeping) = self.sweeping.try_lock() else { return };
        let mut held = BinaryHeap::new();
        let mut requests = Vec::new();
        for stripe in &self.stripes {
            let pair =
                |(name, channel): (&Arc<str>, &Arc<Channel>)| (name.clone(), channel.clone());
            let channels: Vec<_> = stripe.lock().iter().map(pair).collect();
            for (name, channel) in channels {
                let is_subscribed = has_subscribers(&name);
                for (kind, history) in channel.histories() {
                    let Some(history_use) = history.take_use(is_subscribed) else { continue };
                    let candidate = |share| Candidate { channel: channel.clone(), kind, share };
                    requests.extend(history_use.requested.map(candidate));
                    held.extend(history_use.held.map(|share| Reverse(candidate(share))));
                }
            }
            let is_used = |channel: &Channel| channel.histories().any(|(_, it)| !it.is_idle());
            stripe.lock().retain(|_, channel| is_used(channel));
        }
        self.make_room(requests, held);
    }

    /// Shortens histories, those of least worth first, until there is memory for all requests that are worth twice as
    /// much. Compressors of single connections and windows of clients come first, then requests by worth; the memory is
    /// reserved for them. One sweep moves only a part of the budget, because the worth of requests is an estimate.
    fn make_room(&self, mut requests: Vec<Candidate>, mut held: BinaryHeap<Reverse<Candidate>>) {
        let memory = &self.settings.memory;
        let mut movable = memory.bytes_max() / ROOM_SHARE;
        self.free(memory.take_refused(), f64::INFINITY, &mut held, &mut movable);
        requests.sort_by(|one, other| other.cmp(one));
        for request in requests {
            let Share { memory: bytes, .. } = request.share;
            if !self.free(bytes, request.share.worth(), &mut held, &mut movable) {
                return;
            }
            // A publisher may have taken the memory first.
            if let Some(memory) = memory.reserve(bytes) {
                request.history().grant(memory);
            }
        }
    }

    /// Shortens histories that are worth much less than `worth` until `bytes` are free, or `movable` is used up.
    /// Returns whether they are free.
    fn free(
        &self,
        bytes: usize,
        worth: f64,
        held: &mut BinaryHeap<Reverse<Candidate>>,
        movable: &mut usize,
    ) -> bool {
        let memory = &self.settings.memory;
        while memory.bytes_max().saturating_sub(memory.bytes()) < bytes {
            let is_less = |Reverse(least): &Reverse<Candidate>| least.share.worth() * TWICE < worth;
            if *movable == 0 || !held.peek().is_some_and(is_less) {
                return false;
            }
            let Some(Reverse(least)) = held.pop() else { return false };
            let (given, left) = least.history().shrink(least.share);
            *movable = movable.saturating_sub(given);
            held.extend(left.map(|share| Reverse(Candidate { share, ..least })));
        }
        true
    }

    /// Time between two sweeps.
    pub const SWEEP_INTERVAL: std::time::Duration = std::time::Duration::from_secs(10);
}

/// A history that may be shortened, or a request for memory; ordered by its worth.
struct Candidate {
    channel: Arc<Channel>,
    kind: TextKind,
    share: Share,
}

impl Candidate {
    fn history(&self) -> &EncodingHistory {
        self.channel.history(self.kind)
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.share.worth().total_cmp(&other.share.worth())
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

/// A request must be worth this many times the history that it replaces. Otherwise channels of equal worth would
/// displace each other in every sweep.
const TWICE: f64 = 2.0;

/// The largest part of the budget (1/n) that one sweep moves.
const ROOM_SHARE: usize = 4;
