//! Sharing out memory between histories: idle ones end, and when it is short the least useful give way.
//! In: a call every few seconds → out: histories shortened or ended, entries forgotten.
//! Uses the table of channels and one lock at a time; never runs on a shard or on a publisher's thread.
//! Changed here: who keeps memory. What a history is worth is measured in `channel`.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use fanwire_protocol::Encoding;

use super::{Contexts, channel::Channel};

impl Contexts {
    /// To be called every [`SWEEP_INTERVAL`](Self::SWEEP_INTERVAL). `has_listeners` says whether anybody on this node
    /// listens to a channel.
    pub fn sweep(&self, has_listeners: impl Fn(&str) -> bool) {
        if self.is_swept.swap(true, Relaxed) {
            return;
        }
        let refused = self.settings.memory.take_refused();
        let mut candidates = Vec::new();
        for stripe in &self.stripes {
            let pair =
                |(name, channel): (&Arc<str>, &Arc<Channel>)| (name.clone(), channel.clone());
            let channels: Vec<_> = stripe.lock().iter().map(pair).collect();
            for (name, channel) in channels {
                let listens = has_listeners(&name);
                for encoding in Encoding::ALL {
                    candidates.extend(judge(&channel, encoding, listens));
                }
            }
            stripe.lock().retain(|_, channel| {
                Encoding::ALL.iter().any(|encoding| !channel.lane(*encoding).is_idle())
            });
        }
        if refused > 0 {
            self.make_room(refused, candidates);
        }
        self.is_swept.store(false, Relaxed);
    }

    /// Shortens histories, the least useful first, until there is room for those that were refused; no more than a part of
    /// the budget each time, because what they are worth is not known yet.
    fn make_room(&self, refused: usize, mut candidates: Vec<Candidate>) {
        candidates.sort_by(|one, other| one.worth.total_cmp(&other.worth));
        let memory = &self.settings.memory;
        let goal = refused.min(memory.bytes_max() / ROOM_SHARE);
        while memory.bytes_max().saturating_sub(memory.bytes()) < goal && !candidates.is_empty() {
            candidates.retain(|candidate| {
                let free = memory.bytes_max().saturating_sub(memory.bytes());
                free >= goal || candidate.channel.lane(candidate.encoding).shrink() > 0
            });
        }
    }

    /// Time between two sweeps.
    pub const SWEEP_INTERVAL: std::time::Duration = std::time::Duration::from_secs(10);
}

/// A history that may be shortened.
struct Candidate {
    channel: Arc<Channel>,
    encoding: Encoding,
    /// Bytes saved since the last sweep per byte of memory.
    worth: f64,
}

/// Ends a history that nobody uses, or says what it is worth.
fn judge(channel: &Arc<Channel>, encoding: Encoding, has_listeners: bool) -> Option<Candidate> {
    let lane = channel.lane(encoding);
    let used = lane.take_use(has_listeners)?;
    let worth = used.saved_bytes as f64 / used.memory.max(1) as f64;
    Some(Candidate { channel: channel.clone(), encoding, worth })
}

/// The part of the budget (1/n) that a sweep frees at most.
const ROOM_SHARE: usize = 4;
