//! Bytes that Fanwire did not write, in Redis and on its connections: they are skipped and counted, or the connection is closed.
//! In: random records, keys of other types, damaged and wrong replies → out: errors, counts; never a panic.
//! Uses seeds that are printed on a failure. Never: sleeps.
//! A new place for foreign bytes is a test here.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use fanwire_broker::{BrokerError, Presence as _};
use fanwire_protocol::ClientInfo;
use fanwire_redis::{Address, Redis, RedisOptions};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::node::{Node, WAIT_MAX, runtime};
use crate::proxy::{Network, Proxy};
use crate::server::RedisServer;

/// Half of them begin like records.
fn garbage(chance: &mut StdRng) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..chance.random_range(0..80)).map(|_| chance.random_range(0..=u8::MAX)).collect();
    if chance.random_bool(0.5) {
        bytes.insert(0, 1);
    }
    bytes
}

#[test]
fn random_messages_are_skipped_and_counted() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    node.subscribe("a");
    let seed = rand::random();
    let mut chance = StdRng::seed_from_u64(seed);
    for _ in 0..400 {
        let message = server.ask_with(&[b"PUBLISH", b"fanwire.feed.{:a}", &garbage(&mut chance)]);
        assert_eq!(message, ":1\r\n");
    }
    node.publish("a", "ours").expect("it is there");
    let mut taken = 0;
    while node.event().1 != "ours" {
        taken += 1; // a valid record by chance
    }
    assert_eq!(node.redis.health().foreign_count() + taken, 400, "seed {seed}");
}

#[test]
fn random_stored_records_are_skipped_and_counted() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    node.publish("a", "1").expect("it is there");
    let seed = rand::random();
    let mut chance = StdRng::seed_from_u64(seed);
    for offset in 2..=100 {
        let id = format!("{offset}-0");
        let mut command = vec![&b"XADD"[..], b"fanwire.stream.{:a}", id.as_bytes()];
        let one = garbage(&mut chance);
        let other = garbage(&mut chance);
        command.extend([b"d", &one[..]]);
        if offset % 10 == 0 {
            command.extend([b"e", &other[..]]);
        }
        assert!(server.ask_with(&command).starts_with('$'));
    }
    server.ask("HSET fanwire.meta.{:a} o 100");
    let last = node.publish("a", "ours").expect("it is there");
    let read = node.read("a").expect("it is there");
    assert_eq!((read.top, last.offset), (last, 101));
    let offsets: Vec<u64> = read.publications.iter().map(|found| found.offset).collect();
    assert!(
        offsets.iter().copied().eq(101 + 1 - offsets.len() as u64..=101),
        "seed {seed}: {offsets:?}"
    );
    assert!(node.redis.health().foreign_count() > 0, "seed {seed}");
}

#[test]
fn keys_of_other_types_are_errors_of_their_calls_alone() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    let redis = &node.redis;
    let now = Instant::now();
    let member = || ClientInfo { client: "c".into(), user: "u".into(), ..ClientInfo::default() };
    node.publish("a", "1").expect("it is there");
    let add = |channel| redis.add(channel, member(), Duration::from_secs(60), now).wait();
    for name in ["stream", "presence.ends", "presence.members", "presence.users"] {
        assert_eq!(server.ask(&format!("SET fanwire.{name}.{{:a}} garbage")), "+OK\r\n");
    }
    assert_eq!(node.publish("a", "2"), Err(BrokerError::Unavailable));
    assert_eq!(node.read("a"), Err(BrokerError::Unavailable));
    assert_eq!(add("a"), Err(BrokerError::Unavailable));
    assert_eq!(redis.members("a", now).wait(), Err(BrokerError::Unavailable));
    assert_eq!(redis.stats("a", now).wait(), Err(BrokerError::Unavailable));
    assert_eq!(redis.health().refused_count(), 5);
    assert_eq!(add("b"), Ok(()));
    for (client, member) in [("x", &b"\x02\x0a"[..]), ("y", b""), ("z", b"\x01\xff")] {
        let end = u64::MAX.to_string();
        server.ask_with(&[
            b"ZADD",
            b"fanwire.presence.ends.{:b}",
            end.as_bytes(),
            client.as_bytes(),
        ]);
        server.ask_with(&[b"HSET", b"fanwire.presence.members.{:b}", client.as_bytes(), member]);
    }
    let members = redis.members("b", now).wait().expect("it is there");
    assert_eq!(members.iter().map(|found| (**found).clone()).collect::<Vec<_>>(), [member()]);
    assert_eq!(redis.health().foreign_count(), 3);
    // A publication that failed half-way has left no gap.
    server.ask("DEL fanwire.stream.{:a}");
    assert_eq!(node.publish("a", "2").map(|position| position.offset), Ok(2));
}

#[test]
fn spoiled_replies_cost_a_connection_and_nothing_else() {
    let server = RedisServer::start(&[]);
    let proxy = Proxy::to(&server.address());
    let connect_timeout = Duration::from_millis(500);
    let io_timeout = Duration::from_millis(500);
    let addresses = vec![proxy.address()];
    let node = Node::start(&RedisOptions {
        addresses,
        connect_timeout,
        io_timeout,
        ..RedisOptions::default()
    });
    for round in 0..8 {
        node.wait_until_healthy();
        node.subscribe("a");
        let seed = rand::random();
        let lost = node.redis.health().lost_count();
        eprintln!("round {round}: seed {seed}");
        proxy.set_network(Network { spoils: Some(seed), ..Network::default() });
        let by = Instant::now() + WAIT_MAX;
        while node.redis.health().lost_count() < lost + 4 {
            let answers: Vec<_> = (0..20).map(|_| node.begin_publish("a", "spoiled")).collect();
            for answer in answers {
                let _ = answer.wait();
            }
            let _ = node.read("a");
            assert!(Instant::now() < by, "seed {seed}: {:?}", node.redis.health());
        }
        proxy.repair();
        proxy.reset_connections(); // a checksum would have rejected those bytes, so no connection continues with them
        node.wait_until(|health| health.current_error().is_none());
        let last = node.publish_until_done("a", "sound");
        assert_eq!(node.read("a").expect("it is well").top, last, "seed {seed}");
    }
}

#[test]
fn senseless_replies_are_errors() {
    let nested = b"*1\r\n".repeat(100_000);
    let rows: [&[u8]; 12] = [
        b"",
        b"\r\n",
        b"*9223372036854775807\r\n",
        b"*-7\r\n",
        b"$9223372036854775807\r\nx",
        b"$-9\r\n\r\n",
        b"%4611686018427387905\r\n",
        b"~18446744073709551616\r\n",
        b">3\r\n$9\r\nsubscribe\r\n",
        b":99999999999999999999999999\r\n",
        b"+\xff\xfe\r\n",
        &nested,
    ];
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let connect_timeout = WAIT_MAX;
    let io_timeout = WAIT_MAX;
    let addresses = vec![Address { port, ..Address::default() }];
    let options =
        RedisOptions { addresses, connect_timeout, io_timeout, ..RedisOptions::default() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for row in rows {
                let (mut stream, _) = listener.accept().expect("one check per row");
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(row);
            }
        });
        for row in rows {
            let shown = row[..row.len().min(20)].escape_ascii().to_string();
            assert!(runtime().block_on(Redis::check(&options)).is_err(), "{shown}");
        }
    });
}

/// PUB/SUB of Redis ignores databases.
#[test]
fn a_prefix_separates_installations_and_the_number_of_a_database_does_not() {
    let server = RedisServer::start(&[]);
    let node = |db, prefix: &str| {
        let addresses = vec![Address { db, ..server.address() }];
        let prefix = prefix.into();
        Node::start(&RedisOptions { addresses, prefix, ..RedisOptions::default() })
    };
    let listener = node(1, "fanwire");
    listener.subscribe("a");
    node(1, "other").publish_until_done("a", "of another prefix");
    node(2, "fanwire").publish_until_done("a", "of another database");
    assert_eq!(listener.event().1, "of another database");
    assert_eq!(listener.read("a").expect("it is there").top.offset, 0, "which stores its own");
}
