//! Scenario `polls`: what a backend is asked when many clients track keys of one shared poll.
//! In: clients, keys, seconds → out: items a second at the backend, pushes of the clients, CPU of the server.
//! Uses `target`, a backend of threads whose values change each second, sockets that are read at the end.
//! Changed here: what is asked and counted; what a backend answers is in `polls/backend.rs`.

use anyhow::{Context, Result, bail, ensure};
use aws_lc_rs::{digest, hmac};
use clap::Args;
use serde_json::{Value, json};
use std::cmp::Ordering::Less;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::setup::Setup;
use crate::stats::{grouped, judge};
use crate::target::Target;
use backend::Backend;
use fanwire_load::machine::{self, Meter};

mod backend;

/// Items that a backend is asked for in a second, when many clients track the same keys of a shared poll.
#[derive(Args)]
pub struct Polls {
    #[arg(long, default_value_t = 10_000)]
    clients: usize,
    /// Keys of the channel; all are tracked.
    #[arg(long, default_value_t = 200)]
    keys: usize,
    /// Keys that each client tracks.
    #[arg(long, default_value_t = 10)]
    each: usize,
    /// Measured seconds, after all clients have come.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Fail when the backend is asked for more items in a second.
    #[arg(long)]
    bar: Option<f64>,
    #[command(flatten)]
    setup: Setup,
}

impl Polls {
    /// True when the bar is met or none was set.
    ///
    /// # Errors
    /// A server that does not start, or a client that gets an error or no values.
    pub fn run(self) -> Result<bool> {
        ensure!(
            machine::raise_descriptor_limit() > self.clients as u64 + DESCRIPTORS_SPARE,
            "{} clients need more descriptors than are allowed",
            self.clients
        );
        self.setup.pin_generator()?;
        let backend = Backend::start()?;
        let core = Some(self.setup.server_core);
        let target = Target::fanwire(&self.setup.binary()?, core, settings(backend.address()))?;
        let measured = self.measure(&target, &backend);
        measured.map_err(|error| error.context(format!("server log:\n{}", target.log_tail())))
    }

    fn measure(&self, target: &Target, backend: &Backend) -> Result<bool> {
        println!(
            "polls: {} clients track {} of {} keys each, polled each second",
            grouped(self.clients as f64),
            self.each,
            self.keys
        );
        let arriving = Meter::start(target.pid(), self.setup.server_core)?;
        let sockets: Vec<TcpStream> = (0..self.clients)
            .map(|number| self.client(target.address(), number))
            .collect::<Result<_>>()?;
        let arrived = arriving.stop()?;
        println!(
            "while they came, in {:.1} s: {} items, {:.1} µs of CPU per client",
            arrived.wall_seconds,
            backend.take_items(),
            arrived.cpu_seconds * 1e6 / self.clients as f64
        );
        // A cycle that began before is spread over an interval.
        std::thread::sleep(2 * INTERVAL);
        backend.take_items();
        let meter = Meter::start(target.pid(), self.setup.server_core)?;
        std::thread::sleep(INTERVAL * u32::try_from(self.seconds)?);
        let usage = meter.stop()?;
        let items = backend.take_items() as f64 / self.seconds as f64;
        let mut pushes = 0;
        for socket in sockets {
            pushes += self.pushes(socket)?;
        }
        let (is_met, verdict) = judge(items, Less, self.bar);
        println!("items a second at the backend: {items:.1}{verdict}");
        println!(
            "{} pushes in all; {:.3} s of CPU a second",
            grouped(pushes as f64),
            usage.cpu_seconds / usage.wall_seconds
        );
        Ok(is_met)
    }

    /// Opens a client that tracks its keys. Its replies and pushes stay in the socket.
    fn client(&self, server: SocketAddr, number: usize) -> Result<TcpStream> {
        let mut socket = TcpStream::connect(server)?;
        socket.set_nodelay(true)?;
        socket.write_all(UPGRADE)?;
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            socket.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        ensure!(head.starts_with(b"HTTP/1.1 101 "), "refused: {}", head.escape_ascii());
        let keys = (0..self.each).map(|own| format!("key-{}", (number + own) % self.keys));
        socket.write_all(&frame(commands(&keys.collect::<Vec<_>>()).as_bytes())?)?;
        Ok(socket)
    }

    /// Reads what a client has received, and counts the pushes.
    fn pushes(&self, mut socket: TcpStream) -> Result<usize> {
        socket.set_nonblocking(true)?;
        let mut received = Vec::new();
        match socket.read_to_end(&mut received) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => bail!("the server has ended a connection: {other:?}"),
        }
        let text = String::from_utf8_lossy(&received);
        ensure!(!text.contains(r#""error""#), "a client got an error: {text}");
        let pushes = text.matches(r#"{"push""#).count();
        let least = self.each * usize::try_from(self.seconds)?;
        ensure!(pushes >= least, "a client got {pushes} values, and not {least}");
        Ok(pushes)
    }
}

fn settings(backend: SocketAddr) -> Value {
    let poll = json!({ "mode": "versioned", "refresh_interval": "1s" });
    let proxy = json!({ "endpoint": format!("http://{backend}/poll") });
    json!({
        "channel": {
            "without_namespace": { "subscription_type": "shared_poll", "shared_poll": poll },
            "proxy": { "shared_poll_refresh": proxy },
        },
        "shared_poll": { "hmac_secret_key": SECRET },
        // Clients answer no pings.
        "client": { "ping_interval": "3600s" },
        "websocket": { "compression": false },
    })
}

/// The commands of a client in one message: it connects, subscribes and tracks keys.
fn commands(keys: &[String]) -> String {
    let items: Vec<_> = keys.iter().map(|key| json!({ "key": key })).collect();
    let track = json!([{ "signature": signature(keys), "items": items }]);
    let commands = [
        json!({ "id": 1, "connect": {} }),
        json!({ "id": 2, "subscribe": { "channel": CHANNEL, "type": 4 } }),
        json!({ "id": 3, "sub_refresh": { "channel": CHANNEL, "type": 1, "track": track } }),
    ];
    commands.map(|command| command.to_string()).join("\n")
}

/// A signature of protocol §28 for an anonymous user, without an end.
fn signature(keys: &[String]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let names = hex(digest::digest(&digest::SHA256, keys.join("\0").as_bytes()).as_ref());
    let text = format!("1\x000\0\0{CHANNEL}\0{names}");
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    format!("1:0:{}", hex(hmac::sign(&key, text.as_bytes()).as_ref()))
}

/// A text frame with a mask of zeros.
fn frame(text: &[u8]) -> Result<Vec<u8>> {
    let length = u16::try_from(text.len()).context("a short message")?;
    let head = [&[0x81, 0x80 | 126][..], &length.to_be_bytes(), &[0; 4]].concat();
    Ok([&head, text].concat())
}

const CHANNEL: &str = "prices";
const SECRET: &str = "bench";
const INTERVAL: Duration = Duration::from_secs(1);
const UPGRADE: &[u8] = b"GET /connection/websocket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
/// Standard streams, the poller, the backend's connections.
const DESCRIPTORS_SPARE: u64 = 200;
