//! Readiness and the drain before a shutdown (`shutdown.drain_interval`).
//! In: connected clients and servers that stop one after the other → out: statuses, close frames, times of reconnects.
//! Uses the test client.
//! Changed here: expectations of `server`, `readiness` and `shard::stop`.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use fanwire::Server;
use tokio::{
    net::TcpStream,
    sync::mpsc::{UnboundedReceiver, UnboundedSender},
};

use crate::client::{Client, start};

async fn get(address: SocketAddr, path: &str) -> (String, String) {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let client = Client::request(address, &head).await;
    let status = client.response[9..12].to_owned();
    (status, client.text_to_the_end().await)
}

fn answer(status: &str, body: &str) -> (String, String) {
    (status.to_owned(), body.to_owned())
}

#[tokio::test]
async fn a_server_that_works_is_live_and_ready() {
    let server = start(|config| config.health.enabled = true).await;
    for path in ["/health", "/health/live", "/health/ready"] {
        assert_eq!(get(server.address(), path).await, answer("200", "{}"), "{path}");
    }
    server.shutdown().await;
}

#[tokio::test]
async fn while_it_drains_a_server_is_not_ready_but_serves_its_clients() {
    let server = start(|config| {
        config.health.enabled = true;
        config.shutdown.drain_interval = Duration::from_secs(2);
    })
    .await;
    let address = server.address();
    let mut clients = Vec::new();
    for _ in 0..20 {
        clients.push(Client::subscribed(address, "", "news").await);
    }
    let began = Instant::now();
    let shutdown = tokio::spawn(server.shutdown());
    while get(address, "/health/ready").await == answer("200", "{}") {}
    let draining = r#"{"draining":"the server is shutting down"}"#;
    assert_eq!(get(address, "/health/ready").await, answer("503", draining));
    for path in ["/health", "/health/live"] {
        assert_eq!(get(address, path).await, answer("200", "{}"), "{path}");
    }
    let upgrade = "GET /connection/websocket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let refused = Client::request(address, upgrade).await.response;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    let publish = r#"{"channel":"news","data":1}"#;
    let head = format!(
        "POST /api/publish HTTP/1.1\r\nHost: x\r\nX-API-Key: key\r\nContent-Length: {}\r\n\r\n{publish}",
        publish.len()
    );
    let response = Client::request(address, &head).await.response;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");

    let (mut received, mut last) = (0, began);
    for mut client in clients {
        loop {
            let frame = client.next().await.expect("a close precedes the end");
            if frame.head == 0x88 {
                assert_eq!(frame.payload[..2], 3001_u16.to_be_bytes());
                break;
            }
            received += 1;
        }
        last = Instant::now();
        client.frame(0x88, &[0x0b, 0xb9]).await;
    }
    assert!(received > 0, "clients that are still connected get publications");
    assert!(last - began > Duration::from_secs(1), "20 clients are spread over 2 s, too");
    shutdown.await.expect("a clean end");
    assert!(TcpStream::connect(address).await.is_err());
}

/// Each node is replaced by a new one. A client that is disconnected connects to another node at once, without the random
/// delay of SDKs, as behind a balancer that follows readiness.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_of_three_nodes_keeps_connects_below_the_given_rate() {
    let clients = Clients::default();
    let (connected, mut connects) = tokio::sync::mpsc::unbounded_channel();
    let mut servers = Vec::new();
    for _ in 0..NODES {
        let server = draining_server().await;
        clients.ready.lock().expect("no panic").push(Some(server.address()));
        servers.push(server);
    }
    for number in 0..CLIENTS {
        tokio::spawn(clients.clone().run(number, connected.clone()));
    }
    let mut moments = Vec::new();
    clients.wait_until_connected(&mut connects, &mut moments).await;
    let at_start = moments.len();
    for (number, server) in servers.iter_mut().enumerate() {
        let new = draining_server().await;
        clients.ready.lock().expect("no panic")[number] = None;
        let address = new.address();
        std::mem::replace(server, new).shutdown().await;
        clients.wait_until_connected(&mut connects, &mut moments).await;
        clients.ready.lock().expect("no panic")[number] = Some(address);
    }
    let mut moments = moments.split_off(at_start);
    moments.sort();
    assert!(moments.len() > CLIENTS, "most clients were disconnected more than once");
    let within = |from: &Instant| {
        let second = *from..*from + Duration::from_secs(1);
        moments.iter().filter(|&moment| second.contains(moment)).count()
    };
    let most = moments.iter().step_by(20).map(within).max().expect("connects");
    assert!(most <= CONNECTS_PER_SECOND, "{most} connects in a second");
}

async fn draining_server() -> Server {
    start(|config| config.shutdown.drain_interval = INTERVAL).await
}

#[derive(Clone, Default)]
struct Clients {
    /// The nodes that are ready, by number.
    ready: Arc<Mutex<Vec<Option<SocketAddr>>>>,
    disconnects: Arc<AtomicUsize>,
}

impl Clients {
    /// Sends the start of each successful connect to `connected`.
    async fn run(self, number: usize, connected: UnboundedSender<Instant>) {
        for attempt in number.. {
            let ready: Vec<_> =
                self.ready.lock().expect("no panic").iter().flatten().copied().collect();
            let began = Instant::now();
            let mut client = Client::subscribed(ready[attempt % ready.len()], "", "news").await;
            connected.send(began).expect("the test runs");
            assert_eq!(client.closed().await, (3001, "shutdown".to_owned()));
            self.disconnects.fetch_add(1, Relaxed);
            client.frame(0x88, &[0x0b, 0xb9]).await;
        }
    }

    /// Receives the moments of connects until every client is connected.
    async fn wait_until_connected(
        &self,
        connects: &mut UnboundedReceiver<Instant>,
        moments: &mut Vec<Instant>,
    ) {
        while moments.len() < CLIENTS + self.disconnects.load(Relaxed) {
            let connect = tokio::time::timeout(PATIENCE, connects.recv()).await;
            moments.push(connect.expect("a client does not return").expect("clients run"));
        }
    }
}

const NODES: usize = 3;
const CLIENTS: usize = 3000;
/// The last node has three quarters of the clients, because those of the others have moved to it: 750 per second, and twice
/// as many for an uneven second on a busy machine. Without a drain they come at 1,000 per second and shard.
const INTERVAL: Duration = Duration::from_secs(3);
const CONNECTS_PER_SECOND: usize = 1_500;
/// More than a reconnect takes.
const PATIENCE: Duration = Duration::from_secs(30);
