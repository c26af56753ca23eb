//! Equal reads at one time: how many scripts they cost, and that no answer is older than its question.
//! In: a real Redis, which is stopped while callers ask → out: answers, and the number of scripts.
//! Uses several threads for races. Never: sleeps.
//! Sharing is tested without a Redis in `redis/singleflight/tests.rs`.

use std::thread;
use std::time::{Duration, Instant};

use fanwire_broker::{
    Answer, Broker as _, BrokerError, Presence as _, PresenceStats, Query, StreamSlice,
};
use fanwire_protocol::ClientInfo;

use crate::node::{Node, retention};
use crate::server::RedisServer;

/// Scripts that a Redis has run.
fn scripts(server: &RedisServer) -> u64 {
    let counted = server.ask("INFO commandstats");
    let Some((_, rest)) = counted.split_once("cmdstat_evalsha:calls=") else { return 0 };
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).expect("a number of calls")
}

/// Asks while the Redis is stopped, so that nothing is answered before all have asked. Returns the number of scripts.
fn ask_at_once<T: Send + 'static>(
    server: &RedisServer,
    questions: impl Iterator<Item = Answer<T>>,
) -> (Vec<Result<T, BrokerError>>, u64) {
    let before = scripts(server);
    server.freeze();
    let answers: Vec<_> = questions.collect();
    server.signal("-CONT");
    let answers = answers.into_iter().map(Answer::wait).collect();
    (answers, scripts(server) - before)
}

fn start() -> (RedisServer, Node) {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    node.wait_until_healthy();
    (server, node)
}

fn follow(node: &Node, since: u64) -> Answer<StreamSlice> {
    let query = Query { since: Some(since), limit: Some(300), reverse: false };
    node.redis.follow("a", Some(query), retention(), Instant::now())
}

#[test]
fn concurrent_presence_reads_take_two_scripts() {
    let (server, node) = start();
    for (client, user) in [("c", "1"), ("d", "1"), ("e", "2")] {
        let member =
            ClientInfo { client: client.into(), user: user.into(), ..ClientInfo::default() };
        let added = node.redis.add("a", member, Duration::from_secs(60), Instant::now());
        assert_eq!(added.wait(), Ok(()));
    }
    let members = || node.redis.members("a", Instant::now());
    let (answers, taken) = ask_at_once(&server, (0..500).map(|_| members()));
    assert!(answers.iter().all(|found| found.as_ref().is_ok_and(|found| found.len() == 3)));
    assert_eq!((answers.len(), taken), (500, 2));
    assert_eq!(node.redis.health().merged_count(), 498);
    let stats = || node.redis.stats("a", Instant::now());
    let (answers, taken) = ask_at_once(&server, (0..500).map(|_| stats()));
    assert!(answers.iter().all(|found| *found == Ok(PresenceStats { clients: 3, users: 2 })));
    assert_eq!((answers.len(), taken), (500, 2));
}

#[test]
fn concurrent_recoveries_from_one_position_take_two_scripts() {
    let (server, node) = start();
    node.subscribe("a");
    for number in 0..10 {
        node.publish("a", &number.to_string()).expect("it is there");
    }
    let (answers, taken) = ask_at_once(&server, (0..200).map(|_| follow(&node, 3)));
    for found in &answers {
        let found = found.as_ref().expect("it is there");
        let offsets: Vec<u64> = found.publications.iter().map(|one| one.offset).collect();
        assert_eq!((offsets, found.top.offset), ((4..=10).collect(), 10));
    }
    assert_eq!((answers.len(), taken), (200, 2));
    let (answers, taken) = ask_at_once(&server, (0..200).map(|number| follow(&node, number % 10)));
    for (number, found) in answers.iter().enumerate() {
        let missed = 10 - number % 10;
        assert_eq!(found.as_ref().map(|found| found.publications.len()), Ok(missed));
    }
    assert_eq!(taken, 20, "two for each of ten places");
    let page = |name: &str| node.redis.history(name, Query::default(), retention(), Instant::now());
    let (answers, taken) = ask_at_once(&server, (0..100).map(|_| page("a")));
    assert!(answers.iter().all(|found| found.as_ref().is_ok_and(|found| found.top.offset == 10)));
    assert_eq!(taken, 2);
    let (answers, taken) = ask_at_once(&server, ["a", "b", "c"].into_iter().map(page));
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(taken, 3, "other channels are other reads");
}

/// Holds for every thread; there are so many that callers with different questions share each answer.
#[test]
fn an_answer_is_never_older_than_its_question() {
    let (_server, node) = start();
    let top = || node.redis.history("a", Query::TOP, retention(), Instant::now());
    let race = || {
        for number in 0..150 {
            let before = node.publish("a", "acknowledged").expect("it is there");
            let first = top();
            let second = top();
            let sent = node.begin_publish("a", number.to_string());
            let third = top();
            for found in [first, second] {
                assert!(found.wait().expect("it is there").top.offset >= before.offset);
            }
            let sent = sent.wait().expect("it is there");
            assert!(third.wait().expect("it is there").top.offset >= sent.offset);
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(race))));
    assert_eq!(node.read("a").expect("it is there").top.offset, 4 * 2 * 150);
    assert!(node.redis.health().merged_count() > 0, "some were shared");
}

#[test]
fn all_callers_of_a_shared_read_fail_with_its_redis_and_later_ones_succeed() {
    let (mut server, node) = start();
    node.publish("a", "x").expect("it is there");
    let top = || node.redis.history("a", Query::TOP, retention(), Instant::now());
    server.freeze();
    let answers: Vec<_> = (0..50).map(|_| top()).collect();
    server.kill();
    for answer in answers {
        assert_eq!(answer.wait(), Err(BrokerError::Unavailable));
    }
    server.restart();
    node.wait_until_healthy();
    assert_eq!(top().wait().map(|found| found.top.offset), Ok(0), "a Redis that keeps nothing");
}
