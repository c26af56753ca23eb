//! Scenario `handshakes`: full TLS handshakes per server CPU-second, next to those of `openssl s_server`.
//! In: a number of handshakes → out: a table; not passed below `--bar`.
//! Uses `target` for processes; the clients are rustls and `openssl s_time`, one connection at a time, for both contenders.
//! Changed here: what is compared; certificates live in `certificate`.

use anyhow::{Context, Result, ensure};
use clap::Args;
use rustls::{ClientConfig, ClientConnection};
use std::cmp::Ordering::Greater;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use crate::certificate::Certificate;
use crate::metrics;
use crate::setup::Setup;
use crate::stats::{grouped, judge, median};
use crate::target::{Target, command_on};
use fanwire_load::generator::tls::SERVER_NAME;
use fanwire_load::machine::{Meter, Usage};

/// Full TLS handshakes per server CPU-second, next to openssl.
#[derive(Args)]
pub struct Handshakes {
    /// Handshakes of rustls with each contender in each round.
    #[arg(long, default_value_t = 2_000)]
    handshakes: usize,
    /// Seconds of `openssl s_time` with each contender in each round.
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Rounds; each starts both contenders again.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Fail when the median ratio is below this.
    #[arg(long)]
    bar: Option<f64>,
    #[command(flatten)]
    setup: Setup,
}

impl Handshakes {
    /// True when the bar is met or none was set. Without a program `openssl` there is nothing to compare with.
    ///
    /// # Errors
    /// A server that does not start, or a handshake that fails.
    pub fn run(self) -> Result<bool> {
        self.setup.pin_generator()?;
        let binary = self.setup.binary()?;
        let core = self.setup.server_core;
        let certificate = Certificate::new()?;
        let has_openssl = Command::new("openssl").arg("version").output().is_ok();
        ensure!(has_openssl || self.bar.is_none(), "--bar: there is no openssl to compare with");
        println!(
            "handshakes: {} of rustls and {} s of s_time in each of {} rounds, TLS 1.3, P-256; server on core {core}\n",
            grouped(self.handshakes as f64),
            self.seconds,
            self.rounds
        );
        println!("round  server   client  handshakes/s  CPU µs/handshake  handshakes/CPU-s");
        let clients =
            if has_openssl { &[Client::Rustls, Client::STime][..] } else { &[Client::Rustls] };
        let mut ratios = [Vec::new(), Vec::new()];
        for round in 1..=self.rounds {
            let target = Target::fanwire(&binary, Some(core), certificate.settings())?;
            let server = Server { name: "fanwire", address: target.address(), pid: target.pid() };
            let fanwire = self.measure_all(round, &server, clients, &certificate)?;
            check_counts(target.plain_address(), &fanwire)?;
            drop(target);
            if has_openssl {
                let openssl = Openssl::start(core, &certificate)?;
                let address = openssl.address;
                let pid = openssl.child.id();
                let server = Server { name: "openssl", address, pid };
                let openssl = self.measure_all(round, &server, clients, &certificate)?;
                for ((ratios, fanwire), openssl) in ratios.iter_mut().zip(fanwire).zip(openssl) {
                    ratios.push(fanwire.per_cpu_second() / openssl.per_cpu_second());
                }
            }
        }
        if !has_openssl {
            return Ok(true);
        }
        let [ratio, s_time] = ratios.map(median);
        let (passed, verdict) = judge(ratio, Greater, self.bar);
        println!(
            "\nratio of handshakes per CPU-second, fanwire / openssl: {ratio:.3}{verdict}; with s_time as the client: {s_time:.3}"
        );
        Ok(passed)
    }

    /// Measures a server with one client after the other, and prints a line for each.
    fn measure_all(
        &self,
        round: usize,
        server: &Server,
        clients: &[Client],
        certificate: &Certificate,
    ) -> Result<Vec<Measured>> {
        let measure = |client: &Client| {
            let measured = self.measure(*client, server, certificate)?;
            println!(
                "{round:>5}  {:<7}  {:<6}  {:>12}  {:>16.0}  {:>16}",
                server.name,
                client.name(),
                grouped(measured.count as f64 / measured.usage.wall_seconds),
                1e6 / measured.per_cpu_second(),
                grouped(measured.per_cpu_second())
            );
            Ok(measured)
        };
        clients.iter().map(measure).collect()
    }

    fn measure(
        &self,
        client: Client,
        server: &Server,
        certificate: &Certificate,
    ) -> Result<Measured> {
        let config = certificate.client();
        let one_by_one = |count| (0..count).try_for_each(|_| handshake(server.address, &config));
        one_by_one(WARM_UP)?;
        let meter = Meter::start(server.pid, self.setup.server_core)?;
        let count = match client {
            Client::Rustls => one_by_one(self.handshakes).map(|()| self.handshakes)?,
            Client::STime => s_time(server.address, self.seconds)?,
        };
        Ok(Measured { count, usage: meter.stop()? })
    }
}

/// The program that opens the connections, one at a time.
#[derive(Clone, Copy)]
enum Client {
    Rustls,
    STime,
}

impl Client {
    fn name(self) -> &'static str {
        match self {
            Self::Rustls => "rustls",
            Self::STime => "s_time",
        }
    }
}

/// A contender.
struct Server {
    name: &'static str,
    address: SocketAddr,
    pid: u32,
}

/// The handshakes of one client, and what they cost the server.
struct Measured {
    count: usize,
    usage: Usage,
}

impl Measured {
    fn per_cpu_second(&self) -> f64 {
        self.count as f64 / self.usage.cpu_seconds
    }
}

/// Handshakes for some seconds with a session of its own each. Without `-www` the program sends no request, and closes after the
/// handshake without close_notify. Its own figures count whole seconds, or CPU of the client.
fn s_time(address: SocketAddr, seconds: u32) -> Result<usize> {
    let mut command = Command::new("openssl");
    command.args(["s_time", "-new", "-time", &seconds.to_string(), "-connect"]);
    let output = command.arg(address.to_string()).stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let count = text.lines().find_map(|line| line.split_once(" connections in ")?.0.parse().ok());
    let failure = || format!("openssl s_time: {}", String::from_utf8_lossy(&output.stderr));
    count.filter(|_| output.status.success()).with_context(failure)
}

/// Fails unless Fanwire has done what the clients have, without resuming a session. s_time closes before it reads the tickets of TLS 1.3,
/// so that sending them often fails, and the server counts the handshake as failed. The last one may not be counted yet.
fn check_counts(address: SocketAddr, measured: &[Measured]) -> Result<()> {
    let page = metrics::page(address)?;
    let count = |result: &str| {
        metrics::value(&page, &format!("fanwire_tls_handshakes_total{{result=\"{result}\"}}"))
    };
    let done = measured.iter().map(|measured| measured.count + WARM_UP).sum::<usize>() as f64;
    let rustls = (measured[0].count + measured.len() * WARM_UP) as f64;
    let full = count("full")?;
    let failed = count("failed")?;
    let resumed = count("resumed")?;
    ensure!(
        full >= rustls && full + failed + 1.0 >= done && resumed == 0.0,
        "{done} handshakes: the server counts {full} full ones, {failed} failed, {resumed} resumed"
    );
    Ok(())
}

/// One connection with a full handshake and no request.
fn handshake(address: SocketAddr, config: &Arc<ClientConfig>) -> Result<()> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let mut session = ClientConnection::new(Arc::clone(config), SERVER_NAME.try_into()?)?;
    while session.is_handshaking() {
        session.complete_io(&mut socket)?;
    }
    session.send_close_notify();
    session.complete_io(&mut socket)?;
    Ok(())
}

/// A running `openssl s_server`.
struct Openssl {
    child: Child,
    address: SocketAddr,
}

impl Openssl {
    fn start(core: usize, certificate: &Certificate) -> Result<Self> {
        let mut command = command_on(Some(core), "openssl".as_ref());
        command.args(["s_server", "-accept", "127.0.0.1:0", "-naccept", "1000000", "-cert"]);
        command.arg(certificate.certificate()).arg("-key").arg(certificate.key());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // It writes an error for each client that leaves without close_notify.
        let mut child = command.stderr(Stdio::null()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("the pipe was asked for")?);
        let address = loop {
            let mut line = String::new();
            ensure!(lines.read_line(&mut line)? > 0, "openssl s_server does not start");
            if let Some(address) = line.trim().strip_prefix("ACCEPT ") {
                break address.parse()?;
            }
        };
        // It writes about every connection, and would stop where the pipe is full.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Ok(Self { child, address })
    }
}

impl Drop for Openssl {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const WARM_UP: usize = 50;
