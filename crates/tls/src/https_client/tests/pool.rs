//! Tests of connections between requests: reuse, how many are kept, HTTP/2, what a dropped request leaves.
//! In: requests to small servers on loopback → out: responses, counts of connections.
//! Uses hyper's server, with certificates of `tests/keys`, and plain sockets where a server misbehaves.
//! Changed here: expectations; responses and certificates are tested in the parent module.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use http_body_util::{Channel, Full};
use hyper::{server::conn, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    sync::{Barrier, mpsc, watch},
    task::JoinSet,
};

use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Speaks {
    Http1,
    Http2,
    /// With TLS; HTTP/2 if the client offers it.
    Tls,
    /// With TLS, without a choice of protocols.
    TlsHttp1,
}

#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicUsize,
    open: watch::Sender<usize>,
}

/// A server that answers with the body of the request; `/wait` when `meet` requests wait.
async fn echo(speaks: Speaks, meet: usize) -> (String, Arc<Counts>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let counts = Arc::new(Counts::default());
    let (of_server, barrier) = (Arc::clone(&counts), Arc::new(Barrier::new(meet)));
    let mut acceptor = acceptor();
    if speaks == Speaks::Tls {
        let mut config = ServerConfig::clone(acceptor.config());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        acceptor = TlsAcceptor::from(Arc::new(config));
    }
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            of_server.accepted.fetch_add(1, Relaxed);
            of_server.open.send_modify(|open| *open += 1);
            let (counts, acceptor) = (Arc::clone(&of_server), acceptor.clone());
            let barrier = Arc::clone(&barrier);
            tokio::spawn(async move {
                if let Speaks::Tls | Speaks::TlsHttp1 = speaks {
                    let stream = acceptor.accept(socket).await.expect("a handshake");
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    converse(stream, is_http2, barrier).await;
                } else {
                    converse(socket, speaks == Speaks::Http2, barrier).await;
                }
                counts.open.send_modify(|open| *open -= 1);
            });
        }
    });
    let scheme = if matches!(speaks, Speaks::Http1 | Speaks::Http2) { "http" } else { "https" };
    (format!("{scheme}://127.0.0.1:{port}/"), counts)
}

async fn converse<S>(stream: S, is_http2: bool, meet: Arc<Barrier>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let meet = Arc::clone(&meet);
        async move {
            if request.uri().path() == "/wait" {
                meet.wait().await;
            }
            let agent = request.headers().get(header::USER_AGENT).cloned();
            let mut response = Response::new(request.into_body());
            response.headers_mut().extend(agent.map(|agent| (header::SERVER, agent)));
            Ok::<_, Infallible>(response)
        }
    });
    let stream = TokioIo::new(stream);
    let _ = match is_http2 {
        true => {
            conn::http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await
        }
        false => conn::http1::Builder::new().serve_connection(stream, service).await,
    };
}

fn client(http2: Http2, idle_per_host_max: usize) -> HttpsClient {
    let options =
        TlsOptions { enabled: true, server_ca_pem: CA.to_owned(), ..TlsOptions::default() };
    let limits = RequestLimits { timeout: HOUR, body_bytes_max: BODY_BYTES_MAX };
    let pool = PoolOptions { idle_per_host_max, idle_timeout: HOUR, http2 };
    HttpsClient::pooled(Tls::new(&options).expect("PEM"), limits, pool)
}

fn post(url: &str, body: &str) -> Request<Full<Bytes>> {
    Request::post(url).body(Full::from(body.to_owned())).expect("a URL")
}

async fn posted(client: &HttpsClient, url: &str, body: &str) -> Response<Bytes> {
    let response = client.send(post(url, body)).await.expect("an answer");
    assert_eq!(response.body(), body);
    response
}

/// Sends `count` requests which the server answers together.
async fn post_together(client: &HttpsClient, url: &str, count: usize) {
    let mut requests = JoinSet::new();
    for number in 0..count {
        let (client, url) = (client.clone(), format!("{url}wait"));
        requests.spawn(async move { posted(&client, &url, &number.to_string()).await });
    }
    assert_eq!(requests.join_all().await.len(), count);
}

/// Waits until the server has `count` connections.
async fn open(counts: &Counts, count: usize) {
    let mut open = counts.open.subscribe();
    open.wait_for(|open| *open == count).await.expect("the sender is in `counts`");
}

#[tokio::test]
async fn a_connection_serves_requests_one_after_the_other() {
    for (speaks, http2, version) in [
        (Speaks::Http1, Http2::Never, http::Version::HTTP_11),
        (Speaks::Http1, Http2::Negotiated, http::Version::HTTP_11),
        (Speaks::Http2, Http2::Only, http::Version::HTTP_2),
        (Speaks::Tls, Http2::Never, http::Version::HTTP_11),
        (Speaks::Tls, Http2::Negotiated, http::Version::HTTP_2),
        (Speaks::Tls, Http2::Only, http::Version::HTTP_2),
        (Speaks::TlsHttp1, Http2::Negotiated, http::Version::HTTP_11),
    ] {
        let (url, counts) = echo(speaks, 1).await;
        let client = client(http2, 1);
        for number in 0..100 {
            let response = posted(&client, &url, &number.to_string()).await;
            assert_eq!(response.version(), version, "{speaks:?} {http2:?}");
        }
        assert_eq!(counts.accepted.load(Relaxed), 1, "{speaks:?} {http2:?}");
    }
}

#[tokio::test]
async fn a_client_without_a_pool_closes_its_connections() {
    let (url, counts) = echo(Speaks::Http1, 1).await;
    let client = client(Http2::Never, 0);
    for number in 1..=3 {
        posted(&client, &url, "{}").await;
        open(&counts, 0).await;
        assert_eq!(counts.accepted.load(Relaxed), number);
    }
}

#[tokio::test]
async fn as_many_idle_connections_are_kept_as_the_pool_may_have() {
    let (url, counts) = echo(Speaks::Http1, 10).await;
    let client = client(Http2::Never, 3);
    post_together(&client, &url, 10).await;
    assert_eq!(counts.accepted.load(Relaxed), 10);
    open(&counts, 3).await;
    drop(client);
    open(&counts, 0).await;
}

#[tokio::test]
async fn concurrent_requests_share_a_connection_of_http2() {
    for (speaks, http2) in
        [(Speaks::Tls, Http2::Negotiated), (Speaks::Tls, Http2::Only), (Speaks::Http2, Http2::Only)]
    {
        let (url, counts) = echo(speaks, 50).await;
        let client = client(http2, 1);
        posted(&client, &url, "first").await;
        post_together(&client, &url, 50).await;
        assert_eq!(counts.accepted.load(Relaxed), 1, "{speaks:?} {http2:?}");
    }
}

#[tokio::test]
async fn a_server_without_http2_is_an_error_for_a_client_without_http1() {
    let (url, _) = echo(Speaks::TlsHttp1, 1).await;
    let error = client(Http2::Only, 1).send(post(&url, "")).await.expect_err("no HTTP/2");
    assert_eq!(error.to_string(), "the server does not offer HTTP/2");
    assert!(matches!(error, RequestError::Tls(_)), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_the_server_closed_while_it_was_idle_is_replaced() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let (closed, mut both_closed) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            serve(&mut socket, &ok("{}")).await;
            // The end of the pool's side: it has noticed.
            while socket.read_u8().await.is_ok() {}
            closed.send(()).await.expect("the test waits");
        }
    });
    let client = client(Http2::Never, 10);
    for _ in 0..10 {
        let response = client.send(post(&url, "body")).await.expect("an answer");
        assert_eq!(response.body(), "{}");
        both_closed.recv().await.expect("the server serves");
    }
}

#[tokio::test]
async fn a_user_agent_is_the_servers_unless_the_request_has_one() {
    let (url, _) = echo(Speaks::Http1, 1).await;
    let client = client(Http2::Never, 1);
    let agent = |response: Response<Bytes>| response.headers()[header::SERVER].clone();
    assert_eq!(agent(posted(&client, &url, "").await), USER_AGENT);
    let mut request = post(&url, "");
    request.headers_mut().insert(header::USER_AGENT, HeaderValue::from_static("mine"));
    assert_eq!(agent(client.send(request).await.expect("an answer")), "mine");
}

#[tokio::test]
async fn a_request_and_its_response_can_be_streams() {
    for (speaks, http2) in [
        (Speaks::Http1, Http2::Never),
        (Speaks::Tls, Http2::Negotiated),
        (Speaks::Http2, Http2::Only),
    ] {
        let (url, _) = echo(speaks, 1).await;
        // Without a pool the sender of the connection ends before its response.
        let client = client(http2, 0);
        let (mut sender, body) = Channel::<Bytes, Infallible>::new(1);
        let response = client.request(Request::post(&url).body(body).expect("a URL")).await;
        let mut answer = response.expect("a head").into_body();
        // Together they are longer than the limit of whole bodies.
        for line in ["a", "b"].map(|letter| letter.repeat(BODY_BYTES_MAX)) {
            sender.send_data(Bytes::from(line.clone())).await.expect("the server reads");
            let mut got = Vec::new();
            while got.len() < line.len() {
                let frame = answer.frame().await.expect("more").expect("a frame");
                got.extend_from_slice(frame.data_ref().expect("data"));
            }
            assert_eq!(got, line.as_bytes());
        }
        drop(sender);
        assert_eq!(answer.collect().await.expect("an end").to_bytes(), "");
    }
}

/// Answers one request with `head` and then, unless that is empty, a byte each millisecond, until the client closes the connection.
async fn trickle(listener: TcpListener, head: &str) {
    let (mut socket, _) = listener.accept().await.expect("the client connects");
    let mut buffer = [0; 4096];
    socket.read_u8().await.expect("a request");
    socket.write_all(head.as_bytes()).await.expect("the client reads");
    loop {
        let read = timeout(Duration::from_millis(1), socket.read(&mut buffer)).await;
        if matches!(read, Ok(Ok(0) | Err(_))) {
            return;
        }
        if !head.is_empty() {
            let _ = socket.write_all(b"x").await;
        }
    }
}

#[tokio::test]
async fn a_timeout_closes_the_connection() {
    // Nothing; half a head; a body without an end.
    for head in
        ["", "HTTP/1.1 200 OK\r\nServer: ", "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"]
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut client = client(Http2::Never, 1);
        client.limits.timeout = Duration::from_millis(50);
        let url = format!("http://{address}/");
        let ((), answer) = tokio::join!(trickle(listener, head), client.send(post(&url, "{}")));
        assert_eq!(answer.expect_err("too slow").to_string(), "no answer in time");
    }
}

#[tokio::test]
async fn a_handshake_without_an_answer_times_out() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let url = format!("https://{}/", listener.local_addr().expect("bound"));
    let limits = RequestLimits { timeout: Duration::from_millis(20), body_bytes_max: 0 };
    let client = HttpsClient::new(Tls::new(&TlsOptions::default()).expect("good"), limits);
    let ((), answer) = tokio::join!(trickle(listener, ""), client.request(post(&url, "")));
    assert_eq!(answer.expect_err("no handshake").to_string(), "no answer in time");
}

#[tokio::test]
async fn a_refusal_and_a_reset_are_errors_with_their_cause() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let client = client(Http2::Never, 1);
    let reset = async {
        let (mut socket, _) = listener.accept().await.expect("the client connects");
        socket.read_u8().await.expect("a request");
        // Unread bytes turn the close into a reset.
    };
    let (answer, ()) = tokio::join!(client.send(post(&url, "{}")), reset);
    let error = answer.expect_err("a reset");
    assert!(error.to_string().starts_with("connection error: Connection reset"), "{error}");
    drop(listener);
    let error = client.send(post(&url, "{}")).await.expect_err("nobody listens");
    assert!(matches!(&error, RequestError::Io(error) if error.raw_os_error().is_some()));
    assert!(error.to_string().starts_with("Connection refused"), "{error}");
}
