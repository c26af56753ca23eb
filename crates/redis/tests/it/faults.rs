//! Faults of a Redis: they are reported, calls are bounded, and everything works again when the Redis is back.
//! In: crashes, refusals, foreign bytes → out: errors with the address, calls that fail in time, reported gaps.
//! Uses real processes. Never: sleeps; it waits for what must happen.
//! A new fault is a test here.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use fanwire_broker::{
    Broker as _, BrokerError, Bus as _, Position, Presence as _, PublishOptions, Query, Retention,
};
use fanwire_redis::{Address, Redis, RedisError, RedisOptions};
use fanwire_testing::{free_port, wait_for};

use crate::node::{Node, WAIT_MAX, retention, runtime};
use crate::server::RedisServer;
use crate::slots;

fn checked(options: &RedisOptions) -> Result<(), RedisError> {
    runtime().block_on(Redis::check(options))
}

fn at(address: Address) -> RedisOptions {
    let connect_timeout = Duration::from_secs(1);
    let io_timeout = Duration::from_secs(1);
    RedisOptions {
        addresses: vec![address],
        connect_timeout,
        io_timeout,
        ..RedisOptions::default()
    }
}

/// The error for an address, which must contain the address.
fn checked_error(address: &Address) -> String {
    let error = checked(&at(address.clone())).expect_err("something is wrong with it");
    let message = error.to_string();
    assert!(message.contains(&address.to_string()), "{message}");
    assert!(!message.contains("secret"), "{message}");
    message
}

#[test]
fn a_wrong_password_is_named_and_a_right_one_serves() {
    let server = RedisServer::start(&["--requirepass", "secret message"]);
    assert!(checked_error(&server.address()).contains("denies access"));
    let wrong = Address { password: "secret".into(), ..server.address() };
    assert!(checked_error(&wrong).contains("engine.redis.password"));
    let right = Address { password: "secret message".into(), db: 3, ..server.address() };
    assert_eq!(checked(&at(right.clone())), Ok(()));
    let node = Node::start(&RedisOptions { client_name: "me".into(), ..at(right) });
    assert_eq!(node.publish_until_done("a", "1").offset, 1);
}

#[test]
fn other_roles_are_named() {
    let master = RedisServer::start(&[]);
    let port = master.address().port.to_string();
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &port]);
    assert!(checked_error(&replica.address()).contains("is a replica"));
    let cluster = slots::node(&[]);
    assert!(checked_error(&cluster.address()).contains("engine.redis.cluster_address"));
    // Refused at the greeting, before `INFO`.
    let numbered = Address { db: 3, ..cluster.address() };
    assert!(
        checked_error(&numbered).contains("engine.redis.cluster_address, without engine.redis.db")
    );
    let beyond = Address { db: 99, ..master.address() };
    assert!(checked_error(&beyond).contains("has no database 99"));
    for address in [numbered, beyond] {
        assert!(checked(&at(address)).is_err_and(|error| error.is_permanent()), "no use to go on");
    }
}

#[test]
fn other_servers_are_refused_by_name() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the first check");
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        drop(stream);
        let second = listener.accept().expect("the second check");
        let _ = listener.accept(); // keeps the second open, and silent
        drop(second);
    });
    let address = Address { port, ..Address::default() };
    assert!(checked_error(&address).contains("does not speak the Redis protocol"));
    assert!(checked_error(&address).contains("the greeting took longer than 1s"));
}

#[test]
fn a_redis_that_is_not_there_is_named_and_waited_for() {
    let address = Address { port: free_port(), ..Address::default() };
    assert!(checked_error(&address).contains("engine.redis.address"));
    let node = Node::start(&at(address));
    assert_eq!(node.publish("a", "1"), Err(BrokerError::Unavailable));
    assert!(!node.redis.health().is_healthy());
}

#[test]
fn calls_fail_while_a_redis_is_away_and_succeed_when_it_is_back() {
    let mut server = RedisServer::start(&[]);
    let node = Node::start(&at(server.address()));
    node.subscribe("a");
    let first = node.publish("a", "1").expect("it is there");
    assert_eq!(node.event(), ("a".into(), "1".into(), first));
    server.kill();
    wait_for(
        || node.publish("a", "2").is_err() && node.redis.health().current_error().is_some(),
        WAIT_MAX,
    );
    server.restart();
    node.wait_until_healthy();
    node.subscribe("a");
    let second = node.publish_until_done("a", "3");
    assert_eq!(second.offset, 1, "nothing was kept");
    assert_ne!(second.epoch, first.epoch, "so that subscribers notice");
    assert_eq!(node.event(), ("a".into(), "3".into(), second));
}

#[test]
fn a_restart_with_saved_data_continues_streams() {
    let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let node = Node::start(&at(server.address()));
    let first = node.publish("a", "1").expect("it is there");
    server.kill();
    server.restart();
    let second = node.publish_until_done("a", "2");
    let slice = node.read("a").expect("it is back");
    assert_eq!(slice.inherited, first, "subscribers at the first position can continue");
    assert_ne!(second.epoch, first.epoch, "later publications of the first Redis are lost");
    let data: Vec<_> = slice.publications.iter().map(|publication| &publication.data[..]).collect();
    assert_eq!((data[0], data[data.len() - 1]), (&b"1"[..], &b"2"[..]));
    assert_eq!(slice.top, second);
}

/// Positions find every loss: acknowledged publications are in the stream, and the delivered ones are the stream, with
/// gaps only where a connection was lost.
#[test]
fn a_crash_under_load_loses_nothing_and_hides_nothing() {
    let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let node = Node::start(&at(server.address()));
    node.subscribe("a");
    let publisher = &node;
    let mut delivered = Vec::new();
    let acknowledged: Vec<_> = std::thread::scope(|scope| {
        let publishing = scope.spawn(move || {
            let publish = |number: u64| {
                let data = number.to_string();
                (publisher.publish_until_done("a", &data), data)
            };
            (0..600).map(publish).collect()
        });
        delivered.extend((0..100).map(|_| node.event()));
        server.kill();
        server.restart();
        publishing.join().expect("every call ended")
    });
    node.wait_until_healthy();
    node.subscribe("a");
    let last = node.publish("a", "the last").expect("it is back");
    while delivered.last().is_none_or(|(_, _, position)| *position != last) {
        delivered.push(node.event());
    }
    let slice = node.read("a").expect("it is back");
    assert_eq!(slice.top, last);
    let stored: BTreeMap<u64, String> = (slice.publications.iter())
        .map(|found| (found.offset, String::from_utf8_lossy(&found.data).into_owned()))
        .collect();
    assert!(stored.keys().copied().eq(1..=last.offset), "no hole in the stream");
    let is_kept = |position: &Position| slice.continues(position.offset, position.epoch.as_str());
    for (position, data) in &acknowledged {
        assert_eq!((is_kept(position), &stored[&position.offset]), (true, data));
    }
    let offsets: Vec<u64> = delivered.iter().map(|(_, _, position)| position.offset).collect();
    assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]), "in order, nothing twice");
    for (_, data, position) in &delivered {
        assert_eq!((is_kept(position), &stored[&position.offset]), (true, data));
    }
}

#[test]
fn scripts_that_a_redis_forgot_are_loaded_again_in_order() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    node.subscribe("a");
    node.publish("a", "0").expect("it is there");
    assert_eq!(server.ask("SCRIPT FLUSH"), "+OK\r\n");
    let answers: Vec<_> = (1..=500_u64)
        .map(|number| {
            let data = number.to_string().into();
            let publication = fanwire_protocol::Publication { data, ..Default::default() };
            let options = PublishOptions::default();
            node.redis.publish("a", publication, &options, retention(), Instant::now())
        })
        .collect();
    for (number, answer) in (1..=500).zip(answers) {
        assert_eq!(answer.wait().map(|position| position.offset), Ok(number + 1));
    }
    let arrived: Vec<String> = (0..=500).map(|_| node.event().1).collect();
    assert!(
        arrived.iter().map(String::as_str).eq((0..=500).map(|n| n.to_string()).collect::<Vec<_>>())
    );
}

#[test]
fn a_lost_pubsub_connection_subscribes_to_every_channel_again() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    let channels: Vec<String> = (0..3_000).map(|number| format!("channel:{number}")).collect();
    channels.iter().for_each(|channel| node.redis.subscribe(channel));
    channels.iter().for_each(|channel| node.subscribe(channel));
    assert_eq!(server.ask("CLIENT KILL TYPE pubsub"), ":2\r\n");
    node.wait_until(|health| health.lost_count() >= 2);
    channels.iter().for_each(|channel| node.subscribe(channel));
    for channel in &channels {
        node.publish(channel, "back").expect("commands were never away");
    }
    let mut arrived: Vec<String> = channels.iter().map(|_| node.event().0).collect();
    let mut expected = channels.clone();
    arrived.sort();
    expected.sort();
    assert_eq!(arrived, expected, "each once");
}

/// Publications of other nodes wait in the queue of the connection, which is bounded.
#[test]
fn while_shards_are_behind_nothing_is_delivered_and_an_overflow_closes_the_connection() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&RedisOptions { pubsub_connections: 1, ..server.options() });
    let (sender, messages) = std::sync::mpsc::channel();
    let subscribing =
        node.redis.subscribe_to_nodes("one", move |message| sender.send(message.to_vec()).is_ok());
    runtime().block_on(subscribing);
    node.subscribe("a");
    node.set_congested(true);
    node.redis.send(None, "order".into()).wait().expect("it is there");
    let publish = |data| node.publish_in("a", data, Retention::default()).wait();
    for _ in 0..80 {
        publish(vec![b'x'; 1 << 20]).expect("publishers on this node are held by others");
    }
    node.wait_until(|health| health.lost_count() == 1);
    assert!(!node.redis.health().is_healthy(), "which is reported");
    assert!(node.events_so_far().len() <= 1, "one at most was waited for before");
    assert_eq!(
        messages.recv_timeout(WAIT_MAX),
        Ok(b"order".to_vec()),
        "its sender counted it as received"
    );
    node.redis.subscribe("b");
    let received = node.redis.follow("b", None, retention(), Instant::now());
    assert_eq!(received.wait(), Err(BrokerError::Unavailable), "the connection is closed");
    assert!(!node.redis.health().is_healthy());

    node.set_congested(false);
    node.wait_for_gap("a");
    node.subscribe("b");
    assert_eq!(publish(b"again".to_vec()), Ok(Position::default()));
    let (_, data, _) = node.event();
    assert_eq!(data, "again", "the others were dropped, and a gap was reported");
    assert_eq!(node.redis.health().lost_count(), 1);
}

#[test]
fn messages_wait_for_shards_that_are_behind() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    node.subscribe("a");
    node.set_congested(true);
    let published = [(); 300].map(|()| node.publish("a", "x").expect("it is there"));
    node.set_congested(false);
    let arrived = [(); 300].map(|()| node.event().2);
    assert_eq!(arrived, published, "in order, and none is missing");
    assert_eq!(node.redis.health().lost_count(), 0);
}

#[test]
fn a_redis_that_does_not_answer_costs_a_bounded_time() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&at(server.address()));
    node.publish_until_done("a", "1");
    server.signal("-STOP");
    let began = Instant::now();
    assert_eq!(node.publish("a", "2"), Err(BrokerError::Unavailable));
    node.redis.subscribe("b");
    let received = node.redis.follow("b", None, retention(), Instant::now());
    assert_eq!(received.wait(), Err(BrokerError::Unavailable));
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    node.wait_until(|health| health.current_error().is_some());
    server.signal("-CONT");
    node.publish_until_done("a", "3");
    node.wait_until_healthy();
    node.subscribe("b");
}

#[test]
fn a_redis_that_is_busy_with_a_script_is_waited_for() {
    let server = RedisServer::start(&["--lua-time-limit", "50"]);
    let node = Node::start(&at(server.address()));
    node.subscribe("a");
    node.publish_until_done("a", "1");
    let mut endless = TcpStream::connect(("127.0.0.1", server.address().port)).expect("it listens");
    let script = b"*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n";
    endless.write_all(script).expect("it is connected");
    wait_for(|| node.publish("a", "2").is_err(), WAIT_MAX);
    let asked = Instant::now();
    assert_eq!(node.publish("a", "2"), Err(BrokerError::Unavailable));
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
    let _ = server.try_ask(&[b"SCRIPT", b"KILL"]);
    let last = node.publish_until_done("a", "3");
    assert_eq!(node.redis.health().lost_count(), 0, "it lives, and answers");
    while node.event().2 != last {}
}

/// If Redis evicts keys, a stream may lose its meta, or a meta its stream.
#[test]
fn an_evicted_stream_gets_a_new_epoch() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    let first = ["1", "2", "3"].map(|data| node.publish("a", data).expect("it is there"))[2];
    server.ask("DEL fanwire.stream.{:a}");
    let fourth = node.publish("a", "4").expect("it is there");
    assert_eq!(fourth, Position { offset: 4, ..first });
    let offsets = |node: &Node| {
        let read = node.read("a").expect("it is there");
        (read.top, read.publications.iter().map(|found| found.offset).collect::<Vec<_>>())
    };
    assert_eq!(offsets(&node), (fourth, vec![4]), "subscribers before the third cannot continue");
    server.ask("DEL fanwire.meta.{:a}");
    let (top, stored) = offsets(&node);
    assert_eq!((top.offset, stored), (0, vec![]));
    assert_ne!(top.epoch, first.epoch);
    let next = node.publish("a", "1").expect("it is there");
    assert_eq!((next, offsets(&node).1), (Position { offset: 1, ..top }, vec![1]));
}

/// Clients can subscribe to as many names; they leave nothing in Redis.
#[test]
fn a_channel_without_publications_expires_soon() {
    let server = RedisServer::start(&[]);
    let start = |unpublished_ttl, prefix: &str| {
        let prefix = prefix.to_owned();
        Node::start(&RedisOptions { unpublished_ttl, prefix, ..server.options() })
    };
    let ttl_ms = |prefix: &str| {
        let reply = server.ask(&format!("PTTL {prefix}.meta.{{:a}}"));
        reply[1..].trim().parse::<i64>().expect("a number")
    };
    let read = |node: &Node| node.read("a").expect("it is there").top;
    let usual = start(Duration::from_secs(55), "usual");
    let top = read(&usual);
    assert!((1..=55_000).contains(&ttl_ms("usual")), "{}", ttl_ms("usual"));
    assert_eq!(usual.publish("a", "1"), Ok(Position { offset: 1, ..top }));
    assert!(ttl_ms("usual") > 5_000_000, "{}", ttl_ms("usual"));
    read(&usual);
    assert!(ttl_ms("usual") > 5_000_000, "{}", ttl_ms("usual"));
    read(&start(Duration::ZERO, "unchecked"));
    assert!(ttl_ms("unchecked") > 5_000_000, "{}", ttl_ms("unchecked"));
    let brief = start(Duration::from_millis(1), "brief");
    let earlier = read(&brief);
    wait_for(|| server.ask("EXISTS brief.meta.{:a}") == ":0\r\n", WAIT_MAX);
    brief.publish("a", "1").expect("it is there");
    let found = brief.read("a").expect("it is there");
    assert!(
        !found.continues(earlier.offset, earlier.epoch.as_str()),
        "an earlier subscriber is told so"
    );
}

/// A publication whose result cannot be stored is not sent, because a caller that repeats the failed call would send
/// it twice.
#[test]
fn a_redis_that_is_full_or_refuses_writes_takes_a_publication_wholly_or_not_at_all() {
    for (setting, well) in
        [("maxmemory 1", "maxmemory 0"), ("min-replicas-to-write 1", "min-replicas-to-write 0")]
    {
        let server = RedisServer::start(&[]);
        let node = Node::start(&server.options());
        node.subscribe("a");
        let publish = |key: &str, retention| {
            let data = "x".into();
            let publication = fanwire_protocol::Publication { data, ..Default::default() };
            let options = PublishOptions { idempotency_key: key.into(), ..Default::default() };
            node.redis.publish("a", publication, &options, retention, Instant::now()).wait()
        };
        let first = node.publish("a", "1").expect("it is well");
        assert_eq!(server.ask(&format!("CONFIG SET {setting}")), "+OK\r\n");
        for retention in [retention(), Retention::default()] {
            for key in ["", "key"].iter().filter(|key| retention.keeps_history() || !key.is_empty())
            {
                assert_eq!(publish(key, retention), Err(BrokerError::Unavailable), "{setting}");
            }
        }
        assert_eq!(server.ask(&format!("CONFIG SET {well}")), "+OK\r\n");
        assert_eq!(publish("key", Retention::default()), Ok(Position::default()));
        let second = node.publish("a", "2").expect("it is well");
        assert_eq!(second, Position { offset: 2, ..first }, "{setting}");
        let arrived = [(); 3].map(|()| node.event().1);
        assert_eq!(arrived, ["1", "x", "2"], "{setting}");
    }
}

#[test]
fn foreign_messages_are_skipped_and_counted() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    node.subscribe("a");
    for foreign in [&b""[..], b"{\"data\":1}", b"\x02\x0a\x00", b"\x01\x0a\xff", b"\x01"] {
        assert_eq!(server.ask_with(&[b"PUBLISH", b"fanwire.feed.{:a}", foreign]), ":1\r\n");
    }
    let position = node.publish("a", "ours").expect("it is there");
    assert_eq!(node.event(), ("a".into(), "ours".into(), position));
    assert_eq!(node.redis.health().foreign_count(), 5);
}

#[test]
fn a_page_of_history_has_no_foreign_record_and_no_hole() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    for data in ["1", "2", "3"] {
        node.publish("a", data).expect("it is there");
    }
    server.ask("XADD fanwire.stream.{:a} 4-0 d garbage");
    server.ask("HINCRBY fanwire.meta.{:a} o 1");
    node.publish("a", "5").expect("it is there");
    for (reverse, expected) in [(false, vec![5]), (true, vec![5])] {
        let query = Query { reverse, ..Query::default() };
        let read = node.redis.history("a", query, retention(), Instant::now());
        let read = read.wait().expect("it is there");
        let offsets: Vec<u64> = read.publications.iter().map(|found| found.offset).collect();
        assert_eq!((offsets, read.top.offset), (expected, 5), "reverse: {reverse}");
    }
    assert_eq!(node.redis.health().foreign_count(), 2);
}

/// A foreign entry at the next id costs the stream, which gets a new epoch, and only one call.
#[test]
fn a_foreign_entry_ahead_of_a_stream_begins_a_new_epoch() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    node.subscribe("a");
    let mut last = node.publish("a", "1").expect("it is there");
    for id in ["2-0", "9999-7", "*", "18446744073709551615-18446744073709551615"] {
        assert!(server.ask(&format!("XADD fanwire.stream.{{:a}} {id} d x")).starts_with('$'));
        let next = node.publish("a", "2").expect("it goes on");
        assert_eq!(next.offset, last.offset + 1, "{id}");
        assert_ne!(next.epoch, last.epoch, "{id}");
        let read = node.read("a").expect("it is there");
        assert_eq!((read.top, read.publications.len()), (next, 1), "{id}");
        assert!(!read.continues(last.offset, last.epoch.as_str()), "{id}: no subscriber recovers");
        last = node.publish("a", "3").expect("it goes on");
        assert_eq!((last.offset, last.epoch), (next.offset + 1, next.epoch), "{id}");
    }
}

#[test]
fn keys_of_another_type_are_an_error_of_the_call() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    server.ask("SET fanwire.meta.{:a} garbage");
    assert_eq!(node.publish("a", "1"), Err(BrokerError::Unavailable));
    assert_eq!(node.read("a"), Err(BrokerError::Unavailable));
    server.ask("DEL fanwire.meta.{:a}");
    server.ask("HSET fanwire.meta.{:a} e garbage");
    assert_eq!(node.read("a"), Err(BrokerError::Unavailable));
    assert_eq!(node.redis.health().refused_count(), 2, "what Redis itself refused");
    node.publish("b", "1").expect("other channels are not concerned");
}

#[test]
fn nodes_agree_about_order_history_and_presence() {
    let servers = [RedisServer::start(&[]), RedisServer::start(&[])];
    let addresses = servers.iter().map(RedisServer::address).collect();
    let options = RedisOptions { addresses, ..RedisOptions::default() };
    let nodes = [Node::start(&options), Node::start(&options)];
    let channels: Vec<String> = (0..8).map(|number| format!("channel:{number}")).collect();
    for node in &nodes {
        channels.iter().for_each(|channel| node.subscribe(channel));
    }
    std::thread::scope(|scope| {
        for node in nodes.iter().map(|node| &node.redis) {
            let channels = &channels;
            scope.spawn(move || {
                for number in 0..400 {
                    let channel = &channels[number % channels.len()];
                    let data = number.to_string().into();
                    let publication = fanwire_protocol::Publication { data, ..Default::default() };
                    let options = PublishOptions::default();
                    node.publish(channel, publication, &options, retention(), Instant::now())
                        .then(|result| assert!(result.is_ok()));
                }
            });
        }
    });
    let mut arrived =
        nodes.each_ref().map(|node| (0..800).map(|_| node.event()).collect::<Vec<_>>());
    for events in &mut arrived {
        events.sort_by(|(one, ..), (other, ..)| one.cmp(other)); // stable: the order within a channel stays
    }
    assert_eq!(arrived[0], arrived[1]);
    for channel in &channels {
        let offsets =
            arrived[0].iter().filter(|event| event.0 == *channel).map(|event| event.2.offset);
        assert!(offsets.eq(1..=100), "{channel}");
        assert_eq!(nodes[0].read(channel), nodes[1].read(channel));
    }
    let keys = servers.each_ref().map(|server| server.ask("DBSIZE"));
    assert!(!keys.contains(&":0\r\n".to_owned()), "both Redis have channels: {keys:?}");
    let member = fanwire_protocol::ClientInfo { client: "c".into(), ..Default::default() };
    let now = Instant::now();
    let ttl = Duration::from_secs(60);
    nodes[0].redis.add("a", member.clone(), ttl, now).wait().expect("it is there");
    let seen = nodes[1].redis.members("a", now).wait().expect("it is there");
    assert_eq!(seen.iter().map(|seen| (**seen).clone()).collect::<Vec<_>>(), [member]);
}

#[test]
fn nodes_get_messages_to_all_and_to_them() {
    let server = RedisServer::start(&[]);
    let nodes = ["one", "two"].map(|uid| {
        let node = Node::start(&server.options());
        let (sender, messages) = std::sync::mpsc::channel();
        let subscribing = node
            .redis
            .subscribe_to_nodes(uid, move |message| sender.send(message.to_vec()).is_ok());
        runtime().block_on(subscribing);
        (node, messages)
    });
    let [(one, first), (_, second)] = &nodes;
    let messages = [(None, "all", 2), (Some("two"), "you", 1), (Some("three"), "nobody", 0)];
    for (to, message, ears) in messages.into_iter().chain([(None, "end", 2)]) {
        assert_eq!(one.redis.send(to, message.into()).wait(), Ok(ears), "{message}");
    }
    let received = |messages: &std::sync::mpsc::Receiver<Vec<u8>>| {
        let messages =
            messages.iter().map(|message| String::from_utf8(message).expect("a message"));
        let mut received = Vec::new();
        for message in messages {
            received.push(message);
            if received.last().is_some_and(|message| message == "end") {
                break;
            }
        }
        received
    };
    assert_eq!(received(first), ["all", "end"]);
    assert_eq!(received(second), ["all", "you", "end"]);
}
