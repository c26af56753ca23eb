//! Status of users, as the application sets it: when a user was active, and a text.
//! In: changes of the server API, Unix time → out: the status of a user, until it expires.
//! Uses: a lock for each stripe. Never: connections; `node/users.rs` knows who is online.
//! Change here: how long a status stays, and the limits.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use hashbrown::{DefaultHashBuilder, HashMap};
use parking_lot::Mutex;

/// The status of one user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserStatus {
    /// Unix second of the last update; 0 = none.
    pub active: u64,
    /// Whether the user has a connection to some node.
    pub is_online: bool,
    /// Text of the application.
    pub state: Box<str>,
}

/// The statuses that a node knows.
#[derive(Debug)]
pub(crate) struct UserStatuses {
    hasher: DefaultHashBuilder,
    stripes: Box<[Mutex<StatusStripe>]>,
    entries: AtomicUsize,
    /// The stripe from which the next sweep removes expired entries.
    next_stripe: AtomicUsize,
}

/// Statuses by user id.
type StatusStripe = HashMap<Box<str>, UserStatus>;

impl Default for UserStatuses {
    fn default() -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            entries: AtomicUsize::new(0),
            next_stripe: AtomicUsize::new(0),
        }
    }
}

impl UserStatuses {
    /// Whether so many more users have room.
    pub(crate) fn has_room(&self, users: usize) -> bool {
        self.entries.load(Relaxed) + users <= ENTRIES_MAX
    }

    /// Sets the status of a user.
    pub(crate) fn set(&self, user: &str, active: u64, state: &str) {
        let status = UserStatus { active, state: state.into(), ..UserStatus::default() };
        if self.stripe(user).lock().insert(user.into(), status).is_none() {
            self.entries.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn remove(&self, user: &str) {
        if self.stripe(user).lock().remove(user).is_some() {
            self.entries.fetch_sub(1, Relaxed);
        }
    }

    /// The status of a user; empty without one, or when it has expired.
    pub(crate) fn get(&self, user: &str, unix: u64) -> UserStatus {
        let status = self.stripe(user).lock().get(user).cloned();
        status.filter(|status| !status.has_expired(unix)).unwrap_or_default()
    }

    /// Removes expired entries of one stripe.
    pub(crate) fn sweep(&self, unix: u64) {
        if self.entries.load(Relaxed) == 0 {
            return;
        }
        let stripe = self.next_stripe.fetch_add(1, Relaxed) % STRIPES;
        let mut stripe = self.stripes[stripe].lock();
        let before = stripe.len();
        stripe.retain(|_, status| !status.has_expired(unix));
        self.entries.fetch_sub(before - stripe.len(), Relaxed);
    }

    fn stripe(&self, user: &str) -> &Mutex<StatusStripe> {
        &self.stripes[self.hasher.hash_one(user) as usize % STRIPES]
    }
}

impl UserStatus {
    fn has_expired(&self, unix: u64) -> bool {
        self.active.saturating_add(EXPIRY_SECONDS) <= unix
    }
}

/// A status expires so long after its last update, as in Centrifugo.
const EXPIRY_SECONDS: u64 = 30 * 24 * 60 * 60;
/// Users with a status.
const ENTRIES_MAX: usize = 1_000_000;
/// Locks of the table.
const STRIPES: usize = 256;

#[cfg(test)]
mod tests;
