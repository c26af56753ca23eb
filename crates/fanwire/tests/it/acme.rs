//! Automatic certificates of a whole server: what clients of its listeners get, and why a start fails.
//! In: a configuration, Pebble → out: bytes over TLS, errors, the authority's counts.
//! Uses the library's public interface. Never: internals; orders, renewals and failures are tested in `fanwire_tls`.
//! Changed here: expectations over sockets. How Pebble is started is in `pebble`.

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use fanwire::{Builder, Server, config::Config};
use fanwire_testing::{Folder, free_port};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use crate::pebble::{CA, Pebble, PebbleOptions, connect};

/// A configuration with the names of these tests; `cache` goes with its value.
fn config(cache: &Folder, directory_url: &str) -> Config {
    let mut config = Config::default();
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = 0;
    config.client.insecure = true;
    config.prometheus.enabled = true;
    config.shards = 1;
    let autocert = &mut config.http_server.tls_autocert;
    autocert.enabled = true;
    autocert.host_whitelist = vec![NAME.to_owned()];
    autocert.cache_dir = cache.path().to_owned();
    autocert.directory_url = directory_url.to_owned();
    autocert.directory_ca_pem = CA.to_owned();
    config
}

fn free_listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

async fn error(config: Config) -> String {
    match Server::start(config).await {
        Ok(_) => panic!("the server starts"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_folder_or_an_address_that_cannot_be_used_ends_the_start_with_its_key() {
    let cache = Folder::new("start");
    let mut without_folder = config(&cache, "https://127.0.0.1:1/dir");
    let file = cache.join("file");
    std::fs::write(&file, "").expect("writable");
    without_folder.http_server.tls_autocert.cache_dir = file.to_str().expect("UTF-8").to_owned();
    let error_of_folder = error(without_folder).await;
    let expect = "http_server.tls_autocert.cache_dir: cannot write to ";
    assert!(error_of_folder.starts_with(expect), "{error_of_folder}");

    let (taken, port) = free_listener();
    for http_addr in [format!("127.0.0.1:{port}"), "80".to_owned()] {
        let mut without_address = config(&cache, "https://127.0.0.1:1/dir");
        without_address.http_server.tls_autocert.http = true;
        without_address.http_server.tls_autocert.http_addr = http_addr;
        let error = error(without_address).await;
        let expect = "http_server.tls_autocert.http_addr: cannot listen on ";
        assert!(error.starts_with(expect), "{error}");
    }
    drop(taken);
}

#[tokio::test]
async fn the_check_of_a_configuration_finds_names_and_roots_without_files() {
    let cache = Folder::new("check");
    let mut config = config(&cache, "https://127.0.0.1:1/dir");
    config.http_server.tls_autocert.cache_dir = "/proc/none".to_owned();
    assert!(Server::check(&config).is_empty());
    config.http_server.tls_autocert.directory_ca_pem = "/no/such/file".to_owned();
    let errors: Vec<String> = Server::check(&config).iter().map(ToString::to_string).collect();
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    assert!(error.starts_with("http_server.tls_autocert.directory_ca_pem: "), "{error}");
}

mod with_authority {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn clients_connect_with_the_certificate_of_the_authority_and_a_restart_keeps_it() {
        let cache = Folder::new("restart");
        let (listener, port) = free_listener();
        let Some(pebble) = pebble("server", port, 1).await else { return };
        let root = pebble.root().await;
        let server = Builder::new(config(&cache, &pebble.directory_url())).listener(listener);
        let server = server.start().await.expect("the port is ours");
        let response = request(&root, port, UPGRADE).await;
        assert!(response.starts_with("HTTP/1.1 101 "), "{response}");
        let metrics = request(&root, port, METRICS).await;
        let end = value(&metrics, "fanwire_acme_certificate_end_seconds");
        assert!(end > 1_700_000_000, "{metrics}");
        assert_eq!(value(&metrics, "fanwire_acme_orders_issued_total"), 1, "{metrics}");
        assert_eq!(value(&metrics, "fanwire_acme_orders_failed_total"), 0, "{metrics}");
        // Other names get no certificate and cause no order, and plain HTTP is refused.
        assert!(connect(&root, port, "b.example").await.is_err());
        let plain = plain(port, METRICS).await;
        assert!(plain.starts_with("HTTP/1.1 400 "), "{plain}");
        server.shutdown().await;

        let (listener, port) = free_listener();
        let server = Builder::new(config(&cache, &pebble.directory_url())).listener(listener);
        let server = server.start().await.expect("the port is ours");
        let mut stream = connect(&root, port, NAME).await.expect("the cache has the certificate");
        let metrics = exchange(&mut stream, METRICS).await;
        assert_eq!(value(&metrics, "fanwire_acme_certificate_end_seconds"), end);
        assert_eq!(value(&metrics, "fanwire_acme_orders_issued_total"), 0, "{metrics}");
        assert_eq!((pebble.orders(), pebble.accounts()), (1, 1));
        server.shutdown().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_internal_port_has_the_same_certificate_unless_tls_is_external() {
        for is_external in [false, true] {
            let cache = Folder::new("internal");
            let (listener, port) = free_listener();
            let http_port = free_port();
            let Some(pebble) = pebble("internal port", 1, http_port).await else { return };
            let root = pebble.root().await;
            let mut config = config(&cache, &pebble.directory_url());
            config.http_server.internal_port = free_port().to_string();
            config.http_server.tls_external = is_external;
            config.http_server.tls_autocert.http = true;
            config.http_server.tls_autocert.http_addr = format!("127.0.0.1:{http_port}");
            let server = Builder::new(config).listener(listener).start().await;
            let server = server.expect("the ports are free");
            let response = request(&root, port, UPGRADE).await;
            assert!(response.starts_with("HTTP/1.1 101 "), "{response}");
            let internal = server.internal_address().port();
            let plain = plain(internal, METRICS).await;
            if is_external {
                assert_eq!(value(&plain, "fanwire_acme_orders_failed_total"), 1, "{plain}");
            } else {
                assert!(plain.starts_with("HTTP/1.1 400 "), "{plain}");
                let metrics = request(&root, internal, METRICS).await;
                assert_eq!(value(&metrics, "fanwire_acme_orders_issued_total"), 1, "{metrics}");
            }
            server.shutdown().await;
        }
    }
}

async fn pebble(name: &'static str, tls_port: u16, http_port: u16) -> Option<Pebble> {
    let life_seconds = 90 * 24 * 3600;
    Pebble::start(PebbleOptions { name, port: 0, tls_port, http_port, life_seconds }).await
}

/// Connects until there is a certificate that the root signed, and sends a request.
async fn request(root: &str, port: u16, request: &str) -> String {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match connect(root, port, NAME).await {
            Ok(mut stream) => return exchange(&mut stream, request).await,
            Err(error) => assert!(Instant::now() < give_up, "{error}"),
        }
    }
}

/// Sends a request and reads its response, which ends with the connection or, for an upgrade, with its head.
async fn exchange(stream: &mut TlsStream<TcpStream>, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.expect("open");
    let mut response = String::new();
    while !(request == UPGRADE && response.ends_with("\r\n\r\n")) {
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(length @ 1..) => response += std::str::from_utf8(&part[..length]).expect("ASCII"),
            _ => break,
        }
    }
    response
}

async fn plain(port: u16, request: &str) -> String {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    socket.write_all(request.as_bytes()).await.expect("open");
    let mut response = String::new();
    let _ = socket.read_to_string(&mut response).await;
    response
}

/// The value of a metric of the name.
fn value(metrics: &str, metric: &str) -> u64 {
    let row = format!("{metric}{{name=\"{NAME}\"}} ");
    let value = metrics.lines().find_map(|line| line.strip_prefix(row.as_str()));
    value.unwrap_or_else(|| panic!("no {row} in {metrics}")).parse().expect("a number")
}

const NAME: &str = "a.example";

const METRICS: &str = "GET /metrics HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";

const UPGRADE: &str = "GET /connection/websocket HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\n\
                       Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                       Sec-WebSocket-Version: 13\r\n\r\n";

/// The longest that a test waits for an order, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);
