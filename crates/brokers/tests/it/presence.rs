//! Members whose ends are those of hash fields, which Redis takes out by itself, and the sorted set that they replace.
//! In: a real Redis, whose stored ends are brought nearer to let time pass → out: the panic of a broken promise.
//! Uses the conformance suite. Never: sleeps. With a Redis that has no such ends it says what was not run.
//! A new promise about `engine.redis.presence_hash_field_ttl` is a test here.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fanwire_broker::{Answer, Presence, PresenceStats};
use fanwire_brokers::redis::{Redis, RedisOptions};
use fanwire_protocol::ClientInfo;
use tokio::runtime::Runtime;

use crate::conformance::fresh;
use crate::door::{Node, runtime};
use crate::server::RedisServer;
use crate::slots::{Slots, eventually, node};

/// A store for which time passes: it is taken from the ends that its Redis keeps, since those of fields follow the clock of
/// Redis alone. All times are [`SCALE`] times as long as they are said to be, so that what the test takes does not count.
struct Aging {
    redis: Redis,
    masters: Arc<[RedisServer]>,
    prefix: String,
    /// When it is.
    reached: Mutex<Option<Instant>>,
}

impl Aging {
    fn start(options: &RedisOptions, masters: &Arc<[RedisServer]>, runtime: &Runtime) -> Self {
        let redis = Redis::start(options, runtime.handle());
        let (masters, prefix) = (Arc::clone(masters), options.prefix.clone());
        Self { redis, masters, prefix, reached: Mutex::new(None) }
    }

    /// Lets time pass until `now`; the time that it is for the store.
    fn reach(&self, now: Instant) -> Instant {
        let mut reached = self.reached.lock().expect("no panic inside");
        let passed = now.duration_since(reached.unwrap_or(now));
        *reached = Some(now.max(reached.unwrap_or(now)));
        if !passed.is_zero() {
            let by = (passed * SCALE).as_millis().to_string();
            let command = [b"EVAL", AGE.as_bytes(), b"0", self.prefix.as_bytes(), by.as_bytes()];
            for master in &*self.masters {
                assert_eq!(master.ask_with(&command), "$-1\r\n");
            }
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

/// The promises of presence, by a sorted set and by fields, as far as the Redis has ends of them.
pub(crate) fn keeps_the_promises(
    options: &RedisOptions,
    masters: &Arc<[RedisServer]>,
    runtime: &Runtime,
) {
    let has_fields = has_fields(&masters[0]);
    for presence_fields in [false, true] {
        let options = RedisOptions { presence_fields, ..options.clone() };
        fanwire_broker::conformance::presence::check_slow(
            &|| match presence_fields && has_fields {
                true => Arc::new(Aging::start(&fresh(options.clone()), masters, runtime)),
                false => Arc::new(Redis::start(&fresh(options.clone()), runtime.handle())),
            },
        );
    }
    if !has_fields {
        is_not_run("the promises of presence by fields");
    }
}

fn without(options: RedisOptions) -> RedisOptions {
    RedisOptions { presence_fields: false, ..options }
}

fn has_fields(server: &RedisServer) -> bool {
    server.ask("COMMAND INFO HPEXPIREAT").to_lowercase().contains("hpexpireat")
}

/// A Redis that has ends of fields, if there is one.
fn start_with_fields(what: &str) -> Option<RedisServer> {
    let server = Some(RedisServer::start(&[])).filter(has_fields);
    if server.is_none() {
        is_not_run(what);
    }
    server
}

/// Says so, past what a test runner keeps to itself.
fn is_not_run(what: &str) {
    let _ = writeln!(
        std::io::stderr(),
        "NOT RUN: {what}: this Redis has no HPEXPIREAT; name one of 7.4 or newer in FANWIRE_REDIS_SERVER"
    );
}

/// The kinds of names that hold members of the channel `a`.
fn kinds_in_use(server: &RedisServer) -> Vec<&'static str> {
    let is_used =
        |kind: &&str| server.ask(&format!("EXISTS fanwire.presence.{kind}.{{:a}}")) == ":1\r\n";
    ["ends", "members", "users", "clients", "tallies"].into_iter().filter(is_used).collect()
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

/// Nobody has to ask for fields, or to know which Redis there is.
#[test]
fn members_are_in_fields_where_a_redis_has_them_unless_that_is_switched_off() {
    let server = RedisServer::start(&[]);
    let has_fields = has_fields(&server);
    let (sorted, fields) = (vec!["ends", "members", "users"], vec!["clients", "tallies"]);
    let rows = [
        (server.options(), if has_fields { fields } else { sorted.clone() }),
        (without(server.options()), sorted),
    ];
    for (options, expected) in rows {
        let node = Node::start(&options);
        add(&node.redis, "c", "1", MINUTE);
        assert_eq!(kinds_in_use(&server), expected);
        assert_eq!(
            (clients(&node.redis), stats(&node.redis, Instant::now())),
            (vec!["c".into()], (1, 1))
        );
        remove(&node.redis, "c");
        assert_eq!(kinds_in_use(&server), [""; 0]);
        assert_eq!(node.redis.health().refused_count(), 0);
    }
    if !has_fields {
        is_not_run("that fields are chosen where a Redis has them");
    }
}

/// Some have the switch off already, or still.
#[test]
fn nodes_see_the_members_of_each_other_whichever_of_them_use_fields() {
    let Some(server) = start_with_fields("nodes with fields beside nodes without") else { return };
    let nodes = [Node::start(&server.options()), Node::start(&without(server.options()))];
    let [with, without] = [&nodes[0].redis, &nodes[1].redis];
    let all_see = |expected: &[&str], counts: (usize, usize)| {
        for redis in [with, without] {
            assert_eq!(clients(redis), expected);
            assert_eq!(stats(redis, Instant::now()), counts);
        }
    };
    for (redis, client, user) in
        [(with, "c", "1"), (with, "d", "2"), (without, "e", "1"), (without, "f", "3")]
    {
        add(redis, client, user, MINUTE);
    }
    assert_eq!(kinds_in_use(&server).len(), 5);
    all_see(&["c", "d", "e", "f"], (4, 3));
    add(with, "c", "1", 2 * MINUTE);
    add(without, "e", "1", 2 * MINUTE);
    all_see(&["c", "d", "e", "f"], (4, 3));
    remove(with, "c");
    all_see(&["d", "e", "f"], (3, 3));
    remove(without, "d");
    remove(with, "f");
    all_see(&["e"], (1, 1));
    remove(without, "e");
    all_see(&[], (0, 0));
    assert_eq!(server.ask("DBSIZE"), ":0\r\n", "nothing is left behind");
}

/// As a master without ends of fields leaves it behind that was one for a while.
#[test]
fn a_member_that_is_kept_twice_is_seen_once() {
    let Some(server) = start_with_fields("members in both forms") else { return };
    let nodes = [Node::start(&server.options()), Node::start(&without(server.options()))];
    let [with, without] = [&nodes[0].redis, &nodes[1].redis];
    for redis in [with, without] {
        add(redis, "c", "1", MINUTE);
        add(redis, if std::ptr::eq(redis, with) { "d" } else { "e" }, "1", MINUTE);
    }
    assert_eq!(server.ask("ZCARD fanwire.presence.ends.{:a}"), ":2\r\n");
    assert_eq!(server.ask("HLEN fanwire.presence.clients.{:a}"), ":2\r\n");
    for redis in [with, without] {
        assert_eq!(clients(redis), ["c", "d", "e"]);
        assert_eq!(stats(redis, Instant::now()), (3, 1));
    }
    remove(with, "c");
    for redis in [with, without] {
        assert_eq!(clients(redis), ["d", "e"]);
        assert_eq!(stats(redis, Instant::now()), (2, 1));
    }
}

/// Each channel belongs to one of two Redis.
#[test]
fn each_redis_of_several_is_taken_as_it_is() {
    let Some(newer) = start_with_fields("a Redis with ends beside one without") else { return };
    let older = RedisServer::start(&LACKING);
    let addresses = vec![newer.address(), older.address()];
    let node = Node::start(&RedisOptions { addresses, ..RedisOptions::default() });
    for number in 0..20 {
        let added = node.redis.add(&format!("{number}"), member("c", "1"), MINUTE, Instant::now());
        added.wait().expect("it is there");
    }
    let counts = [newer, older].map(|server| {
        let count = |kind| {
            let found = server.ask(&format!("KEYS fanwire.presence.{kind}.*"));
            found.matches("fanwire").count()
        };
        (count("clients"), count("ends"))
    });
    let [(in_fields, 0), (0, in_sets)] = counts else { panic!("{counts:?}") };
    assert_eq!(in_fields + in_sets, 20);
    assert!(in_fields > 0 && in_sets > 0, "{in_fields} and {in_sets}");
    assert_eq!(node.redis.health().refused_count(), 0);
}

/// The masters of a Cluster can do it, the replicas cannot: as when only some were updated.
#[test]
fn members_live_on_at_a_master_without_ends_of_fields_and_back() {
    if start_with_fields("masters with ends of fields and without in turns").is_none() {
        return;
    }
    let nodes: Vec<_> =
        (0..6).map(|number| node(if number < 3 { &[] } else { &LACKING })).collect();
    let ports = nodes.iter().map(|node| node.address().port).collect();
    let cluster = Slots::of(nodes, ports);
    let node = Node::start(&cluster.options());
    let redis = &node.redis;
    let (owner, _) = cluster.owner("a");
    let is_added = |client: &str| {
        redis.add("a", member(client, "1"), 10 * MINUTE, Instant::now()).wait().is_ok()
    };
    let sees = |expected: &[&str]| {
        assert_eq!(clients(redis), expected);
        assert_eq!(stats(redis, Instant::now()), (expected.len(), 1));
    };
    for (master, kept_in) in [(owner, "clients"), (owner + 3, "ends"), (owner, "clients")] {
        if cluster.nodes[master].ask("INFO replication").contains("role:slave") {
            cluster.promote(master);
        }
        for client in ["c", "d"] {
            eventually(|| is_added(client), "a renewal at the master of the day");
        }
        let master = &cluster.nodes[master];
        eventually(|| kinds_in_use(master).contains(&kept_in), "members in its form");
        sees(&["c", "d"]);
    }
    remove(redis, "c");
    sees(&["d"]);
}

/// Nobody asks for the members meanwhile.
#[test]
fn a_member_is_taken_out_by_redis_and_a_renewed_one_stays() {
    let Some(server) = start_with_fields("members that Redis takes out") else { return };
    let node = Node::start(&server.options());
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
    let (old, new) = (Node::start(&without(server.options())), Node::start(&server.options()));
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
    let node = Node::start(&server.options());
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
    let (options, runtime, began) = (fresh(server.options()), runtime(), Instant::now());
    let masters: Arc<[_]> = [server].into();
    let store = Aging::start(&options, &masters, &runtime);
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
    let bytes = tally_bytes(&masters[0], &store.prefix, "1");
    assert!((2..100).contains(&bytes), "{bytes} bytes");
}

#[test]
fn ends_in_fields_go_along_with_a_slot_and_to_a_new_master() {
    if start_with_fields("ends in fields in a Cluster").is_none() {
        return;
    }
    let cluster = Slots::start(1);
    let node = Node::start(&cluster.options());
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
    let mut options = server.options();
    for address in &mut options.addresses {
        (address.user, address.password) = ("limited".into(), "secret".into());
    }
    let node = Node::start(&options);
    add(&node.redis, "c", "1", MINUTE);
    assert_eq!(
        (clients(&node.redis), stats(&node.redis, Instant::now())),
        (vec!["c".into()], (1, 1))
    );
    assert_eq!(kinds_in_use(&server), ["ends", "members", "users"]);
    assert_eq!(clients(&Node::start(&server.options()).redis), ["c"], "who may sees it, too");
    assert_eq!(node.redis.health().refused_count(), 0);
}

/// Options of a Redis that has no ends of fields, like one before 7.4.
const LACKING: [&str; 3] = ["--rename-command", "HPEXPIREAT", ""];
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
