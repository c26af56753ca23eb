//! The keys of the API and the rights of those who have them.
//! In: a key of a request, a method, namespaces, `now` → out: the holder of the key, and whether it permits that.
//! Uses `options`, a token bucket for each key. Never: a clock, HTTP, gRPC, commands, log lines.
//! Changed here: how keys are compared and counted. What a command needs is in `rights`; where a request has its key is in
//! `http::request` and `grpc`.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use fanwire_auth::Secret;
use fanwire_node::TokenBucket;
use parking_lot::Mutex;

use crate::options::{ApiKeyOptions, DEFAULT_KEY};
use crate::{ApiError, ApiOptions, Method};

/// Rights and counts of one key. The default permits everything.
#[derive(Debug, Default)]
pub struct KeyHolder {
    /// Name of the key.
    pub name: String,
    rights: ApiKeyOptions,
    calls: AtomicU64,
    refused: AtomicU64,
    limited: AtomicU64,
    limit: Mutex<KeyLimit>,
}

/// How much of its rate a key has used.
#[derive(Debug, Default)]
struct KeyLimit {
    /// Time of the first command.
    since: Option<Instant>,
    bucket: TokenBucket,
}

impl KeyHolder {
    pub(crate) fn new(name: &str, rights: ApiKeyOptions) -> Arc<Self> {
        Arc::new(Self { name: name.to_owned(), rights, ..Self::default() })
    }

    pub(crate) fn has_namespaces(&self) -> bool {
        !self.rights.namespaces.is_empty()
    }

    /// Commands that it sent, those that its key does not permit, and those above its rate; commands in a batch count one
    /// each.
    pub fn counts(&self) -> [u64; 3] {
        [&self.calls, &self.refused, &self.limited].map(|count| count.load(Relaxed))
    }

    /// Counts a command of `method` that names channels of these namespaces, and checks it.
    ///
    /// # Errors
    /// 111 above the rate of the key. 103 if the key does not permit the method, or one of the namespaces; `None` among them
    /// stands for all channels.
    pub(crate) fn check<'a>(
        &self,
        method: Method,
        mut namespaces: impl Iterator<Item = Option<&'a str>>,
        now: Instant,
    ) -> Result<(), ApiError> {
        self.calls.fetch_add(1, Relaxed);
        if !self.is_within_rate(now) {
            self.limited.fetch_add(1, Relaxed);
            return Err(ApiError::TOO_MANY_REQUESTS.because(RATE));
        }
        let ApiKeyOptions { methods, namespaces: permitted, .. } = &self.rights;
        let is_permitted =
            |one: Option<&str>| one.is_some_and(|one| permitted.iter().any(|name| name == one));
        let cause = if !methods.is_empty() && !methods.iter().any(|name| name == method.name()) {
            METHOD
        } else if !permitted.is_empty() && !namespaces.all(is_permitted) {
            NAMESPACE
        } else {
            return Ok(());
        };
        self.refused.fetch_add(1, Relaxed);
        Err(ApiError::PERMISSION_DENIED.because(cause))
    }

    fn is_within_rate(&self, now: Instant) -> bool {
        if self.rights.rate.limit == 0 {
            return true;
        }
        let KeyLimit { since, bucket } = &mut *self.limit.lock();
        let elapsed = now.saturating_duration_since(*since.get_or_insert(now)).as_nanos();
        bucket.take(self.rights.rate, elapsed.try_into().unwrap_or(u64::MAX))
    }
}

/// The keys that backends send.
pub(crate) struct ApiKeys {
    /// Secrets with their callers; the first one is `key`, the second one its predecessor.
    secrets: Vec<(Secret, Arc<KeyHolder>)>,
    /// Unix second; 0 = without end.
    previous_valid_until: u64,
    /// A request without a key has the default caller.
    is_open: bool,
}

impl ApiKeys {
    /// The keys of `options`. A key whose name `before` has goes on counting, if its rights are the same.
    pub(crate) fn of(options: &ApiOptions, before: Option<&Self>) -> Self {
        let caller = |name: &str, rights: &ApiKeyOptions| {
            let rights = ApiKeyOptions { key: Secret::default(), ..rights.clone() };
            let known = before
                .into_iter()
                .flat_map(Self::callers)
                .find(|known| known.name == name && known.rights == rights);
            known.cloned().unwrap_or_else(|| KeyHolder::new(name, rights))
        };
        let default = caller(DEFAULT_KEY, &ApiKeyOptions::default());
        let own = [&options.key, &options.previous_key]
            .into_iter()
            .map(|key| (key.clone(), Arc::clone(&default)));
        let named =
            options.keys.iter().map(|(name, rights)| (rights.key.clone(), caller(name, rights)));
        let previous_valid_until = options.previous_key_valid_until;
        let is_open = options.insecure;
        Self { secrets: own.chain(named).collect(), previous_valid_until, is_open }
    }

    /// Each caller once.
    pub(crate) fn callers(&self) -> impl Iterator<Item = &Arc<KeyHolder>> {
        self.secrets.iter().skip(1).map(|(_, caller)| caller)
    }

    /// The caller of a request without a valid key; `None` if each needs one.
    pub(crate) fn anonymous(&self) -> Option<&Arc<KeyHolder>> {
        self.is_open.then(|| &self.secrets[0].1)
    }

    /// The caller whose key this is at a Unix second. An empty key is none.
    pub(crate) fn find(&self, given: &[u8], now_unix: u64) -> Option<&Arc<KeyHolder>> {
        let is_previous_valid =
            self.previous_valid_until == 0 || now_unix <= self.previous_valid_until;
        let mut valid =
            self.secrets.iter().enumerate().filter(|(index, _)| *index != 1 || is_previous_valid);
        let is_given = |key: &Secret| !key.is_empty() && is_equal(key.as_bytes(), given);
        valid.find(|(_, (key, _))| is_given(key)).map(|(_, (_, caller))| caller)
    }
}

/// Compares in a time that depends on the length of `given`, not on the position of a difference.
fn is_equal(key: &[u8], given: &[u8]) -> bool {
    let mut difference = key.len() ^ given.len();
    for (index, byte) in given.iter().enumerate() {
        difference |= usize::from(byte ^ key[index % key.len()]);
    }
    black_box(difference) == 0
}

const RATE: &str = "the key sends more commands than its rate_limit in http_api.keys";
const METHOD: &str = "http_api.keys does not list this method for the key";
const NAMESPACE: &str = "http_api.keys does not list the channel's namespace for the key";

#[cfg(test)]
mod tests;
