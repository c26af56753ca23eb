//! The tests that every presence store must pass: the promises of `presence.rs`, and random calls compared with a simple model.
//! In: a function that makes a store → out: a panic that names the broken promise.
//! Uses: threads, and instants relative to the start of a test. Never: sleeps.
//! Changed here: the promises that all stores share. What one store adds is tested next to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fanwire_protocol::ClientInfo;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::{Presence, PresencePage, PresenceStats};

/// Makes an empty store. Called for each promise.
pub type MakePresence<'a> = &'a dyn Fn() -> Arc<dyn Presence>;

/// Tests every promise.
///
/// # Panics
/// When the store breaks a promise.
pub fn check(make: MakePresence<'_>) {
    check_runs(make, RUNS);
}

/// Like [`check`] with fewer random runs, for stores where each call is a network round trip.
///
/// # Panics
/// When the store breaks a promise.
pub fn check_slow(make: MakePresence<'_>) {
    check_runs(make, RUNS / 20);
}

fn check_runs(make: MakePresence<'_>, runs: u64) {
    a_member_is_returned_complete_until_it_is_removed(make);
    a_member_is_returned_until_it_expires(make);
    a_renewed_member_has_its_latest_info(make);
    users_are_counted_once(make);
    pages_have_every_member_that_stays(make);
    calls_from_many_threads_all_count(make);
    random_calls_agree_with_the_model(make, runs);
}

fn a_member_is_returned_complete_until_it_is_removed(make: MakePresence<'_>) {
    let presence = make();
    let now = Instant::now();
    let whole = ClientInfo {
        conn_info: "\u{0}any bytes".into(),
        chan_info: "{}".into(),
        ..info("c", "42")
    };
    add(&*presence, "a", whole.clone(), now);
    assert_eq!(members(&*presence, "a", now), [whole]);
    assert_eq!(members(&*presence, "b", now), [], "another channel");
    presence.remove("b", "c").wait().expect("the store is available");
    presence.remove("a", "d").wait().expect("the store is available");
    assert_eq!(stats(&*presence, "a", now), (1, 1), "only other members were removed");
    presence.remove("a", "c").wait().expect("the store is available");
    assert_eq!(stats(&*presence, "a", now), (0, 0));
    assert_eq!(members(&*presence, "a", now), []);
}

fn a_member_is_returned_until_it_expires(make: MakePresence<'_>) {
    let presence = make();
    let now = Instant::now();
    add(&*presence, "a", info("c", "1"), now);
    add(&*presence, "a", info("d", "2"), now + TTL / 2);
    for (after, expected) in [(TTL - TICK, 2), (TTL, 1), (TTL + TTL / 2, 0)] {
        assert_eq!(stats(&*presence, "a", now + after), (expected, expected), "after {after:?}");
        assert_eq!(members(&*presence, "a", now + after).len(), expected, "after {after:?}");
    }
}

fn a_renewed_member_has_its_latest_info(make: MakePresence<'_>) {
    let presence = make();
    let now = Instant::now();
    add(&*presence, "a", info("c", "1"), now);
    add(&*presence, "a", info("c", "1"), now + TTL / 2);
    assert_eq!(stats(&*presence, "a", now + TTL), (1, 1), "renewed");
    let other = ClientInfo { conn_info: "2".into(), ..info("c", "2") };
    add(&*presence, "a", other.clone(), now + TTL);
    assert_eq!(members(&*presence, "a", now + TTL), [other]);
    assert_eq!(stats(&*presence, "a", now + TTL), (1, 1));
}

fn users_are_counted_once(make: MakePresence<'_>) {
    let presence = make();
    let now = Instant::now();
    for (client, user) in [("c", "1"), ("d", "1"), ("e", ""), ("f", "")] {
        add(&*presence, "a", info(client, user), now);
    }
    assert_eq!(stats(&*presence, "a", now), (4, 2), "the empty user is one");
    presence.remove("a", "c").wait().expect("the store is available");
    assert_eq!(stats(&*presence, "a", now), (3, 2));
    presence.remove("a", "d").wait().expect("the store is available");
    assert_eq!(stats(&*presence, "a", now), (2, 1));
}

/// Members come and go between the pages. Only what no page may lack, or have, is asserted.
fn pages_have_every_member_that_stays(make: MakePresence<'_>) {
    let presence = make();
    let now = Instant::now();
    let long = "x".repeat(100); // Redis stores small hashes of short texts in another form
    let member =
        |client: String| ClientInfo { conn_info: long.clone().into(), ..info(&client, "u") };
    for number in 0..300 {
        add(&*presence, "a", member(format!("stays {number}")), now);
        add(&*presence, "a", member(format!("leaves {number}")), now);
    }
    presence.add("a", info("expired", "u"), TICK, now).wait().expect("the store is available");
    for limit in [1, 7, 100, 10_000] {
        let mut seen = BTreeSet::new();
        let mut cursor = 0;
        let mut pages = 0;
        loop {
            let page = presence
                .page("a", cursor, limit, now + TICK)
                .wait()
                .expect("the store is available");
            assert!(page.members.len() <= limit + 100, "{} members", page.members.len());
            seen.extend(page.members.iter().map(|info| info.client.clone()));
            if page.next == 0 {
                break;
            }
            (cursor, pages) = (page.next, pages + 1);
            presence
                .remove("a", &format!("leaves {pages}"))
                .wait()
                .expect("the store is available");
            add(&*presence, "a", member(format!("comes {limit} {pages}")), now);
        }
        assert!((0..300).all(|number| seen.contains(&format!("stays {number}"))), "{limit}");
        assert!(!seen.contains("expired"));
        assert!(limit > 100 || pages >= 3, "{pages} pages of {limit}");
    }
    assert_eq!(presence.page("b", 0, 1, now).wait(), Ok(PresencePage::default()));
}

fn calls_from_many_threads_all_count(make: MakePresence<'_>) {
    let presence = make();
    let now = Instant::now();
    thread::scope(|scope| {
        for thread in 0..4 {
            let presence = &presence;
            scope.spawn(move || {
                for number in 0..100 {
                    let client = format!("{thread} {number}");
                    add(&**presence, "a", info(&client, &thread.to_string()), now);
                    if number % 2 == 0 {
                        presence.remove("a", &client).wait().expect("the store is available");
                    }
                }
            });
        }
    });
    assert_eq!(stats(&*presence, "a", now), (200, 4));
}

/// Members with their expiry, by channel and client.
type Model = BTreeMap<(u32, u32), (ClientInfo, Instant)>;

fn random_calls_agree_with_the_model(make: MakePresence<'_>, runs: u64) {
    for seed in 0..runs {
        let mut random = StdRng::seed_from_u64(seed);
        let presence = make();
        let mut now = Instant::now();
        let mut model = Model::new();
        for step in 0..STEPS {
            random_call(&*presence, &mut model, &mut now, &mut random);
            let channel = random.random_range(0..CHANNELS);
            let expected: Vec<_> = (model.iter())
                .filter(|((of, _), (_, end))| *of == channel && *end > now)
                .map(|(_, (info, _))| info.clone())
                .collect();
            let users: BTreeSet<_> = expected.iter().map(|info| info.user.clone()).collect();
            let counts = (expected.len(), users.len());
            let name = channel.to_string();
            assert_eq!(stats(&*presence, &name, now), counts, "seed {seed}, step {step}");
            assert_eq!(members(&*presence, &name, now), expected, "seed {seed}, step {step}");
        }
    }
}

/// Makes one random call to the store and to the model.
fn random_call(presence: &dyn Presence, model: &mut Model, now: &mut Instant, random: &mut StdRng) {
    let channel = random.random_range(0..CHANNELS);
    let client = random.random_range(0..9);
    match random.random_range(0..10) {
        0..5 => {
            let user = random.random_range(0..4).to_string();
            let info = info(&client.to_string(), &user);
            let ttl = TTL * random.random_range(1..4);
            presence
                .add(&channel.to_string(), info.clone(), ttl, *now)
                .wait()
                .expect("the store is available");
            model.insert((channel, client), (info, *now + ttl));
        }
        5..7 => {
            presence
                .remove(&channel.to_string(), &client.to_string())
                .wait()
                .expect("the store is available");
            model.remove(&(channel, client));
        }
        7 => presence.sweep(*now),
        _ => *now += TTL * random.random_range(0..5) / 2,
    }
}

fn info(client: &str, user: &str) -> ClientInfo {
    ClientInfo { user: user.to_owned(), client: client.to_owned(), ..ClientInfo::default() }
}

fn add(presence: &dyn Presence, channel: &str, info: ClientInfo, now: Instant) {
    presence.add(channel, info, TTL, now).wait().expect("the store is available");
}

/// Sorted by client id.
fn members(presence: &dyn Presence, channel: &str, now: Instant) -> Vec<ClientInfo> {
    let mut members: Vec<_> = presence
        .members(channel, now)
        .wait()
        .expect("the store is available")
        .iter()
        .map(|info| ClientInfo::clone(info))
        .collect();
    members.sort_by(|one, other| one.client.cmp(&other.client));
    members
}

/// (clients, users)
fn stats(presence: &dyn Presence, channel: &str, now: Instant) -> (usize, usize) {
    let PresenceStats { clients, users } =
        presence.stats(channel, now).wait().expect("the store is available");
    (clients, users)
}

const TTL: Duration = Duration::from_secs(60);
/// Stores may count in milliseconds.
const TICK: Duration = Duration::from_millis(1);
const CHANNELS: u32 = 3;
const RUNS: u64 = 300;
const STEPS: usize = 100;
