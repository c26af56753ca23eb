//! Rates of tenants: what a user, or all users together, publish in a namespace on all nodes.
//! In: publishes of this node, counts of other nodes, `now` → out: allowed or not; counts for other nodes.
//! Uses: token buckets behind striped locks. Never: a message, a clock; the node sends the counts.
//! Changed here: what the nodes tell each other. A bucket fills in `bucket.rs`, `command/rates.rs` decides what a refusal means.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use hashbrown::{DefaultHashBuilder, HashMap};
use parking_lot::{Mutex, MutexGuard};

use super::TokenBucket;
use crate::channel::NamespaceId;
use crate::options::Rate;

/// The buckets of a node. Each node has all buckets: it takes from them what other nodes report, and a bucket that has less than
/// that is in debt. So the rate of all nodes together is the limit, and only what was published since the last report is too much.
#[derive(Debug)]
pub struct SharedRates {
    hasher: DefaultHashBuilder,
    stripes: Box<[Mutex<TenantStripe>]>,
    /// The stripe with which the next report begins.
    next_stripe: AtomicUsize,
}

/// Buckets by namespace and user.
type TenantStripe = HashMap<NamespaceId, HashMap<Box<str>, SharedBucket>>;

#[derive(Debug, Default)]
struct SharedBucket {
    bucket: TokenBucket,
    /// Tokens that this node took since its last report.
    unreported: u32,
}

/// A user in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenant<'a> {
    pub namespace: NamespaceId,
    /// [`ALL_USERS`](Self::ALL_USERS) for all of them together.
    pub user: &'a str,
}

/// Tokens that a tenant took on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenTokens {
    pub namespace: NamespaceId,
    pub user: String,
    pub tokens: u32,
}

impl Tenant<'_> {
    /// The anonymous user has no rate of its own.
    pub const ALL_USERS: &'static str = "";
}

impl Default for SharedRates {
    fn default() -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            next_stripe: AtomicUsize::new(0),
        }
    }
}

impl SharedRates {
    /// Counts one publish and returns whether it is allowed; `now` in nanoseconds since a fixed point, `rate` has a limit.
    pub fn take(&self, tenant: Tenant<'_>, rate: Rate, now: u64) -> bool {
        let mut stripe = self.stripe(tenant.user);
        let Some(shared) = bucket(&mut stripe, tenant) else { return true };
        let has_token = shared.bucket.take(rate, now);
        shared.unreported += u32::from(has_token);
        has_token
    }

    /// Takes what a tenant has taken on another node; `rate` has a limit.
    pub fn charge(&self, tenant: Tenant<'_>, tokens: u32, rate: Rate, now: u64) {
        if let Some(shared) = bucket(&mut self.stripe(tenant.user), tenant) {
            shared.bucket.charge(rate, tokens, now);
        }
    }

    /// The tokens taken since the last report, of `count_max` tenants; those of the others are in later reports. Forgets full buckets.
    pub fn report(&self, count_max: usize, now: u64) -> Vec<TakenTokens> {
        let mut taken = Vec::new();
        let first = self.next_stripe.fetch_add(1, Relaxed);
        for at in first..first + STRIPES {
            let mut stripe = self.stripes[at % STRIPES].lock();
            for (namespace, users) in stripe.iter_mut() {
                users.retain(|user, shared| {
                    if shared.unreported > 0 && taken.len() < count_max {
                        let tokens = std::mem::take(&mut shared.unreported);
                        let user = user.as_ref().to_owned();
                        taken.push(TakenTokens { namespace: *namespace, user, tokens });
                    }
                    shared.unreported > 0 || shared.bucket.until_full(now) > 0
                });
            }
        }
        taken
    }

    fn stripe(&self, user: &str) -> MutexGuard<'_, TenantStripe> {
        self.stripes[self.hasher.hash_one(user) as usize % STRIPES].lock()
    }
}

/// The bucket of a tenant; `None` when there are too many.
fn bucket<'a>(stripe: &'a mut TenantStripe, tenant: Tenant<'_>) -> Option<&'a mut SharedBucket> {
    let users = stripe.entry(tenant.namespace).or_default();
    if !users.contains_key(tenant.user) {
        if users.len() >= USERS_MAX {
            return None;
        }
        users.insert(tenant.user.into(), SharedBucket::default());
    }
    users.get_mut(tenant.user)
}

/// Locks; well above the number of threads that publish.
const STRIPES: usize = 64;
/// Users of a namespace and stripe with a bucket that is not full. One more is not limited.
const USERS_MAX: usize = 16_384;

#[cfg(test)]
mod tests;
