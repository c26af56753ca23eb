//! Tests with Pebble: certificates for handshakes, renewals, restarts, and what goes wrong.
//! In: options, an authority → out: what clients see, what the authority counted.
//! Uses the whole module behind a TLS listener. Never: the server around it.
//! A promise about orders is a test here.

use std::{
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

use bytes::Bytes;
use fanwire_testing::{Folder, free_port, wait_for_async};
use http::{HeaderValue, Request};
use instant_acme::{Account, BodyWrapper, BytesResponse, HttpClient, NewAccount};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
};

use super::{
    PATIENCE,
    pebble::{CA, Pebble, PebbleOptions, directory_url},
    tls::{client, listen, shown, shown_when},
    *,
};
use crate::acme::{certificates::NameStats, order, schedule::DueOrder};

/// Orders certificates and shows them at a port.
struct Running {
    certificates: Arc<Certificates>,
    tasks: [JoinHandle<()>; 2],
}

impl Running {
    /// Listens first, because the authority has to know the port.
    async fn start(options: &AutocertOptions, listener: TcpListener) -> Self {
        Self::start_with(options, listener, None).await
    }

    /// With a listener for http-01.
    async fn start_with(
        options: &AutocertOptions,
        listener: TcpListener,
        plain: Option<TcpListener>,
    ) -> Self {
        let acme = Acme::open(options, plain).expect("the options are good");
        let certificates = acme.certificates();
        let tasks = [listen(listener, acme.resolver()), tokio::spawn(acme.run())];
        Self { certificates, tasks }
    }

    fn stats(&self, name: &str) -> NameStats {
        self.certificates.stats().find(|(found, _)| *found == name).expect("it is in the list").1
    }

    /// Waits for counts of a name.
    async fn stats_when(&self, name: &str, is_wanted: impl Fn(NameStats) -> bool) {
        let attempt = async || {
            let stats = self.stats(name);
            if is_wanted(stats) { Ok(()) } else { Err(stats) }
        };
        wait_for_async(attempt, PATIENCE).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn bound() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

/// An authority that looks for tls-alpn-01 at a port, and nowhere for http-01.
async fn pebble(name: &'static str, tls_port: u16, life_seconds: u32) -> Option<Pebble> {
    Pebble::start(PebbleOptions { name, port: 0, tls_port, http_port: 1, life_seconds }).await
}

fn options_of(pebble: &Pebble, folder: &Folder, names: &[&str]) -> AutocertOptions {
    AutocertOptions {
        cache_dir: folder.path().to_owned(),
        directory_url: pebble.directory_url(),
        directory_ca_pem: CA.to_owned(),
        email: "operator@a.example".to_owned(),
        ..options(names)
    }
}

const NAME: &str = "a.example";
const LONG: u32 = 90 * 24 * 3600;

#[tokio::test(flavor = "multi_thread")]
async fn tls_alpn_01_brings_certificates_that_clients_accept() {
    let folder = Folder::new("cache-alpn");
    let (listener, port) = bound().await;
    let Some(pebble) = pebble("tls-alpn-01", port, LONG).await else { return };
    let client = client(Some(&pebble.root().await));
    let options = AutocertOptions {
        server_name: NAME.to_owned(),
        ..options_of(&pebble, &folder, &[NAME, "B.example"])
    };
    let running = Running::start(&options, listener).await;
    shown_when(&client, port, NAME, |_| true).await;
    shown_when(&client, port, "b.example", |_| true).await;
    // Names outside the list get no certificate, and never cause an order.
    assert_eq!(shown(&client, port, "c.example").await, None);
    assert_eq!((pebble.orders(), pebble.accounts()), (2, 1));
    let stats = running.stats(NAME);
    assert_eq!((stats.issued, stats.failed), (1, 0));
    assert!(stats.not_after > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn http_01_is_tried_when_tls_alpn_01_is_not_accepted() {
    let folder = Folder::new("cache-http");
    let (listener, port) = bound().await;
    let authority = free_port();
    let (plain, http_port) = bound().await;
    let options = AutocertOptions {
        cache_dir: folder.path().to_owned(),
        directory_url: directory_url(authority),
        directory_ca_pem: CA.to_owned(),
        ..options(&[NAME])
    };
    let pebble = PebbleOptions {
        name: "http-01",
        port: authority,
        tls_port: 1,
        http_port,
        life_seconds: LONG,
    };
    let Some(pebble) = Pebble::start(pebble).await else { return };
    let client = client(Some(&pebble.root().await));
    let running = Running::start_with(&options, listener, Some(plain)).await;
    shown_when(&client, port, NAME, |_| true).await;
    let stats = running.stats(NAME);
    assert_eq!((stats.issued, stats.failed, pebble.orders()), (1, 1, 2));
    // The listener goes on with redirects, and the answer to the challenge is gone.
    let found = get(http_port, "/chat").await;
    assert!(found.starts_with("HTTP/1.1 302 Found\r\n"), "{found}");
    assert!(found.contains("\r\nlocation: https://a.example/chat\r\n"), "{found}");
    let not_found = get(http_port, "/.well-known/acme-challenge/token").await;
    assert!(not_found.starts_with("HTTP/1.1 404 Not Found\r\n"), "{not_found}");
}

async fn get(port: u16, path: &str) -> String {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {NAME}\r\n\r\n");
    socket.write_all(request.as_bytes()).await.expect("open");
    let mut response = String::new();
    socket.read_to_string(&mut response).await.expect("a response");
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_renewed_before_its_end() {
    let folder = Folder::new("cache-renewal");
    let (listener, port) = bound().await;
    let Some(pebble) = pebble("renewal", port, 6).await else { return };
    let client = client(Some(&pebble.root().await));
    let running = Running::start(&options_of(&pebble, &folder, &[NAME]), listener).await;
    let first = shown_when(&client, port, NAME, |_| true).await;
    let end = running.stats(NAME).not_after;
    let second = shown_when(&client, port, NAME, |shown| shown != first).await;
    assert_ne!(first, second);
    assert!(running.stats(NAME).not_after > end);
    assert_eq!((running.stats(NAME).failed, pebble.accounts()), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_with_a_cache_makes_no_order_and_keeps_the_account() {
    let folder = Folder::new("cache-restart");
    let (first, port) = bound().await;
    let Some(pebble) = pebble("restart", port, LONG).await else { return };
    let client = client(Some(&pebble.root().await));
    let options = options_of(&pebble, &folder, &[NAME]);
    let running = Running::start(&options, first).await;
    let before = shown_when(&client, port, NAME, |_| true).await;
    running.stats_when(NAME, |stats| stats.issued == 1).await;
    // The file is there when the certificate is.
    drop(running);
    let (second, other_port) = bound().await;
    let running = Running::start(&options, second).await;
    assert_eq!(shown(&client, other_port, NAME).await, Some(before.clone()));
    assert_eq!(
        (running.stats(NAME).issued, running.stats(NAME).failed, pebble.orders()),
        (0, 0, 1)
    );
    drop(running);
    // Without the certificate there is another order, by the same account.
    let cache = Cache::open(&options.cache_dir, &options.directory_url).expect("writable");
    cache.store_certificate(NAME, "half a file").expect("writable");
    let third = TcpListener::bind(("127.0.0.1", port)).await.expect("the first listener is closed");
    let running = Running::start(&options, third).await;
    let after = shown_when(&client, port, NAME, |_| true).await;
    assert_ne!(before, after);
    assert_eq!((running.stats(NAME).failed, pebble.orders(), pebble.accounts()), (0, 2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_account_file_is_replaced() {
    let folder = Folder::new("cache-account");
    let (listener, port) = bound().await;
    let Some(pebble) = pebble("account", port, LONG).await else { return };
    let client = client(Some(&pebble.root().await));
    let options = options_of(&pebble, &folder, &[NAME]);
    let cache = Cache::open(&options.cache_dir, &options.directory_url).expect("writable");
    cache.store_account("half a file").expect("writable");
    let _running = Running::start(&options, listener).await;
    shown_when(&client, port, NAME, |_| true).await;
    let account = cache.account().expect("readable").expect("stored");
    assert!(account.contains("key_pkcs8") && account.contains("operator@a.example"), "{account}");
    assert_eq!(pebble.accounts(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_certificate_is_shown_while_the_authority_is_down() {
    let folder = Folder::new("cache-down");
    let (listener, port) = bound().await;
    let Some(pebble) = pebble("authority down", port, 6).await else { return };
    let client = client(None);
    let running = Running::start(&options_of(&pebble, &folder, &[NAME]), listener).await;
    let before = shown_when(&client, port, NAME, |_| true).await;
    drop(pebble);
    running.stats_when(NAME, |stats| stats.failed > 0).await;
    assert_eq!(shown(&client, port, NAME).await, Some(before));
    assert_eq!(running.stats(NAME).issued, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_that_lost_the_account_gets_another_one() {
    let folder = Folder::new("cache-lost");
    let (listener, port) = bound().await;
    let authority = free_port();
    let options_of_pebble = |life_seconds| PebbleOptions {
        name: "lost account",
        port: authority,
        tls_port: port,
        http_port: 1,
        life_seconds,
    };
    let Some(pebble) = Pebble::start(options_of_pebble(6)).await else { return };
    let running = Running::start(&options_of(&pebble, &folder, &[NAME]), listener).await;
    running.stats_when(NAME, |stats| stats.issued == 1).await;
    drop(pebble);
    let pebble = Pebble::start(options_of_pebble(LONG)).await.expect("it started before");
    running.stats_when(NAME, |stats| stats.issued == 2).await;
    assert_eq!((running.stats(NAME).failed, pebble.accounts(), pebble.orders()), (0, 1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_nonce_is_replaced_and_the_request_repeated() {
    let (listener, port) = bound().await;
    let Some(pebble) = pebble("nonces", port, LONG).await else { return };
    let folder = Folder::new("cache-nonces");
    // For its resolver; the order is made by hand.
    let acme =
        Acme::open(&options_of(&pebble, &folder, &[NAME]), None).expect("the options are good");
    let task = listen(listener, acme.resolver());
    let spoiled = Arc::<AtomicU64>::default();
    let http =
        Box::new(SpoiledNonces { client: acme.worker.client.clone(), spoiled: spoiled.clone() });
    let new =
        NewAccount { contact: &[], terms_of_service_agreed: true, only_return_existing: false };
    let account = Account::builder_with_http(http).create(&new, pebble.directory_url(), None).await;
    let due = DueOrder { name: NAME.into(), challenge: ChallengeKind::TlsAlpn };
    let (account, _credentials) = account.expect("an account");
    let pem = order::issue(&account, &due, &acme.challenge).await.expect("a certificate");
    assert!(pem.contains("BEGIN CERTIFICATE"));
    assert!(spoiled.load(SeqCst) > 5, "{spoiled:?}");
    task.abort();
}

/// Replaces the nonce of each response that succeeded.
struct SpoiledNonces {
    client: AuthorityClient,
    spoiled: Arc<AtomicU64>,
}

impl HttpClient for SpoiledNonces {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, instant_acme::Error>> + Send>> {
        let (response, spoiled) = (self.client.request(request), self.spoiled.clone());
        Box::pin(async move {
            let mut response = response.await?;
            if let Some(nonce) = response
                .parts
                .headers
                .get_mut("replay-nonce")
                .filter(|_| response.parts.status.is_success())
            {
                *nonce = HeaderValue::from_static("c3BvaWxlZA");
                spoiled.fetch_add(1, SeqCst);
            }
            Ok(response)
        })
    }
}
