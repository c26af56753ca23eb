//! Kafka: nothing lost, order of partitions, members that share a group.
//! In: records → out: publications.
//! Uses librdkafka's own brokers inside the test process (`MockCluster`): a broker of the Apache project is too large to install for a
//! test. Never: sleeps.
//! A promise about topics is a test here.

use std::collections::HashMap;
use std::time::Duration;

use fanwire_consumers::{ConsumerKind, ConsumerOptions};
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{DefaultProducerContext, FutureProducer, FutureRecord};
use serde_json::{Value as Json, json};

use crate::harness::{
    Change, api, many, options, publications, start, stats, try_start, until, until_processed,
};

type Cluster = MockCluster<'static, DefaultProducerContext>;

fn cluster(partitions: i32) -> (Cluster, FutureProducer) {
    let cluster = MockCluster::new(1).expect("brokers for tests");
    cluster.create_topic("t", partitions, 1).expect("a topic");
    let mut settings = ClientConfig::new();
    settings.set("bootstrap.servers", cluster.bootstrap_servers());
    (cluster, settings.create().expect("a producer"))
}

fn consumer(cluster: &Cluster) -> ConsumerOptions {
    let mut options = options(ConsumerKind::Kafka);
    options.kafka.brokers = vec![cluster.bootstrap_servers()];
    options.kafka.topics = vec!["t".to_owned()];
    options.kafka.consumer_group = "g".to_owned();
    options
}

/// Sends records `from` to `to - 1`, to one partition after the other; each partition has a channel.
async fn send(producer: &FutureProducer, from: usize, to: usize, partitions: usize) {
    let mut sent = Vec::new();
    for n in from..to {
        let partition = n % partitions;
        let request = json!({"channel": format!("c{partition}"), "data": n, "idempotency_key": n.to_string()});
        let header = Header { key: "centrifugo-method", value: Some("publish") };
        let payload = request.to_string();
        let record: FutureRecord<'_, (), String> = FutureRecord::to("t").payload(&payload);
        let record = record.partition(partition as i32).headers(OwnedHeaders::new().insert(header));
        sent.push(producer.send_result(record).map_err(|(error, _)| error).expect("it is queued"));
    }
    for one in sent {
        one.await.expect("a result").expect("it is stored");
    }
}

async fn check_all(api: &fanwire_api::Api, count: usize, partitions: usize) {
    for partition in 0..partitions {
        let expected: Vec<Json> =
            (partition..count).step_by(partitions).map(|n| json!(n)).collect();
        let found = publications(api, &format!("c{partition}")).await;
        assert_eq!(found.len(), expected.len());
        assert!(found == expected, "the order of partition {partition}");
    }
}

async fn published(api: &fanwire_api::Api, partitions: usize) -> usize {
    let mut count = 0;
    for partition in 0..partitions {
        count += publications(api, &format!("c{partition}")).await.len();
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_repeated_when_consumers_are_killed_and_brokers_go() {
    let (cluster, producer) = cluster(2);
    let (api, count, options) = (api(), many(), consumer(&cluster));
    send(&producer, 0, count, 2).await;
    for part in [count / 4, count / 4] {
        let consumers = start(&options, &api).await;
        until_processed(&consumers, part as u64).await;
        drop(consumers);
        cluster.broker_down(1).expect("it is up");
        cluster.broker_up(1).expect("it is down");
    }
    let consumers = start(&options, &api).await;
    until("all records", async || published(&api, 2).await == count).await;
    check_all(&api, count, 2).await;
    consumers.stop(Duration::from_secs(20)).await;
    // What is done was committed at the end.
    let consumers = start(&options, &api).await;
    send(&producer, count, count + 10, 2).await;
    until("new records", async || published(&api, 2).await == count + 10).await;
    assert_eq!(stats(&consumers).processed, 10);
    check_all(&api, count + 10, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_members_share_the_partitions_and_keep_their_order() {
    let (cluster, producer) = cluster(4);
    let (api, options) = (api(), consumer(&cluster));
    let one = start(&options, &api).await;
    send(&producer, 0, 400, 4).await;
    until_processed(&one, 400).await;
    let other = try_start(&options, &api, "node_2").await.expect("it starts");
    let (mut count, mut looks) = (400, 0);
    // The brokers wait for members as long as a session may last, twice; they must not drop old records by then.
    until("a share of the other", async || {
        if looks % 20 == 0 {
            send(&producer, count, count + 4, 4).await;
            count += 4;
        }
        looks += 1;
        stats(&other).processed > 0
    })
    .await;
    until("all records", async || published(&api, 4).await == count).await;
    check_all(&api, count, 4).await;
    one.stop(Duration::from_secs(20)).await;
    send(&producer, count, count + 40, 4).await;
    until("all partitions", async || published(&api, 4).await == count + 40).await;
    check_all(&api, count + 40, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_cannot_be_executed_do_not_block_and_headers_are_options() {
    let (cluster, producer) = cluster(1);
    let (api, mut options) = (api(), consumer(&cluster));
    options.kafka.publication_data_mode.enabled = true;
    let consumers = start(&options, &api).await;
    for (payload, headers) in [
        ("1", vec![]),
        ("2", vec![("centrifugo-channels", "c0"), ("centrifugo-delta", "x")]),
        ("3", vec![("centrifugo-channels", "unknown:a")]),
        ("\"ü\"", vec![("centrifugo-channels", "c0,c1"), ("centrifugo-version", "5")]),
    ] {
        let add = |all: OwnedHeaders, (key, value): (&str, &str)| {
            all.insert(Header { key, value: Some(value) })
        };
        let headers = headers.into_iter().fold(OwnedHeaders::new(), add);
        let record: FutureRecord<'_, (), str> =
            FutureRecord::to("t").payload(payload).headers(headers);
        producer
            .send(record, Duration::from_secs(5))
            .await
            .map_err(|(error, _)| error)
            .expect("it is stored");
    }
    until_processed(&consumers, 4).await;
    for channel in ["c0", "c1"] {
        assert_eq!(publications(&api, channel).await, [json!("ü")]);
    }
    let skipped: HashMap<_, _> =
        stats(&consumers).skipped.map(|(cause, count)| (cause.name(), count)).into();
    assert_eq!([skipped["channels"], skipped["header"], skipped["refused"]], [1, 1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_cannot_succeed_names_consumer_and_key() {
    let (cluster, _) = cluster(1);
    let error_code = rdkafka::types::RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    cluster.topic_error("missing", error_code).expect("an error for tests");
    let cases: [(&str, Change<'_>, &str); 2] = [
        ("brokers", &|it| it.kafka.brokers = vec!["127.0.0.1:1".to_owned()], ""),
        ("topics", &|it| it.kafka.topics = vec!["missing".to_owned()], "\"missing\""),
    ];
    for (key, change, why) in cases {
        let mut options = consumer(&cluster);
        options.kafka.dial_timeout = Duration::from_secs(1);
        change(&mut options);
        let error = try_start(&options, &api(), "a").await.expect_err("it is wrong").to_string();
        let begin = format!("consumers[the_queue].kafka.{key}: ");
        assert!(error.starts_with(&begin) && error.contains(why), "{error}");
    }
}
