//! The cache of key documents: their keys, when they were fetched, and which unknown keys were requested.
//! In: an address, a `kid` and the time → out: a key, none, pending, or unavailable; and fetches for the port.
//! May use: short locks; the port `KeySource`, outside of them. Never a clock.
//! Changed here: how often documents are fetched and how long keys are valid; `set.rs` reads documents.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::KeySource;
use super::set::{Key, Set, parse};

/// Time for which keys are used without another look (Centrifugo: 1 h); then they are fetched again while they are in use.
const FRESH_SECONDS: u64 = 3600;

/// Time after which a key is not used before another look; only a look that fails leaves it in use.
const STALE_SECONDS: u64 = 2 * FRESH_SECONDS;

/// Shortest time between two fetches of a document, in seconds, for any tokens: every client may name a key without having it.
const PAUSE_SECONDS: u64 = 5;

/// How long a `kid` that a document did not have is refused without another fetch.
const UNKNOWN_SECONDS: u64 = 60;

/// Names that are remembered per document as unknown; more of them are answered `Unavailable` and may be tried again.
const UNKNOWN_MAX: usize = 1024;

/// Documents that are remembered. There are more addresses only when their variables are not checked.
const DOCUMENTS_MAX: usize = 1024;

/// The result of the lookup of a key.
#[derive(Debug)]
pub(super) enum Found {
    Key(Arc<Key>),
    /// The document, fetched after this key was asked for, does not have it.
    No,
    /// A fetch is under way ([`Cache::fetching`]).
    Later,
    /// The document cannot be had, or may not be fetched again yet.
    Unavailable,
}

/// How often documents were fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCounters {
    /// Fetches begun.
    pub fetches: u64,
    /// Fetches that ended without a usable document.
    pub failures: u64,
}

impl std::iter::Sum for KeyCounters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            fetches: sum.fetches + one.fetches,
            failures: sum.failures + one.failures,
        })
    }
}

/// All documents of one key set.
#[derive(Default)]
pub(crate) struct Cache {
    documents: Mutex<HashMap<Arc<str>, Document>>,
    source: OnceLock<Arc<dyn KeySource>>,
    fetches: AtomicU64,
    failures: AtomicU64,
}

/// Times are Unix seconds.
#[derive(Default)]
struct Document {
    keys: Set,
    /// Begin of the fetch that brought the keys; `None` before the first.
    known_at: Option<u64>,
    /// Begin of the last fetch.
    tried_at: Option<u64>,
    is_coming: bool,
    /// Names asked for while the document is coming.
    asked: HashSet<String>,
    /// Names it did not have, each with the time when it may be looked for again.
    unknown: HashMap<String, u64>,
    waiters: Vec<Waiter>,
}

/// Called once, when a fetch has ended.
type Waiter = Box<dyn FnOnce() + Send>;

/// The document with a key is being fetched, so whether a token is genuine is not known yet.
pub struct KeyFetching {
    cache: Arc<Cache>,
    url: String,
}

/// A document to be fetched. Dropping it says that nothing came.
pub struct Fetch {
    cache: Arc<Cache>,
    url: Arc<str>,
    began_at: u64,
    body: Option<Vec<u8>>,
}

impl Cache {
    /// Sets the source that fetches documents from now on. Only the first call has an effect.
    pub(crate) fn fetch_with(&self, source: Arc<dyn KeySource>) {
        let _ = self.source.set(source);
    }

    pub(crate) fn counters(&self) -> KeyCounters {
        KeyCounters { fetches: self.fetches.load(Relaxed), failures: self.failures.load(Relaxed) }
    }

    /// Looks for a key, and begins to fetch its document where that is due.
    pub(super) fn find(self: &Arc<Self>, url: &str, kid: &str, now: u64) -> Found {
        let Some(source) = self.source.get() else { return Found::Unavailable };
        let (found, fetch) = {
            let mut documents = self.documents.lock();
            let Some((url, document)) = entry(&mut documents, url) else {
                return Found::Unavailable;
            };
            let (found, is_due) = document.find(kid, now);
            if is_due {
                document.is_coming = true;
                document.tried_at = Some(now);
            }
            if matches!(found, Found::Later) && document.asked.len() < UNKNOWN_MAX {
                document.asked.insert(kid.to_owned());
            }
            (found, is_due.then_some(url))
        };
        if let Some(url) = fetch {
            self.fetches.fetch_add(1, Relaxed);
            source.fetch(Fetch { cache: Arc::clone(self), url, began_at: now, body: None });
        }
        found
    }

    /// The fetch of a document, for those who wait for its end.
    pub(super) fn fetching(self: &Arc<Self>, url: &str) -> KeyFetching {
        KeyFetching { cache: Arc::clone(self), url: url.to_owned() }
    }

    fn end(&self, url: &str, began_at: u64, body: Option<Vec<u8>>) {
        let keys = body.and_then(|body| parse(&body));
        if keys.is_none() {
            self.failures.fetch_add(1, Relaxed);
        }
        let waiters = match self.documents.lock().get_mut(url) {
            Some(document) => document.end(keys, began_at),
            None => return,
        };
        waiters.into_iter().for_each(|waiter| waiter());
    }
}

/// The document of an address; `None` when there are too many. Those without keys make room.
fn entry<'a>(
    documents: &'a mut HashMap<Arc<str>, Document>,
    url: &str,
) -> Option<(Arc<str>, &'a mut Document)> {
    let known = documents.get_key_value(url).map(|(url, _)| Arc::clone(url));
    let url = match known {
        Some(url) => url,
        None => {
            if documents.len() >= DOCUMENTS_MAX {
                documents.retain(|_, document| document.is_coming || !document.keys.is_empty());
            }
            if documents.len() >= DOCUMENTS_MAX {
                return None;
            }
            url.into()
        }
    };
    Some((Arc::clone(&url), documents.entry(url).or_default()))
}

impl Document {
    /// Returns the state of a key, and whether the document must be fetched now.
    fn find(&self, kid: &str, now: u64) -> (Found, bool) {
        // A clock that was set back says nothing about age. Then the document is fetched again.
        let since = |at: u64| now.checked_sub(at).unwrap_or(STALE_SECONDS);
        let is_rested = self.tried_at.is_none_or(|at| since(at) >= PAUSE_SECONDS);
        let is_due = is_rested && !self.is_coming;
        let Some(key) = self.keys.get(kid) else {
            return match self.unknown.get(kid) {
                Some(until) if now < *until => (Found::No, false),
                _ if self.is_coming || is_due => (Found::Later, is_due),
                _ => (Found::Unavailable, false),
            };
        };
        match since(self.known_at.unwrap_or(0)) {
            ..FRESH_SECONDS => (Found::Key(Arc::clone(key)), false),
            FRESH_SECONDS..STALE_SECONDS => (Found::Key(Arc::clone(key)), is_due),
            _ if self.is_coming || is_due => (Found::Later, is_due),
            _ => (Found::Key(Arc::clone(key)), false), // it was tried a moment ago and failed
        }
    }

    /// The fetch that began then has ended. Without keys those known before stay.
    fn end(&mut self, keys: Option<Set>, began_at: u64) -> Vec<Waiter> {
        self.is_coming = false;
        let asked = std::mem::take(&mut self.asked);
        if let Some(keys) = keys {
            self.keys = keys;
            self.known_at = Some(began_at);
            self.unknown.retain(|_, until| began_at < *until);
            for kid in asked.into_iter().filter(|kid| !self.keys.contains_key(kid)) {
                if self.unknown.len() < UNKNOWN_MAX {
                    self.unknown.insert(kid, began_at + UNKNOWN_SECONDS);
                }
            }
        }
        std::mem::take(&mut self.waiters)
    }
}

impl KeyFetching {
    /// Calls `done` when the document has come or failed: at once if that has happened already, else on the thread that
    /// ends the fetch. So `done` must be short.
    pub fn then(self, done: impl FnOnce() + Send + 'static) {
        let mut documents = self.cache.documents.lock();
        match documents.get_mut(&*self.url).filter(|document| document.is_coming) {
            Some(document) => document.waiters.push(Box::new(done)),
            None => {
                drop(documents);
                done();
            }
        }
    }
}

impl Fetch {
    /// Returns the address to fetch: `http` or `https`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The document came, at most [`KEY_SET_BYTES_MAX`](super::KEY_SET_BYTES_MAX) long. Those who wait for it hear
    /// of it on this thread.
    pub fn done(mut self, body: Vec<u8>) {
        self.body = Some(body);
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.cache.end(&self.url, self.began_at, self.body.take());
    }
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch").field("url", &self.url).finish_non_exhaustive()
    }
}

impl fmt::Debug for KeyFetching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFetching").field("url", &self.url).finish_non_exhaustive()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("source", &self.source).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
