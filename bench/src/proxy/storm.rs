//! The storm of scenario `proxy`: clients that return at once, and a backend that answers a few connects a second.
//! In: a number of clients → out: how long it takes, calls in flight at most, refusals, memory, latencies of a witness.
//! Uses a task for each client, with the pauses of the JavaScript SDK; a thread for the backend, one for the witness.
//! Changed here: how clients return and how the backend behaves.

use anyhow::{Context, Result, ensure};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use super::{ANSWER, UPGRADE, is_whole};
use crate::setup::Setup;
use crate::stats::grouped;
use crate::target::Target;
use crate::witness::{Witness, print_latencies};
use fanwire_load::machine;
use fanwire_load::random::Random;

/// Runs the storm. True when all clients are back, none was refused for good, and the backend had no more calls in flight
/// than the proxy permits.
///
/// # Errors
/// A server that does not start, or clients that are not back after ten times what the backend needs.
pub(super) fn run(setup: &Setup, binary: &Path, clients: usize) -> Result<bool> {
    machine::raise_descriptor_limit();
    let backend = Backend::start()?;
    let settings = serde_json::json!({
        "client": { "proxy": { "connect": {
            "enabled": true,
            "endpoint": format!("http://{}/", backend.address),
            "in_flight_max": IN_FLIGHT_MAX,
        } } },
    });
    let target = Target::fanwire(binary, Some(setup.server_core), settings)?;
    let resident = machine::resident_bytes(target.pid())?;
    let witness = Witness::open(target.address(), WITNESS)?;
    let (tally, [before, during]) = witness.during(|| {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(all_return(target.address(), clients))
    })?;
    let grown = machine::peak_resident_bytes(target.pid())?.saturating_sub(resident);
    let most = backend.counts.most.load(Relaxed);
    println!(
        "storm: {} clients, a backend that answers {} connects a second, at most {IN_FLIGHT_MAX} calls in flight",
        grouped(clients as f64),
        1_000 / ANSWER_EVERY.as_millis()
    );
    println!(
        "all back after {:.1} s, {} attempts, {} refused for good; the backend answered {} calls, {most} in flight at most",
        tally.took.as_secs_f64(),
        grouped(tally.attempts as f64),
        tally.refused,
        grouped(backend.counts.answered.load(Relaxed) as f64),
    );
    println!("memory of the server: {:.1} MiB more at most", grown as f64 / f64::from(1 << 20));
    print_latencies("witness before", &before);
    print_latencies("witness during", &during);
    Ok(tally.refused == 0 && most <= IN_FLIGHT_MAX)
}

struct Tally {
    took: Duration,
    attempts: usize,
    refused: usize,
}

async fn all_return(server: SocketAddr, clients: usize) -> Result<Tally> {
    let attempts = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for number in 0..clients {
        tasks.spawn(client(server, Random(number as u64), Arc::clone(&attempts)));
    }
    let mut back = Vec::with_capacity(clients);
    let mut refused = 0;
    let limit = ANSWER_EVERY * u32::try_from(clients)? * 10;
    timeout(limit, async {
        while let Some(socket) = tasks.join_next().await {
            match socket? {
                Some(socket) => back.push(socket),
                None => refused += 1,
            }
        }
        anyhow::Ok(())
    })
    .await
    .with_context(|| format!("not all clients are back after {limit:?}"))??;
    Ok(Tally { took: started.elapsed(), attempts: attempts.load(Relaxed), refused })
}

/// One client. Returns its connection when it is back; `None` if it was refused for good.
async fn client(
    server: SocketAddr,
    mut random: Random,
    attempts: Arc<AtomicUsize>,
) -> Option<TcpStream> {
    for attempt in 0.. {
        sleep(pause(&mut random, attempt)).await;
        attempts.fetch_add(1, Relaxed);
        match timeout(SDK_TIMEOUT, connect(server)).await {
            Ok(Ok(Answer::Connected(socket))) => return Some(socket),
            Ok(Ok(Answer::RefusedForGood)) => return None,
            Ok(Ok(Answer::TryAgain) | Err(_)) | Err(_) => {}
        }
    }
    None
}

/// The pause before an attempt: exponential with full jitter, from 0.5 to 20 s, as the SDKs have it.
fn pause(random: &mut Random, attempt: u32) -> Duration {
    let least = 500;
    let most = 20_000_usize;
    let range = most.min(least << attempt.min(16));
    Duration::from_millis(most.min(least + random.below(range)) as u64)
}

enum Answer {
    Connected(TcpStream),
    TryAgain,
    RefusedForGood,
}

async fn connect(server: SocketAddr) -> Result<Answer> {
    let mut socket = TcpStream::connect(server).await?;
    socket.write_all(UPGRADE).await?;
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        ensure!(socket.read_buf(&mut bytes).await? > 0, "closed before the upgrade");
    }
    ensure!(bytes.starts_with(b"HTTP/1.1 101"), "no upgrade");
    bytes.clear();
    let command = br#"{"id":1,"connect":{}}"#;
    let mut frame = vec![0x81, 0x80 | u8::try_from(command.len())?, 0, 0, 0, 0];
    frame.extend_from_slice(command);
    socket.write_all(&frame).await?;
    while bytes.len() < 2 {
        ensure!(socket.read_buf(&mut bytes).await? > 0, "closed before the answer");
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(if text.contains(r#""client":"#) {
        Answer::Connected(socket)
    } else if text.contains(r#""temporary":true"#) || is_close_to_retry(&bytes) {
        Answer::TryAgain
    } else {
        Answer::RefusedForGood
    })
}

/// Whether a frame closes the connection with a code after which SDKs return (client protocol §7).
fn is_close_to_retry(frame: &[u8]) -> bool {
    let code = |high, low| u16::from_be_bytes([high, low]);
    match frame {
        [0x88, _, high, low, ..] => !matches!(code(*high, *low), 3500..4000 | 4500..5000),
        _ => false,
    }
}

struct Backend {
    address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    in_flight: AtomicUsize,
    most: AtomicUsize,
    answered: AtomicUsize,
}

impl Backend {
    /// A backend that does one thing at a time, and answers in the order of the requests.
    fn start() -> Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let counts = Arc::new(Counts::default());
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::clone(&counts);
        thread::spawn(move || {
            runtime.block_on(async {
                let next_answer = Arc::new(Mutex::new(tokio::time::Instant::now()));
                let listener = TcpListener::from_std(listener)?;
                loop {
                    let (socket, _) = listener.accept().await?;
                    let next_answer = Arc::clone(&next_answer);
                    let counts = Arc::clone(&shared);
                    tokio::spawn(async move { answer_all(socket, &next_answer, &counts).await });
                }
                #[expect(unreachable_code, reason = "the type of the block")]
                anyhow::Ok(())
            })
        });
        Ok(Self { address, counts })
    }
}

async fn answer_all(
    mut socket: TcpStream,
    next_answer: &Mutex<tokio::time::Instant>,
    counts: &Counts,
) -> Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", ANSWER.len());
    let answer = [head.as_bytes(), ANSWER].concat();
    let mut request = Vec::new();
    loop {
        ensure!(socket.read_buf(&mut request).await? > 0, "the server has left");
        if !is_whole(&request) {
            continue;
        }
        request.clear();
        let in_flight = counts.in_flight.fetch_add(1, Relaxed) + 1;
        counts.most.fetch_max(in_flight, Relaxed);
        let mut due = next_answer.lock().await;
        *due = (*due + ANSWER_EVERY).max(tokio::time::Instant::now());
        sleep_until(*due).await;
        drop(due);
        counts.in_flight.fetch_sub(1, Relaxed);
        counts.answered.fetch_add(1, Relaxed);
        socket.write_all(&answer).await?;
    }
}

/// Calls that the proxy may have in flight: a quarter of a second of the work of the backend, and of the time limit. A call that
/// ends by the time limit is in flight no more for the server, but still for the backend.
const IN_FLIGHT_MAX: usize = 25;
const ANSWER_EVERY: Duration = Duration::from_millis(10);
/// Subscribers that need no proxy.
const WITNESS: usize = 100;
/// SDKs give an attempt up after this time.
const SDK_TIMEOUT: Duration = Duration::from_secs(5);
