//! Rate limits of each connection: token buckets for its commands, publishes and subscribes.
//! In: the command's kind and namespace, rates, `now` → out: allowed or not.
//! Uses: options and times. Never: sessions, replies; `command/rates.rs` decides what a refusal means to a client.
//! Changed here: what is stored per connection. `command/rates.rs` decides which commands count.

mod addresses;
mod bucket;
mod shared_rates;

use smallvec::SmallVec;

use crate::channel::NamespaceId;
use crate::options::Rate;
pub use addresses::{AddressCounts, AddressFull, AddressPlace, ExceededCounts};
pub use bucket::TokenBucket;
pub use shared_rates::{SharedRates, TakenTokens, Tenant};

/// The buckets of the connections of one shard, by connection index.
///
/// Empty as long as no rate is limited; then a connection gets a small block with its first command that counts.
#[derive(Debug, Default)]
pub struct RateLimits {
    connections: Vec<Option<Box<Buckets>>>,
}

#[derive(Debug, Default)]
struct Buckets {
    commands: TokenBucket,
    refusals: TokenBucket,
    /// Buckets of the limited namespaces that the connection used.
    namespaces: SmallVec<[(NamespaceAction, TokenBucket); 1]>,
}

/// The buckets of one connection, as the nanoseconds until each is full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedRates {
    pub commands: u64,
    pub refusals: u64,
    pub namespaces: Vec<(NamespaceAction, u64)>,
}

/// The actions limited per namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InNamespace {
    Publish,
    Subscribe,
}

/// An action in a namespace, which has its own bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceAction {
    pub namespace: NamespaceId,
    pub action: InNamespace,
}

impl RateLimits {
    /// Counts one command of a connection and returns whether it is allowed; `now` in nanoseconds since a fixed point.
    pub fn take_command(&mut self, index: u32, rate: Rate, now: u64) -> bool {
        rate.limit == 0 || self.buckets(index).commands.take(rate, now)
    }

    /// Counts one refusal of the other limits and returns whether the connection may stay.
    pub fn take_refusal(&mut self, index: u32, rate: Rate, now: u64) -> bool {
        rate.limit == 0 || self.buckets(index).refusals.take(rate, now)
    }

    /// Counts one publish or subscribe in a namespace and returns whether it is allowed.
    pub fn take_in(&mut self, index: u32, counted: NamespaceAction, rate: Rate, now: u64) -> bool {
        if rate.limit == 0 {
            return true;
        }
        let buckets = &mut self.buckets(index).namespaces;
        let known = buckets.iter().position(|(action, _)| *action == counted);
        let at = known.unwrap_or_else(|| {
            buckets.push((counted, TokenBucket::default()));
            buckets.len() - 1
        });
        buckets[at].1.take(rate, now)
    }

    /// The connection is gone; the next one with its index starts with full buckets.
    pub fn forget(&mut self, index: u32) {
        if let Some(buckets) = self.connections.get_mut(index as usize) {
            *buckets = None;
        }
    }

    /// The buckets of a connection for another program; `None` if all are full.
    pub fn save(&self, index: u32, now: u64) -> Option<SavedRates> {
        let buckets = self.connections.get(index as usize)?.as_deref()?;
        let namespaces = buckets.namespaces.iter();
        Some(SavedRates {
            commands: buckets.commands.until_full(now),
            refusals: buckets.refusals.until_full(now),
            namespaces: namespaces.map(|(action, one)| (*action, one.until_full(now))).collect(),
        })
    }

    /// Gives a connection the buckets that another program saved.
    pub fn restore(&mut self, index: u32, saved: &SavedRates, now: u64) {
        let namespaces = saved.namespaces.iter();
        *self.buckets(index) = Buckets {
            commands: TokenBucket::full_after(saved.commands, now),
            refusals: TokenBucket::full_after(saved.refusals, now),
            namespaces: namespaces
                .map(|(action, nanos)| (*action, TokenBucket::full_after(*nanos, now)))
                .collect(),
        };
    }

    fn buckets(&mut self, index: u32) -> &mut Buckets {
        let index = index as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        self.connections[index].get_or_insert_default()
    }
}

#[cfg(test)]
mod tests;
