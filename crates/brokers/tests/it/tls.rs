//! TLS to Redis and to Sentinels: who is believed, and what is said when the two sides do not agree.
//! In: a Redis that listens with and without TLS → out: publications, or errors with a remedy.
//! Uses the certificates of the server's tests. Never: the authorities of the system.
//! Which PEM is read how is tested beside `crates/server/src/tls.rs`.

use std::sync::Arc;
use std::time::Duration;

use fanwire_brokers::redis::{Address, Redis, RedisError, RedisOptions, Sentinels, Tls};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};

use crate::door::{Node, runtime};
use crate::server::{RedisServer, free_port};

/// A Redis at two ports, and the one with TLS.
fn start() -> (RedisServer, Address) {
    let port = free_port();
    let text = port.to_string();
    let mut options = vec!["--tls-port", &text];
    options.extend(TLS.iter().flat_map(|(name, value)| [*name, *value]));
    (RedisServer::start(&options), Address { port, is_tls: true, ..Address::default() })
}

fn tls(authority: Option<&str>, server_name: &str) -> Option<Tls> {
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
    Some(Tls { config, server_name: server_name.to_owned() })
}

fn options(address: Address, tls: Option<Tls>) -> RedisOptions {
    let io_timeout = Duration::from_secs(1);
    RedisOptions { addresses: vec![address], tls, io_timeout, ..RedisOptions::default() }
}

fn complaint(options: &RedisOptions) -> RedisError {
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
        node.hear("a");
        let position = node.publish_stubbornly("a", "secret");
        assert_eq!(node.event(), ("a".into(), "secret".into(), position));
    }
}

#[test]
fn who_is_not_believed_is_named_with_the_remedy() {
    let (server, address) = start();
    let stranger = complaint(&options(address.clone(), tls(None, "")));
    let other_name = complaint(&options(address.clone(), tls(Some(CA), "redis.example.com")));
    for error in [&stranger, &other_name] {
        assert!(matches!(error, RedisError::Tls { .. }) && error.is_permanent(), "{error:?}");
        assert!(error.to_string().contains("engine.redis.tls"), "{error}");
    }
    assert!(stranger.to_string().contains("UnknownIssuer"), "{stranger}");
    assert!(other_name.to_string().contains("redis.example.com"), "{other_name}");
    let plain = Address { is_tls: true, ..server.address() };
    let said = complaint(&options(plain, tls(Some(CA), ""))).to_string();
    assert!(said.contains("TLS"), "{said}");
    let said = complaint(&options(Address { is_tls: false, ..address }, None)).to_string();
    assert!(said.contains("expects TLS") || said.contains("does it expect TLS"), "{said}");
}

#[test]
fn sentinels_have_a_tls_of_their_own() {
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
        let (host, sentinels) = (String::new(), Some(Arc::new(sentinels)));
        let address = Address { host, sentinels, ..Address::default() };
        RedisOptions { sentinel_tls, ..options(address, None) }
    };
    let node = Node::start(&with(tls(Some(CA), "")));
    assert_eq!(node.publish_stubbornly("a", "1").offset, 1);
    let check = runtime().block_on(Redis::check(&with(tls(None, ""))));
    let error = check.expect_err("a stranger").to_string();
    assert!(
        error.contains("engine.redis.sentinel_tls") && error.contains("Sentinel at"),
        "{error}"
    );
}

const CA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/tests/keys/ca.pem");
const TLS: &[(&str, &str)] = &[
    ("--tls-ca-cert-file", CA),
    ("--tls-cert-file", concat!(env!("CARGO_MANIFEST_DIR"), "/../server/tests/keys/localhost.pem")),
    (
        "--tls-key-file",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../server/tests/keys/localhost.private.pem"),
    ),
    ("--tls-auth-clients", "no"),
];
