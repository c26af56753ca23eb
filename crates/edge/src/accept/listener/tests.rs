//! Tests of `listener`: how long a peer may keep its slot.
//! In: bytes through a socket, and tokio's clock, which jumps to the next timer → out: the time at which the connection ended.
//! Uses loopback sockets that are written to before the server reads; a router of axum.
//! Changed here: tests of `listener.rs`.

use std::{
    io::{Read, Write},
    net::{self, Shutdown},
};

use axum::{Router, routing::get};
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
}

fn served(router: Router) -> Served<Pages> {
    Served { settings: ListenerSettings::default(), service: Pages(router) }
}

/// Both ends of a connection.
fn pair() -> (Socket, net::TcpStream, SocketAddr) {
    let listener = net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let theirs = net::TcpStream::connect(address).expect("a listener");
    let (ours, peer) = listener.accept().expect("a connection");
    ours.set_nonblocking(true).expect("a socket");
    let ours = TcpStream::from_std(ours).expect("a socket");
    (ours.into(), theirs, peer)
}

/// The seconds until the connection of a peer that sends only these bytes ends, and the response.
async fn exchange(bytes: &[u8], then: impl FnOnce(&net::TcpStream)) -> (u64, String) {
    let (ours, mut theirs, peer) = pair();
    theirs.write_all(bytes).expect("room in the socket");
    then(&theirs);
    let pages = served(Router::new().route("/", get("hello")));
    let (_stop, stopped) = watch::channel(false);
    let start = Instant::now();
    serve_connection(
        ours,
        ClientAddress::of_peer(peer),
        Arc::new(pages),
        stopped,
        ConnectionSlots::new(1),
    )
    .await;
    let mut answers = String::new();
    theirs.read_to_string(&mut answers).expect("our end is closed");
    (start.elapsed().as_secs(), answers)
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
    let start = Instant::now();
    let speaking = serve_connection(
        ours,
        ClientAddress::of_peer(peer),
        Arc::new(pages),
        stopped,
        ConnectionSlots::new(1),
    );
    let stopping = async {
        sleep(IDLE_TIMEOUT / 2).await;
        stop.send(true).expect("a listener");
    };
    tokio::join!(speaking, stopping);
    assert_eq!(start.elapsed(), IDLE_TIMEOUT / 2);
}
