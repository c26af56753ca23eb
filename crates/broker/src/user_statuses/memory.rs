//! Statuses of users in the memory of one node, one lock for each stripe of users.
//! In: changes on any thread, Unix seconds → out: copies of statuses.
//! Uses: striped locks. Never: clocks.
//! Changed here: the limits, and when expired statuses are removed.

use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use hashbrown::{DefaultHashBuilder, HashMap};
use parking_lot::Mutex;

use super::{UserStatus, UserStatusChange, UserStatusStore};
use crate::saved::StatusRecord;
use crate::{Answer, BrokerError};

/// Statuses in memory, at most a million.
#[derive(Debug)]
pub struct MemoryUserStatuses {
    hasher: DefaultHashBuilder,
    stripes: Box<[Mutex<Stripe>]>,
    entries: AtomicUsize,
    /// The stripe from which the next sweep removes expired entries.
    next_stripe: AtomicUsize,
}

/// Statuses by user id, each with the Unix second at which it expires.
type Stripe = HashMap<Box<str>, (UserStatus, u64)>;

impl Default for MemoryUserStatuses {
    fn default() -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            entries: AtomicUsize::new(0),
            next_stripe: AtomicUsize::new(0),
        }
    }
}

impl MemoryUserStatuses {
    /// All statuses, for another program.
    pub(crate) fn save(&self) -> Vec<StatusRecord> {
        let mut statuses = Vec::new();
        for stripe in &self.stripes {
            for (user, (status, until)) in &*stripe.lock() {
                let UserStatus { active, online, state } = status.clone();
                let user = user.as_ref().to_owned();
                let state = state.into();
                statuses.push(StatusRecord { user, active, online, state, until: *until });
            }
        }
        statuses
    }

    /// Sets statuses that another program saved.
    pub(crate) fn restore(&self, statuses: Vec<StatusRecord>) {
        for StatusRecord { user, active, online, state, until } in statuses {
            let status = UserStatus { active, online, state: state.into() };
            let old = self.stripe(&user).lock().insert(user.into(), (status, until));
            self.entries.fetch_add(usize::from(old.is_none()), Relaxed);
        }
    }

    fn stripe(&self, user: &str) -> &Mutex<Stripe> {
        &self.stripes[self.hasher.hash_one(user) as usize % STRIPES]
    }
}

impl UserStatusStore for MemoryUserStatuses {
    fn update(&self, users: &[String], change: &UserStatusChange, unix: u64) -> Answer<()> {
        if self.entries.load(Relaxed) + users.len() > ENTRIES_MAX {
            return Answer::now(Err(BrokerError::Full));
        }
        for user in users {
            let mut stripe = self.stripe(user).lock();
            let (status, end) = stripe.entry_ref(user.as_str()).or_insert_with(|| {
                self.entries.fetch_add(1, Relaxed);
                Default::default()
            });
            if *end <= unix {
                *status = UserStatus::default();
            }
            *end = unix + change.ttl.as_secs();
            status.active = change.active.unwrap_or(status.active);
            status.online = change.online.unwrap_or(status.online);
            if let Some(state) = &change.state {
                status.state = state.clone();
            }
        }
        Answer::now(Ok(()))
    }

    fn remove(&self, users: &[String]) -> Answer<()> {
        for user in users {
            if self.stripe(user).lock().remove(user.as_str()).is_some() {
                self.entries.fetch_sub(1, Relaxed);
            }
        }
        Answer::now(Ok(()))
    }

    fn read(&self, users: &[String], unix: u64) -> Answer<Vec<UserStatus>> {
        let status = |user: &String| {
            let stripe = self.stripe(user).lock();
            let found = stripe.get(user.as_str()).filter(|(_, end)| *end > unix);
            found.map(|(status, _)| status.clone()).unwrap_or_default()
        };
        Answer::now(Ok(users.iter().map(status).collect()))
    }

    /// Sweeps one stripe per call.
    fn sweep(&self, unix: u64) {
        if self.entries.load(Relaxed) == 0 {
            return;
        }
        let stripe = self.next_stripe.fetch_add(1, Relaxed) % STRIPES;
        let mut stripe = self.stripes[stripe].lock();
        let before = stripe.len();
        stripe.retain(|_, (_, end)| *end > unix);
        self.entries.fetch_sub(before - stripe.len(), Relaxed);
    }
}

/// Users with a status.
const ENTRIES_MAX: usize = 1_000_000;
/// Locks of the table.
const STRIPES: usize = 256;

#[cfg(test)]
mod tests;
