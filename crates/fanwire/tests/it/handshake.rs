//! The handshake before the 101: error texts, origins and limits (RFC 6455 §4.2).
//! In: requests → out: status lines and bodies.
//! Uses the test client; never internals.
//! Changed here: expectations of the handshake over a socket. The rules have their own tests in `ws`.

use crate::client::{Client, metrics_when, start};

const COMPRESSION: &str =
    "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";

#[tokio::test]
async fn a_wrong_version_gets_426_and_the_supported_one() {
    let server = start(|_| {}).await;
    let request = "GET /connection/websocket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 8\r\n\r\n";
    let client = Client::request(server.address(), request).await;
    assert!(client.response.starts_with("HTTP/1.1 426 "), "{}", client.response);
    assert!(
        client.response.to_lowercase().contains("sec-websocket-version: 13"),
        "{}",
        client.response
    );
}

#[tokio::test]
async fn a_plain_request_to_the_endpoint_is_a_client_error() {
    let server = start(|_| {}).await;
    let request = "GET /connection/websocket HTTP/1.1\r\nHost: x\r\n\r\n";
    let client = Client::request(server.address(), request).await;
    assert!(client.response.starts_with("HTTP/1.1 4"), "{}", client.response);
}

#[tokio::test]
async fn headers_that_must_occur_once_are_checked() {
    let server = start(|config| config.prometheus.enabled = true).await;
    const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    const VERSION: &str = "Sec-WebSocket-Version: 13\r\n";
    let cases = [
        ("Host: x\r\n", KEY, VERSION, "101"),
        ("", KEY, VERSION, "400"),                       // RFC 9112 §3.2
        ("Host: x\r\nHost: y\r\n", KEY, VERSION, "400"), // RFC 9112 §3.2
        ("Host: x\r\n", &[KEY, KEY].concat(), VERSION, "400"), // RFC 6455 §11.3.1a
        ("Host: x\r\n", KEY, &[VERSION, VERSION].concat(), "426"), // RFC 6455 §11.3.5a
    ];
    for (host, key, version, status) in cases {
        let request = format!(
            "GET /connection/websocket HTTP/1.1\r\n{host}Upgrade: websocket\r\nConnection: Upgrade\r\n{key}{version}\r\n"
        );
        let client = Client::request(server.address(), &request).await;
        assert!(client.response.starts_with(&format!("HTTP/1.1 {status} ")), "{request}");
    }
    // Requests without exactly one host are refused before the endpoint.
    let refused = "fanwire_transport_handshakes_refused_total{cause=\"malformed\"} 2\n";
    metrics_when(server.address(), |metrics| metrics.contains(refused)).await;
}

#[tokio::test]
async fn a_handshake_with_a_body_is_answered_with_400() {
    let server = start(|_| {}).await;
    for (header, body, status) in [
        ("Content-Length: 0", "", "101"),
        ("Content-Length: 2", "{}", "400"),
        ("Content-Length: 2", "", "400"),
        ("Transfer-Encoding: chunked", "2\r\n{}\r\n0\r\n\r\n", "400"),
        ("Transfer-Encoding: chunked", "0\r\n\r\n", "400"),
    ] {
        let request = format!(
            "GET /connection/websocket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{header}\r\n\r\n{body}"
        );
        let client = Client::request(server.address(), &request).await;
        assert!(client.response.starts_with(&format!("HTTP/1.1 {status} ")), "{request}");
    }
}

#[tokio::test]
async fn the_first_of_a_repeated_query_option_counts() {
    let server = start(|_| {}).await;
    for (query, head) in [
        ("format=protobuf&x=1&x=2", 0x82),
        ("format=protobuf&format=protobuf", 0x82),
        ("cf_protocol=protobuf&cf_protocol=json&format=json", 0x82),
        ("format=json&format=protobuf", 0x81),
    ] {
        let request = format!(
            "GET /connection/websocket?{query} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        let mut client = Client::request(server.address(), &request).await;
        let connect: &[u8] =
            if head == 0x82 { b"\x04\x08\x01\x22\x00" } else { br#"{"id":1,"connect":{}}"# };
        client.frame(head, connect).await;
        let reply = client.next().await.expect("a connect reply");
        assert_eq!(reply.head, head, "{query}");
    }
}

#[tokio::test]
async fn an_offered_protocol_is_echoed_and_an_unknown_one_is_not() {
    // RFC 6455 §4.2.2f
    let server = start(|_| {}).await;
    let offer = "Sec-WebSocket-Protocol: chat, centrifuge-protobuf\r\n";
    let client = Client::open(server.address(), offer).await;
    assert!(client.response.to_lowercase().contains("sec-websocket-protocol: centrifuge-protobuf"));
    let client = Client::open(server.address(), "Sec-WebSocket-Protocol: chat\r\n").await;
    assert!(!client.response.to_lowercase().contains("sec-websocket-protocol"));
}

#[tokio::test]
async fn each_header_of_the_response_occurs_once() {
    // RFC 6455 §4.2.2i, §11.3.2a, §11.3.3a, §11.3.4a
    let server = start(|_| {}).await;
    let offers = "Sec-WebSocket-Protocol: centrifuge-json\r\nSec-WebSocket-Protocol: centrifuge-protobuf\r\n";
    let client =
        Client::open(server.address(), &format!("{offers}{COMPRESSION}{COMPRESSION}")).await;
    let response = client.response.to_lowercase();
    assert!(response.starts_with("http/1.1 101 "), "{response}");
    for name in ["upgrade", "connection", "accept", "protocol", "extensions"] {
        let count = response.lines().filter(|line| {
            let (header, _) = line.split_once(':').unwrap_or_default();
            header.trim_start_matches("sec-websocket-") == name
        });
        assert_eq!(count.count(), 1, "{name}: {response}");
    }
}

#[tokio::test]
async fn compression_is_negotiated_unless_disabled_or_unsafe() {
    let server = start(|_| {}).await;
    let client = Client::open(server.address(), COMPRESSION).await;
    assert!(client.response.contains("permessage-deflate; "), "{}", client.response);
    assert!(client.response.contains("client_no_context_takeover"), "{}", client.response);
    let safari = "User-Agent: Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15\r\n";
    let client = Client::open(server.address(), &format!("{COMPRESSION}{safari}")).await;
    assert!(!client.response.contains("permessage-deflate"), "{}", client.response);
    let server = start(|config| config.websocket.compression = false).await;
    let client = Client::open(server.address(), COMPRESSION).await;
    assert!(!client.response.contains("permessage-deflate"), "{}", client.response);
}

#[tokio::test]
async fn a_foreign_origin_is_forbidden_and_a_listed_one_connects() {
    // RFC 6455 §4.2.2b
    let server =
        start(|config| config.client.allowed_origins = vec!["https://*.example.com".to_owned()])
            .await;
    let request = "GET /connection/websocket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nOrigin: https://evil.org\r\n\r\n";
    let client = Client::request(server.address(), request).await;
    assert!(client.response.starts_with("HTTP/1.1 403 "), "{}", client.response);
    Client::open(server.address(), "Origin: https://chat.example.com\r\n").await;
}

#[tokio::test]
async fn above_the_connection_limit_the_response_is_503_until_one_closes() {
    let server = start(|config| config.client.connection_limit = 1).await;
    let mut first = Client::subscribed(server.address(), "", "a").await;
    let request = "GET /connection/websocket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let refused = Client::request(server.address(), request).await;
    assert!(refused.response.starts_with("HTTP/1.1 503 "), "{}", refused.response);
    assert!(refused.response.contains("connection: close\r\n"), "{}", refused.response);
    first.frame(0x88, &[0x03, 0xe8]).await;
    assert_eq!(first.next().await.expect("the echo of the close").payload, [0x03, 0xe8]);
    assert_eq!(first.next().await, None);
    Client::subscribed(server.address(), "", "a").await;
}

#[tokio::test]
async fn above_the_limit_of_memory_new_clients_get_503_and_the_api_and_readiness_stay() {
    let server = start(|config| {
        config.shed.memory_max = 1;
        config.prometheus.enabled = true;
        config.health.enabled = true;
        config.http_stream.enabled = true;
    })
    .await;
    let address = server.address();
    metrics_when(address, |metrics| metrics.contains("fanwire_shed_active{reason=\"memory\"} 1\n"))
        .await;
    let upgrade = "GET /connection/websocket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let stream = "POST /connection/http_stream HTTP/1.1\r\nHost: x\r\nContent-Length: 21\r\n\r\n{\"id\":1,\"connect\":{}}";
    for request in [upgrade, stream] {
        let response = Client::request(address, request).await.response;
        assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
        assert!(response.to_lowercase().contains("\r\nretry-after: 5\r\n"), "{response}");
    }
    let publish = "POST /api/publish HTTP/1.1\r\nHost: x\r\nX-API-Key: key\r\nContent-Length: 27\r\n\r\n{\"channel\":\"a\",\"data\":\"hi\"}";
    let ready = "GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n";
    for request in [publish, ready] {
        let response = Client::request(address, request).await.response;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    }
    let refused = "fanwire_transport_handshakes_refused_total{cause=\"memory\"} 2\n";
    metrics_when(address, |metrics| metrics.contains(refused)).await;
    server.shutdown().await;
}
