//! Publishers at a fixed rate, and the delays of what they publish.
//! In: the address of the server API, a rate → out: numbered publications, each once; a histogram of delays.
//! Uses blocking sockets, which are kept open. Never: what a client must have.
//! Changed here: the content of a publication, and what its delay is.

use std::fmt::{Display, Formatter};
use std::io::ErrorKind::{ConnectionRefused, UnexpectedEof};
use std::io::{BufRead as _, BufReader, Read as _, Result, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fanwire_testing::{pause, wait_for};
use serde_json::{Value, json};

use super::world::{PATIENCE, number};

/// The number of the last publication.
#[derive(Default)]
pub(super) struct Channel(pub(super) AtomicU64);

/// The content of a publication: its place in the order, and its planned time.
#[derive(Clone, Copy)]
pub(super) struct Content {
    pub(super) number: u64,
    /// The planned time, in microseconds of the clock of the test.
    pub(super) planned_us: u64,
}

impl Content {
    pub(super) fn of(data: &Value) -> Self {
        let field = |name: &str| data[name].as_u64().expect("a publication of this test");
        Self { number: field("number"), planned_us: field("planned_us") }
    }
}

/// How many deliveries had which delay, in milliseconds; the last place has all that are longer.
pub(super) struct Delays(Vec<AtomicU64>);

impl Default for Delays {
    fn default() -> Self {
        Self((0..DELAYS_MS).map(|_| AtomicU64::default()).collect())
    }
}

impl Delays {
    pub(super) fn note(&self, planned_us: u64) {
        let delay = now_us().saturating_sub(planned_us) / 1000;
        self.0[(delay as usize).min(DELAYS_MS - 1)].fetch_add(1, SeqCst);
    }

    pub(super) fn take(&self) -> DelaySummary {
        let counts: Vec<u64> = self.0.iter().map(|count| count.swap(0, SeqCst)).collect();
        let all: u64 = counts.iter().sum();
        let at = |share: f64| {
            let mut left = (all as f64 * share).ceil() as u64;
            let is_reached = |count: &u64| {
                left = left.saturating_sub(*count);
                left == 0
            };
            counts.iter().position(is_reached).unwrap_or_default()
        };
        DelaySummary { deliveries: all, p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1.0) }
    }
}

/// Milliseconds from the planned time of publications to their deliveries.
pub(super) struct DelaySummary {
    deliveries: u64,
    p50_ms: usize,
    p99_ms: usize,
    max_ms: usize,
}

impl Display for DelaySummary {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { deliveries, p50_ms, p99_ms, max_ms } = self;
        write!(
            out,
            "{deliveries} deliveries, {p50_ms} ms (p50), {p99_ms} ms (p99), {max_ms} ms (max)"
        )
    }
}

/// Publishes into every `PUBLISHERS`-th channel, in turn, at planned times: one that waits for the server is late for the next ones.
struct Publisher {
    connection: ApiConnection,
    channels: Arc<Vec<Channel>>,
    first: usize,
    /// How many it has published.
    count: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

/// The state of all publishers between their runs.
pub(super) struct Publishers {
    address: SocketAddr,
    channels: Arc<Vec<Channel>>,
    /// How many each has published.
    counts: [Arc<AtomicUsize>; PUBLISHERS],
}

impl Publishers {
    pub(super) fn new(address: SocketAddr, channels: Arc<Vec<Channel>>) -> Self {
        Self { address, channels, counts: Default::default() }
    }

    /// Lets all publish until `stop`.
    pub(super) fn start(&self, stop: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
        let mut threads = Vec::new();
        for (first, count) in self.counts.iter().enumerate() {
            let publisher = Publisher {
                connection: ApiConnection { address: self.address, socket: None },
                channels: Arc::clone(&self.channels),
                first,
                count: Arc::clone(count),
                stop: Arc::clone(stop),
            };
            threads.push(std::thread::spawn(|| publisher.run()));
        }
        threads
    }
}

impl Publisher {
    fn run(mut self) {
        let interval_us = PUBLISHERS as u64 * 1_000_000 / number("RATE", 400) as u64;
        let mut planned_us = now_us() + self.first as u64 * interval_us / PUBLISHERS as u64;
        let own = (self.first..self.channels.len()).step_by(PUBLISHERS);
        let begin = self.count.load(SeqCst) % own.len();
        for channel in own.cycle().skip(begin) {
            pause(Duration::from_micros(planned_us.saturating_sub(now_us())));
            if self.stop.load(SeqCst) {
                return;
            }
            let number = self.channels[channel].0.fetch_add(1, SeqCst) + 1;
            self.publish(channel, Content { number, planned_us });
            self.count.fetch_add(1, SeqCst);
            planned_us += interval_us;
        }
    }

    /// Publishes once, however often it has to ask.
    fn publish(&mut self, channel: usize, content: Content) {
        let Content { number, planned_us } = content;
        let text = "publications of a channel resemble each other ".repeat(4);
        let data = json!({"number": number, "planned_us": planned_us, "text": text});
        let key = number.to_string();
        let body =
            json!({"channel": format!("news{channel}"), "data": data, "idempotency_key": key});
        let body = body.to_string();
        let request = format!(
            "POST /api/publish HTTP/1.1\r\nHost: {}\r\nX-API-Key: key\r\nContent-Length: {}\r\n\r\n{body}",
            self.connection.address,
            body.len()
        );
        let attempt = || match self.connection.exchange(&request) {
            Ok(answer) if answer.starts_with("HTTP/1.1 200") && !answer.contains("\"error\"") => {
                Ok(())
            }
            // A test may have killed the one program that serves.
            Err(error) if self.stop.load(SeqCst) && error.kind() == ConnectionRefused => Ok(()),
            other => Err(other),
        };
        wait_for(attempt, PATIENCE);
    }
}

/// A connection to the server API that is opened again when it was closed.
struct ApiConnection {
    address: SocketAddr,
    socket: Option<BufReader<TcpStream>>,
}

impl ApiConnection {
    fn exchange(&mut self, request: &str) -> Result<String> {
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => BufReader::new(TcpStream::connect(self.address)?),
        };
        socket.get_ref().set_read_timeout(Some(PATIENCE))?;
        socket.get_mut().write_all(request.as_bytes())?;
        let answer = read_answer(&mut socket)?;
        self.socket = Some(socket);
        Ok(answer)
    }
}

/// Reads the head of an answer, and as many bytes as it names.
fn read_answer(socket: &mut BufReader<TcpStream>) -> Result<String> {
    let mut answer = String::new();
    let mut length = 0;
    while !answer.ends_with("\r\n\r\n") {
        let start = answer.len();
        if socket.read_line(&mut answer)? == 0 {
            return Err(UnexpectedEof.into());
        }
        if let Some(value) = answer[start..].to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body)?;
    answer.push_str(&String::from_utf8(body).expect("text"));
    Ok(answer)
}

fn now_us() -> u64 {
    CLOCK.elapsed().as_micros() as u64
}

static CLOCK: LazyLock<Instant> = LazyLock::new(Instant::now);

const DELAYS_MS: usize = 5_000;

const PUBLISHERS: usize = 8;
