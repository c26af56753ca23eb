//! The limit on connections of one client address (`client.limits.address_connections`), on all nodes together.
//! In: addresses of clients that come and go, counts of other nodes → out: a place or none; counts for other nodes.
//! Uses: short locks. Never: a header of a request; `edge::accept::forwarded` decides which address a client has.
//! Changed here: what counts as one address, and which counts the nodes tell each other.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use parking_lot::{Mutex, RwLock};

use crate::options::AddressLimit;

/// The connections of a node by address. Without a limit none is counted.
#[derive(Debug, Default)]
pub struct AddressCounts {
    limit: RwLock<AddressLimit>,
    own: Mutex<HashMap<IpAddr, u32>>,
    /// The last counts of other nodes by uid, and when they came.
    others: RwLock<HashMap<String, OtherNode>>,
    pub exceeded: ExceededCounts,
}

#[derive(Debug)]
struct OtherNode {
    counts: HashMap<IpAddr, u32>,
    received_at: Instant,
}

/// One counted connection; dropping it decrements the count.
#[derive(Debug)]
pub struct AddressPlace {
    addresses: Arc<AddressCounts>,
    address: IpAddr,
}

/// The address has as many connections as the limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressFull;

/// How often a limit was exceeded.
#[derive(Debug, Default)]
pub struct ExceededCounts {
    refused: AtomicU64,
    dry_run: AtomicU64,
}

impl ExceededCounts {
    /// Counts an event above a limit. Returns whether to refuse it.
    pub fn count(&self, dry_run: bool) -> bool {
        let counter = if dry_run { &self.dry_run } else { &self.refused };
        counter.fetch_add(1, Relaxed);
        !dry_run
    }

    /// Refused events, and those that a dry run let pass.
    pub fn values(&self) -> [u64; 2] {
        [self.refused.load(Relaxed), self.dry_run.load(Relaxed)]
    }
}

impl AddressCounts {
    /// Replaces the limit. Connections that were opened without one stay uncounted.
    pub fn configure(&self, limit: AddressLimit) {
        *self.limit.write() = limit;
    }

    /// Counts a connection that begins. `None` without a limit, and for a client without an address.
    ///
    /// # Errors
    /// The address is at the limit.
    pub fn enter(
        self: &Arc<Self>,
        address: Option<IpAddr>,
    ) -> Result<Option<AddressPlace>, AddressFull> {
        let AddressLimit { limit, dry_run } = *self.limit.read();
        let Some(address) = address.map(network).filter(|_| limit > 0) else {
            return Ok(None);
        };
        let others = self.of_others(address);
        let mut own = self.own.lock();
        let count = own.entry(address).or_default();
        if count.saturating_add(others) >= limit && self.exceeded.count(dry_run) {
            if *count == 0 {
                own.remove(&address);
            }
            return Err(AddressFull);
        }
        *count += 1;
        drop(own);
        Ok(Some(AddressPlace { addresses: Arc::clone(self), address }))
    }

    /// Counts a connection that another program has accepted.
    pub fn adopt(self: &Arc<Self>, address: IpAddr) -> Option<AddressPlace> {
        if self.limit.read().limit == 0 {
            return None;
        }
        let address = network(address);
        *self.own.lock().entry(address).or_default() += 1;
        Some(AddressPlace { addresses: Arc::clone(self), address })
    }

    /// The counts for other nodes, at most `count_max`. Addresses with less than an eighth of the limit are left out.
    pub fn report(&self, count_max: usize) -> Vec<(IpAddr, u32)> {
        let least = self.limit.read().limit.div_ceil(8);
        if least == 0 {
            return Vec::new();
        }
        let own = self.own.lock();
        let many = own.iter().filter(|(_, count)| **count >= least);
        many.map(|(address, count)| (*address, *count)).take(count_max).collect()
    }

    /// Replaces the counts of another node.
    pub fn learn(&self, uid: String, counts: impl Iterator<Item = (IpAddr, u32)>, now: Instant) {
        let counts = counts.collect();
        self.others.write().insert(uid, OtherNode { counts, received_at: now });
    }

    /// Forgets the nodes that have sent no counts for a while: they have none, or have ended.
    pub fn forget_silent(&self, now: Instant) {
        let is_new = |at| now.saturating_duration_since(at) < SILENCE_MAX;
        self.others.write().retain(|_, node| is_new(node.received_at));
    }

    fn of_others(&self, address: IpAddr) -> u32 {
        let others = self.others.read();
        others.values().filter_map(|node| node.counts.get(&address)).sum()
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let mut own = self.addresses.own.lock();
        if let Some(count) = own.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                own.remove(&self.address);
            }
        }
    }
}

/// The address as it is counted: of IPv6 the network of 64 bits, because a client can choose the rest of it (RFC 4291 §2.5.4).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        canonical => canonical,
    }
}

/// A node sends its counts once a second; one that misses some is not forgotten at once.
const SILENCE_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
