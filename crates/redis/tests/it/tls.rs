//! TLS to Redis and to Sentinels: trusted certificates, and errors when the two sides do not agree.
//! In: a Redis that listens with and without TLS → out: publications, or errors with a remedy.
//! Uses the certificates of the server's tests. Never: the authorities of the system.
//! Reading PEM is tested in `crates/tls`.

use std::sync::Arc;
use std::time::Duration;

use fanwire_broker::Position;
use fanwire_redis::{Address, Redis, RedisError, RedisOptions, RedisTls, Sentinels};
use fanwire_testing::free_port;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};

use crate::node::{Node, WAIT_MAX, runtime};
use crate::server::RedisServer;
use crate::slots::{self, Slots};

/// A Redis with two ports, and the address of the TLS port.
fn start() -> (RedisServer, Address) {
    start_as(RedisServer::start)
}

fn start_as(start: impl Fn(&[&str]) -> RedisServer) -> (RedisServer, Address) {
    let port = free_port();
    let text = port.to_string();
    let mut options = vec!["--tls-port", &text];
    options.extend(TLS.iter().flat_map(|(name, value)| [*name, *value]));
    (start(&options), Address { port, is_tls: true, ..Address::default() })
}

fn tls(authority: Option<&str>, server_name: &str) -> Option<RedisTls> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = authority {
        let certificate = CertificateDer::from_pem_file(file).expect("a certificate");
        roots.add(certificate).expect("a good one");
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("the provider has suites of both versions");
    let config = Arc::new(builder.with_root_certificates(roots).with_no_client_auth());
    Some(RedisTls { config, server_name: server_name.to_owned() })
}

fn options(address: Address, tls: Option<RedisTls>) -> RedisOptions {
    let io_timeout = Duration::from_secs(1);
    RedisOptions { addresses: vec![address], tls, io_timeout, ..RedisOptions::default() }
}

fn checked_error(options: &RedisOptions) -> RedisError {
    let error = runtime().block_on(Redis::check(options)).expect_err("they do not agree");
    assert!(error.to_string().contains(&options.addresses[0].to_string()), "{error}");
    error
}

#[test]
fn publications_go_over_tls() {
    let (_server, address) = start();
    for (host, server_name) in [("127.0.0.1", ""), ("localhost", ""), ("127.0.0.1", "localhost")] {
        let address = Address { host: host.to_owned(), ..address.clone() };
        let node = Node::start(&options(address, tls(Some(CA), server_name)));
        node.subscribe("a");
        let position = node.publish_until_done("a", "secret");
        assert_eq!(node.event(), ("a".into(), "secret".into(), position));
    }
}

#[test]
fn an_untrusted_certificate_is_an_error_with_a_remedy() {
    let (_server, address) = start();
    let stranger = checked_error(&options(address.clone(), tls(None, "")));
    let other_name = checked_error(&options(address.clone(), tls(Some(CA), "redis.example.com")));
    for error in [&stranger, &other_name] {
        assert!(matches!(error, RedisError::Tls { .. }) && error.is_permanent(), "{error:?}");
        assert!(error.to_string().contains("engine.redis.tls"), "{error}");
    }
    assert!(stranger.to_string().contains("UnknownIssuer"), "{stranger}");
    assert!(other_name.to_string().contains("redis.example.com"), "{other_name}");
}

/// Does not end a start, because a Redis that is overloaded or starting looks the same.
#[test]
fn tls_on_one_side_only_is_an_error_with_a_remedy() {
    let (server, address) = start();
    let check = |address: Address, tls, remedy: &str| {
        let error = checked_error(&options(address, tls));
        assert!(
            matches!(error, RedisError::TlsSuspected { .. }) && !error.is_permanent(),
            "{error:?}"
        );
        let message = error.to_string();
        assert!(
            message.contains(remedy) && message.contains("engine.redis.tls.enabled"),
            "{message}"
        );
    };
    let plain = Address { is_tls: true, ..server.address() };
    check(plain, tls(Some(CA), ""), "if it speaks no TLS at this port");
    check(
        Address { is_tls: false, ..address },
        None,
        "it was stopped, or it speaks TLS at this port",
    );
}

/// Masters announce each other's TLS ports, and redirected calls use them.
#[test]
fn a_cluster_is_served_over_tls_wherever_its_slots_go() {
    let (nodes, addresses): (Vec<_>, Vec<_>) =
        (0..6).map(|_| start_as(|options| slots::node(&[options, BETWEEN].concat()))).unzip();
    let cluster = Slots::of(nodes, addresses.iter().map(|address| address.port).collect());
    let with = |tls| RedisOptions {
        clusters: vec![addresses[..2].to_vec()],
        client_name: "me".into(),
        io_timeout: WAIT_MAX,
        ..options(addresses[0].clone(), tls)
    };
    let error = runtime().block_on(Redis::check(&with(tls(None, ""))));
    assert!(matches!(error, Err(RedisError::Tls { .. })), "{error:?}");
    let [publisher, follower] = [(); 2].map(|()| Node::start(&with(tls(Some(CA), ""))));
    let channels: Vec<String> = (0..60).map(|number| format!("channel:{number}")).collect();
    let all_arrive = || {
        let last = channels.iter().map(|channel| publisher.publish_until_done(channel, "x"));
        let mut awaited: Vec<(String, Position)> = channels.iter().cloned().zip(last).collect();
        while !awaited.is_empty() {
            let (channel, _, position) = follower.event();
            awaited.retain(|one| *one != (channel.clone(), position));
        }
    };
    channels.iter().for_each(|channel| follower.subscribe(channel));
    all_arrive();
    let (from, slot) = cluster.owner(&channels[0]);
    cluster.migrate(slot, from, (from + 1) % 3);
    follower.wait_for_gap(&channels[0]);
    all_arrive();
    let other = (0..3).find(|master| *master != (from + 1) % 3).expect("two of three");
    let moved = channels[1..].iter().find(|channel| cluster.owner(channel).0 == other);
    cluster.promote(other + 3);
    follower.wait_for_gap(moved.expect("one of many"));
    all_arrive();
    for (node, address) in cluster.nodes.iter().zip(&addresses) {
        let clients = node.ask("CLIENT LIST");
        let ours = clients.lines().filter(|client| client.contains(" name=me "));
        let at = format!(" laddr=127.0.0.1:{} ", address.port);
        assert!(ours.clone().all(|client| client.contains(&at)), "{clients}");
    }
    follower.wait_until_healthy();
}

#[test]
fn sentinels_have_tls_settings_of_their_own() {
    let master = RedisServer::start(&[]);
    let port = free_port();
    let mut lines = vec![format!("tls-port {port}")];
    lines.extend(TLS.iter().map(|(name, value)| format!("{} {value}", &name[2..])));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let _sentinel = RedisServer::start_sentinel(free_port(), "main", &master, &lines);
    let sentinel = Address { port, is_tls: true, is_sentinel: true, ..Address::default() };
    let with = |sentinel_tls| {
        let addresses = vec![sentinel.clone()];
        let sentinels = Sentinels { master: "main".into(), addresses, client_name: String::new() };
        let host = String::new();
        let sentinels = Some(Arc::new(sentinels));
        let address = Address { host, sentinels, ..Address::default() };
        RedisOptions { sentinel_tls, ..options(address, None) }
    };
    let node = Node::start(&with(tls(Some(CA), "")));
    assert_eq!(node.publish_until_done("a", "1").offset, 1);
    let check = runtime().block_on(Redis::check(&with(tls(None, ""))));
    let error = check.expect_err("a stranger").to_string();
    assert!(
        error.contains("engine.redis.sentinel_tls") && error.contains("Sentinel at"),
        "{error}"
    );
}

const CA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/keys/ca.pem");
/// Options with which the nodes of a Cluster announce their TLS ports.
const BETWEEN: &[&str] = &["--tls-cluster", "yes", "--tls-replication", "yes"];
const TLS: &[(&str, &str)] = &[
    ("--tls-ca-cert-file", CA),
    ("--tls-cert-file", concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/keys/localhost.pem")),
    (
        "--tls-key-file",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/keys/localhost.private.pem"),
    ),
    ("--tls-auth-clients", "no"),
];
