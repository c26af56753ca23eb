//! Scenario `handshakes`: full TLS handshakes per server CPU-second, next to those of `openssl s_server`.
//! In: a number of handshakes → out: a table; not passed below `--bar`.
//! Uses `target` for processes; the client is rustls, one connection at a time, for both contenders.
//! Change here what is compared; certificates live in `certificate`.

use anyhow::{Context, Result, ensure};
use clap::Args;
use rustls::{ClientConfig, ClientConnection};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use crate::certificate::Certificate;
use crate::setup::Setup;
use crate::stats::{grouped, median, verdict};
use crate::target::{Target, command_on};
use fanwire_load::generator::tls::SERVER_NAME;
use fanwire_load::machine::Meter;

/// Full TLS handshakes per server CPU-second, next to openssl.
#[derive(Args)]
pub struct Handshakes {
    /// Handshakes of each contender in each round.
    #[arg(long, default_value_t = 2_000)]
    handshakes: usize,
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
        let (binary, core) = (self.setup.binary()?, self.setup.server_core);
        let certificate = Certificate::new()?;
        let has_openssl = Command::new("openssl").arg("version").output().is_ok();
        ensure!(has_openssl || self.bar.is_none(), "--bar: there is no openssl to compare with");
        println!(
            "handshakes: {} in each of {} rounds, TLS 1.3, P-256; server on core {core}\n",
            grouped(self.handshakes as f64),
            self.rounds
        );
        println!("round  contender  handshakes/CPU-s");
        let mut ratios = Vec::new();
        for round in 1..=self.rounds {
            let target = Target::with_settings(&binary, Some(core), certificate.settings())?;
            let fanwire = self.measure(target.address(), target.pid(), &certificate)?;
            println!("{round:>5}  {:<9}  {:>16}", "fanwire", grouped(fanwire));
            if has_openssl {
                let openssl = Openssl::start(core, &certificate)?;
                let other = self.measure(openssl.address, openssl.child.id(), &certificate)?;
                println!("{round:>5}  {:<9}  {:>16}", "openssl", grouped(other));
                ratios.push(fanwire / other);
            }
        }
        if ratios.is_empty() {
            return Ok(true);
        }
        let ratio = median(ratios);
        let passed = self.bar.is_none_or(|bar| ratio >= bar);
        let verdict = verdict(self.bar, passed);
        println!("\nratio of handshakes per CPU-second, fanwire / openssl: {ratio:.3}{verdict}");
        Ok(passed)
    }

    /// Handshakes per CPU-second of a server.
    fn measure(&self, address: SocketAddr, pid: u32, certificate: &Certificate) -> Result<f64> {
        let config = certificate.client();
        (0..WARM_UP).try_for_each(|_| handshake(address, &config))?;
        let meter = Meter::start(pid, self.setup.server_core)?;
        (0..self.handshakes).try_for_each(|_| handshake(address, &config))?;
        Ok(self.handshakes as f64 / meter.stop()?.cpu_seconds)
    }
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
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
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
