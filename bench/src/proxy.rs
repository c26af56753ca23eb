//! Scenario `proxy`: what an event proxy costs, next to the same call by a bare hyper client on the same core in the same run.
//! In: numbers of calls → out: median latencies of rpc, CPU of a connect, and their ratios.
//! Uses `target`, a backend of threads with a constant answer, sockets that block.
//! Changed here: what is compared and shown.

use anyhow::{Context, Result, ensure};
use aws_lc_rs::hmac;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::cmp::Ordering::Less;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::time::Instant;
use tokio::runtime;

use crate::setup::Setup;
use crate::stats::{grouped, judge, median, percentile};
use crate::target::Target;
use fanwire_load::machine::{self, Meter};

mod storm;

/// Latency of rpc and CPU of a connect through an event proxy over HTTP, next to a bare hyper client; `--storm` lets clients return at once.
#[derive(Args)]
pub struct Proxy {
    /// Rpc calls of each contender in each round.
    #[arg(long, default_value_t = 5_000)]
    calls: usize,
    /// Connects of each kind in each round.
    #[arg(long, default_value_t = 3_000)]
    connects: usize,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Fail when the median of the ratios of latencies is above this.
    #[arg(long)]
    rpc_bar: Option<f64>,
    /// Fail when the median of the ratios of CPU is above this.
    #[arg(long)]
    connect_bar: Option<f64>,
    /// Instead: so many clients return at once, and the backend answers 100 connects a second.
    #[arg(long, value_name = "CLIENTS", num_args = 0..=1, default_missing_value = "5000")]
    storm: Option<usize>,
    #[command(flatten)]
    setup: Setup,
}

impl Proxy {
    /// True when the bars are met or none was set.
    ///
    /// # Errors
    /// A server that does not start, or an answer that is not the backend's.
    pub fn run(self) -> Result<bool> {
        self.setup.pin_generator()?;
        let binary = self.setup.binary()?;
        match self.storm {
            Some(clients) => storm::run(&self.setup, &binary, clients),
            None => self.compare(&binary),
        }
    }

    fn compare(&self, binary: &Path) -> Result<bool> {
        let backend = backend()?;
        let settings = |connects: bool| settings(backend, connects);
        let core = Some(self.setup.server_core);
        println!(
            "proxy: {} rpc calls, {} connects, {} rounds; server on core {}\n\nround  rpc p50 µs: ping  direct  handed over  proxy  ratio   connect CPU µs: token  call  proxy  ratio",
            grouped(self.calls as f64),
            grouped(self.connects as f64),
            self.rounds,
            self.setup.server_core
        );
        let mut latencies = Vec::new();
        let mut floors = Vec::new();
        let mut costs = Vec::new();
        for round in 1..=self.rounds {
            let Direct { latency: direct, handed_over, cpu: call } =
                self.direct_from_server_core(backend)?;
            let target = Target::fanwire(binary, core, settings(false))?;
            let ping = self.rpc(target.address(), &PING)?;
            let proxied = self.rpc(target.address(), &CALL)?;
            let token = self
                .connect(&target, &format!(r#"{{"id":1,"connect":{{"token":"{}"}}}}"#, token()))?;
            drop(target);
            let target = Target::fanwire(binary, core, settings(true))?;
            let by_proxy = self.connect(&target, r#"{"id":1,"connect":{}}"#)?;
            let latency = proxied / (ping + direct);
            let cost = by_proxy / (token + call);
            let floor = (ping + handed_over) / (ping + direct);
            println!(
                "{round:>5} {ping:>17.1} {direct:>7.1} {handed_over:>12.1} {proxied:>6.1} {latency:>6.2} {token:>23.1} {call:>5.1} {by_proxy:>6.1} {cost:>6.2}"
            );
            latencies.push(latency);
            floors.push(floor);
            costs.push(cost);
        }
        let latency = median(latencies);
        let floor = median(floors);
        let cost = median(costs);
        let (is_quick, quick) = judge(latency, Less, self.rpc_bar);
        let (is_cheap, cheap) = judge(cost, Less, self.connect_bar);
        println!(
            "\nratio rpc through a proxy / (rpc that the server answers + a direct call): {latency:.2}{quick}, with a call by another thread in its place: {floor:.2}"
        );
        println!("ratio connect by a proxy / (by a token + a direct call): {cost:.2}{cheap}");
        Ok(is_quick && is_cheap)
    }

    /// The same calls from the core of the server: a call that crosses to another core takes longer.
    fn direct_from_server_core(&self, backend: SocketAddr) -> Result<Direct> {
        std::thread::scope(|scope| {
            let calls = scope.spawn(|| {
                machine::pin(self.setup.server_core)?;
                let (latency, cpu) = self.direct(backend)?;
                Ok(Direct { latency, cpu, handed_over: self.handed_over(backend)? })
            });
            calls.join().expect("a thread without a panic")
        })
    }

    /// Median latency of a call in µs, and its CPU in µs on the side of the client.
    fn direct(&self, backend: SocketAddr) -> Result<(f64, f64)> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut backend = open(backend).await?;
            let mut latencies = Vec::with_capacity(self.calls);
            let before = thread_cpu_us()?;
            for _ in 0..self.calls {
                let started = Instant::now();
                call(&mut backend).await?;
                latencies.push(started.elapsed().as_secs_f64() * 1e6);
            }
            let cpu = (thread_cpu_us()? - before) / self.calls as f64;
            Ok((percentile(&latencies, 0.5), cpu))
        })
    }

    /// Median latency in µs of a call that another thread makes on the same core: what a server pays whose shards never wait.
    fn handed_over(&self, backend: SocketAddr) -> Result<f64> {
        let runtime =
            runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let mut backend = runtime.block_on(open(backend))?;
        let mut latencies = Vec::with_capacity(self.calls);
        for _ in 0..self.calls {
            let started = Instant::now();
            let (answer, answered) = mpsc::sync_channel(1);
            runtime.spawn(async move {
                let result = call(&mut backend).await;
                answer.send((backend, result))
            });
            let (returned, result) = answered.recv()?;
            latencies.push(started.elapsed().as_secs_f64() * 1e6);
            result?;
            backend = returned;
        }
        Ok(percentile(&latencies, 0.5))
    }

    /// Median latency of rpc in µs.
    fn rpc(&self, server: SocketAddr, call: &RpcCall) -> Result<f64> {
        let mut client = Client::open(server)?;
        client.say(&format!(r#"{{"id":1,"connect":{{"token":"{}"}}}}"#, token()))?;
        let mut latencies = Vec::with_capacity(self.calls);
        for _ in 0..self.calls {
            let started = Instant::now();
            let answer = client.say(call.command)?;
            latencies.push(started.elapsed().as_secs_f64() * 1e6);
            ensure!(answer.contains(call.expected), "another answer: {answer}");
        }
        Ok(percentile(&latencies, 0.5))
    }

    /// CPU of the server for one connect in µs.
    fn connect(&self, target: &Target, command: &str) -> Result<f64> {
        let once = || {
            let answer = Client::open(target.address())?.say(command)?;
            ensure!(answer.contains(r#""client":"#), "refused: {answer}");
            Ok(())
        };
        (0..WARM_UP).try_for_each(|_| once())?;
        let meter = Meter::start(target.pid(), self.setup.server_core)?;
        (0..self.connects).try_for_each(|_| once())?;
        Ok(meter.stop()?.cpu_seconds * 1e6 / self.connects as f64)
    }
}

/// Calls without a server between.
struct Direct {
    /// Median latency in µs, also of calls from another thread.
    latency: f64,
    handed_over: f64,
    /// CPU of a call in µs on the side of the client.
    cpu: f64,
}

type Backend = SendRequest<Full<Bytes>>;

/// A connection whose work is a task of the current runtime.
async fn open(backend: SocketAddr) -> Result<Backend> {
    let socket = TokioIo::new(tokio::net::TcpStream::connect(backend).await?);
    let (requests, connection) = http1::handshake(socket).await?;
    tokio::spawn(connection);
    Ok(requests)
}

async fn call(backend: &mut Backend) -> Result<()> {
    let body = Full::new(Bytes::from_static(REQUEST));
    let request = http::Request::post("/").header("host", "backend").body(body)?;
    let response = backend.send_request(request).await?;
    let body = response.into_body().collect().await?.to_bytes();
    ensure!(body == ANSWER, "another answer");
    Ok(())
}

fn settings(backend: SocketAddr, connects: bool) -> serde_json::Value {
    let endpoint = format!("http://{backend}/");
    serde_json::json!({
        "client": {
            "token": { "hmac_secret_key": SECRET },
            "proxy": { "connect": { "enabled": connects, "endpoint": endpoint } },
        },
        "rpc": {
            "ping": { "enabled": true },
            "proxy": { "endpoint": endpoint },
            "without_namespace": { "proxy_enabled": true },
        },
    })
}

/// A connection token for user 1.
fn token() -> String {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let signed =
        format!("{}.{}", encode(r#"{"alg":"HS256","typ":"JWT"}"#), encode(r#"{"sub":"1"}"#));
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// A backend that answers every request with the same; a thread for each connection.
fn backend() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            std::thread::spawn(move || answer_all(socket));
        }
    });
    Ok(address)
}

fn answer_all(mut socket: TcpStream) -> Result<()> {
    socket.set_nodelay(true)?;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", ANSWER.len());
    let answer = [head.as_bytes(), ANSWER].concat();
    let mut buffer = [0; 4096];
    let mut length = 0;
    loop {
        let read = socket.read(&mut buffer[length..])?;
        ensure!(read > 0, "the client has left");
        length += read;
        if is_whole(&buffer[..length]) {
            socket.write_all(&answer)?;
            length = 0;
        }
    }
}

/// Whether a request is there with its body.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_none_or(|length| length.parse().is_ok_and(|length: usize| body.len() >= length))
}

/// A client of the protocol on a WebSocket that blocks. It sends short messages only.
struct Client(TcpStream);

impl Client {
    fn open(server: SocketAddr) -> Result<Self> {
        let mut socket = TcpStream::connect(server)?;
        socket.set_nodelay(true)?;
        socket.write_all(UPGRADE)?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        ensure!(
            head.starts_with(b"HTTP/1.1 101"),
            "no upgrade: {}",
            String::from_utf8_lossy(&head)
        );
        Ok(Self(socket))
    }

    /// Sends a message and returns the next one.
    fn say(&mut self, message: &str) -> Result<String> {
        let length = u16::try_from(message.len()).context("a short message")?.to_be_bytes();
        let mut frame = match length {
            [0, short] if short < 126 => vec![0x81, 0x80 | short],
            [high, low] => vec![0x81, 0x80 | 126, high, low],
        };
        frame.extend_from_slice(&[0; 4]); // a mask of zeros (RFC 6455 §5.3)
        frame.extend_from_slice(message.as_bytes());
        self.0.write_all(&frame)?;
        let mut head = [0; 2];
        self.0.read_exact(&mut head)?;
        let mut length = usize::from(head[1]);
        if length == 126 {
            let mut long = [0; 2];
            self.0.read_exact(&mut long)?;
            length = usize::from(u16::from_be_bytes(long));
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// CPU of this thread in µs (proc(5), `schedstat`).
fn thread_cpu_us() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = stat.split(' ').next().context("three numbers")?;
    Ok(nanoseconds.parse::<f64>()? / 1e3)
}

/// An rpc command, and a part of its reply.
/// A command, and what its answer must contain.
struct RpcCall {
    command: &'static str,
    expected: &'static str,
}

const PING: RpcCall =
    RpcCall { command: r#"{"id":2,"rpc":{"method":"ping"}}"#, expected: r#""rpc":{}"# };
const CALL: RpcCall = RpcCall {
    command: r#"{"id":2,"rpc":{"method":"m","data":[1,2,3]}}"#,
    expected: r#""data":[1]"#,
};
const SECRET: &str = "bench-secret-of-32-bytes-or-more-x";
const WARM_UP: usize = 200;
const ANSWER: &[u8] = br#"{"result":{"user":"1","data":[1]}}"#;
const REQUEST: &[u8] = br#"{"client":"5f1b0f4c-3a8e-4b52-9d1c-0c1f7d1f4a11","transport":"websocket","protocol":"json","encoding":"json","user":"1","method":"m","data":[1,2,3]}"#;
const UPGRADE: &[u8] = b"GET /connection/websocket HTTP/1.1\r\nHost: fanwire\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
