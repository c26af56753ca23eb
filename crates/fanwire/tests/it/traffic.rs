//! Messages through a whole server: replies, publications, compression, order.
//! In: commands and API calls → out: frames.
//! Uses the test client.
//! Changed here: expectations over sockets. Rules of sessions have their own tests in `node`.

use std::path::Path;

use crate::client::{Client, fetch, inflate, metrics_when, publish, start};

#[tokio::test]
async fn commands_of_one_message_are_answered_in_one_message() {
    let server = start(|_| {}).await;
    let mut client = Client::open(server.address(), "").await;
    client.text("{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"a\"}}\n{\"id\":3,\"rpc\":{}}").await;
    let replies = client.next_text().await;
    let ids: Vec<&str> = replies.lines().map(|line| &line[..8]).collect();
    assert_eq!(
        ids,
        ["{\"id\":1,\"", "{\"id\":2,\"", "{\"id\":3,\""].map(|id| &id[..8]),
        "{replies}"
    );
    assert!(replies.contains("\"code\":108"), "{replies}");
}

#[tokio::test]
async fn a_publication_reaches_json_and_protobuf_subscribers_of_every_shard_once_and_in_order() {
    let server = start(|_| {}).await;
    let address = server.address();
    let mut json = Vec::new();
    for _ in 0..4 {
        json.push(Client::subscribed(address, "", "news").await);
    }
    for n in 0..50 {
        assert_eq!(publish(address, "news", &format!("{{\"n\":{n}}}")).await, "{\"result\":{}}");
    }
    for client in &mut json {
        for n in 0..50 {
            let expect =
                format!("{{\"push\":{{\"channel\":\"news\",\"pub\":{{\"data\":{{\"n\":{n}}}}}}}}}");
            assert_eq!(client.next_text().await, expect);
        }
    }
}

#[tokio::test]
async fn an_offloaded_reply_arrives_before_replies_to_later_commands() {
    let server = start(|config| {
        let open = &mut config.channel.without_namespace;
        open.history_size = 10;
        open.history_ttl = std::time::Duration::from_secs(600);
    })
    .await;
    let address = server.address();
    let mut client = Client::subscribed(address, "", "news").await;
    let large = format!("\"{}\"", "x".repeat(20_000));
    for _ in 0..4 {
        publish(address, "news", &large).await;
        assert!(client.next_text().await.contains(&large));
    }
    client
        .text("{\"id\":3,\"history\":{\"channel\":\"news\",\"limit\":-1}}\n{\"id\":4,\"rpc\":{}}")
        .await;
    let history = client.next_text().await;
    assert!(history.starts_with("{\"id\":3,\"history\":{\"publications\":["), "{history}");
    assert_eq!(history.matches(&large).count(), 4);
    let rpc = match history.split_once('\n') {
        Some((_, rpc)) => rpc.to_owned(), // in one message
        None => client.next_text().await,
    };
    assert!(rpc.starts_with("{\"id\":4,"), "{rpc}");
}

#[tokio::test]
async fn a_large_publication_is_compressed_once_it_pays_and_small_ones_stay_raw() {
    let server = start(|config| config.websocket.compression_min_size = 128).await;
    let address = server.address();
    let offer = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
    let mut client = Client::subscribed(address, offer, "news").await;
    publish(address, "news", "\"small\"").await;
    assert_eq!(client.next().await.expect("a frame").head, 0x81);
    let large = format!("\"{}\"", "abc ".repeat(500));
    publish(address, "news", &large).await;
    let frame = client.next().await.expect("a frame");
    assert_eq!(frame.head, 0xc1, "RSV1 marks a compressed message (RFC 7692 §6)");
    assert!(frame.payload.len() < 100, "{}", frame.payload.len());
    assert!(String::from_utf8(inflate(&frame.payload)).expect("UTF-8").contains(&large));
}

#[tokio::test]
async fn bytes_sent_with_the_handshake_are_not_lost() {
    let server = start(|_| {}).await;
    let address = server.address();
    let request = format!(
        "GET /connection/websocket HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    // A frame with an all-zero mask is its own plaintext: {"id":1,"connect":{}}.
    let command = "{\"id\":1,\"connect\":{}}";
    let mut bytes = request.into_bytes();
    bytes.extend_from_slice(&[0x81, 0x80 | command.len() as u8, 0, 0, 0, 0]);
    bytes.extend_from_slice(command.as_bytes());
    let mut client = Client::raw_request(address, &bytes).await;
    assert!(client.next_text().await.starts_with("{\"id\":1,\"connect\":{\"client\":\""));
}

#[tokio::test]
async fn metrics_and_health_report_traffic() {
    let server = start(|config| {
        config.prometheus.enabled = true;
        config.health.enabled = true;
    })
    .await;
    let address = server.address();
    assert!(fetch(address, "/metrics").await.contains("\nfanwire_shard_backlog_bytes 0\n"));
    let mut client = Client::subscribed(address, "", "news").await;
    assert_eq!(fetch(address, "/health").await, "{}");
    let written = "fanwire_node_publish_latency_seconds_count 1\n";
    let name = "fanwire_publication_encode_time_seconds_total{namespace=\"\"} ";
    let seconds = |metrics: &str| -> f64 {
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)).expect("a sum");
        value.parse().expect("a number")
    };
    assert_eq!(seconds(&fetch(address, "/metrics").await), 0.0, "nothing was published");
    publish(address, "news", "1").await;
    client.next_text().await;
    let is_counted = |metrics: &str| metrics.contains(written) && seconds(metrics) > 0.0;
    let metrics = metrics_when(address, is_counted).await;
    assert!(seconds(&metrics) < 1.0, "of one small publication");
    for line in [
        "fanwire_node_num_clients 1",
        "fanwire_node_num_subscriptions 1",
        "fanwire_node_num_channels 1",
        "fanwire_transport_messages_sent_total{transport=\"websocket\",encoding=\"json\"} 2",
        "fanwire_api_commands_total{protocol=\"http\",method=\"publish\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is missing in\n{metrics}");
    }
}

#[tokio::test]
async fn every_metric_is_documented() {
    let server = start(|config| config.prometheus.enabled = true).await;
    let metrics = fetch(server.address(), "/metrics").await;
    let pages = ["operation.md", "compression.md", "redis.md", "redis-failures.md"].map(|page| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        std::fs::read_to_string(path).expect("a page of the documentation")
    });
    // Names are in backticks; a name that starts with `…` is the end of a metric name.
    let names: Vec<&str> = pages.iter().flat_map(|page| page.split(['`', '{'])).map(bare).collect();
    let families =
        metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let families: Vec<&str> = families.map(bare).collect();
    assert!(families.len() > 40, "{metrics}");
    for family in families {
        let is_meant = |name: &&str| match name.strip_prefix('…') {
            Some(end) => !end.is_empty() && family.ends_with(end),
            None => *name == family,
        };
        assert!(names.iter().any(is_meant), "{family} stands in no page");
    }
}

/// A metric name as in the documentation: without the common prefix and the suffix of counters.
fn bare(name: &str) -> &str {
    let name = name.strip_prefix("fanwire_").unwrap_or(name);
    name.strip_suffix("_total").unwrap_or(name)
}
