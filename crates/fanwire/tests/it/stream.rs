//! Long requests to `POST /api/stream` over real sockets: when lines are executed and answered, and how a stream ends.
//! In: pieces of a body, a cut, a stop → out: answers, publications to a subscriber.
//! Uses the test client and plain sockets; never internals.
//! Changed here: expectations of `http::command_stream`. Lines and their answers are tested in `api`.

mod on_shards;

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::client::{Client, start};

/// A request whose body is sent in chunks, and whose response is read at the same time.
struct Stream {
    socket: TcpStream,
    received: String,
}

impl Stream {
    async fn open(address: SocketAddr, headers: &str) -> Self {
        let socket = TcpStream::connect(address).await.expect("the server listens");
        Self::over(socket, headers).await
    }

    async fn over(mut socket: TcpStream, headers: &str) -> Self {
        let head = format!(
            "POST /api/stream HTTP/1.1\r\nHost: localhost\r\n{headers}Transfer-Encoding: chunked\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await.expect("open");
        Self { socket, received: String::new() }
    }

    async fn send(&mut self, piece: &str) {
        let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
        self.socket.write_all(chunk.as_bytes()).await.expect("open");
    }

    async fn end(&mut self) {
        self.socket.write_all(b"0\r\n\r\n").await.expect("open");
    }

    /// Reads until the response contains `text`.
    async fn wait_for(&mut self, text: &str) {
        let mut buffer = [0; 4096];
        while !self.received.contains(text) {
            let read = timeout(PATIENCE, self.socket.read(&mut buffer)).await;
            let count = read.unwrap_or_else(|_| panic!("no {text:?} in {}", self.received));
            let count = count.expect("open");
            assert!(count > 0, "ended without {text:?}: {}", self.received);
            self.received.push_str(str::from_utf8(&buffer[..count]).expect("text"));
        }
    }
}

fn publish(id: u32) -> String {
    format!("{{\"id\":{id},\"publish\":{{\"channel\":\"a\",\"data\":{id}}}}}\n")
}

#[tokio::test]
async fn each_line_is_executed_and_answered_while_the_request_goes_on() {
    let server = start(|_| {}).await;
    let mut subscriber = Client::subscribed(server.address(), "", "a").await;
    let mut stream = Stream::open(server.address(), KEY).await;
    for id in 0..3 {
        stream.send(&publish(id)).await;
        stream.wait_for(&format!("{{\"id\":{id},\"publish\":{{}}}}\n")).await;
        let push = format!(r#"{{"push":{{"channel":"a","pub":{{"data":{id}}}}}}}"#);
        assert_eq!(subscriber.next_text().await, push);
    }
    stream.send("nonsense\n{\"id\":").await;
    stream.wait_for("{\"error\":{\"code\":107,\"message\":\"bad request\",\"cause\":\"the line is not a JSON object with one method\"}}\n").await;
    stream.send("9,\"publish\":{\"channel\":\"a\",\"data\":9}}").await;
    stream.end().await;
    stream.wait_for("{\"id\":9,\"publish\":{}}\n").await;
    stream.wait_for("\r\n0\r\n\r\n").await;
    assert!(stream.received.starts_with("HTTP/1.1 200 OK\r\n"), "{}", stream.received);
    assert!(stream.received.contains("content-type: application/x-ndjson\r\n"));
    drop((subscriber, stream));
    server.shutdown().await;
}

#[tokio::test]
async fn a_body_with_a_length_is_a_stream_too_and_the_connection_goes_on() {
    let server = start(|_| {}).await;
    let mut socket = TcpStream::connect(server.address()).await.expect("the server listens");
    let body: String = (0..500).map(publish).collect();
    for _ in 0..2 {
        let head = format!(
            "POST /api/stream HTTP/1.1\r\nHost: localhost\r\n{KEY}Content-Length: {}\r\n\r\n",
            body.len()
        );
        socket.write_all((head + &body).as_bytes()).await.expect("open");
        let mut stream = Stream { socket, received: String::new() };
        stream.wait_for("\r\n0\r\n\r\n").await;
        assert_eq!(stream.received.matches("\"publish\":{}}\n").count(), 500);
        socket = stream.socket;
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_stream_without_the_key_is_refused_and_nothing_is_executed() {
    let server = start(|_| {}).await;
    let mut subscriber = Client::subscribed(server.address(), "", "a").await;
    let mut refused = Stream::open(server.address(), "X-API-Key: wrong\r\n").await;
    refused.send(&publish(1)).await;
    refused.wait_for("HTTP/1.1 401 ").await;
    let mut stream = Stream::open(server.address(), KEY).await;
    stream.send(&publish(2)).await;
    assert_eq!(subscriber.next_text().await, r#"{"push":{"channel":"a","pub":{"data":2}}}"#);
    drop((subscriber, refused, stream));
    server.shutdown().await;
}

/// An answered command was executed, and an executed one of a whole line was answered, unless the cut lost the answer.
#[tokio::test]
async fn of_a_stream_that_is_cut_whole_lines_were_executed_and_no_half_one() {
    let server = start(|_| {}).await;
    let mut subscriber = Client::subscribed(server.address(), "", "a").await;
    let mut stream = Stream::open(server.address(), KEY).await;
    let whole: String = (0..10).map(publish).collect();
    let half = "{\"id\":10,\"publish\":{\"channel\":\"a\",\"data\":10}}";
    stream.send(&(whole + half)).await;
    stream.wait_for("{\"id\":9,\"publish\":{}}\n").await;
    drop(stream);
    let mut other = Stream::open(server.address(), KEY).await;
    other.send(&publish(99)).await;
    for data in (0..10).chain([99]) {
        let push = format!(r#"{{"push":{{"channel":"a","pub":{{"data":{data}}}}}}}"#);
        assert_eq!(subscriber.next_text().await, push);
    }
    drop((subscriber, other));
    server.shutdown().await;
}

/// The server stops reading when its answers are not read, so a client that only writes is stopped by its own socket.
#[tokio::test]
async fn who_does_not_read_answers_is_not_read_either() {
    let server = start(|_| {}).await;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("answers soon fill it");
    let socket = socket.connect(server.address()).await.expect("the server listens");
    let mut stream = Stream::over(socket, KEY).await;
    let lines: String = (0..1000).map(publish).collect();
    let chunk = format!("{:x}\r\n{lines}\r\n", lines.len());
    let mut sent = 0;
    while timeout(Duration::from_secs(1), stream.socket.write_all(chunk.as_bytes())).await.is_ok() {
        sent += chunk.len();
        assert!(sent < 1 << 28, "everything is read though no answer is");
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_stop_of_the_server_ends_an_idle_stream_in_order() {
    let server = start(|_| {}).await;
    let mut stream = Stream::open(server.address(), KEY).await;
    stream.send(&publish(1)).await;
    stream.wait_for("{\"id\":1,\"publish\":{}}\n").await;
    let shutdown = tokio::spawn(server.shutdown());
    stream.wait_for("\r\n0\r\n\r\n").await;
    drop(stream);
    shutdown.await.expect("a clean end");
}

const KEY: &str = "X-API-Key: key\r\n";
const PATIENCE: Duration = Duration::from_secs(10);
