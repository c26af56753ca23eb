//! NATS JetStream: nothing lost, nodes that share a durable consumer, consumers that are deleted.
//! In: messages → out: publications, and what is not acknowledged.
//! Uses a NATS server per test. Never: sleeps.
//! A promise about JetStream is a test here.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::{self, Context, consumer, stream};
use async_nats::{ConnectOptions, HeaderMap};
use fanwire_consumers::{ConsumerKind, ConsumerOptions};
use serde_json::{Value as Json, json};

use crate::harness::{
    Change, api, many, options, publications, published, start, stats, try_start, until,
    until_processed,
};
use crate::server::{CA, QueueServer};

/// A client with a stream for `a.*`.
async fn connect(server: &QueueServer) -> Context {
    let connect = ConnectOptions::new().connect(format!("127.0.0.1:{}", server.port));
    let context = jetstream::new(connect.await.expect("it is ready"));
    let config = stream::Config {
        name: "s".to_owned(),
        subjects: vec!["a.*".to_owned()],
        ..Default::default()
    };
    context.get_or_create_stream(config).await.expect("a stream");
    context
}

fn consumer(server: &QueueServer) -> ConsumerOptions {
    let mut options = options(ConsumerKind::NatsJetStream);
    options.nats_jetstream.url = format!("nats://127.0.0.1:{}", server.port);
    options.nats_jetstream.stream_name = "s".to_owned();
    options.nats_jetstream.durable_consumer_name = "d".to_owned();
    options.nats_jetstream.deliver_all = true;
    options
}

/// Sends messages `from` to `to - 1`, every second one as an envelope.
async fn send(context: &Context, from: usize, to: usize) {
    let mut stored = Vec::new();
    for n in from..to {
        let request = json!({"channel": "c0", "data": n, "idempotency_key": n.to_string()});
        let mut headers = HeaderMap::new();
        let payload = if n % 2 == 0 {
            headers.insert("centrifugo-method", "publish");
            request
        } else {
            json!({"method": "publish", "payload": request})
        };
        let payload = payload.to_string().into();
        stored
            .push(context.publish_with_headers("a.x", headers, payload).await.expect("it is sent"));
        if stored.len() == 1_000 || n + 1 == to {
            for acknowledgement in stored.drain(..) {
                acknowledgement.await.expect("it is stored");
            }
        }
    }
}

/// The numbers in a channel, each of which must be there once.
async fn numbers(api: &fanwire_api::Api) -> BTreeSet<u64> {
    let all = publications(api, "c0").await;
    let numbers: BTreeSet<u64> = all.iter().filter_map(Json::as_u64).collect();
    assert_eq!(numbers.len(), all.len(), "a publication is there twice");
    numbers
}

/// Messages that were delivered and not acknowledged, and those that were not delivered.
async fn unfinished(context: &Context) -> u64 {
    let stream = context.get_stream("s").await.expect("a stream");
    let info = stream.consumer_info("d").await.expect("a consumer");
    info.num_ack_pending as u64 + info.num_pending
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_repeated_when_consumers_are_killed_and_the_server_crashes() {
    let mut server = QueueServer::nats();
    let (api, count, options) = (api(), many(), consumer(&server));
    let context = connect(&server).await;
    send(&context, 0, count).await;
    for part in [count / 4, count / 4] {
        let consumers = start(&options, &api).await;
        until_processed(&consumers, part as u64).await;
        drop(consumers);
        server.crash();
        server.restart();
    }
    let _consumers = start(&options, &api).await;
    // Those of the killed ones come after 30 s.
    until("all messages", async || published(&api, "c0").await == count as u64).await;
    assert_eq!(numbers(&api).await, (0..count as u64).collect());
    let context = connect(&server).await;
    until("all are acknowledged", async || unfinished(&context).await == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_share_a_consumer_and_a_stop_gives_messages_back() {
    let server = QueueServer::nats();
    let (api, options) = (api(), consumer(&server));
    let context = connect(&server).await;
    let one = try_start(&options, &api, "node_1").await.expect("it starts");
    let other = try_start(&options, &api, "node_2").await.expect("it starts");
    send(&context, 0, 2000).await;
    let processed = || [stats(&one).processed, stats(&other).processed];
    until("all messages", async || processed().iter().sum::<u64>() >= 2000).await;
    assert_eq!(numbers(&api).await, (0..2000).collect());
    let [of_one, of_other] = processed();
    assert!(of_one + of_other == 2000 && of_one > 0 && of_other > 0, "{of_one} and {of_other}");
    one.stop(Duration::from_secs(5)).await;
    send(&context, 2000, 2010).await;
    until_processed(&other, of_other + 10).await;
    until("all are acknowledged", async || unfinished(&context).await == 0).await;
}

/// Deletes the durable consumer. The server of NATS forgets it first, and may then fail to remove a folder into which it
/// still writes.
async fn delete_consumer(stream: &stream::Stream) {
    if let Err(error) = stream.delete_consumer("d").await {
        assert!(error.to_string().contains("directory not empty"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_consumer_is_made_again_and_bad_messages_do_not_block() {
    let server = QueueServer::nats();
    let (api, mut options) = (api(), consumer(&server));
    options.nats_jetstream.subjects = vec!["a.x".to_owned()];
    let context = connect(&server).await;
    let consumers = start(&options, &api).await;
    let publish = |subject: &'static str, payload: &'static str| {
        let context = context.clone();
        async move {
            context
                .publish(subject, payload.into())
                .await
                .expect("it is sent")
                .await
                .expect("it is stored")
        }
    };
    for bad in [
        "",
        "{",
        "\u{feff}{}",
        r#"{"method":"info","payload":{}}"#,
        r#"{"method":"publish","payload":{}}"#,
    ] {
        publish("a.x", bad).await;
    }
    publish("a.y", r#"{"method":"publish","payload":{"channel":"c0","data":100}}"#).await;
    send(&context, 0, 2).await;
    until_processed(&consumers, 7).await;
    assert_eq!(numbers(&api).await, (0..2).collect());
    let stream = context.get_stream("s").await.expect("a stream");
    delete_consumer(&stream).await;
    send(&context, 2, 4).await;
    until("messages behind the deletion", async || numbers(&api).await == (0..4).collect()).await;
    assert!(stats(&consumers).errors > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_is_made_again_goes_on_where_it_was() {
    let server = QueueServer::nats();
    let (api, mut options) = (api(), consumer(&server));
    options.nats_jetstream.deliver_all = false;
    let context = connect(&server).await;
    // What is older than the consumer is not read.
    send(&context, 1000, 1005).await;
    let stream = context.get_stream("s").await.expect("a stream");
    let consumers = start(&options, &api).await;
    // Also before it has read anything.
    for from in [0, 10, 20] {
        delete_consumer(&stream).await;
        send(&context, from, from + 10).await;
        until("all messages", async || numbers(&api).await.len() >= from + 10).await;
        assert_eq!(numbers(&api).await, (0..from as u64 + 10).collect());
    }
    // The position of the consumer that was made again is not the configured one; the next start accepts that.
    consumers.stop(Duration::from_secs(5)).await;
    send(&context, 30, 40).await;
    let consumers = start(&options, &api).await;
    until_processed(&consumers, 10).await;
    assert_eq!(numbers(&api).await, (0..40).collect());
    // A stream that is made again has other messages under the same numbers.
    context.delete_stream("s").await.expect("it is there");
    let context = connect(&server).await;
    send(&context, 40, 50).await;
    until("all messages", async || numbers(&api).await.len() >= 50).await;
    assert_eq!(numbers(&api).await, (0..50).collect());
    assert_eq!(stats(&consumers).skipped.map(|(_, count)| count), [0; 6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_are_options_of_publications() {
    let server = QueueServer::nats();
    let (api, mut options) = (api(), consumer(&server));
    options.nats_jetstream.publication_data_mode.enabled = true;
    let context = connect(&server).await;
    let consumers = start(&options, &api).await;
    let mut headers = HeaderMap::new();
    headers.insert("centrifugo-channels", "c0,c1");
    headers.insert("centrifugo-tag-a", "b");
    let sent = context.publish_with_headers("a.x", headers, "{\"ü\":1}".into()).await;
    sent.expect("it is sent").await.expect("it is stored");
    until_processed(&consumers, 1).await;
    for channel in ["c0", "c1"] {
        assert_eq!(publications(&api, channel).await, [json!({"ü": 1})]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_cannot_succeed_names_consumer_and_key() {
    let server = QueueServer::nats();
    let context = connect(&server).await;
    let cases: [(&str, Change<'_>, &str); 4] = [
        ("url", &|it| it.nats_jetstream.url = "nats://127.0.0.1:1".to_owned(), "refused"),
        (
            "stream_name",
            &|it| it.nats_jetstream.stream_name = "missing".to_owned(),
            "stream not found",
        ),
        (
            "durable_consumer_name",
            &|it| it.nats_jetstream.use_existing_consumer = true,
            "consumer not found",
        ),
        (
            "credentials_file",
            &|it| it.nats_jetstream.credentials_file = "/missing".to_owned(),
            "No such file",
        ),
    ];
    for (key, change, why) in cases {
        let mut options = consumer(&server);
        change(&mut options);
        let error = try_start(&options, &api(), "a").await.expect_err("it is wrong").to_string();
        let begin = format!("consumers[the_queue].nats_jetstream.{key}: ");
        assert!(error.starts_with(&begin) && error.contains(why), "{error}");
    }
    // The one that exists is used as it is.
    let stream = context.get_stream("s").await.expect("a stream");
    let config = consumer::pull::Config {
        durable_name: Some("d".to_owned()),
        max_ack_pending: 7,
        ..Default::default()
    };
    stream.create_consumer(config).await.expect("a consumer");
    let mut options = consumer(&server);
    options.nats_jetstream.use_existing_consumer = true;
    let consumers = start(&options, &api()).await;
    send(&context, 0, 10).await;
    until_processed(&consumers, 10).await;
    let info = stream.consumer_info("d").await.expect("a consumer");
    assert_eq!(info.config.max_ack_pending, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_use_tls_and_check_the_certificate() {
    let server = QueueServer::nats_with_tls();
    let mut options = consumer(&server);
    options.nats_jetstream.url = format!("tls://localhost:{}", server.port);
    let error = try_start(&options, &api(), "node_1").await.expect_err("an unknown authority");
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    options.nats_jetstream.tls.enabled = true;
    options.nats_jetstream.tls.server_ca_pem = CA.to_owned();
    // Over a trusted connection only the stream is missing.
    let error = try_start(&options, &api(), "node_1").await.expect_err("there is no stream");
    assert!(error.to_string().contains("stream"), "{error}");
}

/// Log lines that say something of NATS, of all tests of this process.
static LINES: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

/// Keeps the fields of each event.
struct Log;

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = event.metadata().target().to_owned();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            line.push_str(&format!(" {field}={value:?}"));
        });
        LINES.lock().expect("no panic inside").push(line);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_names_the_consumer_whose_server_is_lost_and_is_back() {
    // Another test may have set one, which would be this one.
    let _ = tracing::subscriber::set_global_default(Log);
    let mut server = QueueServer::nats();
    connect(&server).await;
    let api = api();
    let _consumers = start(&consumer(&server), &api).await;
    let says = async |text: &str| {
        let lines = LINES.lock().expect("no panic inside");
        lines.iter().any(|line| {
            let is_ours = line.starts_with("fanwire_consumers::jetstream ");
            is_ours && line.contains("consumer=\"the_queue\"") && line.contains(text)
        })
    };
    server.crash();
    until("the line of a loss", async || says("the connection to NATS is lost").await).await;
    LINES.lock().expect("no panic inside").clear();
    server.restart();
    until("the line of a return", async || says("connected to NATS").await).await;
}
