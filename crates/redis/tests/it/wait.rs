//! Writes with `WAIT`: an acknowledged write survives the master, and a missing replica is reported in time.
//! In: a master and a replica, killed and stopped → out: failures in bounded time, acknowledged publications.
//! Uses real processes. Never: sleeps; it waits for what must happen.
//! A new promise of `engine.redis.wait` is a test here.

use std::time::{Duration, Instant};

use fanwire_broker::{Broker as _, BrokerError, Change, Position, Presence as _, PublishOptions};
use fanwire_protocol::{ClientInfo, Publication};
use fanwire_redis::{RedisOptions, Wait};
use fanwire_testing::wait_for;

use crate::node::{Node, WAIT_MAX, retention};
use crate::server::RedisServer;

/// A master, its replica, and a node whose writes need both.
fn pair() -> (RedisServer, RedisServer, Node) {
    let master = RedisServer::start(&["--repl-diskless-sync-delay", "0"]);
    let port = master.address().port.to_string();
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &port]);
    let wait = Wait { replicas: 1, timeout: Duration::from_secs(1) };
    let node = Node::start(&RedisOptions { wait, io_timeout: 3 * WAIT_MAX, ..master.options() });
    node.publish_until_done("a", "the replica is there");
    (master, replica, node)
}

/// Every write fails in time, reads succeed, and the connections stay up. Each write changes something, because a
/// command without an effect does not wait.
fn writes_fail_and_reads_do_not(node: &Node) {
    let redis = &node.redis;
    let now = Instant::now();
    let member = || ClientInfo { client: "c".into(), ..ClientInfo::default() };
    let writes = [
        node.begin_publish("a", "unsure").map(|result| result.map(drop)),
        redis.publish_join_leave("a", Change::Join, member()),
        redis.add("a", member(), Duration::from_secs(60), now),
        redis.remove("a", "c"),
        redis.remove_history("a", now),
    ];
    for write in writes {
        assert_eq!(write.wait(), Err(BrokerError::Unavailable));
    }
    assert!(node.read("a").is_ok());
    assert_eq!(redis.members("a", now).wait(), Ok(vec![]));
    assert!(redis.stats("a", now).wait().is_ok());
    assert!(now.elapsed() < WAIT_MAX, "{:?}", now.elapsed());
    assert!(redis.health().unreplicated_count() >= 5);
    assert_eq!((redis.health().lost_count(), redis.health().refused_count()), (0, 0));
}

#[test]
fn writes_fail_while_the_replica_is_stopped() {
    let (_master, replica, node) = pair();
    replica.signal("-STOP");
    writes_fail_and_reads_do_not(&node);
    replica.signal("-CONT");
    node.publish_until_done("a", "the replica is back");
}

#[test]
fn writes_fail_while_the_replica_is_dead() {
    let (_master, mut replica, node) = pair();
    replica.kill();
    writes_fail_and_reads_do_not(&node);
    replica.restart();
    node.publish_until_done("a", "the replica is back");
}

#[test]
fn many_writes_wait_for_a_replica_together() {
    let (_master, replica, node) = pair();
    replica.signal("-STOP");
    let began = Instant::now();
    let answers: Vec<_> = (0..5_000).map(|_| node.begin_publish("a", "unsure")).collect();
    for answer in answers {
        assert_eq!(answer.wait(), Err(BrokerError::Unavailable));
    }
    // Two batches and the queue behind them, and some time for a busy machine.
    assert!(began.elapsed() < WAIT_MAX, "{:?}", began.elapsed());
    assert_eq!(node.redis.health().lost_count(), 0);
}

#[test]
fn a_write_whose_script_was_forgotten_waits_for_the_replica_too() {
    let (master, replica, node) = pair();
    replica.signal("-STOP");
    assert_eq!(master.ask("SCRIPT FLUSH"), "+OK\r\n");
    assert_eq!(node.publish("a", "unsure"), Err(BrokerError::Unavailable));
    replica.signal("-CONT");
    node.publish_until_done("a", "the replica is back");
}

/// The repetition comes on another connection, which has no other writes.
#[test]
fn a_repeated_publication_waits_for_the_replica_as_the_first_did() {
    let (master, replica, node) = pair();
    let keyed = PublishOptions { idempotency_key: "key".into(), ..PublishOptions::default() };
    let versioned = PublishOptions { version: 7, ..PublishOptions::default() };
    let wait = Wait { replicas: 1, timeout: Duration::from_secs(1) };
    let io_timeout = Duration::from_secs(10);
    let publication = Publication::default();
    let publish = |node: &Node, options: &PublishOptions| {
        let publication = publication.clone();
        let now = Instant::now();
        node.redis.publish("a", publication, options, retention(), now).wait()
    };
    for options in [keyed, versioned] {
        let other = Node::start(&RedisOptions { wait, io_timeout, ..master.options() });
        other.wait_until_healthy();
        replica.signal("-STOP");
        assert_eq!(publish(&node, &options), Err(BrokerError::Unavailable));
        assert_eq!(publish(&other, &options), Err(BrokerError::Unavailable));
        replica.signal("-CONT");
        wait_for(|| publish(&other, &options).is_ok(), WAIT_MAX);
    }
}

#[test]
fn what_was_acknowledged_survives_the_master() {
    let (mut master, replica, node) = pair();
    let channels = ["a", "b", "c", "d"];
    let (count, acknowledgements) = std::sync::mpsc::channel();
    let acknowledged: Vec<(&str, String, Position)> = std::thread::scope(|scope| {
        let node = &node;
        let publishing = scope.spawn(move || {
            let mut acknowledged = Vec::new();
            for number in (0_u64..).step_by(64) {
                let begin = |number: u64| {
                    let channel = channels[number as usize % channels.len()];
                    let data = number.to_string();
                    (channel, data.clone(), node.begin_publish(channel, data))
                };
                let answers: Vec<_> = (number..number + 64).map(begin).collect();
                let mut is_over = false;
                for (channel, data, answer) in answers {
                    match answer.wait() {
                        Ok(position) => acknowledged.push((channel, data, position)),
                        Err(_) => is_over = true,
                    }
                }
                let _ = count.send(acknowledged.len());
                if is_over {
                    break;
                }
            }
            acknowledged
        });
        while acknowledgements.recv_timeout(WAIT_MAX).expect("it publishes") < 500 {}
        master.kill();
        publishing.join().expect("every call ended")
    });
    assert_eq!(replica.ask("REPLICAOF NO ONE"), "+OK\r\n");
    let other = Node::start(&replica.options());
    let streams = channels.map(|channel| other.read(channel).expect("it is the master now"));
    for (channel, data, position) in &acknowledged {
        let at = channels.iter().position(|one| one == channel).expect("one of them");
        let oldest = streams[at].publications.first().map_or(1, |first| first.offset);
        let offset = position.offset;
        let epoch = position.epoch.as_str();
        assert!(streams[at].continues(offset, epoch), "{channel}: {position:?} is known there");
        assert!(offset <= streams[at].top.offset, "{channel}: {position:?}");
        if let Some(index) = position.offset.checked_sub(oldest) {
            assert_eq!(&streams[at].publications[index as usize].data[..], data.as_bytes());
        }
    }
}
