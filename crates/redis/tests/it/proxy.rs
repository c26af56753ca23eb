//! A proxy between an engine and its Redis, which a test makes bad.
//! In: the address of a Redis, the behaviour of the network → out: an address that leads there.
//! Uses a runtime of its own. Never: repairs a connection that lost or changed a byte, because TCP would not either.
//! A new kind of network fault is a field of `Network` here.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use fanwire_redis::Address;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::node::runtime;

/// The behaviour of the network. By default it forwards everything at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Network {
    /// Drops bytes to the Redis.
    pub(crate) loses_commands: bool,
    /// Drops bytes from the Redis.
    pub(crate) loses_replies: bool,
    /// Closes new connections.
    pub(crate) refuses: bool,
    /// Delays bytes in each direction.
    pub(crate) delay: Duration,
    /// Most bytes from the Redis in 10 ms; 0 = no limit.
    pub(crate) reply_bytes: usize,
    /// Changes or cuts replies at random, with this seed.
    pub(crate) spoils: Option<u64>,
    /// Number of connections, from the first on, whose subscriptions end right after their confirmation.
    pub(crate) unsubscribes: usize,
    /// A change closes all open connections.
    pub(crate) reset_connections: u32,
}

/// A port that leads to a Redis.
pub(crate) struct Proxy {
    port: u16,
    network: watch::Sender<Network>,
    /// The port of the Redis.
    target: Arc<AtomicU16>,
    accepted: Arc<AtomicUsize>,
    _runtime: Runtime,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    ToRedis,
    FromRedis,
}

impl Proxy {
    pub(crate) fn to(redis: &Address) -> Self {
        let runtime = runtime();
        let accepted = Arc::new(AtomicUsize::new(0));
        let (network, seen) = watch::channel(Network::default());
        let bound = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let listener = bound.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let target = Arc::new(AtomicU16::new(redis.port));
        runtime.spawn(accept(listener, Arc::clone(&target), seen, Arc::clone(&accepted)));
        Self { port, network, target, accepted, _runtime: runtime }
    }

    pub(crate) fn address(&self) -> Address {
        Address { port: self.port, ..Address::default() }
    }

    /// Changes the network.
    pub(crate) fn set_network(&self, network: Network) {
        let reset_connections = self.network.borrow().reset_connections;
        self.network.send_replace(Network { reset_connections, ..network });
    }

    /// Makes the network good, for new connections and for those without damage.
    pub(crate) fn repair(&self) {
        self.set_network(Network::default());
    }

    /// New connections lead to another Redis.
    pub(crate) fn retarget(&self, redis: &Address) {
        self.target.store(redis.port, Relaxed);
    }

    /// Closes every connection.
    pub(crate) fn reset_connections(&self) {
        self.network.send_modify(|network| network.reset_connections += 1);
    }

    /// Connections that were opened, refused ones included.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Relaxed)
    }
}

impl Network {
    fn loses(&self, direction: Direction) -> bool {
        match direction {
            Direction::ToRedis => self.loses_commands,
            Direction::FromRedis => self.loses_replies,
        }
    }

    /// Most bytes to take at once, and the pause after them.
    fn throttle_of(&self, direction: Direction) -> (usize, Duration) {
        match (direction, self.reply_bytes) {
            (Direction::ToRedis, _) | (_, 0) => (CHUNK_BYTES, Duration::ZERO),
            (Direction::FromRedis, bytes) => (bytes.min(CHUNK_BYTES), Duration::from_millis(10)),
        }
    }
}

async fn accept(
    listener: TcpListener,
    redis: Arc<AtomicU16>,
    network: watch::Receiver<Network>,
    accepted: Arc<AtomicUsize>,
) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let number = accepted.fetch_add(1, Relaxed) + 1;
        if !network.borrow().refuses {
            tokio::spawn(connect((client, number), redis.load(Relaxed), network.clone()));
        }
    }
}

/// Forwards between a client and the Redis until both have ended or the test ends it.
async fn connect(
    (client, number): (TcpStream, usize),
    redis: u16,
    mut network: watch::Receiver<Network>,
) {
    let Ok(redis) = dial(redis).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_redis, to_redis) = redis.into_split();
    let reset_connections = network.borrow().reset_connections;
    let there = forward(from_client, to_redis, (Direction::ToRedis, number), network.clone());
    let back = forward(from_redis, to_client, (Direction::FromRedis, number), network.clone());
    let both = async { tokio::join!(there, back) };
    tokio::select! {
        _ = both => {}
        _ = network.wait_for(|network| network.reset_connections != reset_connections) => {}
    }
}

/// Connects with a small buffer, so that the Redis soon notices a slow network.
async fn dial(redis: u16) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(CHUNK_BYTES as u32)?;
    socket.connect((Ipv4Addr::LOCALHOST, redis).into()).await
}

async fn forward(
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    (direction, number): (Direction, usize),
    network: watch::Receiver<Network>,
) {
    let (sender, chunks) = mpsc::channel(CHUNKS_MAX);
    tokio::join!(receive(from, sender, (direction, number), network), send(to, chunks));
}

/// Reads until the end. A dropped end is never forwarded.
async fn receive(
    mut from: OwnedReadHalf,
    to: mpsc::Sender<(Instant, Vec<u8>)>,
    (direction, number): (Direction, usize),
    network: watch::Receiver<Network>,
) {
    let mut is_lost = false;
    let mut chance = None;
    loop {
        let (most, pause) = network.borrow().throttle_of(direction);
        let mut chunk = vec![0; most];
        let count = from.read(&mut chunk).await.unwrap_or(0);
        chunk.truncate(count);
        let now = *network.borrow();
        is_lost |= now.loses(direction);
        match (count, is_lost) {
            (0, false) => return,
            (0, true) => std::future::pending().await,
            (_, true) => continue,
            (_, false) => {}
        }
        if let (Some(seed), Direction::FromRedis) = (now.spoils, direction) {
            damage(&mut chunk, chance.get_or_insert_with(|| StdRng::seed_from_u64(seed)));
        }
        if number <= now.unsubscribes && direction == Direction::FromRedis {
            unsubscribe(&mut chunk);
        }
        if to.send((Instant::now() + now.delay, chunk)).await.is_err() {
            return;
        }
        if !pause.is_zero() {
            sleep(pause).await;
        }
    }
}

async fn send(mut to: OwnedWriteHalf, mut chunks: mpsc::Receiver<(Instant, Vec<u8>)>) {
    while let Some((due, chunk)) = chunks.recv().await {
        sleep_until(due).await;
        if to.write_all(&chunk).await.is_err() {
            return;
        }
    }
}

/// Changes a byte, or cuts the end off, or both.
fn damage(chunk: &mut Vec<u8>, chance: &mut StdRng) {
    if chance.random_bool(0.5) {
        let at = chance.random_range(0..chunk.len());
        chunk[at] = chance.random();
    }
    if chance.random_bool(0.3) {
        chunk.truncate(chance.random_range(0..=chunk.len()));
    }
}

/// Adds the end of a subscription after its confirmation, at the end of the chunk.
fn unsubscribe(chunk: &mut Vec<u8>) {
    let confirmed = b">3\r\n$9\r\nsubscribe\r\n";
    if let Some(at) = chunk.windows(confirmed.len()).position(|bytes| bytes == confirmed) {
        let rest = &chunk[at + confirmed.len()..];
        // The name with its length, and the number of subscriptions.
        let mut ends = (0..rest.len()).filter(|end| rest[..*end].ends_with(b"\r\n"));
        let name_and_count = rest[..ends.nth(2).expect("three lines")].to_vec();
        chunk.extend_from_slice(b">3\r\n$11\r\nunsubscribe\r\n");
        chunk.extend(name_and_count);
    }
}

/// Bytes in a chunk.
const CHUNK_BYTES: usize = 16 * 1024;
/// Chunks in flight; with more, the sender has to wait.
const CHUNKS_MAX: usize = 256;
