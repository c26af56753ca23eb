//! Tests of requests to small servers on loopback: complete and incomplete responses, limits, TLS.
//! In: the bytes of a server → out: the body, or the error's text.
//! Uses tokio's sockets on the server side, so that errors of hyper are found; certificates of `tests/keys`.
//! Changed here: expectations; which statuses a caller accepts is tested with the caller.

use std::sync::Arc;

use crate::TlsOptions;
use http_body_util::Empty;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::*;

mod pool;

const CA: &str = include_str!("../../../../tests/keys/ca.pem");
const CERTIFICATE: &str = include_str!("../../../../tests/keys/localhost.pem");
const KEY: &str = include_str!("../../../../tests/keys/localhost.private.pem");

const BODY_BYTES_MAX: usize = 1000;

/// Long enough that no test reaches it.
const HOUR: Duration = Duration::from_secs(3600);

/// A server that sends the first response on the first connection, and so on, then stops. Returns its port and, at the
/// end, the requests.
async fn server(
    answers: Vec<Vec<u8>>,
    is_secure: bool,
) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let acceptor = acceptor();
    let asked = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (socket, _) = listener.accept().await.expect("somebody asks");
            if is_secure {
                if let Ok(stream) = acceptor.accept(socket).await {
                    asked.push(serve(stream, &answer).await);
                }
            } else {
                asked.push(serve(socket, &answer).await);
            }
        }
        asked
    });
    (port, asked)
}

fn acceptor() -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).expect("PEM")];
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).expect("PEM");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has suites")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("the key belongs to the certificate");
    TlsAcceptor::from(Arc::new(config))
}

/// Reads one request head and sends `answer`. If that is empty, the connection stays open until the client closes it.
async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &[u8]) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte).await {
            Ok(1) => head.push(byte[0]),
            _ => break,
        }
    }
    if answer.is_empty() {
        let _ = stream.read(&mut [0]).await;
    }
    let _ = stream.write_all(answer).await;
    let _ = stream.shutdown().await;
    String::from_utf8(head).expect("ASCII")
}

async fn get(options: &TlsOptions, timeout: Duration, url: &str) -> Result<Bytes, RequestError> {
    let limits = RequestLimits { timeout, body_bytes_max: BODY_BYTES_MAX };
    let client = HttpsClient::new(Tls::new(options).expect("the options are good"), limits);
    let request = Request::get(url).body(Empty::<Bytes>::new()).map_err(|_| RequestError::Url)?;
    client.send(request).await.map(Response::into_body)
}

fn answer(head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {head}\r\n\r\n{body}").into_bytes()
}

fn ok(body: &str) -> Vec<u8> {
    answer(&format!("200 OK\r\nContent-Length: {}", body.len()), body)
}

#[tokio::test]
async fn a_body_is_received_however_its_length_is_told() {
    let chunked =
        answer("200 OK\r\nTransfer-Encoding: chunked", "3\r\n{\"k\r\n2\r\n\"}\r\n0\r\n\r\n");
    let until_close = answer("200 OK", "{}");
    let rows = [(ok("{}"), "{}"), (chunked, "{\"k\"}"), (until_close, "{}"), (ok(""), "")];
    for (answer, expect) in rows {
        let (port, asked) = server(vec![answer], false).await;
        let url = format!("http://127.0.0.1:{port}/keys?a=b#c");
        let got = get(&TlsOptions::default(), HOUR, &url).await;
        assert_eq!(got.expect("an answer"), expect.as_bytes());
        let asked = asked.await.expect("the server ends").remove(0);
        assert!(asked.starts_with("GET /keys?a=b HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains(&format!("host: 127.0.0.1:{port}\r\n")), "{asked}");
    }
}

#[tokio::test]
async fn responses_that_are_incomplete_or_too_long_are_errors() {
    let long = "x".repeat(BODY_BYTES_MAX + 1);
    let rows = [
        (ok(&long), "the document was not received completely: length limit exceeded"),
        (
            answer("200 OK", &long),
            "the document was not received completely: length limit exceeded",
        ),
        (answer("200 OK\r\nContent-Length: 9", "{}"), "the document was not received completely: "),
        (b"garbage".to_vec(), ""),
        (b"\r\n\r\n".to_vec(), ""),
    ];
    for (answer, expect) in rows {
        let (port, _) = server(vec![answer.clone()], false).await;
        let url = format!("http://127.0.0.1:{port}/");
        let got = get(&TlsOptions::default(), HOUR, &url).await;
        let error = got.expect_err("no document").to_string();
        assert!(error.starts_with(expect), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_times_out() {
    let (port, _) = server(vec![Vec::new()], false).await;
    let url = format!("http://127.0.0.1:{port}/");
    let got = get(&TlsOptions::default(), Duration::from_millis(1), &url).await;
    assert_eq!(got.expect_err("no answer").to_string(), "no answer in time");
}

#[tokio::test]
async fn an_invalid_url_is_not_fetched() {
    for url in ["", "/keys", "http://", "a b", "ftp://localhost/"] {
        let error = get(&TlsOptions::default(), HOUR, url).await.expect_err("no address");
        assert_eq!(error.to_string(), "not a valid URL", "{url}");
    }
}

async fn secure(options: &TlsOptions, host: &str) -> Result<Bytes, String> {
    let (port, _) = server(vec![ok("{}")], true).await;
    let url = format!("https://{host}:{port}/keys");
    get(options, HOUR, &url).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn certificates_are_verified_with_the_authorities_of_the_options() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/keys/ca.pem");
    let base64 = {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(CA)
    };
    for server_ca_pem in [CA.to_owned(), path.to_owned(), base64] {
        let options = TlsOptions { enabled: true, server_ca_pem, ..TlsOptions::default() };
        assert_eq!(secure(&options, "127.0.0.1").await.expect("a document"), "{}");
        assert_eq!(secure(&options, "localhost").await.expect("a document"), "{}");
    }
    let stranger = secure(&TlsOptions::default(), "127.0.0.1").await.expect_err("not the system's");
    assert!(stranger.contains("UnknownIssuer"), "{stranger}");
    let disabled = TlsOptions { server_ca_pem: CA.to_owned(), ..TlsOptions::default() };
    assert!(secure(&disabled, "127.0.0.1").await.is_err());
}

#[tokio::test]
async fn the_name_in_the_certificate_must_be_the_expected_one() {
    let options = |server_name: &str, insecure_skip_verify| TlsOptions {
        enabled: true,
        server_ca_pem: CA.to_owned(),
        server_name: server_name.to_owned(),
        insecure_skip_verify,
        ..TlsOptions::default()
    };
    let other = secure(&options("id.example.com", false), "127.0.0.1").await.expect_err("a name");
    assert!(other.contains("NotValidForName") || other.contains("not valid for name"), "{other}");
    assert!(secure(&options("localhost", false), "127.0.0.1").await.is_ok());
    assert!(secure(&options("id.example.com", true), "127.0.0.1").await.is_ok());
}

#[tokio::test]
async fn one_certificate_is_accepted_without_its_authority_and_no_other() {
    for (pem, is_accepted) in [(CERTIFICATE, true), (CA, false)] {
        let (port, _) = server(vec![ok("{}")], true).await;
        let limits = RequestLimits { timeout: HOUR, body_bytes_max: BODY_BYTES_MAX };
        let client = HttpsClient::new(Tls::of_certificate(pem).expect("a certificate"), limits);
        let request = Request::get(format!("https://127.0.0.1:{port}/"));
        let got = client.send(request.body(Empty::<Bytes>::new()).expect("a URL")).await;
        assert_eq!(got.is_ok(), is_accepted, "{got:?}");
    }
    let error = Tls::of_certificate(KEY).expect_err("no certificate").to_string();
    assert!(error.starts_with("cert_pem: it contains no certificate"), "{error}");
}

#[test]
fn pem_that_cannot_be_read_names_its_key() {
    let rows = [
        (
            TlsOptions { server_ca_pem: "/nowhere".to_owned(), ..TlsOptions::default() },
            "server_ca_pem: ",
        ),
        (
            TlsOptions { server_ca_pem: KEY.to_owned(), ..TlsOptions::default() },
            "server_ca_pem: it contains no certificate",
        ),
        (TlsOptions { cert_pem: CERTIFICATE.into(), ..TlsOptions::default() }, "key_pem: "),
        (
            TlsOptions {
                cert_pem: CERTIFICATE.to_owned(),
                key_pem: CA.into(),
                ..TlsOptions::default()
            },
            "key_pem: ",
        ),
    ];
    for (options, expect) in rows {
        let options = TlsOptions { enabled: true, ..options };
        let error = Tls::new(&options).expect_err("unusable").to_string();
        assert!(error.starts_with(expect) && error.ends_with("a file with it"), "{error}");
    }
    let good = TlsOptions {
        enabled: true,
        cert_pem: CERTIFICATE.to_owned(),
        key_pem: KEY.into(),
        ..TlsOptions::default()
    };
    assert!(Tls::new(&good).is_ok());
}
