//! Tests of `listener`: how long a peer keeps its place, whatever it does.
//! In: bytes through a socket, and tokio's clock, which jumps to the next timer → out: when the connection ended.
//! Uses sockets of the loopback that were written to before anybody reads; a root_service without an API.
//! Changed here: tests of `listener.rs`.

use std::{
    io::{Read, Write},
    net::{self, Shutdown},
};

use axum::{Router, routing::get};
use tokio::time::{Instant, sleep};

use super::*;

#[test]
fn peers_get_less_time_while_places_are_scarce() {
    let (bytes, head_bytes) = (LINGER_BYTES_MAX, LINGER_HEAD_BYTES_MAX);
    let linger = Linger { time: LINGER_TIME, silence: LINGER_SILENCE, bytes, head_bytes };
    let ample = Patience { head: HEAD_TIMEOUT, idle: IDLE_TIMEOUT, write: WRITE_TIMEOUT, linger };
    let [head, idle, time, silence] = [TIMEOUT_SCARCE; 4];
    let scarce = Patience { head, idle, linger: Linger { time, silence, ..linger }, ..ample };
    let check = |all, free, expected| {
        let places = Places { all, free: Arc::new(Semaphore::new(free)) };
        assert_eq!(places.patience(), expected, "{free} of {all}");
    };
    for all in [HTTP_CONNECTIONS_MAX, 100] {
        check(all, all, ample);
        check(all, all / 2, ample);
        check(all, all / 2 - 1, scarce);
        check(all, 0, scarce);
    }
}

/// Both ends of a connection.
fn pair() -> (TcpStream, net::TcpStream, SocketAddr) {
    let listener = net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let theirs = net::TcpStream::connect(address).expect("somebody listens");
    let (ours, peer) = listener.accept().expect("somebody came");
    ours.set_nonblocking(true).expect("a socket");
    (TcpStream::from_std(ours).expect("a socket"), theirs, peer)
}

/// The seconds after which a peer that says this and then nothing is given up, and what it was answered.
async fn spoken(said: &[u8], then: impl FnOnce(&net::TcpStream)) -> (u64, String) {
    let (ours, mut theirs, peer) = pair();
    theirs.write_all(said).expect("room in the socket");
    then(&theirs);
    let root_service = RootService {
        api_service: None,
        router: Router::new().route("/", get("hello")),
        only_here: false,
    };
    let (_stop, stopped) = watch::channel(false);
    let start = Instant::now();
    speak(ours, peer, Arc::new(root_service), stopped, Places::new(1).patience()).await;
    let mut answers = String::new();
    theirs.read_to_string(&mut answers).expect("our end is closed");
    (start.elapsed().as_secs(), answers)
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_or_end_keeps_its_place_for_ten_seconds() {
    for said in [&b""[..], b"P", b"POST /api/publish HTTP/1.1\r\nHost: a\r\nX-API-Key: "] {
        assert_eq!(spoken(said, |_| {}).await, (10, String::new()), "{said:?}");
    }
}

/// The seconds after which the second of two peers is answered, of which the first says nothing.
async fn answered(places: usize) -> String {
    let listener = bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let [_silent, mut second] =
        [(); 2].map(|()| net::TcpStream::connect(address).expect("somebody listens"));
    second.write_all(REQUEST).expect("room in the socket");
    let start = Instant::now();
    let seconds = move || async move { start.elapsed().as_secs().to_string() };
    let router = Router::new().route("/", get(seconds));
    let (stop, stopped) = watch::channel(false);
    let root_service = RootService { api_service: None, router, only_here: false };
    let stopping = async {
        sleep(IDLE_TIMEOUT).await;
        stop.send(true).expect("somebody listens");
    };
    tokio::join!(serve(listener, root_service, places, stopped), stopping);
    let mut answer = String::new();
    second.read_to_string(&mut answer).expect("our end is closed");
    answer.rsplit("\r\n").next().expect("a body").to_owned()
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_place_waits_for_one() {
    assert_eq!(answered(2).await, "0");
    assert_eq!(answered(1).await, "10");
}

#[tokio::test(start_paused = true)]
async fn between_requests_a_peer_may_be_silent_for_three_minutes() {
    for count in 1..4 {
        let (seconds, answers) = spoken(&REQUEST.repeat(count), |_| {}).await;
        assert_eq!((seconds, answers.matches("hello").count()), (180, count), "{answers}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_said_all_gets_its_answers_and_is_not_waited_for() {
    let ends = |theirs: &net::TcpStream| theirs.shutdown(Shutdown::Write).expect("a socket");
    for count in 0..4 {
        let (seconds, answers) = spoken(&REQUEST.repeat(count), ends).await;
        assert_eq!((seconds, answers.matches("hello").count()), (0, count), "{answers}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_idle_when_the_server_stops_is_not_waited_for() {
    let (ours, mut theirs, peer) = pair();
    theirs.write_all(REQUEST).expect("room in the socket");
    let root_service = RootService {
        api_service: None,
        router: Router::new().route("/", get("hello")),
        only_here: false,
    };
    let (stop, stopped) = watch::channel(false);
    let start = Instant::now();
    let speaking = speak(ours, peer, Arc::new(root_service), stopped, Places::new(1).patience());
    let stopping = async {
        sleep(IDLE_TIMEOUT / 2).await;
        stop.send(true).expect("somebody listens");
    };
    tokio::join!(speaking, stopping);
    assert_eq!(start.elapsed(), IDLE_TIMEOUT / 2);
}
