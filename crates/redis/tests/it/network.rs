//! A network that loses, delays, throttles and refuses: calls stay bounded and ordered, and gaps are reported.
//! In: an engine behind a proxy → out: calls that end in time, reported gaps, positions.
//! Uses real processes and a proxy. Never: sleeps; it waits for what must happen.
//! A new network fault is a test here; crashes and refusals of Redis itself are in `faults.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use fanwire_broker::{Answer, Broker as _, BrokerError, Change, Position, Presence as _, Query};
use fanwire_protocol::ClientInfo;
use fanwire_redis::RedisOptions;
use fanwire_testing::wait_for;

use crate::node::{Event, Node, WAIT_MAX, retention};
use crate::proxy::{Network, Proxy};
use crate::server::RedisServer;

/// Through the proxy, with short timeouts.
fn through(proxy: &Proxy) -> RedisOptions {
    RedisOptions {
        addresses: vec![proxy.address()],
        connect_timeout: CONNECT_TIMEOUT,
        io_timeout: IO_TIMEOUT,
        ..RedisOptions::default()
    }
}

/// The publications that a node got.
#[derive(Default)]
struct Seen {
    /// Offsets of deliveries.
    delivered: BTreeMap<String, Vec<u64>>,
    /// Offsets that were recovered.
    recovered: BTreeMap<String, Vec<u64>>,
}

impl Seen {
    fn take(&mut self, (channel, _, position): Event) {
        if position != Position::default() {
            self.delivered.entry(channel).or_default().push(position.offset);
        }
    }

    /// Recovers by position after a reported gap, as a subscriber does: its position is the publication before the first
    /// one that it did not get. Later ones may have arrived, because gaps and publications are recorded apart.
    fn recover(&mut self, node: &Node, channel: &str) {
        node.events_so_far().into_iter().for_each(|event| self.take(event));
        let delivered = self.delivered.get(channel).into_iter().flatten();
        let position =
            delivered.fold(0, |position, offset| position + u64::from(*offset == position + 1));
        let query = Query { since: Some(position), ..Query::default() };
        let found = node.redis.follow(channel, Some(query), retention(), Instant::now());
        let found = found.wait().expect("it is well");
        let offsets = found.publications.iter().map(|publication| publication.offset);
        self.recovered.entry(channel.to_owned()).or_default().extend(offsets);
    }

    /// Checks that no publication was delivered twice or out of order, and none is missing up to `top`.
    fn check_complete(&self, channel: &str, top: u64) {
        let delivered = &self.delivered[channel];
        assert!(delivered.windows(2).all(|pair| pair[0] < pair[1]), "{channel}: {delivered:?}");
        let recovered = self.recovered.get(channel).into_iter().flatten();
        let all: BTreeSet<u64> = delivered.iter().chain(recovered).copied().collect();
        assert!(all.iter().copied().eq(1..=top), "{channel}: {top} of {all:?}");
    }
}

/// Measures calls.
struct Calls(Sender<Duration>, Receiver<Duration>);

impl Calls {
    /// Starts one call of each kind for this channel; returns their number.
    fn begin(&self, node: &Node, channel: &str) -> usize {
        let redis = &node.redis;
        let now = Instant::now();
        let member = ClientInfo { client: "c".into(), ..ClientInfo::default() };
        let query = Some(Query::default());
        self.time(node.begin_publish(channel, "mine"));
        self.time(redis.history(channel, Query::default(), retention(), now));
        self.time(redis.follow(channel, query, retention(), now));
        self.time(redis.publish_join_leave(channel, Change::Join, member.clone()));
        self.time(redis.add(channel, member, Duration::from_secs(60), now));
        self.time(redis.members(channel, now));
        self.time(redis.stats(channel, now));
        7
    }

    fn time<T: Send + 'static>(&self, answer: Answer<T>) {
        let began = Instant::now();
        let ended = self.0.clone();
        answer.then(move |_| {
            let _ = ended.send(began.elapsed());
        });
    }

    /// The time of the slowest of `count` calls.
    fn longest(&self, count: usize) -> Duration {
        let times = (0..count).map(|_| self.1.recv_timeout(WAIT_MAX).expect("every call ends"));
        times.max().expect("some")
    }
}

/// Calls end in time, every loss of a connection is noticed, and positions find the publications of that time.
fn check_cut(cut: Network) {
    let server = RedisServer::start(&[]);
    let proxy = Proxy::to(&server.address());
    let node = Node::start(&through(&proxy));
    let other = Node::start(&server.options());
    let channels: Vec<String> = (0..6).map(|number| format!("channel:{number}")).collect();
    node.wait_until_healthy();
    let mut seen = Seen::default();
    for channel in &channels {
        node.subscribe(channel);
        other.publish_until_done(channel, "before");
        seen.take(node.event());
    }
    let (sender, receiver) = channel();
    let calls = Calls(sender, receiver);
    let mut begun: usize = channels.iter().map(|channel| calls.begin(&node, channel)).sum();
    proxy.set_network(cut);
    while node.redis.health().lost_count() < 4 {
        begun += channels.iter().map(|channel| calls.begin(&node, channel)).sum::<usize>();
        let longest = calls.longest(std::mem::take(&mut begun));
        assert!(longest < CONNECT_TIMEOUT + 2 * IO_TIMEOUT + SLACK, "{longest:?}");
        for channel in &channels {
            other.publish_until_done(channel, "meanwhile");
        }
    }
    node.wait_until(|health| health.current_error().is_some());
    assert_eq!(node.publish("channel:0", "too early"), Err(BrokerError::Unavailable));
    proxy.repair();
    node.wait_until_healthy();
    let mut with_gap = BTreeSet::new();
    while !with_gap.iter().eq(&channels) {
        with_gap.insert(node.next_gap()); // again if a connection is lost again
    }
    for channel in &channels {
        seen.recover(&node, channel);
        let last = node.publish_until_done(channel, "after");
        while seen.delivered[channel].last() != Some(&last.offset) {
            seen.take(node.event());
        }
        seen.check_complete(channel, last.offset);
    }
}

#[test]
fn a_network_that_loses_commands_is_survived() {
    check_cut(Network { loses_commands: true, ..Network::default() });
}

#[test]
fn a_network_that_loses_replies_is_survived() {
    check_cut(Network { loses_replies: true, ..Network::default() });
}

#[test]
fn a_network_that_loses_everything_is_survived() {
    check_cut(Network { loses_commands: true, loses_replies: true, ..Network::default() });
}

#[test]
fn an_idle_connection_is_checked() {
    let server = RedisServer::start(&[]);
    let proxy = Proxy::to(&server.address());
    let node = Node::start(&through(&proxy));
    node.wait_until_healthy();
    proxy.set_network(Network { loses_replies: true, ..Network::default() });
    node.wait_until(|health| health.lost_count() >= 4);
    proxy.repair();
    node.wait_until_healthy();
    node.publish("a", "1").expect("the connections are new");
}

#[test]
fn no_call_waits_for_a_try_to_connect_that_hangs() {
    let server = RedisServer::start(&[]);
    let long = 10 * WAIT_MAX;
    let short = Duration::from_millis(200);
    for (connect_timeout, io_timeout) in [(short, long), (long, short)] {
        let proxy = Proxy::to(&server.address());
        let node = Node::start(&RedisOptions { connect_timeout, io_timeout, ..through(&proxy) });
        node.wait_until_healthy();
        node.redis.subscribe("a");
        proxy.set_network(Network { loses_replies: true, ..Network::default() });
        proxy.reset_connections();
        node.wait_until(|health| health.lost_count() >= 4);
        let (sender, receiver) = channel();
        let calls = Calls(sender, receiver);
        if connect_timeout == short {
            calls.time(node.begin_publish("a", "1"));
        } else {
            calls.time(node.redis.follow("a", None, retention(), Instant::now()));
        }
        calls.longest(1); // within this timeout, not the longer one
    }
}

#[test]
fn a_slow_network_keeps_order_and_fails_no_call() {
    let server = RedisServer::start(&[]);
    let proxy = Proxy::to(&server.address());
    proxy.set_network(Network { delay: Duration::from_millis(200), ..Network::default() });
    let node = Node::start(&RedisOptions {
        connect_timeout: WAIT_MAX,
        io_timeout: WAIT_MAX,
        ..through(&proxy)
    });
    node.subscribe("a");
    let answers: Vec<_> =
        (1..=500).map(|number| node.begin_publish("a", number.to_string())).collect();
    for (offset, answer) in (1..).zip(answers) {
        let position = answer.wait().expect("late is not lost");
        assert_eq!(position.offset, offset);
        assert_eq!(node.event(), ("a".into(), offset.to_string(), position));
    }
    assert_eq!(node.redis.health().lost_count(), 0);
}

/// PUB/SUB is lost while the stream is being read for a new subscriber. Its position would be older than the lost
/// publications, and the gap would be reported before it is subscribed: it would never notice.
#[test]
fn a_follow_during_a_loss_fails() {
    let server = RedisServer::start(&[]);
    let proxy = Proxy::to(&server.address());
    let connect_timeout = WAIT_MAX;
    let io_timeout = WAIT_MAX;
    let node = Node::start(&RedisOptions {
        connect_timeout,
        io_timeout,
        pubsub_connections: 1,
        ..through(&proxy)
    });
    let mut channels = (0..20).map(|number| format!("channel:{number}"));
    loop {
        let name = channels.next().expect("the connection is lost in time once");
        node.subscribe(&name);
        let lost = node.redis.health().lost_count();
        proxy.set_network(Network { delay: Duration::from_secs(1), ..Network::default() });
        let followed = node.redis.follow(&name, Some(Query::TOP), retention(), Instant::now());
        wait_for(|| server.ask(&format!("EXISTS fanwire.meta.{{:{name}}}")) != ":0\r\n", WAIT_MAX);
        assert_eq!(server.ask("CLIENT KILL TYPE pubsub"), ":1\r\n");
        node.wait_until(|health| health.lost_count() > lost);
        match followed.ready() {
            Ok(_) => {} // the answer came before the loss
            Err(waits) => {
                assert_eq!(waits.wait(), Err(BrokerError::Unavailable));
                break;
            }
        }
        proxy.repair();
        node.wait_until_healthy();
    }
}

#[test]
fn a_redis_that_stops_for_a_while_answers_late_and_in_order() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&RedisOptions { io_timeout: 3 * WAIT_MAX, ..server.options() });
    node.subscribe("a");
    server.signal("-STOP");
    let answers: Vec<_> =
        (1..=500).map(|number| node.begin_publish("a", number.to_string())).collect();
    server.signal("-CONT");
    for (offset, answer) in (1..).zip(answers) {
        assert_eq!(answer.wait().map(|position| position.offset), Ok(offset));
        assert_eq!(node.event().1, offset.to_string());
    }
}

/// Calls until one fails. Returns how many were queued; all are answered when the Redis continues.
fn taken_while_stopped<T: Send + 'static>(call: impl Fn(&Node) -> Answer<T>) -> usize {
    let server = RedisServer::start(&[]);
    let node = Node::start(&RedisOptions {
        command_connections: 1,
        io_timeout: 6 * WAIT_MAX,
        ..server.options()
    });
    node.publish_until_done("a", "1");
    server.signal("-STOP");
    let mut answers = Vec::new();
    let failed = loop {
        match call(&node).ready() {
            Ok(result) => break result,
            Err(waits) => answers.push(waits),
        }
    };
    assert_eq!(failed.err(), Some(BrokerError::Unavailable), "at once");
    assert_eq!(node.redis.health().current_error(), None);
    server.signal("-CONT");
    let taken = answers.len();
    for answer in answers {
        assert!(answer.wait().is_ok());
    }
    taken
}

#[test]
fn calls_that_wait_for_a_redis_are_limited_in_number() {
    let member = ClientInfo::default();
    let taken = taken_while_stopped(|node| {
        node.redis.publish_join_leave("a", Change::Join, member.clone())
    });
    assert!((64 * 1024..=2 * 64 * 1024 + 1024).contains(&taken), "{taken}");
}

#[test]
fn calls_that_wait_for_a_redis_are_limited_in_bytes() {
    let payload = "x".repeat(256 * 1024);
    let taken = taken_while_stopped(|node| node.begin_publish("a", payload.clone()));
    assert!((250..=257).contains(&taken), "64 MiB, {taken} of 256 KiB");
}

#[test]
fn a_slow_pubsub_connection_that_redis_closes_is_reopened_and_reports_gaps() {
    let limit = ["--client-output-buffer-limit", "pubsub", "64kb", "32kb", "1"];
    let server = RedisServer::start(&limit);
    let proxy = Proxy::to(&server.address());
    // 10 MB are read afterwards, while others work.
    let node = Node::start(&RedisOptions { io_timeout: 6 * IO_TIMEOUT, ..through(&proxy) });
    let other = Node::start(&server.options());
    node.subscribe("a");
    let mut seen = Seen::default();
    proxy.set_network(Network { reply_bytes: 1024, ..Network::default() });
    let payload = "x".repeat(32 * 1024);
    for _ in 0..300 {
        other.publish_until_done("a", &payload);
    }
    node.wait_until(|health| health.lost_count() >= 1);
    proxy.repair();
    assert_eq!(node.next_gap(), "a");
    node.wait_until_healthy();
    seen.recover(&node, "a");
    let last = other.publish_until_done("a", "after");
    while seen.delivered.get("a").and_then(|offsets| offsets.last()) != Some(&last.offset) {
        seen.take(node.event());
    }
    seen.check_complete("a", last.offset);
}

#[test]
fn a_pubsub_connection_that_overflows_is_reopened_and_reports_gaps() {
    let server = RedisServer::start(&["--client-output-buffer-limit", "pubsub", "0", "0", "0"]);
    let node = Node::start(&RedisOptions { pubsub_connections: 1, ..server.options() });
    let other = Node::start(&server.options());
    node.subscribe("a");
    let delivery_lock = node.delivery_lock.lock().expect("no panic inside");
    other.publish_until_done("a", "1");
    let much = vec![b'x'; 512 * 1024];
    // 112 MiB: more than the queue of a connection and the buffers of the system hold.
    for _ in 0..224 {
        assert_eq!(server.ask_with(&[b"PUBLISH", b"fanwire.feed.{:a}", &much]), ":1\r\n");
    }
    let second = other.publish_until_done("a", "2");
    wait_for(|| server.ask("CLIENT LIST TYPE pubsub").contains(" oll=0 omem=0 "), WAIT_MAX);
    drop(delivery_lock);
    node.wait_until(|health| health.lost_count() == 1);
    assert_eq!(node.next_gap(), "a");
    let mut seen = Seen::default();
    seen.take(node.event());
    seen.recover(&node, "a");
    seen.check_complete("a", second.offset);
}

#[test]
fn a_subscription_that_redis_ends_is_made_again_on_another_connection() {
    let server = RedisServer::start(&[]);
    let proxy = Proxy::to(&server.address());
    let node = Node::start(&RedisOptions { pubsub_connections: 1, ..through(&proxy) });
    node.wait_until_healthy();
    proxy.set_network(Network { unsubscribes: proxy.accepted(), ..Network::default() });
    node.redis.subscribe("a");
    node.wait_until(|health| health.lost_count() >= 1);
    node.wait_until_healthy();
    node.subscribe("a");
    let position = node.publish("a", "1").expect("it is well");
    assert_eq!(node.event(), ("a".into(), "1".into(), position));
}

#[test]
fn tries_to_connect_back_off() {
    let server = RedisServer::start(&[]);
    let proxy = Proxy::to(&server.address());
    let options = RedisOptions { command_connections: 4, pubsub_connections: 4, ..through(&proxy) };
    let node = Node::start(&options);
    node.wait_until_healthy();
    proxy.set_network(Network { refuses: true, ..Network::default() });
    let before = proxy.accepted();
    let began = Instant::now();
    proxy.reset_connections();
    node.wait_until(|health| health.lost_count() == 8);
    wait_for(|| proxy.accepted() - before >= 8 * 6, WAIT_MAX);
    let tries = proxy.accepted() - before;
    let elapsed = began.elapsed();
    // The first try may come at once, the next after at least 50 ms, 100 ms, 200 ms …
    let mut possible = 1;
    let mut earliest = Duration::ZERO;
    while earliest <= elapsed {
        earliest += Duration::from_millis(50 << (possible - 1).min(5));
        possible += 1;
    }
    assert!(tries <= 8 * possible, "{tries} in {elapsed:?}, not {possible} each");
    proxy.repair();
    node.wait_until_healthy();
    assert_ne!(node.publish("a", "1"), Ok(Position::default()));
}

const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
const IO_TIMEOUT: Duration = Duration::from_secs(1);
/// Extra time for a busy machine.
const SLACK: Duration = Duration::from_secs(3);
