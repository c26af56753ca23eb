//! Members whose ends are those of hash fields, which Redis takes out by itself, and the sorted set that they replace.
//! In: a real Redis, whose stored ends are brought nearer to let time pass → out: the panic of a broken promise.
//! Uses the conformance suite. Never: sleeps. With a Redis that has no such ends it says what was not run.
//! A new promise about `engine.redis.presence_hash_field_ttl` is a test here.

use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fanwire_brokers::redis::{Redis, RedisOptions};
use fanwire_node::presence::{self, Presence};
use fanwire_node::protocol::ClientInfo;
use fanwire_node::{Answer, PresenceStats};
use tokio::runtime::Runtime;

use crate::door::{Node, runtime};
use crate::server::RedisServer;
use crate::slots::{Slots, eventually};

/// A store for which time passes: it is taken from the ends that its Redis keeps, since those of fields follow the clock of
/// Redis alone. All times are [`SCALE`] times as long as they are said to be, so that what the test takes does not count.
struct Aging {
    redis: Redis,
    server: Arc<RedisServer>,
    prefix: String,
    /// When it is.
    reached: Mutex<Option<Instant>>,
}

impl Aging {
    fn start(server: &Arc<RedisServer>, runtime: &Runtime) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("aging{}", NUMBER.fetch_add(1, Relaxed));
        let options = RedisOptions { prefix: prefix.clone(), ..asking(server.options()) };
        let redis = Redis::start(&options, runtime.handle());
        Self { redis, server: Arc::clone(server), prefix, reached: Mutex::new(None) }
    }

    /// Lets time pass until `now`; the time that it is for the store.
    fn reach(&self, now: Instant) -> Instant {
        let mut reached = self.reached.lock().expect("no panic inside");
        let passed = now.duration_since(reached.unwrap_or(now));
        *reached = Some(now.max(reached.unwrap_or(now)));
        if !passed.is_zero() {
            let by = (passed * SCALE).as_millis().to_string();
            let command = [b"EVAL", AGE.as_bytes(), b"0", self.prefix.as_bytes(), by.as_bytes()];
            assert_eq!(self.server.ask_with(&command), "$-1\r\n");
        }
        Instant::now()
    }
}

impl Presence for Aging {
    fn add(&self, channel: &str, info: ClientInfo, ttl: Duration, now: Instant) -> Answer<()> {
        let now = self.reach(now);
        self.redis.add(channel, info, ttl * SCALE, now)
    }

    fn remove(&self, channel: &str, client: &str) -> Answer<()> {
        self.redis.remove(channel, client)
    }

    fn members(&self, channel: &str, now: Instant) -> Answer<Vec<Arc<ClientInfo>>> {
        let now = self.reach(now);
        self.redis.members(channel, now)
    }

    fn stats(&self, channel: &str, now: Instant) -> Answer<PresenceStats> {
        let now = self.reach(now);
        self.redis.stats(channel, now)
    }

    fn sweep(&self, now: Instant) {
        let now = self.reach(now);
        self.redis.sweep(now);
    }
}

fn asking(options: RedisOptions) -> RedisOptions {
    RedisOptions { presence_fields: true, ..options }
}

fn has_fields(server: &RedisServer) -> bool {
    server.ask("COMMAND INFO HPEXPIREAT").to_lowercase().contains("hpexpireat")
}

/// A Redis that has ends of fields. That there is none is said past what a test runner keeps to itself.
fn start_with_fields(what: &str) -> Option<RedisServer> {
    let server = RedisServer::start(&[]);
    if has_fields(&server) {
        return Some(server);
    }
    let _ = writeln!(
        std::io::stderr(),
        "NOT RUN: {what}: this Redis has no HPEXPIREAT; name one of 7.4 or newer in FANWIRE_REDIS_SERVER"
    );
    None
}

fn member(client: &str, user: &str) -> ClientInfo {
    ClientInfo { client: client.to_owned(), user: user.to_owned(), ..ClientInfo::default() }
}

fn add(redis: &Redis, client: &str, user: &str, ttl: Duration) {
    redis.add("a", member(client, user), ttl, Instant::now()).wait().expect("it is there");
}

fn remove(redis: &Redis, client: &str) {
    redis.remove("a", client).wait().expect("it is there");
}

fn clients(redis: &Redis) -> Vec<String> {
    let members = redis.members("a", Instant::now()).wait().expect("it is there");
    let mut clients: Vec<_> = members.iter().map(|member| member.client.clone()).collect();
    clients.sort();
    clients
}

/// (clients, users)
fn stats(redis: &Redis, now: Instant) -> (usize, usize) {
    let stats = redis.stats("a", now).wait().expect("it is there");
    (stats.clients, stats.users)
}

/// Of what is known of the clients of a user in the channel `a`.
fn tally_bytes(server: &RedisServer, prefix: &str, user: &str) -> usize {
    let key = format!("{prefix}.presence.tallies.{{:a}}");
    let answer = server.ask_with(&[b"HSTRLEN", key.as_bytes(), user.as_bytes()]);
    answer[1..].trim().parse().expect("a number")
}

/// Of a Redis without ends of fields the same is asked, and it keeps to the sorted set.
#[test]
fn a_presence_in_fields_keeps_the_promises_of_presence() {
    let (server, runtime) = (Arc::new(RedisServer::start(&[])), runtime());
    let has_fields = has_fields(&server);
    if has_fields {
        presence::conformance::check_slow(&|| Arc::new(Aging::start(&server, &runtime)));
    } else {
        let number = AtomicU32::new(0);
        presence::conformance::check_slow(&|| {
            let prefix = format!("test{}", number.fetch_add(1, Relaxed));
            let options = RedisOptions { prefix, ..asking(server.options()) };
            Arc::new(Redis::start(&options, runtime.handle()))
        });
    }
    let redis = Redis::start(&asking(server.options()), runtime.handle());
    add(&redis, "c", "1", MINUTE);
    let used = [("clients", has_fields), ("tallies", has_fields), ("ends", !has_fields)];
    for (kind, is_used) in used {
        let answer = server.ask(&format!("EXISTS fanwire.presence.{kind}.{{:a}}"));
        assert_eq!(answer, format!(":{}\r\n", u8::from(is_used)), "{kind}");
    }
}

/// Nobody asks for the members meanwhile.
#[test]
fn a_member_is_taken_out_by_redis_and_a_renewed_one_stays() {
    let Some(server) = start_with_fields("members that Redis takes out") else { return };
    let node = Node::start(&asking(server.options()));
    let redis = &node.redis;
    for (client, user) in [("c", "1"), ("d", "1"), ("e", "2")] {
        add(redis, client, user, MINUTE);
    }
    assert_eq!(stats(redis, Instant::now()), (3, 2));
    for client in ["c", "d", "e"] {
        add(redis, client, if client == "e" { "2" } else { "1" }, Duration::from_secs(1));
    }
    add(redis, "d", "1", MINUTE);
    let is_alone = || server.ask("HLEN fanwire.presence.clients.{:a}") == ":1\r\n";
    eventually(is_alone, "Redis to take out two");
    let has_one_user = || server.ask("HLEN fanwire.presence.tallies.{:a}") == ":1\r\n";
    eventually(has_one_user, "Redis to take out a user");
    assert_eq!(clients(redis), ["d"]);
    assert_eq!(stats(redis, Instant::now()), (1, 1));
    remove(redis, "d");
    assert_eq!(stats(redis, Instant::now()), (0, 0), "what was taken out counts no more");
    assert_eq!(server.ask("DBSIZE"), ":0\r\n", "nothing is left behind");
}

/// As after the update of a Redis: what is there was kept by a sorted set.
#[test]
fn members_of_the_sorted_set_are_seen_until_their_renewal_or_their_end() {
    let Some(server) = start_with_fields("members of a sorted set beside fields") else { return };
    let (old, new) = (Node::start(&server.options()), Node::start(&asking(server.options())));
    let (old, new) = (&old.redis, &new.redis);
    for (client, user) in [("c", "1"), ("d", "1"), ("e", "2"), ("f", "3")] {
        add(old, client, user, MINUTE);
    }
    assert_eq!(clients(new), ["c", "d", "e", "f"]);
    assert_eq!(stats(new, Instant::now()), (4, 3));
    add(new, "c", "1", 3 * MINUTE);
    add(new, "g", "4", 3 * MINUTE);
    assert_eq!(clients(new), ["c", "d", "e", "f", "g"], "each once");
    assert_eq!(stats(new, Instant::now()), (5, 4), "a user of both counts once");
    assert_eq!(server.ask("ZSCORE fanwire.presence.ends.{:a} c"), "$-1\r\n");
    assert_eq!(server.ask("HEXISTS fanwire.presence.clients.{:a} c"), ":1\r\n");
    remove(new, "d");
    assert_eq!(stats(new, Instant::now()), (4, 4));
    let later = Instant::now() + 2 * MINUTE;
    assert_eq!(stats(new, later), (2, 2), "the time of the others is over");
    assert_eq!(server.ask("EXISTS fanwire.presence.ends.{:a}"), ":0\r\n");
    assert_eq!(clients(new), ["c", "g"]);
}

/// However many clients a user has, what is known of their ends is bounded, and it is known when the last one goes.
#[test]
fn a_user_of_many_clients_is_there_until_the_last_of_them_goes() {
    let Some(server) = start_with_fields("users of many clients in fields") else { return };
    let node = Node::start(&asking(server.options()));
    let redis = &node.redis;
    for round in 0..3 {
        for number in 0..200 {
            let ttl = MINUTE + Duration::from_millis(37 * number + round);
            add(redis, &number.to_string(), "", ttl);
        }
    }
    assert_eq!(stats(redis, Instant::now()), (200, 1));
    let bytes = tally_bytes(&server, "fanwire", "");
    assert!((2..300).contains(&bytes), "{bytes} bytes");
    for number in 0..200 {
        assert_eq!(stats(redis, Instant::now()), (200 - number, 1));
        remove(redis, &(number * 77 % 200).to_string());
    }
    assert_eq!(stats(redis, Instant::now()), (0, 0));
    assert_eq!(server.ask("DBSIZE"), ":0\r\n");
}

/// One client of it vanishes twice a minute.
#[test]
fn of_a_user_that_stays_no_ends_are_kept_that_are_over() {
    let Some(server) = start_with_fields("users that stay in fields") else { return };
    let (server, runtime, began) = (Arc::new(server), runtime(), Instant::now());
    let store = Aging::start(&server, &runtime);
    for round in 0..200 {
        let now = began + MINUTE / 2 * round;
        for client in ["c", "d", &round.to_string()] {
            store.add("a", member(client, "1"), MINUTE, now).wait().expect("it is there");
        }
    }
    let stats = store.stats("a", began + MINUTE / 2 * 199).wait().expect("it is there");
    assert_eq!(
        (stats.clients, stats.users),
        (4, 1),
        "two that stay, two that have not vanished yet"
    );
    let bytes = tally_bytes(&server, &store.prefix, "1");
    assert!((2..100).contains(&bytes), "{bytes} bytes");
}

#[test]
fn ends_in_fields_go_along_with_a_slot_and_to_a_new_master() {
    if start_with_fields("ends in fields in a Cluster").is_none() {
        return;
    }
    let cluster = Slots::start(1);
    let node = Node::start(&asking(cluster.options()));
    let redis = &node.redis;
    let (from, slot) = cluster.owner("a");
    let ends = |node: usize| {
        let name = "HPEXPIRETIME fanwire.presence.clients.{:a} FIELDS 2 c d";
        cluster.nodes[node].ask(name)
    };
    add(redis, "c", "1", 10 * MINUTE);
    add(redis, "d", "1", 20 * MINUTE);
    let before = ends(from);
    assert!(before.starts_with("*2\r\n:1"), "{before}");
    let to = (from + 1) % 3;
    cluster.migrate(slot, from, to);
    assert_eq!(ends(to), before, "at the next master");
    assert_eq!(
        (clients(redis), stats(redis, Instant::now())),
        (vec!["c".into(), "d".into()], (2, 1))
    );
    add(redis, "e", "2", 10 * MINUTE);
    cluster.promote(to + 3);
    let is_there = || redis.members("a", Instant::now()).wait().is_ok_and(|found| found.len() == 3);
    eventually(is_there, "the members at the replica that was promoted");
    assert_eq!(ends(to + 3), before, "there, too");
    let is_done = |done: Answer<()>| done.wait().is_ok();
    eventually(|| is_done(redis.remove("a", "d")), "a removal there");
    assert_eq!(
        (clients(redis), stats(redis, Instant::now())),
        (vec!["c".into(), "e".into()], (2, 2))
    );
}

#[test]
fn who_may_not_use_the_ends_of_fields_keeps_to_the_sorted_set() {
    let Some(server) = start_with_fields("ends in fields that access lists forbid") else { return };
    let user = ["ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all", "-hpexpireat"];
    assert_eq!(server.ask_with(&user.map(str::as_bytes)), "+OK\r\n");
    let mut options = asking(server.options());
    for address in &mut options.addresses {
        (address.user, address.password) = ("limited".into(), "secret".into());
    }
    let node = Node::start(&options);
    add(&node.redis, "c", "1", MINUTE);
    assert_eq!(
        (clients(&node.redis), stats(&node.redis, Instant::now())),
        (vec!["c".into()], (1, 1))
    );
    assert_eq!(server.ask("EXISTS fanwire.presence.ends.{:a}"), ":1\r\n");
    assert_eq!(node.redis.health().refused_count(), 0);
}

const MINUTE: Duration = Duration::from_secs(60);
/// A millisecond of a test is then longer than the test takes.
const SCALE: u32 = 100_000;
/// Brings all ends of a prefix nearer. ARGV: 1 the prefix, 2 by how many milliseconds.
const AGE: &str = r"
local by = tonumber(ARGV[2])
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '.presence.*')) do
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local held = redis.call('HGET', key, field)
    local at = redis.call('HPEXPIRETIME', key, 'FIELDS', 1, field)[1]
    if string.find(key, '.tallies.', 1, true) and held ~= '1' then
      local counts = {}
      for other, count in pairs(cmsgpack.unpack(held)) do counts[other - by] = count end
      redis.call('HSET', key, field, cmsgpack.pack(counts))
    end
    redis.call('HPEXPIREAT', key, at - by, 'FIELDS', 1, field)
  end
end
";
