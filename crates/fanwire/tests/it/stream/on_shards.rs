//! Long requests to `POST /api/stream` without TLS, which are served on shards.
//! In: bodies in any pieces, long commands, a drain → out: answers, publications to a subscriber.
//! Uses the test client and plain sockets; never internals.
//! Changed here: expectations of `shard::socket_tasks` over sockets. What all streams have in common is in `stream`.

use super::*;

impl Stream {
    /// Whether a shard serves the stream: then its connection ends with it.
    fn is_on_shard(&self) -> bool {
        self.received.contains("\r\nconnection: close\r\n")
    }

    async fn raw(&mut self, bytes: &str) {
        self.socket.write_all(bytes.as_bytes()).await.expect("open");
    }

    /// Reads to the end of the connection.
    async fn wait_for_end(&mut self) {
        let mut rest = Vec::new();
        let read = timeout(PATIENCE, self.socket.read_to_end(&mut rest)).await;
        read.expect("it ends").expect("an orderly end");
        self.received.push_str(str::from_utf8(&rest).expect("text"));
    }
}

fn answer(id: u32) -> String {
    format!("{{\"id\":{id},\"publish\":{{}}}}\n")
}

#[tokio::test]
async fn a_body_in_single_bytes_is_executed_and_its_connection_ends_with_it() {
    let server = start(|_| {}).await;
    let mut stream = Stream::open(server.address(), KEY).await;
    let line = publish(1);
    let chunk = format!("{:X};name=value\r\n{line}\r\n0\r\nTrailer: x\r\n\r\n", line.len());
    for byte in chunk.split_inclusive(|_| true) {
        stream.raw(byte).await;
    }
    stream.wait_for_end().await;
    assert!(stream.is_on_shard() && stream.received.contains(&answer(1)), "{}", stream.received);
    assert!(stream.received.ends_with("\r\n0\r\n\r\n"));
    server.shutdown().await;
}

#[tokio::test]
async fn a_body_with_a_length_is_read_by_the_runtime() {
    let server = start(|_| {}).await;
    let socket = TcpStream::connect(server.address()).await.expect("the server listens");
    let mut stream = Stream { socket, received: String::new() };
    let body = publish(1);
    let length = body.len();
    let head = format!("POST /api/stream HTTP/1.1\r\nHost: x\r\n{KEY}Content-Length: {length}\r\n");
    stream.raw(&format!("{head}\r\n{body}")).await;
    stream.wait_for("\r\n0\r\n\r\n").await;
    assert!(!stream.is_on_shard() && stream.received.contains(&answer(1)), "{}", stream.received);
    server.shutdown().await;
}

#[tokio::test]
async fn commands_that_may_take_long_are_answered_in_their_order() {
    let server = start(|_| {}).await;
    let mut subscriber = Client::subscribed(server.address(), "", "a").await;
    let mut stream = Stream::open(server.address(), KEY).await;
    let channels = (0..300).map(|number| format!("\"b{number}\"")).collect::<Vec<_>>().join(",");
    let lines = [
        publish(1),
        "{\"id\":2,\"info\":{}}\n".to_owned(),
        "{\"id\":3,\"channels\":{}}\n".to_owned(),
        publish(4),
        format!("{{\"id\":5,\"broadcast\":{{\"channels\":[{channels}],\"data\":1}}}}\n"),
        "{\"id\":6,\"batch\":{}}\n".to_owned(),
        publish(7),
    ];
    stream.send(&lines.concat()).await;
    stream.wait_for(&answer(7)).await;
    assert!(stream.is_on_shard());
    let lines = stream.received.lines().filter_map(|line| line.strip_prefix("{\"id\":"));
    let ids: Vec<&str> = lines.filter_map(|line| line.split(',').next()).collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5", "6", "7"], "{}", stream.received);
    for data in [1, 4, 7] {
        let push = format!(r#"{{"push":{{"channel":"a","pub":{{"data":{data}}}}}}}"#);
        assert_eq!(subscriber.next_text().await, push);
    }
    drop((subscriber, stream));
    server.shutdown().await;
}

/// Streams and clients of a shard take turns.
#[tokio::test]
async fn many_streams_at_once_are_all_answered_and_their_publications_arrive_in_order() {
    let server = start(|_| {}).await;
    let address = server.address();
    let mut subscribers = Vec::new();
    for _ in 0..4 {
        subscribers.push(Client::subscribed(address, "", "a").await);
    }
    let streams = (0..4).map(async |_| {
        let mut stream = Stream::open(address, KEY).await;
        for first in (0..LINES).step_by(500) {
            stream.send(&(first..first + 500).map(publish).collect::<String>()).await;
            stream.wait_for(&answer(first + 499)).await;
        }
        assert_eq!(stream.received.matches("\"publish\":{}}\n").count() as u32, LINES);
    });
    futures_util::future::join_all(streams).await;
    for subscriber in &mut subscribers {
        let mut next = vec![0; LINES as usize];
        let mut left = 4 * LINES;
        while left > 0 {
            for line in subscriber.next_text().await.lines() {
                let data = line.trim_end_matches('}').rsplit(':').next().expect("a number");
                let data: usize = data.parse().expect("a number");
                next[data] += 1;
                assert!(data == 0 || next[data - 1] >= next[data], "in the order of a stream");
                left -= 1;
            }
        }
    }
    drop(subscribers);
    server.shutdown().await;
}

#[tokio::test]
async fn wrong_chunks_end_the_connection_after_the_answers() {
    let server = start(|_| {}).await;
    let mut stream = Stream::open(server.address(), KEY).await;
    stream.send(&publish(1)).await;
    stream.wait_for(&answer(1)).await;
    stream.raw("no size\r\n").await;
    stream.wait_for_end().await;
    assert!(stream.is_on_shard());
    server.shutdown().await;
}

#[tokio::test]
async fn during_a_drain_a_stream_goes_on_until_the_drain_has_ended() {
    let server = start(|config| {
        config.shards = 1;
        config.shutdown.drain_interval = Duration::from_secs(1);
    })
    .await;
    let mut stream = Stream::open(server.address(), KEY).await;
    stream.send(&publish(1)).await;
    stream.wait_for(&answer(1)).await;
    assert!(stream.is_on_shard());
    let mut one = Client::subscribed(server.address(), "", "a").await;
    let mut other = Client::subscribed(server.address(), "", "a").await;
    let shutdown = tokio::spawn(server.shutdown());
    // One of them is closed after half of the drain, the other one at its end.
    let left = tokio::select! {
        _ = one.closed() => &mut other,
        _ = other.closed() => &mut one,
    };
    stream.send(&publish(2)).await;
    stream.wait_for(&answer(2)).await;
    left.closed().await;
    stream.wait_for("\r\n0\r\n\r\n").await;
    drop((stream, one, other));
    shutdown.await.expect("a clean end");
}

const LINES: u32 = 2_000;
