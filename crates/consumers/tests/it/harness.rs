//! Servers without a network around consumers: an API over a node with a history, or over a Redis engine.
//! In: options of consumers → out: their numbers, the publications of channels.
//! Uses the API as backends do. Never: sleeps.
//! Changed here: how tests start consumers and wait.

use std::sync::Arc;
use std::time::Duration;

use fanwire_api::{Api, ApiOptions, Method};
use fanwire_consumers::{
    ConsumerError, ConsumerKind, ConsumerOptions, ConsumerStats, Consumers, JetStreamOptions,
    KafkaOptions, OutboxOptions, PublicationDataMode, RedisStreamOptions, StartPhase,
};
use fanwire_node::Node;
use fanwire_node::options::Options;
use fanwire_redis::EngineRedisOptions;
use fanwire_testing::wait_for_async;
use serde_json::Value as Json;

/// Options of a node whose channels keep everything.
pub(crate) fn node_options() -> Options {
    let mut options = Options::default();
    options.channel.without_namespace.history_size = 1_000_000;
    options.channel.without_namespace.history_ttl = Duration::from_secs(3600);
    options
}

pub(crate) fn api() -> Arc<Api> {
    let node = Node::new(node_options()).expect("the options are valid");
    Arc::new(Api::new(node, ApiOptions::default()))
}

/// Options of one consumer with the defaults of the configuration.
pub(crate) fn options(kind: ConsumerKind) -> ConsumerOptions {
    let mode = || PublicationDataMode {
        enabled: false,
        channels: "centrifugo-channels".to_owned(),
        idempotency_key: "centrifugo-idempotency-key".to_owned(),
        delta: "centrifugo-delta".to_owned(),
        version: "centrifugo-version".to_owned(),
        version_epoch: "centrifugo-version-epoch".to_owned(),
        tags_prefix: "centrifugo-tag-".to_owned(),
    };
    let method_header = || "centrifugo-method".to_owned();
    ConsumerOptions {
        enabled: true,
        start_delay: Duration::ZERO,
        kind: Some(kind),
        postgresql: OutboxOptions {
            num_partitions: 1,
            partition_select_limit: 100,
            partition_poll_interval: Duration::from_millis(300),
            ..OutboxOptions::default()
        },
        redis_stream: RedisStreamOptions {
            redis: EngineRedisOptions {
                connect_timeout: Duration::from_secs(1),
                io_timeout: Duration::from_secs(4),
                ..EngineRedisOptions::default()
            },
            visibility_timeout: Duration::from_secs(30),
            num_workers: 1,
            payload_value: "payload".to_owned(),
            method_value: "method".to_owned(),
            publication_data_mode: mode(),
            ..RedisStreamOptions::default()
        },
        nats_jetstream: JetStreamOptions {
            max_ack_pending: 100,
            method_header: method_header(),
            publication_data_mode: mode(),
            ..JetStreamOptions::default()
        },
        kafka: KafkaOptions {
            max_poll_records: 100,
            fetch_max_wait: Duration::from_millis(500),
            partition_queue_max_size: 1000,
            dial_timeout: Duration::from_secs(3),
            method_header: method_header(),
            publication_data_mode: mode(),
            ..KafkaOptions::default()
        },
    }
}

/// A change that makes options wrong.
pub(crate) type Change<'a> = &'a dyn Fn(&mut ConsumerOptions);

/// Starts one consumer on a node of this name.
pub(crate) async fn try_start(
    options: &ConsumerOptions,
    api: &Arc<Api>,
    node: &str,
) -> Result<Consumers, ConsumerError> {
    let consumers = [("the_queue".to_owned(), options.clone())].into();
    let on_failure = |error| panic!("{error}");
    let started = Consumers::start(&consumers, api, node, on_failure).await;
    started.map(|consumers| {
        let consumers = consumers.expect("one is enabled");
        consumers.enter(StartPhase::Serving);
        consumers
    })
}

pub(crate) async fn start(options: &ConsumerOptions, api: &Arc<Api>) -> Consumers {
    try_start(options, api, "node_1").await.expect("the consumer starts")
}

pub(crate) fn stats(consumers: &Consumers) -> ConsumerStats {
    consumers.monitor().stats().remove(0)
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let attempt = async || is_so().await.then_some(()).ok_or(what);
    wait_for_async(attempt, PATIENCE).await;
}

/// Waits until so many messages are done.
pub(crate) async fn until_processed(consumers: &Consumers, count: u64) {
    until(&format!("{count} messages"), async || stats(consumers).processed >= count).await;
}

/// The data of the publications of a channel.
pub(crate) async fn publications(api: &Api, channel: &str) -> Vec<Json> {
    let history = history(api, channel, -1).await;
    let all = history["publications"].as_array().expect("a list");
    all.iter().map(|one| one["data"].clone()).collect()
}

/// The number of publications of a channel since the start.
pub(crate) async fn published(api: &Api, channel: &str) -> u64 {
    history(api, channel, 0).await["offset"].as_u64().unwrap_or(0)
}

async fn history(api: &Api, channel: &str, limit: i64) -> Json {
    let request = serde_json::json!({"channel": channel, "limit": limit}).to_string();
    let command = Method::History.decode(&request).expect("a request");
    let outcome = api.run(command).await.expect("a history");
    serde_json::to_value(outcome).expect("JSON")["history"].take()
}

/// The number of messages in tests that lose consumers and queues.
pub(crate) fn many() -> usize {
    std::env::var("FANWIRE_MESSAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

/// The brokers of librdkafka take two minutes until two members of a group have shared its partitions.
const PATIENCE: Duration = Duration::from_secs(300);
