//! Servers without a network around consumers: an API over a node with a history, or over a Redis engine.
//! In: options of consumers → out: their numbers, the publications of channels.
//! Uses the API as backends do. Never: sleeps.
//! Change here: how tests start consumers and wait.

use std::sync::Arc;
use std::time::Duration;

use fanwire_api::{Api, ApiOptions, Method};
use fanwire_config::{Config, ConsumerOptions};
use fanwire_consumers::{ConsumerError, ConsumerStats, Consumers};
use fanwire_node::Node;
use fanwire_node::options::Options;
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

/// Options of one consumer with the defaults of a configuration file.
pub(crate) fn options(section: Json) -> ConsumerOptions {
    let kind =
        section.as_object().and_then(|keys| keys.keys().next()).expect("one section").clone();
    let mut consumer = section;
    consumer["name"] = "the_queue".into();
    consumer["type"] = kind.into();
    consumer["enabled"] = true.into();
    let flags = [
        ("consumers", Json::Array(vec![consumer]).to_string()),
        ("client.insecure", "true".to_owned()),
    ];
    let flags = flags.map(|(name, value)| (name.to_owned(), value));
    let (config, _): (Config, _) =
        fanwire_config::load(None, std::iter::empty(), &flags).expect("a good configuration");
    config.consumers["the_queue"].clone()
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
    started.map(|consumers| consumers.expect("one is enabled"))
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
