//! Tests of what is remembered of documents: one fetch for many, rotation, names in vain, endpoints that are down.
//! In: looks at times, fetches that end or fail → out: what is found, how many fetches there were.
//! May use: `fixture.rs`, threads. Time is a number.
//! Documents themselves are tested in `set/tests.rs`, verification with them in `jwks/tests.rs`.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::fixture::*;

const URL: &str = "https://id.example.com/keys";

/// Fetches wait here until the test ends them.
#[derive(Debug, Default)]
struct PendingFetches(Mutex<Vec<Fetch>>);

impl KeySource for PendingFetches {
    fn fetch(&self, fetch: Fetch) {
        self.0.lock().push(fetch);
    }
}

struct Harness {
    cache: Arc<Cache>,
    pending_fetches: Arc<PendingFetches>,
}

impl Harness {
    fn new() -> Self {
        let (cache, pending_fetches): (Arc<Cache>, Arc<PendingFetches>) = Default::default();
        cache.fetch_with(Arc::<PendingFetches>::clone(&pending_fetches));
        Self { cache, pending_fetches }
    }

    /// Looks and compares: `key`, `no`, `later` or `unavailable`.
    #[track_caller]
    fn check(&self, kid: &str, now: u64, expect: &str) {
        let found = match self.cache.find(URL, kid, now) {
            Found::Key(_) => "key",
            Found::No => "no",
            Found::Later => "later",
            Found::Unavailable => "unavailable",
        };
        assert_eq!(found, expect, "{kid} at {now}");
    }

    /// Ends the one fetch that is under way, with keys of these names.
    #[track_caller]
    fn comes(&self, kids: &[&str]) {
        let keys: Vec<String> = kids.iter().map(|kid| ed_jwk(kid)).collect();
        self.one_fetch().done(set(&keys));
    }

    #[track_caller]
    fn fails(&self) {
        drop(self.one_fetch());
    }

    #[track_caller]
    fn one_fetch(&self) -> Fetch {
        let mut fetches = std::mem::take(&mut *self.pending_fetches.0.lock());
        assert_eq!(fetches.len(), 1, "fetches under way");
        let fetch = fetches.pop().expect("one");
        assert_eq!(fetch.url(), URL);
        fetch
    }

    /// How many fetches were ever begun, and how many of them failed.
    fn counts(&self) -> (u64, u64) {
        let KeyCounters { fetches, failures } = self.cache.counters();
        (fetches, failures)
    }
}

#[test]
fn the_first_look_fetches_and_later_ones_find() {
    let harness = Harness::new();
    harness.check("a", NOW, "later");
    harness.comes(&["a", "b"]);
    harness.check("a", NOW, "key");
    harness.check("b", NOW + FRESH_SECONDS - 1, "key");
    assert_eq!(harness.counts(), (1, 0));
}

#[test]
fn a_thousand_looks_at_once_for_unknown_keys_make_one_fetch() {
    let harness = Harness::new();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let harness = &harness;
            scope.spawn(move || {
                (0..125).for_each(|name| harness.check(&format!("{thread}.{name}"), NOW, "later"));
            });
        }
    });
    let called = Arc::new(AtomicUsize::new(0));
    for _ in 0..1000 {
        let called = Arc::clone(&called);
        harness.cache.fetching(URL).then(move || {
            called.fetch_add(1, Relaxed);
        });
    }
    assert_eq!(called.load(Relaxed), 0);
    harness.comes(&["a"]);
    assert_eq!(called.load(Relaxed), 1000);
    for name in 0..125 {
        harness.check(&format!("3.{name}"), NOW, "no");
    }
    assert_eq!(harness.counts(), (1, 0));
}

#[test]
fn a_waiter_is_called_at_once_when_nothing_is_coming_and_else_also_by_a_failure() {
    let harness = Harness::new();
    let called = Arc::new(AtomicUsize::new(0));
    let wait = || {
        let called = Arc::clone(&called);
        harness.cache.fetching(URL).then(move || {
            called.fetch_add(1, Relaxed);
        });
    };
    wait();
    assert_eq!(called.load(Relaxed), 1, "nothing is coming");
    harness.check("a", NOW, "later");
    wait();
    assert_eq!(called.load(Relaxed), 1, "it is coming");
    harness.fails();
    assert_eq!(called.load(Relaxed), 2, "it failed");
}

#[test]
fn after_rotation_the_new_key_costs_one_fetch_and_the_old_one_goes() {
    let harness = Harness::new();
    harness.check("old", NOW, "later");
    harness.comes(&["old"]);
    let now = NOW + PAUSE_SECONDS;
    harness.check("new", now, "later");
    harness.check("old", now, "key");
    harness.comes(&["new"]);
    harness.check("new", now, "key");
    harness.check("old", now, "unavailable");
    let now = now + PAUSE_SECONDS;
    harness.check("old", now, "later");
    harness.comes(&["new"]);
    harness.check("old", now, "no");
    assert_eq!(harness.counts(), (3, 0));
}

#[test]
fn a_name_in_vain_is_refused_without_a_look_for_a_while() {
    let harness = Harness::new();
    harness.check("x", NOW, "later");
    harness.comes(&["a"]);
    harness.check("x", NOW, "no");
    harness.check("x", NOW + UNKNOWN_SECONDS - 1, "no");
    assert_eq!(harness.counts(), (1, 0));
    harness.check("x", NOW + UNKNOWN_SECONDS, "later");
    harness.comes(&["a", "x"]);
    harness.check("x", NOW + UNKNOWN_SECONDS, "key");
}

#[test]
fn other_names_in_vain_do_not_fetch_more_often_than_the_pause() {
    let harness = Harness::new();
    harness.check("a", NOW, "later");
    harness.comes(&["a"]);
    for name in 0..100 {
        harness.check(&format!("x{name}"), NOW + PAUSE_SECONDS - 1, "unavailable");
    }
    harness.check("y", NOW + PAUSE_SECONDS, "later");
    harness.comes(&["a", "x7"]);
    harness.check("x7", NOW + PAUSE_SECONDS, "key");
    assert_eq!(harness.counts(), (2, 0));
}

#[test]
fn names_in_vain_take_bounded_memory() {
    let harness = Harness::new();
    let names = || (0..2 * UNKNOWN_MAX).map(|name| format!("x{name}"));
    names().for_each(|name| harness.check(&name, NOW, "later"));
    harness.comes(&["a"]);
    let documents = harness.cache.documents.lock();
    assert_eq!((documents[URL].unknown.len(), documents[URL].asked.len()), (UNKNOWN_MAX, 0));
}

#[test]
fn while_the_endpoint_is_down_known_keys_stay_and_others_are_not_decided() {
    let harness = Harness::new();
    harness.check("a", NOW, "later");
    harness.fails();
    harness.check("a", NOW, "unavailable");
    harness.check("a", NOW + PAUSE_SECONDS, "later");
    harness.comes(&["a"]);
    let now = NOW + PAUSE_SECONDS + STALE_SECONDS;
    for times in 0..10 {
        let now = now + times * PAUSE_SECONDS;
        harness.check("a", now, "later");
        harness.fails();
        harness.check("a", now, "key");
        harness.check("b", now, "unavailable");
    }
    assert_eq!(harness.counts(), (12, 11));
}

#[test]
fn garbage_is_a_failure_and_keeps_what_was_known() {
    let harness = Harness::new();
    harness.check("a", NOW, "later");
    harness.comes(&["a"]);
    harness.check("b", NOW + PAUSE_SECONDS, "later");
    harness.one_fetch().done(b"<html>not found</html>".to_vec());
    harness.check("a", NOW + PAUSE_SECONDS, "key");
    harness.check("b", NOW + PAUSE_SECONDS, "unavailable");
    assert_eq!(harness.counts(), (2, 1));
}

#[test]
fn keys_in_use_are_fetched_again_behind_and_old_ones_before_they_are_used() {
    let harness = Harness::new();
    harness.check("a", NOW, "later");
    harness.comes(&["a"]);
    harness.check("a", NOW + FRESH_SECONDS, "key");
    harness.check("a", NOW + FRESH_SECONDS, "key");
    harness.comes(&["a"]);
    assert_eq!(harness.counts(), (2, 0));
    let late = NOW + FRESH_SECONDS + STALE_SECONDS;
    harness.check("a", late, "later");
    harness.comes(&[]);
    harness.check("a", late, "no");
}

#[test]
fn a_clock_that_was_set_back_makes_another_look() {
    let harness = Harness::new();
    harness.check("a", NOW, "later");
    harness.comes(&["a"]);
    harness.check("a", NOW - 1, "later");
    harness.comes(&["a"]);
    harness.check("a", NOW - 1, "key");
}

#[test]
fn addresses_take_bounded_memory_and_those_without_keys_make_room() {
    let harness = Harness::new();
    for number in 0..DOCUMENTS_MAX {
        let url = format!("{URL}/{number}");
        assert!(matches!(harness.cache.find(&url, "a", NOW), Found::Later));
    }
    harness.check("a", NOW, "unavailable");
    for (number, fetch) in
        std::mem::take(&mut *harness.pending_fetches.0.lock()).into_iter().enumerate()
    {
        if number > 0 {
            fetch.done(set(&[ed_jwk("a")]));
        }
    }
    harness.check("a", NOW, "later");
    assert_eq!(harness.cache.documents.lock().len(), DOCUMENTS_MAX);
    assert!(matches!(harness.cache.find(&format!("{URL}/1"), "a", NOW), Found::Key(_)));
}

#[test]
fn without_a_source_nothing_is_known() {
    let cache = Arc::new(Cache::default());
    assert!(matches!(cache.find(URL, "a", NOW), Found::Unavailable));
    assert_eq!(cache.counters(), KeyCounters::default());
}
