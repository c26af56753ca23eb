//! The tests every presence store has to pass: the promises of `presence.rs`, and random lives against a naive model.
//! In: a way to make a store → out: a panic that says which promise is broken.
//! Uses: threads, and instants counted from the start of a promise. Never: sleeps.
//! Change here: the promises all stores share. What one store adds is tested beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fanwire_protocol::ClientInfo;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::{Presence, PresenceStats};

/// Makes a fresh store. Called once per promise.
pub type Make<'a> = &'a dyn Fn() -> Arc<dyn Presence>;

/// Every promise, one after the other.
///
/// # Panics
/// When the store breaks one.
pub fn check(make: Make<'_>) {
    check_lives(make, LIVES);
}

/// The same for a store over a network, whose random lives are fewer because each call is a round trip.
///
/// # Panics
/// When the store breaks a promise.
pub fn check_slow(make: Make<'_>) {
    check_lives(make, LIVES / 20);
}

fn check_lives(make: Make<'_>, lives: u64) {
    a_member_is_there_whole_until_it_is_removed(make);
    a_member_is_there_until_its_time_is_over(make);
    a_renewed_member_is_as_it_was_said_last(make);
    users_are_counted_once(make);
    calls_from_many_threads_all_count(make);
    random_lives_are_those_of_the_model(make, lives);
}

fn a_member_is_there_whole_until_it_is_removed(make: Make<'_>) {
    let (presence, now) = (make(), Instant::now());
    let whole = ClientInfo {
        conn_info: "\u{0}any bytes".into(),
        chan_info: "{}".into(),
        ..info("c", "42")
    };
    add(&*presence, "a", whole.clone(), now);
    assert_eq!(members(&*presence, "a", now), [whole]);
    assert_eq!(members(&*presence, "b", now), [], "another channel");
    presence.remove("b", "c").wait().expect("there");
    presence.remove("a", "d").wait().expect("there");
    assert_eq!(stats(&*presence, "a", now), (1, 1), "others were removed");
    presence.remove("a", "c").wait().expect("there");
    assert_eq!(stats(&*presence, "a", now), (0, 0));
    assert_eq!(members(&*presence, "a", now), []);
}

fn a_member_is_there_until_its_time_is_over(make: Make<'_>) {
    let (presence, now) = (make(), Instant::now());
    add(&*presence, "a", info("c", "1"), now);
    add(&*presence, "a", info("d", "2"), now + TTL / 2);
    for (after, expected) in [(TTL - TICK, 2), (TTL, 1), (TTL + TTL / 2, 0)] {
        assert_eq!(stats(&*presence, "a", now + after), (expected, expected), "after {after:?}");
        assert_eq!(members(&*presence, "a", now + after).len(), expected, "after {after:?}");
    }
}

fn a_renewed_member_is_as_it_was_said_last(make: Make<'_>) {
    let (presence, now) = (make(), Instant::now());
    add(&*presence, "a", info("c", "1"), now);
    add(&*presence, "a", info("c", "1"), now + TTL / 2);
    assert_eq!(stats(&*presence, "a", now + TTL), (1, 1), "renewed");
    let other = ClientInfo { conn_info: "2".into(), ..info("c", "2") };
    add(&*presence, "a", other.clone(), now + TTL);
    assert_eq!(members(&*presence, "a", now + TTL), [other]);
    assert_eq!(stats(&*presence, "a", now + TTL), (1, 1));
}

fn users_are_counted_once(make: Make<'_>) {
    let (presence, now) = (make(), Instant::now());
    for (client, user) in [("c", "1"), ("d", "1"), ("e", ""), ("f", "")] {
        add(&*presence, "a", info(client, user), now);
    }
    assert_eq!(stats(&*presence, "a", now), (4, 2), "the empty user is one");
    presence.remove("a", "c").wait().expect("there");
    assert_eq!(stats(&*presence, "a", now), (3, 2));
    presence.remove("a", "d").wait().expect("there");
    assert_eq!(stats(&*presence, "a", now), (2, 1));
}

fn calls_from_many_threads_all_count(make: Make<'_>) {
    let (presence, now) = (make(), Instant::now());
    thread::scope(|scope| {
        for thread in 0..4 {
            let presence = &presence;
            scope.spawn(move || {
                for number in 0..100 {
                    let client = format!("{thread} {number}");
                    add(&**presence, "a", info(&client, &thread.to_string()), now);
                    if number % 2 == 0 {
                        presence.remove("a", &client).wait().expect("there");
                    }
                }
            });
        }
    });
    assert_eq!(stats(&*presence, "a", now), (200, 4));
}

/// Members with their ends, in a plain map.
type Model = BTreeMap<(u32, u32), (ClientInfo, Instant)>;

fn random_lives_are_those_of_the_model(make: Make<'_>, lives: u64) {
    for seed in 0..lives {
        let mut random = StdRng::seed_from_u64(seed);
        let (presence, mut now, mut model) = (make(), Instant::now(), Model::new());
        for step in 0..STEPS {
            live(&*presence, &mut model, &mut now, &mut random);
            let channel = random.random_range(0..CHANNELS);
            let expected: Vec<_> = (model.iter())
                .filter(|((place, _), (_, end))| *place == channel && *end > now)
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

/// One thing happens to the store and to the model.
fn live(presence: &dyn Presence, model: &mut Model, now: &mut Instant, random: &mut StdRng) {
    let (channel, client) = (random.random_range(0..CHANNELS), random.random_range(0..9));
    match random.random_range(0..10) {
        0..5 => {
            let user = random.random_range(0..4).to_string();
            let info = info(&client.to_string(), &user);
            let ttl = TTL * random.random_range(1..4);
            presence.add(&channel.to_string(), info.clone(), ttl, *now).wait().expect("there");
            model.insert((channel, client), (info, *now + ttl));
        }
        5..7 => {
            presence.remove(&channel.to_string(), &client.to_string()).wait().expect("there");
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
    presence.add(channel, info, TTL, now).wait().expect("the store is there");
}

/// By client id.
fn members(presence: &dyn Presence, channel: &str, now: Instant) -> Vec<ClientInfo> {
    let members = presence.members(channel, now).wait().expect("the store is there");
    let mut members: Vec<_> = members.iter().map(|info| ClientInfo::clone(info)).collect();
    members.sort_by(|one, other| one.client.cmp(&other.client));
    members
}

/// (clients, users)
fn stats(presence: &dyn Presence, channel: &str, now: Instant) -> (usize, usize) {
    let PresenceStats { clients, users } =
        presence.stats(channel, now).wait().expect("the store is there");
    (clients, users)
}

const TTL: Duration = Duration::from_secs(60);
/// Stores may count in milliseconds.
const TICK: Duration = Duration::from_millis(1);
const CHANNELS: u32 = 3;
const LIVES: u64 = 300;
const STEPS: usize = 100;
