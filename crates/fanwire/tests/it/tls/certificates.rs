//! Certificates that change while a server runs, and listeners with TLS of their own.
//! In: files that are replaced, configurations of both listeners → out: which certificate a client sees, errors of reloads.
//! Uses the library's `reload`; never SIGHUP, which the tests of the command line send.
//! Changed here: expectations of `tls::server` and `tls::listeners`.

use std::{fs, sync::Arc};

use fanwire::{Server, config::Config};
use fanwire_testing::Folder;
use rustls::version::TLS13;
use tokio::{io::AsyncReadExt, net::TcpStream};

use super::{
    authority::{Authority, connect, handshake},
    publish, subscribed,
};
use crate::client::{Client, fetch, start};

/// The folder with the files of a server.
struct Files(Folder);

impl Files {
    fn new(name: &str) -> Self {
        Self(Folder::new(name))
    }

    fn path(&self, name: &str) -> String {
        self.0.file(name)
    }

    fn write(&self, authority: &Authority) {
        let options = authority.server();
        self.0.write("cert.pem", &options.cert_pem);
        self.0.write("key.pem", &options.key_pem);
        self.0.write("clients.pem", authority.pem());
    }
}

/// A server that reads these files, and its configuration.
async fn started(files: &Files) -> (Server, Config) {
    let mut running = Config::default();
    let server = start(|config| {
        let tls = &mut config.http_server.tls;
        tls.enabled = true;
        tls.cert_pem = files.path("cert.pem");
        tls.key_pem = files.path("key.pem").into();
        running = config.clone();
    })
    .await;
    (server, running)
}

async fn is_trusted(server: &Server, authority: &Authority) -> bool {
    let config = Arc::new(authority.client(&TLS13, None));
    let socket = TcpStream::connect(server.address()).await.expect("the server listens");
    handshake(socket, &config).await.is_ok()
}

#[tokio::test]
async fn a_reload_shows_the_new_certificate_and_keeps_connections() {
    let (old, new) = (Authority::new(), Authority::new());
    let files = Files::new("reload");
    files.write(&old);
    let (server, config) = started(&files).await;
    let mut client = subscribed(&server, &Arc::new(old.client(&TLS13, None))).await;

    files.write(&new);
    assert!(is_trusted(&server, &old).await, "not before the reload");
    server.reload(&config).expect("right files");
    assert!(is_trusted(&server, &new).await && !is_trusted(&server, &old).await);
    publish(&server, "1");
    assert_eq!(client.next_text().await, r#"{"push":{"channel":"a","pub":{"data":1}}}"#);
}

#[tokio::test]
async fn a_reload_with_a_wrong_file_changes_nothing_and_names_the_key() {
    let (old, new) = (Authority::new(), Authority::new());
    let files = Files::new("broken");
    files.write(&old);
    let (server, config) = started(&files).await;
    // The certificate is replaced, and its key is not yet.
    fs::write(files.path("cert.pem"), new.server().cert_pem).expect("a file");
    let mut other = config.clone();
    other.http_api.key = "another".into();
    let error = server.reload(&other).expect_err("they do not belong together");
    assert!(
        error.to_string().starts_with("http_server.tls.key_pem: it is not the key of"),
        "{error}"
    );
    assert!(is_trusted(&server, &old).await);
    let config = Arc::new(old.client(&TLS13, None));
    let request =
        "POST /api/info HTTP/1.1\r\nHost: x\r\nX-API-Key: key\r\nContent-Length: 2\r\n\r\n{}";
    let api = Client::over(connect(server.address(), &config).await, request.as_bytes()).await;
    assert!(api.response.starts_with("HTTP/1.1 200 "), "the old key is valid: {}", api.response);
}

#[tokio::test]
async fn other_authorities_of_clients_end_the_resumption_of_sessions() {
    let (own, other) = (Authority::new(), Authority::new());
    let files = Files::new("authorities");
    files.write(&own);
    let (server, mut config) = started(&files).await;
    config.http_server.tls.client_ca_pem = files.path("clients.pem");
    server.reload(&config).expect("right files");
    let client = Arc::new(own.client(&TLS13, Some(&own)));
    subscribed(&server, &client).await;
    fs::write(files.path("clients.pem"), other.pem()).expect("a file");
    server.reload(&config).expect("right files");
    let mut refused = connect(server.address(), &client).await;
    let alert = refused.read(&mut [0]).await.expect_err("its ticket is not valid any more");
    assert!(alert.to_string().contains("UnknownCA"), "{alert}");
}

#[tokio::test]
async fn a_start_with_a_wrong_certificate_fails_and_names_the_key() {
    let mut config = Config::default();
    config.http_server.internal_port = "0".to_owned();
    config.http_server.internal_tls = Authority::new().server();
    config.http_server.internal_tls.key_pem = "/no/such.pem".into();
    let errors: Vec<_> = Server::check(&config).iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("http_server.internal_tls.key_pem: No such file"), "{errors:?}");
    let Err(error) = Server::start(config).await else { panic!("there is no such key") };
    assert_eq!(error.to_string(), errors[0]);
}

#[tokio::test]
async fn the_internal_listener_has_the_same_tls_or_its_own_or_none() {
    let (authority, internal) = (Authority::new(), Authority::new());
    let split = |config: &mut Config| {
        config.http_server.internal_address = "127.0.0.2".to_owned();
        config.http_server.tls = authority.server();
        config.health.enabled = true;
    };
    let is_healthy = async |server: &Server, authority: &Authority| {
        let config = Arc::new(authority.client(&TLS13, None));
        let request = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
        let socket = TcpStream::connect(server.internal_address()).await.expect("it listens");
        match handshake(socket, &config).await {
            Ok(socket) => Client::over(socket, request).await.response.contains(" 200 "),
            Err(_) => false,
        }
    };
    let server = start(split).await;
    assert_ne!(server.address(), server.internal_address());
    assert!(is_trusted(&server, &authority).await && is_healthy(&server, &authority).await);

    let server = start(|config| {
        split(config);
        config.http_server.tls_external = true;
    })
    .await;
    assert!(is_trusted(&server, &authority).await);
    assert!(fetch(server.internal_address(), "/health").await.ends_with("{}"));

    let server = start(|config| {
        split(config);
        config.http_server.internal_tls = internal.server();
    })
    .await;
    assert!(is_trusted(&server, &authority).await && !is_trusted(&server, &internal).await);
    assert!(is_healthy(&server, &internal).await && !is_healthy(&server, &authority).await);
}

#[test]
fn a_certificate_that_has_expired_is_a_warning() {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    (params.not_before, params.not_after) =
        (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2021, 1, 1));
    let key = rcgen::KeyPair::generate().expect("random numbers");
    let mut config = Config::default();
    let tls = &mut config.http_server.tls;
    tls.enabled = true;
    tls.cert_pem = params.self_signed(&key).expect("a certificate").pem();
    tls.key_pem = key.serialize_pem().into();
    assert!(Server::check(&config).is_empty(), "the server starts with it");
    let line = "http_server.tls.cert_pem: the certificate expired on 2021-01-01, clients refuse it";
    assert_eq!(Server::warnings(&config), [line]);
}
