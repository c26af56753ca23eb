//! Tokens with keys of a JWKS endpoint, over sockets: from the handshake to the endpoint and back.
//! In: an endpoint on loopback, clients with tokens → out: replies to clients, and the number of requests to the endpoint.
//! Uses the test client and aws-lc to sign.
//! Changed here: expectations over sockets. Times and single responses are tested in `auth/jwks` and `fanwire/jwks.rs`.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::client::{Client, metrics_when, start};

fn pair() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[1; 32]).expect("any seed makes a key")
}

fn connect(kid: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"EdDSA","kid":"{kid}"}}"#));
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(r#"{"sub":"42"}"#));
    let signature = URL_SAFE_NO_PAD.encode(pair().sign(signed.as_bytes()));
    format!(r#"{{"id":1,"connect":{{"token":"{signed}.{signature}"}}}}"#)
}

/// An endpoint that answers every request with this body; returns its URL and its request counter.
async fn provider(body: String) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let url = format!("http://{}/keys", listener.local_addr().expect("bound"));
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counter.fetch_add(1, SeqCst);
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let mut head = [0; 4096];
            let _ = socket.read(&mut head).await;
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    (url, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_with_a_new_key_connect_after_one_fetch() {
    let x = URL_SAFE_NO_PAD.encode(pair().public_key());
    let key = format!(r#"{{"kty":"OKP","use":"sig","kid":"k1","crv":"Ed25519","x":"{x}"}}"#);
    let (url, asked) = provider(format!(r#"{{"keys":[{key}]}}"#)).await;
    let server = start(|config| {
        config.client.insecure = false;
        config.client.token.jwks_public_endpoint = url;
        config.prometheus.enabled = true;
    })
    .await;
    let mut clients = Vec::new();
    for _ in 0..50 {
        clients.push(Client::open(server.address(), "").await);
    }
    for client in &mut clients {
        client.text(&connect("k1")).await;
    }
    for client in &mut clients {
        let reply = client.next_text().await;
        assert!(reply.starts_with(r#"{"id":1,"connect":{"client":""#), "{reply}");
    }
    let mut stranger = Client::open(server.address(), "").await;
    stranger.text(&connect("k2")).await;
    let reply = stranger.next_text().await;
    assert!(reply.contains(r#""error":{"code":100,"#), "within the pause: {reply}");

    assert!((1..=ATTEMPTS).contains(&asked.load(SeqCst)), "for all of them");
    let fetched = "fanwire_token_key_fetches_total 1\n";
    let metrics = metrics_when(server.address(), |metrics| metrics.contains(fetched)).await;
    assert!(metrics.contains("fanwire_token_key_fetch_failures_total 0\n"), "{metrics}");
    drop((clients, stranger));
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_document_is_a_temporary_error() {
    let (url, asked) = provider("<html>".to_owned()).await;
    let server = start(|config| {
        config.client.insecure = false;
        config.client.token.jwks_public_endpoint = url;
    })
    .await;
    let mut client = Client::open(server.address(), "").await;
    client.text(&connect("k1")).await;
    let reply = client.next_text().await;
    let expect =
        r#"{"id":1,"error":{"code":100,"message":"internal server error","temporary":true}}"#;
    assert_eq!(reply, expect);
    assert!((1..=ATTEMPTS).contains(&asked.load(SeqCst)));
    drop(client);
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_tls_option_stops_the_start_and_is_named() {
    let mut config = fanwire::config::Config::default();
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = 0;
    config.client.token.jwks_public_endpoint = "https://localhost/keys".to_owned();
    config.client.token.jwks.tls.enabled = true;
    config.client.token.jwks.tls.server_ca_pem = "/nowhere/ca.pem".to_owned();
    let error = fanwire::Server::start(config).await.err().expect("no such file").to_string();
    assert!(error.starts_with("client.token.jwks.tls.server_ca_pem: "), "{error}");
}

/// Attempts per fetch at a slow endpoint.
const ATTEMPTS: usize = 2;
