//! Redis Streams: nothing lost, nodes that share a group, messages of a lost node.
//! In: entries → out: publications, and what is pending.
//! Uses a Redis per test. Never: sleeps.
//! A promise about streams is a test here.

use std::collections::BTreeSet;
use std::time::Duration;

use fanwire_consumers::{ConsumerKind, ConsumerOptions};
use fanwire_redis::{Address, OwnConnection, OwnDialer, RedisOptions};
use serde_json::{Value as Json, json};

use crate::harness::{
    Change, api, many, options, publications, published, start, stats, try_start, until,
    until_processed,
};
use crate::server::{CA, QueueServer};

async fn connect(server: &QueueServer) -> OwnConnection {
    let address = Address { port: server.port, ..Address::default() };
    let options = RedisOptions { addresses: vec![address], ..RedisOptions::default() };
    OwnDialer::new(options).connect(b"s").await.expect("it is ready")
}

async fn ask(connection: &mut OwnConnection, words: &[&str]) -> String {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    format!("{:?}", connection.call(&words, Duration::ZERO).await.expect("a reply"))
}

fn consumer(server: &QueueServer) -> ConsumerOptions {
    let mut options = options(ConsumerKind::RedisStream);
    options.redis_stream.redis.address = vec![format!("127.0.0.1:{}", server.port)];
    options.redis_stream.streams = vec!["s".to_owned()];
    options.redis_stream.consumer_group = "g".to_owned();
    options.redis_stream.visibility_timeout = Duration::from_millis(200);
    options
}

/// Adds entries `from` to `to - 1`.
async fn add(connection: &mut OwnConnection, from: usize, to: usize) {
    for n in from..to {
        let payload = json!({"channel": "c0", "data": n, "idempotency_key": n.to_string()});
        ask(connection, &["XADD", "s", "*", "method", "publish", "payload", &payload.to_string()])
            .await;
    }
}

/// The numbers in a channel, each of which must be there once.
async fn numbers(api: &fanwire_api::Api) -> BTreeSet<u64> {
    let all = publications(api, "c0").await;
    let numbers: BTreeSet<u64> = all.iter().filter_map(Json::as_u64).collect();
    assert_eq!(numbers.len(), all.len(), "a publication is there twice");
    numbers
}

async fn pending(connection: &mut OwnConnection) -> bool {
    !ask(connection, &["XPENDING", "s", "g"]).await.starts_with("array([int(0)")
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_repeated_when_consumers_are_killed_and_the_server_crashes() {
    let mut server = QueueServer::redis();
    let (api, count, options) = (api(), many(), consumer(&server));
    drop(start(&options, &api).await); // makes the group
    let mut connection = connect(&server).await;
    add(&mut connection, 0, count).await;
    for part in [count / 4, count / 4] {
        let consumers = start(&options, &api).await;
        until_processed(&consumers, part as u64).await;
        drop(consumers);
        server.crash();
        server.restart();
    }
    let consumers = start(&options, &api).await;
    until("all entries", async || published(&api, "c0").await == count as u64).await;
    assert_eq!(numbers(&api).await, (0..count as u64).collect());
    // The running consumer lives through a crash, too.
    server.crash();
    until("the loss is noticed", async || stats(&consumers).failure.is_some()).await;
    server.restart();
    let mut connection = connect(&server).await;
    add(&mut connection, count, count + 10).await;
    until("all entries", async || published(&api, "c0").await == count as u64 + 10).await;
    let mut watcher = connect(&server).await;
    until("nothing is pending", async || !pending(&mut watcher).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_share_a_group() {
    let server = QueueServer::redis();
    let (api, mut options) = (api(), consumer(&server));
    options.redis_stream.num_workers = 2;
    options.redis_stream.visibility_timeout = Duration::from_secs(30);
    let one = try_start(&options, &api, "node_1").await.expect("it starts");
    let other = try_start(&options, &api, "node_2").await.expect("it starts");
    add(&mut connect(&server).await, 0, 2000).await;
    let processed = || [stats(&one).processed, stats(&other).processed];
    until("all entries", async || processed().iter().sum::<u64>() >= 2000).await;
    assert_eq!(numbers(&api).await, (0..2000).collect());
    let [of_one, of_other] = processed();
    assert!(of_one + of_other == 2000 && of_one > 0 && of_other > 0, "{of_one} and {of_other}");
    one.stop(Duration::from_secs(5)).await;
    add(&mut connect(&server).await, 2000, 2010).await;
    until_processed(&other, of_other + 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_a_lost_node_are_taken_over_and_bad_ones_do_not_block() {
    let server = QueueServer::redis();
    let (api, options) = (api(), consumer(&server));
    let mut connection = connect(&server).await;
    ask(&mut connection, &["XGROUP", "CREATE", "s", "g", "$", "MKSTREAM"]).await;
    add(&mut connection, 0, 3).await;
    ask(&mut connection, &["XREADGROUP", "GROUP", "g", "lost", "STREAMS", "s", ">"]).await;
    // Trimmed under the group: the first entry is pending and gone.
    ask(&mut connection, &["XTRIM", "s", "MAXLEN", "2"]).await;
    let consumers = start(&options, &api).await;
    add(&mut connection, 3, 4).await;
    until("what is left", async || numbers(&api).await == (1..4).collect()).await;
    until("nothing is pending", async || !pending(&mut connection).await).await;
    // The group is made again when it is gone.
    ask(&mut connection, &["XGROUP", "DESTROY", "s", "g"]).await;
    until("the group is back", async || {
        ask(&mut connection, &["XINFO", "GROUPS", "s"]).await.contains("pending")
    })
    .await;
    ask(&mut connection, &["XADD", "s", "*", "method", "publish"]).await;
    add(&mut connection, 4, 5).await;
    until("a new entry", async || numbers(&api).await.contains(&4)).await;
    let skipped = stats(&consumers).skipped.map(|(cause, count)| (cause.name(), count));
    assert!(skipped.contains(&("payload", 1)), "{skipped:?}");
}

/// Adds entries with ids of the application, `ms-from` and so on.
async fn add_with_ids(connection: &mut OwnConnection, from: usize, to: usize, ms: u64) {
    for n in from..to {
        let (id, payload) = (format!("{ms}-{n}"), json!({"channel": "c0", "data": n}));
        ask(connection, &["XADD", "s", &id, "method", "publish", "payload", &payload.to_string()])
            .await;
    }
}

/// The number of members of the group.
async fn members(connection: &mut OwnConnection) -> usize {
    let groups = ask(connection, &["XINFO", "GROUPS", "s"]).await;
    let (_, fields) = groups.split_once("consumers").expect("one group");
    let (_, count) = fields.split_once("int(").expect("a number");
    count.split_once(')').expect("it ends").0.parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_comes_back_empty_loses_no_entry_that_is_added_then() {
    let mut server = QueueServer::redis();
    let (api, mut options) = (api(), consumer(&server));
    options.redis_stream.num_workers = 2;
    let mut connection = connect(&server).await;
    // What is older than the group is not read.
    add_with_ids(&mut connection, 100, 105, 5).await;
    let consumers = start(&options, &api).await;
    add_with_ids(&mut connection, 0, 20, 6).await;
    until_processed(&consumers, 20).await;
    for (from, ms) in [(20, 1), (50, 7)] {
        server.crash();
        server.forget();
        server.restart();
        let mut connection = connect(&server).await;
        // Ids below and above those that were read before.
        add_with_ids(&mut connection, from, from + 30, ms).await;
        until("all entries", async || published(&api, "c0").await >= from as u64 + 30).await;
        assert_eq!(numbers(&api).await, (0..from as u64 + 30).collect());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_was_destroyed_goes_on_where_it_was() {
    let server = QueueServer::redis();
    let (api, options) = (api(), consumer(&server));
    let consumers = start(&options, &api).await;
    let mut connection = connect(&server).await;
    for round in 0..3 {
        let from = round * 10;
        add_with_ids(&mut connection, from, from + 3, 1).await;
        until_processed(&consumers, from as u64 + 3).await;
        ask(&mut connection, &["XGROUP", "DESTROY", "s", "g"]).await;
        add_with_ids(&mut connection, from + 3, from + 10, 1).await;
        until_processed(&consumers, from as u64 + 10).await;
    }
    assert_eq!(numbers(&api).await, (0..30).collect());
    // An entry that was trimmed cannot be the begin.
    ask(&mut connection, &["XTRIM", "s", "MAXLEN", "0"]).await;
    ask(&mut connection, &["XGROUP", "DESTROY", "s", "g"]).await;
    add_with_ids(&mut connection, 30, 33, 1).await;
    until_processed(&consumers, 33).await;
    assert_eq!(numbers(&api).await, (0..33).collect());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_keeps_no_members_that_are_gone_and_owe_nothing() {
    let server = QueueServer::redis();
    let (api, mut options) = (api(), consumer(&server));
    options.redis_stream.num_workers = 3;
    let mut connection = connect(&server).await;
    for round in 0..4 {
        let node = format!("node_{round}");
        let consumers = try_start(&options, &api, &node).await.expect("it starts");
        add(&mut connection, round, round + 1).await;
        until_processed(&consumers, 1).await;
        consumers.stop(Duration::from_secs(5)).await;
        assert_eq!(members(&mut connection).await, 0);
    }
    // One has an entry that it has not acknowledged, and another one is killed.
    options.redis_stream.visibility_timeout = Duration::from_secs(3600);
    add(&mut connection, 4, 5).await;
    ask(&mut connection, &["XREADGROUP", "GROUP", "g", "owes", "STREAMS", "s", ">"]).await;
    let killed = try_start(&options, &api, "killed").await.expect("it starts");
    add(&mut connection, 5, 6).await;
    until_processed(&killed, 1).await;
    drop(killed);
    assert_eq!(members(&mut connection).await, 2);
    until("the killed one is idle", async || {
        let next = try_start(&options, &api, "next").await.expect("it starts");
        next.stop(Duration::from_secs(5)).await;
        members(&mut connection).await == 1
    })
    .await;
    assert!(ask(&mut connection, &["XINFO", "CONSUMERS", "s", "g"]).await.contains("owes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_entries_are_options_of_publications() {
    let server = QueueServer::redis();
    let (api, mut options) = (api(), consumer(&server));
    options.redis_stream.publication_data_mode.enabled = true;
    let consumers = start(&options, &api).await;
    let mut connection = connect(&server).await;
    ask(
        &mut connection,
        &[
            "XADD",
            "s",
            "*",
            "payload",
            "{\"ü\":1}",
            "centrifugo-channels",
            "c0,c1",
            "centrifugo-tag-a",
            "b",
        ],
    )
    .await;
    until_processed(&consumers, 1).await;
    for channel in ["c0", "c1"] {
        assert_eq!(publications(&api, channel).await, [json!({"ü": 1})]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_cannot_succeed_names_consumer_and_key() {
    let server = QueueServer::redis();
    ask(&mut connect(&server).await, &["SET", "text", "x"]).await;
    let cases: [(&str, Change<'_>, &str); 4] = [
        (
            "address",
            &|it| {
                it.redis_stream.redis.address =
                    vec![format!("redis://127.0.0.1:{}/99", server.port)]
            },
            "check redis_stream.db, or the number at the end of redis_stream.address",
        ),
        (
            "address",
            &|it| it.redis_stream.redis.address = vec!["127.0.0.1:1".to_owned()],
            "refused",
        ),
        (
            "address",
            &|it| {
                it.redis_stream.redis.address =
                    vec![format!("redis://stranger:x@127.0.0.1:{}", server.port)]
            },
            "WRONGPASS",
        ),
        ("streams", &|it| it.redis_stream.streams = vec!["text".to_owned()], "WRONGTYPE"),
    ];
    for (key, change, why) in cases {
        let mut options = consumer(&server);
        change(&mut options);
        let error = try_start(&options, &api(), "a").await.expect_err("it is wrong").to_string();
        let begin = format!("consumers[the_queue].redis_stream.{key}: ");
        assert!(error.starts_with(&begin) && error.contains(why), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_use_tls_and_check_the_certificate() {
    let server = QueueServer::redis_with_tls();
    let mut options = consumer(&server);
    options.redis_stream.redis.address = vec![format!("rediss://localhost:{}", server.port)];
    options.redis_stream.redis.tls.enabled = true;
    options.redis_stream.redis.tls.server_ca_pem = CA.to_owned();
    start(&options, &api()).await;
    options.redis_stream.redis.tls.server_ca_pem.clear();
    let error = try_start(&options, &api(), "node_1").await.expect_err("an unknown authority");
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
}
