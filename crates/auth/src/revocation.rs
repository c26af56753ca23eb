//! Blocked users, revoked tokens, and users whose older tokens are invalid: one table of a node, for all of its shards.
//! In: changes of the server API, Unix time → out: whether a user or a token is refused now; entries that a shared list has lost.
//! Uses: hashes with a random key in place of texts, a lock for each stripe. Never: a clock, sessions, other nodes.
//! Changed here: what an entry says, and how long it stays. `node/revocations.rs` tells shards and other nodes of changes.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};

use hashbrown::HashMap;
use parking_lot::RwLock;

/// The table. An entry takes 47 to 94 bytes, whatever the length of its texts. A check of an empty table is one atomic load.
///
/// It may be a copy of a list that all nodes share, which is read in loads. Then entries have their origin as well, the change that
/// made them, so that this node can make it again when the list has lost it.
#[derive(Debug)]
pub struct RevocationTable<T> {
    /// Random keys, so that no client can choose texts with equal hashes.
    hashers: [RandomState; 2],
    stripes: Box<[RevocationStripe<T>]>,
    entries: AtomicUsize,
    entries_max: usize,
    /// Entries of each kind, in the order of [`TABLES`].
    counts: [AtomicUsize; TABLES.len()],
    /// The stripe from which the next sweep removes ended entries.
    next_stripe: AtomicUsize,
    /// The number of the last load; entries that are inserted get it.
    load: AtomicU32,
    /// The first load has not ended: the table lacks entries.
    is_incomplete: AtomicBool,
}

/// The subject of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject<'a> {
    User(&'a str),
    /// The `jti` of a token.
    Token(&'a str),
    /// All tokens of a user, or the subscription tokens for one channel.
    TokensOf(&'a str, Option<&'a str>),
}

/// A hash of a subject, in the table in place of its texts.
type SubjectHash = [u32; 4];

/// The entries of a part of all subjects.
type RevocationStripe<T> = RwLock<HashMap<SubjectHash, RevocationEntry<T>>>;

/// The identity of a token, for as long as the rights that it granted last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenId {
    /// The `jti`; "" for a token without one.
    pub uid: Box<str>,
    /// Unix second; 0 for a token without `iat`.
    pub issued_at: u32,
}

impl TokenId {
    /// The identity of a token with this `jti` and `iat`.
    pub fn new(uid: &str, issued_at: u64) -> Self {
        Self { uid: uid.into(), issued_at: seconds(issued_at) }
    }
}

#[derive(Debug)]
struct RevocationEntry<T> {
    /// The Unix second at which it ends, or `NEVER`.
    end: u32,
    /// Tokens that were issued earlier are invalid; 0 in other entries.
    issued_before: u32,
    /// The load that found it last, or [`KEPT`].
    load: u32,
    /// An index in [`TABLES`].
    table: u8,
    origin: Option<Box<T>>,
}

/// The table has as many entries as it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFull;

impl<T> Default for RevocationTable<T> {
    fn default() -> Self {
        Self::with_limit(ENTRIES_MAX)
    }
}

impl<T> RevocationTable<T> {
    fn with_limit(entries_max: usize) -> Self {
        Self {
            hashers: [RandomState::new(), RandomState::new()],
            stripes: (0..STRIPES).map(|_| RwLock::default()).collect(),
            entries: AtomicUsize::new(0),
            entries_max,
            counts: Default::default(),
            next_stripe: AtomicUsize::new(0),
            load: AtomicU32::new(0),
            is_incomplete: AtomicBool::new(false),
        }
    }

    /// Adds an entry, or replaces the one of the same subject, unless that has a later `issued_before` and lasts as long: a change may
    /// arrive after a newer one. It ends at the Unix second `expire_at`; 0 = never. Returns whether the table says something else
    /// than before.
    ///
    /// # Errors
    /// The table is full; entries that have ended count until they are removed.
    pub fn insert(
        &self,
        subject: Subject<'_>,
        issued_before: u64,
        expire_at: u64,
        origin: Option<Box<T>>,
    ) -> Result<bool, TableFull> {
        let end = if expire_at == 0 { NEVER } else { seconds(expire_at) };
        let load = self.load.load(Relaxed);
        let table = subject.table();
        let issued_before = seconds(issued_before);
        let entry = RevocationEntry { end, issued_before, load, table, origin };
        let hash = self.hash(subject);
        let mut stripe = self.stripe(&hash).write();
        if let Some(old) = stripe.get_mut(&hash) {
            if old.issued_before > issued_before && old.end >= end {
                old.load = load;
                return Ok(false);
            }
            let old = std::mem::replace(old, entry);
            return Ok((old.end, old.issued_before) != (end, issued_before));
        }
        if self.entries.fetch_add(1, Relaxed) >= self.entries_max {
            self.entries.fetch_sub(1, Relaxed);
            return Err(TableFull);
        }
        stripe.insert(hash, entry);
        self.counts[usize::from(table)].fetch_add(1, Relaxed);
        Ok(true)
    }

    /// Removes the entry of a subject, if there is one.
    pub fn remove(&self, subject: Subject<'_>) {
        let hash = self.hash(subject);
        if let Some(entry) = self.stripe(&hash).write().remove(&hash) {
            self.count_removed(&entry);
        }
    }

    /// Which tokens are refused is not known until the next load has ended.
    pub fn expect_load(&self) {
        self.is_incomplete.store(true, Relaxed);
    }

    /// Begins to read the list of all nodes again.
    pub fn begin_load(&self) {
        self.load.fetch_add(1, Relaxed);
    }

    /// Ends a load: every entry of the list has been inserted since its begin. Removes the others, or keeps them when the
    /// list has lost its entries.
    pub fn end_load(&self, has_lost_entries: bool) {
        let load = self.load.load(Relaxed);
        for stripe in &self.stripes {
            stripe.write().retain(|_, entry| {
                if has_lost_entries && entry.load != load {
                    entry.load = KEPT;
                }
                let is_known = [load, KEPT].contains(&entry.load);
                if !is_known {
                    self.count_removed(entry);
                }
                is_known
            });
        }
        self.is_incomplete.store(false, Relaxed);
    }

    /// The origins of at most `max` entries that the list has lost and that have not ended at a Unix second. Begins at any stripe, so
    /// that several nodes rarely return the same ones. An entry that is inserted again is not lost any more.
    pub fn lost(&self, unix: u64, max: usize) -> Vec<T>
    where
        T: Clone,
    {
        let first = RandomState::new().hash_one(unix) as usize;
        let mut lost = Vec::new();
        for stripe in (0..STRIPES).map(|step| &self.stripes[first.wrapping_add(step) % STRIPES]) {
            let stripe = stripe.read();
            let of_stripe = stripe.values().filter(|it| it.load == KEPT && !it.has_ended(unix));
            let origins = of_stripe.filter_map(|entry| entry.origin.as_deref());
            lost.extend(origins.take(max - lost.len()).cloned());
        }
        lost
    }

    /// The origins of all entries that have not ended at a Unix second.
    pub fn origins(&self, unix: u64) -> Vec<T>
    where
        T: Clone,
    {
        let mut origins = Vec::new();
        for stripe in &self.stripes {
            let stripe = stripe.read();
            let entries = stripe.values().filter(|entry| !entry.has_ended(unix));
            origins.extend(entries.filter_map(|entry| entry.origin.as_deref()).cloned());
        }
        origins
    }

    /// Whether the table has been loaded, so that its checks say the truth.
    pub fn is_complete(&self) -> bool {
        !self.is_incomplete.load(Relaxed)
    }

    /// Entries of each kind, ended ones included.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        TABLES.into_iter().zip(&self.counts).map(|(name, count)| (name, count.load(Relaxed) as u64))
    }

    /// Whether a user is blocked at a Unix second.
    pub fn blocks(&self, user: &str, unix: u64) -> bool {
        !self.is_empty() && self.issued_before(Subject::User(user), unix).is_some()
    }

    /// Whether a token of a user is revoked or invalid at a Unix second. `channel` is that of a subscription token.
    pub fn refuses(&self, token: &TokenId, user: &str, channel: Option<&str>, unix: u64) -> bool {
        if self.is_empty() {
            return false;
        }
        let is_too_old = |channel| {
            let issued_before = self.issued_before(Subject::TokensOf(user, channel), unix);
            issued_before.is_some_and(|issued_before| token.issued_at < issued_before)
        };
        !token.uid.is_empty() && self.issued_before(Subject::Token(&token.uid), unix).is_some()
            || is_too_old(None)
            || channel.is_some() && is_too_old(channel)
    }

    /// Removes what has ended from a few stripes. Called once a second, it visits all of them within 20 s.
    pub fn sweep(&self, unix: u64) {
        if self.is_empty() {
            return;
        }
        let first = self.next_stripe.fetch_add(STRIPES_AT_ONCE, Relaxed);
        for stripe in first..first + STRIPES_AT_ONCE {
            let mut stripe = self.stripes[stripe % STRIPES].write();
            stripe.retain(|_, entry| {
                let has_ended = entry.has_ended(unix);
                if has_ended {
                    self.count_removed(entry);
                }
                !has_ended
            });
            if stripe.len() < stripe.capacity() / 4 {
                stripe.shrink_to_fit();
            }
        }
    }

    fn count_removed(&self, entry: &RevocationEntry<T>) {
        self.entries.fetch_sub(1, Relaxed);
        self.counts[usize::from(entry.table)].fetch_sub(1, Relaxed);
    }

    fn is_empty(&self) -> bool {
        self.entries.load(Relaxed) == 0
    }

    /// The time in the entry of a subject; `None` without an entry, or when it has ended.
    fn issued_before(&self, subject: Subject<'_>, unix: u64) -> Option<u32> {
        let hash = self.hash(subject);
        let stripe = self.stripe(&hash).read();
        let entry = stripe.get(&hash).filter(|entry| !entry.has_ended(unix));
        entry.map(|entry| entry.issued_before)
    }

    fn hash(&self, subject: Subject<'_>) -> SubjectHash {
        let [low, high] = self.hashers.each_ref().map(|hasher| hasher.hash_one(subject));
        [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
    }

    fn stripe(&self, hash: &SubjectHash) -> &RevocationStripe<T> {
        &self.stripes[hash[0] as usize % STRIPES]
    }
}

impl Subject<'_> {
    /// An index in [`TABLES`].
    fn table(self) -> u8 {
        match self {
            Self::User(_) => 0,
            Self::Token(_) => 1,
            Self::TokensOf(..) => 2,
        }
    }
}

impl<T> RevocationEntry<T> {
    fn has_ended(&self, unix: u64) -> bool {
        self.end != NEVER && u64::from(self.end) <= unix
    }
}

fn seconds(unix: u64) -> u32 {
    u32::try_from(unix).unwrap_or(NEVER)
}

/// An end that does not come, and the latest time.
const NEVER: u32 = u32::MAX;
/// Stands in place of the number of a load for an entry that the list of all nodes has lost.
const KEPT: u32 = u32::MAX;
/// Kinds of entries, as metrics name them.
const TABLES: [&str; 3] = ["blocked", "revoked", "invalidated"];
/// Locks of the table; a sweep holds one of them for the entries of its stripe. A million entries nearly fill the hash
/// tables of so many stripes.
const STRIPES: usize = 320;
/// Stripes of a sweep.
const STRIPES_AT_ONCE: usize = 16;
/// Entries of a table, ended ones included.
pub const ENTRIES_MAX: usize = 1_000_000;

#[cfg(test)]
mod tests;
