//! Limits of tenants over sockets: connections of one address at every door, publishes over every transport, metrics for a bill.
//! In: clients behind a proxy that names them → out: 429, 111, rows of metrics.
//! Uses the test client. Never: other nodes; those are in `node/tests/it/cluster.rs` and `cli/tests/it/tenants.rs`.
//! Changed here: which doors there are. Counts themselves are tested in `policy`.

use std::net::SocketAddr;

use axum::body::Body;
use fanwire::config::{Config, Namespace};
use http::{Request, StatusCode};
use tokio::net::TcpStream;

use crate::client::{Client, metrics_when, publish, start, upgrade_request};
use crate::http2;

fn behind_a_proxy(config: &mut Config) {
    config.http_server.trusted_proxies = vec!["127.0.0.0/8".to_owned()];
    config.client.limits.address_connections.limit = 1;
    config.prometheus.enabled = true;
    config.sse.enabled = true;
    config.http_stream.enabled = true;
    config.uni_sse.enabled = true;
    config.uni_http_stream.enabled = true;
    config.uni_websocket.enabled = true;
}

/// The requests of all doors of one listener, of a client with this address.
fn doors(server: SocketAddr, client: &str) -> Vec<String> {
    let host = server.to_string();
    let forwarded = format!("X-Forwarded-For: {client}\r\n");
    let connect = r#"{"id":1,"connect":{}}"#;
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{forwarded}\r\n");
    let post = |path: &str, body: &str| {
        let length = body.len();
        format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\n{forwarded}Content-Length: {length}\r\n\r\n{body}"
        )
    };
    let websocket = upgrade_request(&host, &forwarded);
    vec![
        websocket.clone(),
        websocket.replace("/connection/websocket", "/connection/uni_websocket"),
        // Not on a shard, but with hyper, because of the length of a body.
        upgrade_request(&host, &format!("{forwarded}Content-Length: 0\r\n")),
        post("/connection/http_stream", connect),
        post("/connection/sse", connect),
        post("/connection/uni_http_stream", "{}"),
        post("/connection/uni_sse", "{}"),
        get("/connection/uni_sse"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_its_limit_at_every_door() {
    let server = start(behind_a_proxy).await;
    let address = server.address();
    let first = Client::raw_request(address, doors(address, "192.0.2.7")[0].as_bytes()).await;
    assert!(first.response.starts_with("HTTP/1.1 101 "), "{}", first.response);
    for request in doors(address, "192.0.2.7") {
        let refused = Client::raw_request(address, request.as_bytes()).await.response;
        assert!(refused.starts_with("HTTP/1.1 429 "), "{request}{refused}");
        assert!(refused.to_lowercase().contains("retry-after: 5\r\n"), "{refused}");
    }
    for number in 0..doors(address, "").len() {
        let client = format!("192.0.2.{}", 10 + number);
        let request = doors(address, &client).swap_remove(number);
        let accepted = Client::raw_request(address, request.as_bytes()).await;
        let status = &accepted.response[9..12];
        assert!(matches!(status, "101" | "200"), "{request}{}", accepted.response);
        let refused = Client::raw_request(address, request.as_bytes()).await.response;
        assert!(refused.starts_with("HTTP/1.1 429 "), "the second of it: {refused}");
    }
    drop(first);
    metrics_when(address, |metrics| metrics.contains("fanwire_transport_connections 0\n")).await;
    let again = Client::raw_request(address, doors(address, "192.0.2.7")[0].as_bytes()).await;
    assert!(again.response.starts_with("HTTP/1.1 101 "), "{}", again.response);
    let refused = r#"limits_exceeded_total{limit="address_connections",outcome="refused"} 16"#;
    metrics_when(address, |metrics| metrics.contains(refused)).await;
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_http2_and_calls_of_grpc_count_for_their_address() {
    let server = start(|config| {
        behind_a_proxy(config);
        config.http_server.h2c_external = true;
        config.uni_grpc.enabled = true;
        config.uni_grpc.address = "127.0.0.1".to_owned();
        config.uni_grpc.port = 0;
    })
    .await;
    let address = server.address();
    let socket = TcpStream::connect(address).await.expect("the server listens");
    let mut sender = http2::connection(socket).await;
    let headers = [http2::VERSION, ("x-forwarded-for", "192.0.2.7")];
    let first = http2::websocket(&mut sender, address, &headers).await;
    assert!(first.is_ok(), "one connection is within the limit");
    let second = http2::websocket(&mut sender, address, &headers).await;
    assert_eq!(second.err(), Some(StatusCode::TOO_MANY_REQUESTS));
    let calls = server.uni_grpc_address().expect("it is enabled");
    let (_, refused) = consume(calls, "192.0.2.7").await;
    assert_eq!(refused, "8");
    let (call, accepted) = consume(calls, "192.0.2.8").await;
    assert_eq!(accepted, "");
    let (_, refused) = consume(calls, "192.0.2.8").await;
    assert_eq!(refused, "8");
    drop((first, call));
    server.shutdown().await;
}

/// A call of unidirectional gRPC of a client with this address, and its status if it is refused.
async fn consume(
    server: SocketAddr,
    client: &str,
) -> (http::Response<hyper::body::Incoming>, String) {
    let mut sender = http2::connection(TcpStream::connect(server).await.expect("it listens")).await;
    let path = "centrifugal.centrifugo.unistream.CentrifugoUniStream/Consume";
    let request = Request::post(format!("http://{server}/{path}"))
        .header("content-type", "application/grpc")
        .header("x-forwarded-for", client);
    let request = request.body(Body::from(vec![0; 5])).expect("a request");
    let response = sender.send_request(request).await.expect("a response");
    let status = response.headers().get("grpc-status").map(|status| status.to_str().expect("text"));
    let status = status.unwrap_or_default().to_owned();
    (response, status)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_namespace_uses_is_in_the_metrics() {
    let server = start(|config| {
        config.prometheus.enabled = true;
        let chat =
            Namespace { name: "chat".to_owned(), ..config.channel.without_namespace.clone() };
        config.channel.namespaces = vec![chat];
    })
    .await;
    let address = server.address();
    let mut clients = Vec::new();
    for _ in 0..2 {
        clients.push(Client::subscribed(address, "", "chat:a").await);
    }
    publish(address, "chat:a", r#""1234567""#).await;
    publish(address, "chat:b", "12345").await;
    let rows = [
        r#"fanwire_usage_publications_total{namespace="chat"} 2"#,
        r#"fanwire_usage_publication_bytes_total{namespace="chat"} 14"#,
        r#"fanwire_usage_deliveries_total{namespace="chat"} 2"#,
        r#"fanwire_usage_delivery_bytes_total{namespace="chat"} 18"#,
        r#"fanwire_usage_publications_total{namespace=""} 0"#,
    ];
    metrics_when(address, |metrics| rows.iter().all(|row| metrics.contains(row))).await;
    server.shutdown().await;
}
