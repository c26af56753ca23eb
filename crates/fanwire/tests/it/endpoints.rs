//! HTTP endpoints other than the real-time one, and how the configuration enables them.
//! In: a configuration → out: responses over sockets.
//! Uses the test client.
//! The replies of the server API are tested in `api`.

use std::net::SocketAddr;

use crate::client::{Client, start};

#[tokio::test(flavor = "multi_thread")]
async fn the_openapi_document_is_served_at_its_configured_path() {
    let server = start(|config| {
        config.swagger.enabled = true;
        config.swagger.handler_prefix = "/api-description".to_owned();
        config.http_api.handler_prefix = "/v1".to_owned();
    })
    .await;
    let request = "GET /api-description HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let client = Client::request(server.address(), request).await;
    assert!(client.response.contains("content-type: application/json\r\n"), "{}", client.response);
    let body = client.text_to_the_end().await;
    let document: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert!(document["paths"]["/v1/publish"]["post"].is_object());
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_page_contains_the_paths_of_websocket_and_api() {
    let server = start(|config| {
        config.demo.enabled = true;
        config.websocket.handler_prefix = "/live".to_owned();
        config.http_api.handler_prefix = "/v1".to_owned();
    })
    .await;
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let page = Client::request(server.address(), request).await.text_to_the_end().await;
    assert!(page.contains("<body data-websocket=\"/live\">"), "{page}");
    assert!(page.contains("/v1/publish</pre>") && !page.contains("{{"), "{page}");
    server.shutdown().await;
}

/// The status lines of responses at an address, for each path.
async fn statuses(address: SocketAddr, paths: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in paths {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nX-API-Key: key\r\nConnection: close\r\n\r\n"
        );
        let client = Client::request(address, &request).await;
        found.push(client.response[9..12].to_owned());
    }
    found
}

const PATHS: [&str; 4] = ["/health", "/metrics", "/api/info", "/connection/websocket"];

#[tokio::test(flavor = "multi_thread")]
async fn with_an_internal_address_internal_endpoints_are_not_public() {
    for external in [false, true] {
        let server = start(|config| {
            // The same port at another loopback address.
            config.http_server.internal_address = "127.0.0.2".to_owned();
            config.http_api.external = external;
            (config.health.enabled, config.prometheus.enabled) = (true, true);
        })
        .await;
        assert_ne!(server.address(), server.internal_address());
        let (not_post, not_upgrade) = ("405", "426");
        let api = if external { [not_post, "404"] } else { ["404", not_post] };
        let public = statuses(server.address(), &PATHS).await;
        assert_eq!(public, ["404", "404", api[0], not_upgrade], "public, external: {external}");
        let internal = statuses(server.internal_address(), &PATHS).await;
        assert_eq!(internal, ["200", "200", api[1], "404"], "internal, external: {external}");
        let of_api = if external { server.address() } else { server.internal_address() };
        assert_eq!(server.api_address(), of_api);
        server.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_internal_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut config = fanwire::config::Config::default();
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = 0;
    config.http_server.internal_port = taken.local_addr().expect("bound").port().to_string();
    let Err(error) = fanwire::Server::start(config).await else { panic!("it started") };
    assert!(error.to_string().starts_with("http_server.internal_port = "), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn disabled_endpoints_do_not_exist() {
    let server = start(|config| config.http_api.disabled = true).await;
    for path in [
        "/swagger",
        "/metrics",
        "/health",
        "/",
        "/api",
        "/api/info",
        "/debug/pprof/",
        "/debug/pprof/heap",
    ] {
        // RFC 6455 §4.2.2d
        let request = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        let client = Client::request(server.address(), &request).await;
        assert!(client.response.starts_with("HTTP/1.1 404 "), "{path}: {}", client.response);
    }
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_of_the_api_are_exact_and_accept_post_only() {
    for (prefix, path) in [("/api", "/api/channels"), ("/v1/{x}/", "/v1/{x}/channels")] {
        let server = start(|config| config.http_api.handler_prefix = prefix.to_owned()).await;
        let rest = "Host: a\r\nX-API-Key: key\r\nContent-Length: 2\r\n\r\n{}";
        for (method, suffix, status) in [
            ("POST", "", "200"),
            ("POST", "?a=b", "200"),
            ("POST", "/", "404"),
            ("POST", "x", "404"),
            ("PUT", "", "405"),
            ("OPTIONS", "", "405"),
        ] {
            let request = format!("{method} {path}{suffix} HTTP/1.1\r\n{rest}");
            let client = Client::request(server.address(), &request).await;
            assert_eq!(&client.response[9..12], status, "{request}");
            let allows = client.response.contains("allow: POST\r\n");
            assert_eq!(allows, status == "405", "{}", client.response);
        }
        server.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_path_or_method_of_the_api_is_answered_with_the_right_one() {
    let server = start(|_| {}).await;
    for (line, text) in [
        (
            "POST /api/publsh",
            "Not Found: the server API has no method \"publsh\", the nearest are publish,",
        ),
        ("GET /api/publish", "Method Not Allowed: the API is called with POST, not GET\n"),
    ] {
        let request = format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let client = Client::request(server.address(), &request).await;
        let body = client.text_to_the_end().await;
        assert!(body.starts_with(text), "{line}: {body}");
    }
    server.shutdown().await;
}

/// RFC 9112 §3.2.
#[tokio::test(flavor = "multi_thread")]
async fn every_path_requires_exactly_one_host() {
    let server = start(|config| config.health.enabled = true).await;
    let body = "X-API-Key: key\r\nContent-Length: 2\r\n\r\n{}";
    for (request, rest, fine) in [
        ("GET /health HTTP/1.1", "\r\n", "200"),
        ("GET /nowhere HTTP/1.1", "\r\n", "404"),
        ("POST /api/channels HTTP/1.1", body, "200"),
    ] {
        for (hosts, status) in [
            ("Host: a\r\n", fine),
            ("Host:\r\n", fine),
            ("", "400"),
            ("Host: a\r\nHost: a\r\n", "400"),
            ("Host: a, b\r\n", "400"),
        ] {
            let asked = format!("{request}\r\n{hosts}{rest}");
            let client = Client::request(server.address(), &asked).await;
            assert_eq!(&client.response[9..12], status, "{asked}");
            let closes = client.response.contains("connection: close\r\n");
            assert_eq!(closes, status == "400", "{}", client.response);
        }
    }
    let old = "GET /health HTTP/1.0\r\n";
    for (hosts, status) in [("", "200"), ("Host: a\r\nHost: a\r\n", "400")] {
        let client = Client::request(server.address(), &format!("{old}{hosts}\r\n")).await;
        assert_eq!(&client.response[9..12], status, "{hosts}");
    }
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_development_mode_every_path_refuses_a_foreign_host() {
    let server = start(|config| {
        (config.development, config.demo.enabled) = (true, true);
        config.http_server.internal_address = "127.0.0.2".to_owned();
    })
    .await;
    for address in [server.address(), server.internal_address()] {
        for (host, expect) in
            [("localhost:8000", "405"), ("127.0.0.1", "405"), ("evil.example", "421")]
        {
            let path = if address == server.address() { "/" } else { "/api/info" };
            let request =
                format!("PUT {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let client = Client::request(address, &request).await;
            assert_eq!(&client.response[9..12], expect, "{address} {host}");
        }
    }
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_are_served_on_the_internal_address_one_cpu_profile_at_a_time() {
    let server = start(|config| {
        config.http_server.internal_address = "127.0.0.2".to_owned();
        config.debug.enabled = true;
    })
    .await;
    let get = |path: &str| {
        format!("GET /debug/pprof{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    };
    for path in ["", "/", "/profile", "/heap"] {
        let client = Client::request(server.address(), &get(path)).await;
        assert_eq!(&client.response[9..12], "404", "public: {path}");
    }
    let address = server.internal_address();
    for seconds in ["0", "301", "-1", "1.5", "x", "", "1&seconds=2"] {
        let client = Client::request(address, &get(&format!("/profile?seconds={seconds}"))).await;
        assert_eq!(&client.response[9..12], "400", "{seconds}");
    }
    let index = Client::request(address, &get("/")).await.text_to_the_end().await;
    assert!(index.contains("profile?seconds=30") && index.contains("\"heap\""), "{index}");
    let request = get("/profile?seconds=1");
    let (first, second) =
        tokio::join!(Client::request(address, &request), Client::request(address, &request));
    let mut statuses = [&first.response[9..12], &second.response[9..12]];
    statuses.sort_unstable();
    assert_eq!(statuses, ["200", "409"], "a process has one timer");
    // The allocator of this test takes no samples.
    let heap = Client::request(address, &get("/heap")).await;
    assert_eq!(&heap.response[9..12], "501", "{}", heap.response);
    server.shutdown().await;
}

/// The response to a publish with these headers and this body, without its date.
async fn published(address: SocketAddr, headers: &str, body: &str) -> String {
    let request = format!("POST /api/publish HTTP/1.1\r\nHost: a\r\n{headers}\r\n{body}");
    let mut client = Client::request(address, &request).await;
    let head = client.response.clone();
    let is_date = |line: &str| line.to_ascii_lowercase().starts_with("date: ");
    let mut lines: Vec<&str> = head.lines().filter(|line| !is_date(line)).collect();
    lines.sort_unstable();
    let length = lines.iter().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|bytes| bytes.parse().ok()).expect("a length");
    let mut body = Vec::new();
    while body.len() < length {
        body.extend(client.read().await);
    }
    lines.join("|") + &String::from_utf8(body).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publish_gets_the_same_response_from_a_shard_and_from_hyper() {
    let server = start(|_| {}).await;
    let bodies = [
        r#"{"channel":"a","data":1}"#,
        r#"{"channel":"","data":1}"#,
        r#"{"channel":"unknown:a","data":1}"#,
        r#"{"channel":"a","data":{"name":"Jörg"}"#,
        "",
    ];
    for key in ["X-API-Key: key\r\n", "X-API-Key: wrong\r\n", ""] {
        for body in bodies {
            let length = format!("{key}Content-Length: {}\r\n", body.len());
            let chunked = format!("{key}Transfer-Encoding: chunked\r\n");
            let chunk = match body.len() {
                0 => "0\r\n\r\n".to_owned(),
                bytes => format!("{bytes:x}\r\n{body}\r\n0\r\n\r\n"),
            };
            let from_shard = published(server.address(), &length, body).await;
            let from_hyper = published(server.address(), &chunked, &chunk).await;
            assert_eq!(from_shard, from_hyper, "{key}{body}");
        }
    }
    server.shutdown().await;
}
