//! Tests of `listener`: how long a peer may keep its slot.
//! In: bytes through a socket, and tokio's clock, which jumps to the next timer → out: the time at which the connection ended.
//! Uses loopback sockets that are written to before the server reads; a router of axum.
//! Changed here: tests of `listener.rs`.

use std::{
    io::{Read, Write},
    net::{self, Shutdown},
};

use axum::{
    Router,
    body::Bytes,
    response::IntoResponse,
    routing::{MethodRouter, get, post},
};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use super::super::limits::IDLE_TIMEOUT;
use super::*;

struct Pages(Router);

impl Service for Pages {
    type Body = axum::body::Body;

    async fn answer(
        &self,
        request: Request<TrackedBody<Incoming>>,
        _peer: SocketAddr,
    ) -> Response<Self::Body> {
        let request = request.map(axum::body::Body::new);
        self.0.clone().oneshot(request).await.unwrap_or_else(|never| match never {})
    }

    fn late(&self) -> Response<Self::Body> {
        (StatusCode::REQUEST_TIMEOUT, "late").into_response()
    }
}

fn served(router: Router) -> Served<Pages> {
    Served { settings: ListenerSettings::default(), service: Pages(router) }
}

/// Both ends of a connection, ours as it is accepted.
fn accepted() -> (StdStream, net::TcpStream, SocketAddr) {
    let listener = net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let theirs = net::TcpStream::connect(address).expect("a listener");
    let (ours, peer) = listener.accept().expect("a connection");
    ours.set_nonblocking(true).expect("a socket");
    (ours, theirs, peer)
}

/// Both ends of a connection.
fn pair() -> (Socket, net::TcpStream, SocketAddr) {
    let (ours, theirs, peer) = accepted();
    (TcpStream::from_std(ours).expect("a socket").into(), theirs, peer)
}

/// The seconds until the connection of a peer that sends only these bytes ends, and the response.
async fn exchange(bytes: &[u8], then: impl FnOnce(&net::TcpStream)) -> (u64, String) {
    let (ours, mut theirs, peer) = pair();
    theirs.write_all(bytes).expect("room in the socket");
    then(&theirs);
    let pages = served(Router::new().route("/", get("hello").merge(post_body())));
    let (_stop, stopped) = watch::channel(false);
    let (start, slot) = (Instant::now(), slot().await);
    let client = ClientAddress::of_peer(peer);
    serve_connection(ours, client, Arc::new(pages), stopped, &slot).await;
    let mut answers = String::new();
    theirs.read_to_string(&mut answers).expect("our end is closed");
    (start.elapsed().as_secs(), answers)
}

/// The only slot of a listener.
async fn slot() -> Arc<ConnectionSlot> {
    let slots = ConnectionSlots::new(1);
    let taken = slots.take(|| {}).await;
    ConnectionSlot::new(&slots, taken)
}

/// Serves a long response, whose `begun` is called at its begin, to a peer that then does `ends`.
async fn serve_long(ends: impl FnOnce(net::TcpStream), slot: &Arc<ConnectionSlot>) {
    let (ours, mut theirs, peer) = pair();
    theirs.write_all(REQUEST).expect("room in the socket");
    let begun = Arc::new(tokio::sync::Notify::new());
    let begins = Arc::clone(&begun);
    let never = async move |exchange: axum::Extension<Arc<Exchange>>| {
        let _long = exchange.begin_long();
        begins.notify_one();
        std::future::pending::<&str>().await
    };
    let pages = Arc::new(served(Router::new().route("/", get(never))));
    let (_stop, stopped) = watch::channel(false);
    let client = ClientAddress::of_peer(peer);
    let end = async {
        begun.notified().await;
        assert!(slot.slots.may_keep(), "the slot is free for others");
        ends(theirs);
    };
    tokio::join!(serve_connection(ours, client, pages, stopped, slot), end);
}

#[tokio::test]
async fn a_long_response_ends_with_its_peer() {
    let slot = slot().await;
    serve_long(drop, &slot).await;
    serve_long(|peer| peer.shutdown(Shutdown::Write).expect("a socket"), &slot).await;
    let reset = |peer: net::TcpStream| {
        socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO)).expect("a socket");
    };
    serve_long(reset, &slot).await;
}

#[tokio::test]
async fn after_a_long_response_the_connection_has_its_slot_again_or_ends() {
    for is_free in [true, false] {
        let (ours, mut theirs, peer) = pair();
        theirs.write_all(REQUEST).expect("room in the socket");
        theirs.shutdown(Shutdown::Write).expect("a socket");
        let slot = slot().await;
        let slots = Arc::clone(&slot.slots);
        let answer = async move |exchange: axum::Extension<Arc<Exchange>>| {
            let _long = exchange.begin_long();
            if !is_free {
                std::mem::forget(slots.take(|| {}).await);
            }
            "hello"
        };
        let pages = Arc::new(served(Router::new().route("/", get(answer))));
        let (_stop, stopped) = watch::channel(false);
        let client = ClientAddress::of_peer(peer);
        serve_connection(ours, client, pages, stopped, &slot).await;
        let mut answers = String::new();
        theirs.read_to_string(&mut answers).expect("our end is closed");
        assert!(answers.starts_with("HTTP/1.1 200"), "{answers}");
        assert_eq!(answers.contains("connection: close"), !is_free, "{answers}");
    }
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn a_missing_or_incomplete_head_keeps_its_slot_for_ten_seconds() {
    for bytes in [&b""[..], b"P", b"POST /api/publish HTTP/1.1\r\nHost: a\r\nX-API-Key: "] {
        assert_eq!(exchange(bytes, |_| {}).await, (10, String::new()), "{bytes:?}");
    }
}

/// The response to the second of two peers; the first one sends nothing.
async fn answered(slots: usize) -> String {
    let listener = bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let [_silent, mut second] =
        [(); 2].map(|()| net::TcpStream::connect(address).expect("a listener"));
    second.write_all(REQUEST).expect("room in the socket");
    let start = Instant::now();
    let seconds = move || async move { start.elapsed().as_secs().to_string() };
    let router = Router::new().route("/", get(seconds));
    let (stop, stopped) = watch::channel(false);
    let settings = ListenerSettings { slots, ..ListenerSettings::default() };
    let stopping = async {
        sleep(IDLE_TIMEOUT).await;
        stop.send(true).expect("a listener");
    };
    tokio::join!(serve(listener, settings, Pages(router), stopped), stopping);
    let mut answer = String::new();
    second.read_to_string(&mut answer).expect("our end is closed");
    answer.rsplit("\r\n").next().expect("a body").to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_slot_waits_for_one() {
    assert_eq!(answered(2).await, "0");
    assert_eq!(answered(1).await, "10");
}

#[tokio::test(start_paused = true)]
async fn a_connection_may_be_idle_for_three_minutes() {
    for count in 1..4 {
        let (seconds, answers) = exchange(&REQUEST.repeat(count), |_| {}).await;
        assert_eq!((seconds, answers.matches("hello").count()), (180, count), "{answers}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_closed_its_sending_side_gets_its_response() {
    let ends = |theirs: &net::TcpStream| theirs.shutdown(Shutdown::Write).expect("a socket");
    for count in 0..4 {
        let (seconds, answers) = exchange(&REQUEST.repeat(count), ends).await;
        assert_eq!((seconds, answers.matches("hello").count()), (0, count), "{answers}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_when_the_server_stops() {
    let (ours, mut theirs, peer) = pair();
    theirs.write_all(REQUEST).expect("room in the socket");
    let pages = served(Router::new().route("/", get("hello")));
    let (stop, stopped) = watch::channel(false);
    let (start, slot) = (Instant::now(), slot().await);
    let client = ClientAddress::of_peer(peer);
    let speaking = serve_connection(ours, client, Arc::new(pages), stopped, &slot);
    let stopping = async {
        sleep(IDLE_TIMEOUT / 2).await;
        stop.send(true).expect("a listener");
    };
    tokio::join!(speaking, stopping);
    assert_eq!(start.elapsed(), IDLE_TIMEOUT / 2);
}

#[tokio::test(start_paused = true)]
async fn half_a_head_that_arrived_before_the_stop_gets_the_rest_of_its_time() {
    let (ours, mut theirs, peer) = accepted();
    let (first, rest) = REQUEST.split_at(10);
    theirs.write_all(first).expect("room in the socket");
    let pages = served(Router::new().route("/", get("hello")));
    let (stop, stopped) = watch::channel(false);
    stop.send(true).expect("a listener");
    let slot = slot().await;
    let ours = begin(ours, None, peer, &slot.slots, &stopped).await.expect("it is plain");
    let client = ClientAddress::of_peer(peer);
    let serving = serve_connection(ours, client, Arc::new(pages), stopped, &slot);
    let writing = async { theirs.write_all(rest) };
    tokio::join!(serving, writing).1.expect("it is not closed");
    let mut answers = String::new();
    theirs.read_to_string(&mut answers).expect("our end is closed");
    assert!(answers.contains("hello"), "{answers}");
}

const HALF_A_BODY: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nhalf";

#[tokio::test(start_paused = true)]
async fn half_a_body_keeps_its_slot_for_half_a_minute_and_gets_408() {
    for headers in [
        "Content-Length: 8\r\n\r\nhalf",
        "Content-Length: 8\r\n\r\n",
        "Content-Length: 8\r\nExpect: 100-continue\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n8\r\nhalf",
        "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n",
    ] {
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{headers}");
        let (seconds, answer) = exchange(request.as_bytes(), |_| {}).await;
        let answer = answer.trim_start_matches("HTTP/1.1 100 Continue\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 408 "), "{headers}: {answer}");
        assert!(answer.contains("connection: close\r\n"), "{headers}: {answer}");
        assert_eq!(seconds, 30, "{headers}");
    }
    let (seconds, answer) = exchange(HALF_A_BODY.replace(" 8", " 4").as_bytes(), |_| {}).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("read"), "{answer}");
    assert_eq!(seconds, 180, "it is idle then");
}

#[tokio::test(start_paused = true)]
async fn half_a_body_in_a_stream_of_http2_gets_408_too() {
    let (ours, mut theirs, peer) = pair();
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream][..], payload].concat()
    };
    let post = [0x83, 0x86, 0x84, 0x41, 1, b'a']; // POST, http, /, an authority (RFC 7541 §A)
    let sent = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[]),
        frame(1, 4, 1, &post), // END_HEADERS alone
        frame(0, 0, 1, b"half"),
    ];
    theirs.write_all(&sent.concat()).expect("room in the socket");
    let settings = ListenerSettings { http2_cleartext: true, ..ListenerSettings::default() };
    let service = Pages(Router::new().route("/", post_body()));
    let served = Arc::new(Served { settings, service });
    let (_stop, stopped) = watch::channel(false);
    let client = ClientAddress::of_peer(peer);
    serve_connection(ours, client, served, stopped, &slot().await).await;
    let mut answer = Vec::new();
    theirs.read_to_end(&mut answer).expect("our end is closed");
    let status = [0x48, 0x83, 0x68, 0x0f, 0x7f]; // :status 408 (RFC 7541 §6.2.1, §B)
    assert!(answer.windows(5).any(|bytes| bytes == status), "{answer:?}");
}

/// Reads the body of a request.
fn post_body() -> MethodRouter {
    post(|_: Bytes| async { "read" })
}

/// The seconds until a request is answered that comes after so many peers, each with half a body.
async fn seconds_behind(peers: usize, slots: usize) -> u64 {
    let listener = bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let connect = |bytes: &str| {
        let mut socket = net::TcpStream::connect(address).expect("a listener");
        socket.write_all(bytes.as_bytes()).expect("room in the socket");
        socket
    };
    let silent: Vec<_> = (0..peers).map(|_| connect(HALF_A_BODY)).collect();
    let mut last = connect("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let start = Instant::now();
    let seconds = move || async move { start.elapsed().as_secs().to_string() };
    let router = Router::new().route("/", get(seconds).merge(post_body()));
    let (stop, stopped) = watch::channel(false);
    let settings = ListenerSettings { slots, ..ListenerSettings::default() };
    let stopping = async {
        sleep(IDLE_TIMEOUT).await;
        stop.send(true).expect("a listener");
    };
    tokio::join!(serve(listener, settings, Pages(router), stopped), stopping);
    for mut socket in silent {
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("our end is closed");
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
    let mut answer = String::new();
    last.read_to_string(&mut answer).expect("our end is closed");
    let seconds = answer.rsplit("\r\n").next().expect("a body");
    seconds.parse().unwrap_or_else(|_| panic!("{answer}"))
}

#[tokio::test(start_paused = true)]
async fn many_peers_with_half_a_body_keep_others_away_for_some_seconds() {
    assert_eq!(seconds_behind(10, 100).await, 0);
    let seconds = seconds_behind(100, 100).await;
    assert!(seconds <= 2, "{seconds} s behind as many as there are slots");
    let seconds = seconds_behind(400, 100).await;
    assert!(seconds <= 8, "{seconds} s behind four times as many");
}

/// Answers with the body of the request, piece by piece.
struct Echo;

impl Service for Echo {
    type Body = axum::body::Body;

    async fn answer(
        &self,
        request: Request<TrackedBody<Incoming>>,
        _peer: SocketAddr,
    ) -> Response<Self::Body> {
        Response::new(axum::body::Body::new(request.into_body().endless()))
    }

    fn late(&self) -> Response<Self::Body> {
        panic!("an endless body is never late")
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_answered_while_it_comes_may_be_silent_for_any_time() {
    let (ours, mut theirs, peer) = pair();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nline\r\n";
    theirs.write_all(head.as_bytes()).expect("room in the socket");
    let (_stop, stopped) = watch::channel(false);
    let echo = Served { settings: ListenerSettings::default(), service: Echo };
    let client = ClientAddress::of_peer(peer);
    let slot = slot().await;
    let serving = serve_connection(ours, client, Arc::new(echo), stopped, &slot);
    tokio::select! {
        () = serving => panic!("it ended"),
        () = sleep(Duration::from_secs(86_400)) => {}
    }
    let mut answer = [0; 1024];
    let length = theirs.read(&mut answer).expect("an answer");
    assert!(String::from_utf8_lossy(&answer[..length]).contains("line"));
}

/// The time that passes until each of some clients is accepted. The queue is empty before they connect.
async fn accept_all(queue: &mut AcceptQueue, address: SocketAddr, clients: u32) -> Duration {
    let begin = Instant::now();
    let connect = async {
        (0..clients).map(|_| net::TcpStream::connect(address).expect("a listener")).collect()
    };
    let accept = async {
        for _ in 0..clients {
            queue.accept().await.expect("a connection");
        }
    };
    let ((), _connected): ((), Vec<_>) = tokio::join!(accept, connect);
    begin.elapsed()
}

#[tokio::test(start_paused = true)]
async fn only_a_burst_makes_the_next_socket_wait() {
    let listener = bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let mut queue = AcceptQueue::new(listener).expect("a socket");
    for clients in [1, 1, 1, BURST_MIN, 1, BURST_MIN - 1, 1] {
        let is_after_burst = queue.batch >= BURST_MIN;
        let waited = accept_all(&mut queue, address, clients).await;
        assert_eq!(waited >= BATCH_TIME, is_after_burst, "{clients} clients: {waited:?}");
    }
}
